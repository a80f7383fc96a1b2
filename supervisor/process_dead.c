// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The dead are accounted for once. A process that a sample no longer has adds its last counts to
 * the totals, and so does the exit of one that no sample ever had; either opens an account. What
 * later events tell of it (exit, and the final word when the kernel frees it) adds the difference.
 * The exit of a process that the newest sample has, a zombie, raises its record.
 */
#include "process_impl.h"

#include "task.h"

#define CLOSED_MEMORY_NS 5000000000ull

void mote_process_counters(struct mote_task *task, uint64_t out[MOTE_COUNTERS])
{
	const struct mote_thread_counts *counts = &task->counts;

	if (!task->present) {
		mote_task_adjust(task);
	} else { /* from /proc, which has adjusted them */
		if (task->shown_utime < task->prev_utime)
			task->shown_utime = task->prev_utime;
		if (task->shown_stime < task->prev_stime)
			task->shown_stime = task->prev_stime;
	}
	out[PROCESS_UTIME - MOTE_COUNTER_FIRST] = task->shown_utime;
	out[PROCESS_STIME - MOTE_COUNTER_FIRST] = task->shown_stime;
	out[PROCESS_CUTIME - MOTE_COUNTER_FIRST] = task->cutime;
	out[PROCESS_CSTIME - MOTE_COUNTER_FIRST] = task->cstime;
	out[PROCESS_MINFLT - MOTE_COUNTER_FIRST] = counts->minflt;
	out[PROCESS_MAJFLT - MOTE_COUNTER_FIRST] = counts->majflt;
	out[PROCESS_RCHAR - MOTE_COUNTER_FIRST] = counts->rchar;
	out[PROCESS_WCHAR - MOTE_COUNTER_FIRST] = counts->wchar;
	out[PROCESS_SYSCR - MOTE_COUNTER_FIRST] = counts->syscr;
	out[PROCESS_SYSCW - MOTE_COUNTER_FIRST] = counts->syscw;
	out[PROCESS_READ_BYTES - MOTE_COUNTER_FIRST] = counts->read_bytes;
	out[PROCESS_WRITE_BYTES - MOTE_COUNTER_FIRST] = counts->write_bytes;
	out[PROCESS_CANCELLED_WRITE_BYTES - MOTE_COUNTER_FIRST] = counts->cancelled_write_bytes;
	out[PROCESS_NVCSW - MOTE_COUNTER_FIRST] = counts->nvcsw;
	out[PROCESS_NIVCSW - MOTE_COUNTER_FIRST] = counts->nivcsw;
	out[PROCESS_RUN_TIME - MOTE_COUNTER_FIRST] = counts->run_time;
	out[PROCESS_RUN_DELAY - MOTE_COUNTER_FIRST] = counts->run_delay;
}

/* Brings an account up to what is known of its process now, and the totals with it. */
static void settle(struct mote_process *process, struct mote_account *account,
		   struct mote_task *task)
{
	uint64_t counters[MOTE_COUNTERS] = { 0 };

	mote_process_counters(task, counters);
	for (unsigned int i = 0; i < MOTE_COUNTERS; i++) {
		if (counters[i] <= account->counters[i])
			continue;
		process->totals[i] += counters[i] - account->counters[i];
		account->counters[i] = counters[i];
	}
}

void mote_process_raise(struct mote_thread_counts *counts, const struct mote_thread_counts *by)
{
	uint64_t *to = (uint64_t *)counts;
	const uint64_t *from = (const uint64_t *)by;

	for (unsigned int i = 0; i < sizeof(*counts) / sizeof(*to); i++)
		to[i] = to[i] > from[i] ? to[i] : from[i];
}

static void raise_to_exit(struct mote_task *task, const struct mote_event_exit *event)
{
	mote_process_raise(&task->counts, &event->counts);
	if (event->prev_utime + event->prev_stime > task->prev_utime + task->prev_stime) {
		task->prev_utime = event->prev_utime;
		task->prev_stime = event->prev_stime;
	}
}

static void remember_ended(struct mote_process *process, const struct mote_task *task, uint64_t now)
{
	struct mote_process_ended *ended =
		&process->ended[process->ended_total % process->ended_max];

	if (process->ended_n == process->ended_max)
		process->forgot = ended->time;
	else
		process->ended_n++;
	*ended = (struct mote_process_ended){ .time = now, .start = task->start, .pid = task->pid };
	process->ended_total++;
}

void mote_process_bury(struct mote_process *process, struct mote_task *task, uint64_t now)
{
	/* Its exit, or a sample that had no room for it, may have opened one. */
	struct mote_account *account =
		mote_accounts_find(process->accounts, task->pid, task->start / MOTE_NS_PER_TICK);

	if (!account)
		account = mote_accounts_open(process->accounts, task->pid,
					     task->start / MOTE_NS_PER_TICK, now);
	settle(process, account, task);
	remember_ended(process, task, now);
	mote_texts_drop(process->texts, task->text);
	task->text = 0;
}

static struct mote_task task_of_exit(const struct mote_process *process,
				     const struct mote_event_exit *event)
{
	return (struct mote_task){
		.pid = event->event.pid,
		.start = mote_process_start_of(process, &event->event),
		.counts = event->counts,
		.prev_utime = event->prev_utime,
		.prev_stime = event->prev_stime,
	};
}

/* Whether an account was closed before the last words of its process can have come. */
static bool closed_early(const struct mote_process *process)
{
	uint64_t lost = mote_accounts_lost(process->accounts);

	return lost && process->sampled - lost < CLOSED_MEMORY_NS;
}

void mote_process_exited(struct mote_process *process, const struct mote_event_exit *event)
{
	struct mote_task task = task_of_exit(process, event);
	struct mote_process_ref *zombie = mote_process_find(process, task.pid, task.start);
	struct mote_account *account;
	bool final = event->event.kind == MOTE_EVENT_FINAL;

	if (zombie) { /* its account is settled when it is gone */
		raise_to_exit(task_of(process, zombie), event);
		zombie->changed = process->sampled;
		return;
	}
	account = mote_accounts_find(process->accounts, task.pid, task.start / MOTE_NS_PER_TICK);
	if (!account && closed_early(process)) {
		/* It may have been counted: better once too little than twice. */
		process->unaccounted++;
		return;
	}
	if (!account)
		account = mote_accounts_open(process->accounts, task.pid,
					     task.start / MOTE_NS_PER_TICK, process->sampled);
	/* The split of CPU time goes on from what was counted, else each part's largest is kept. */
	task.shown_utime = account->counters[PROCESS_UTIME - MOTE_COUNTER_FIRST];
	task.shown_stime = account->counters[PROCESS_STIME - MOTE_COUNTER_FIRST];
	settle(process, account, &task);
	if (final)
		mote_accounts_close(process->accounts, account);
}
