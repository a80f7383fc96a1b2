// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What a sample changes in the table. A record that was written is compared with the one before,
 * and nobody looks at one that was not. A record's last fields are ours and move along.
 */
#include "process_impl.h"

#include <stddef.h>
#include <string.h>

#define KERNEL_PART offsetof(struct mote_task, shown_utime)

static void end_task(struct mote_process *process, const struct mote_process_ref *ref, uint64_t now)
{
	mote_process_bury(process, task_of(process, ref), now);
}

/* One that a full table left out for a while has an account, and was shown. */
static void begin_task(struct mote_process *process, struct mote_process_ref *ref, uint64_t now)
{
	struct mote_task *task = task_of(process, ref);
	const struct mote_account *account =
		mote_accounts_find(process->accounts, task->pid, task->start / MOTE_NS_PER_TICK);

	task->shown_utime = account ? account->counters[PROCESS_UTIME - MOTE_COUNTER_FIRST] : 0;
	task->shown_stime = account ? account->counters[PROCESS_STIME - MOTE_COUNTER_FIRST] : 0;
	task->text = 0;
	task->text_exec_id = ~task->exec_id;
	ref->changed = now;
	mote_process_lose_names(process, ref);
}

/* Both records of a process that is there still. */
static void go_on(struct mote_process *process, struct mote_process_ref *ref,
		  const struct mote_process_ref *old, uint64_t now)
{
	struct mote_task *task = task_of(process, ref);
	const struct mote_task *before = task_of(process, old);

	/* Too much would stand until the process has caught up: hours, if that is what a thread
	 * ran. */
	if (task->flags & MOTE_TASK_TWICE)
		task->counts = before->counts;
	mote_process_raise(&task->counts, &before->counts);
	task->shown_utime = before->shown_utime;
	task->shown_stime = before->shown_stime;
	task->text = before->text;
	task->text_exec_id = before->text_exec_id;
	task->named = before->named;
	ref->changed = memcmp(task, before, KERNEL_PART) != 0 ? now : old->changed;
	/* An exec takes its name, and it may have got memory only now. */
	ref->nameless = old->nameless;
	if (task->exec_id != before->exec_id || task->flags != before->flags)
		mote_process_lose_names(process, ref);
}

/* The same pid in two samples. */
static void compare(struct mote_process *process, struct mote_process_ref *ref,
		    const struct mote_process_ref *old, uint64_t now)
{
	if (task_of(process, ref)->start == task_of(process, old)->start) {
		go_on(process, ref, old, now);
	} else {
		end_task(process, old, now);
		begin_task(process, ref, now);
	}
}

/* Merges the processes of a half, sorted by pid, with those of the other. */
void mote_process_merge(struct mote_process *process, unsigned int half, uint64_t now)
{
	struct mote_process_ref *old = process->refs[!half], *old_end = old + process->n[!half];

	for (unsigned int i = 0; i < process->n[half]; i++) {
		struct mote_process_ref *ref = &process->refs[half][i];

		*ref = (struct mote_process_ref){ .pid = process->tasks->half[half][i].pid,
						  .place = i,
						  .side = half };
		for (; old < old_end && old->pid < ref->pid; old++)
			end_task(process, old, now);
		if (old < old_end && old->pid == ref->pid)
			compare(process, ref, old++, now);
		else
			begin_task(process, ref, now);
	}
	for (; old < old_end; old++)
		end_task(process, old, now);
}

static void end_pair(struct mote_process *process, const struct mote_process_ref *ref, uint64_t now)
{
	end_task(process, ref, now);
	process->tasks->ops->release(process->tasks, ref->place);
}

static void drop_ended(struct mote_process *process, uint64_t now)
{
	const struct mote_tasks *tasks = process->tasks;
	struct mote_process_ref *refs = process->refs[process->current];
	unsigned int n = 0;

	for (unsigned int i = 0; i < process->n[process->current]; i++) {
		if (tasks->pairs[refs[i].place].seen == tasks->seen)
			refs[n++] = refs[i];
		else
			end_pair(process, &refs[i], now);
	}
	process->n[process->current] = n;
}

/* New ones, which lie in the room, sorted by pid: none of them is there yet. */
static void insert(struct mote_process *process, unsigned int n)
{
	struct mote_process_ref *refs = process->refs[process->current];
	const struct mote_process_ref *run = process->refs[!process->current];
	unsigned int old = process->n[process->current], to = old + n;

	process->n[process->current] = to;
	while (n) {
		bool later = old && refs[old - 1].pid > run[n - 1].pid;

		refs[--to] = later ? refs[--old] : run[--n];
	}
}

/* Of two with the same pid the first ended while the walk went on, and the other got its pid. */
static void take_written(struct mote_process *process, struct mote_process_ref *ref,
			 struct mote_process_ref new, uint64_t now)
{
	struct mote_process_ref old = *ref;

	*ref = new;
	if (new.place == old.place) {
		go_on(process, ref, &old, now);
	} else {
		end_pair(process, &old, now);
		begin_task(process, ref, now);
	}
}

/* What is new comes in the order of birth, in which pids ascend until they wrap. */
void mote_process_take_walk(struct mote_process *process, unsigned int n, uint64_t now)
{
	const struct mote_tasks *tasks = process->tasks;
	struct mote_process_ref *run = process->refs[!process->current];
	unsigned int in_run = 0;

	if (!tasks->same)
		drop_ended(process, now);
	for (unsigned int i = 0; i < n; i++) {
		struct mote_process_ref new = { .pid = tasks->found[i].pid,
						.place = tasks->found[i].pair & ~MOTE_REF_WRITTEN };
		struct mote_process_ref *ref;

		if (!(tasks->found[i].pair & MOTE_REF_WRITTEN))
			continue;
		new.side = tasks->pairs[new.place].side;
		if (in_run && new.pid <= run[in_run - 1].pid) {
			insert(process, in_run);
			in_run = 0;
		}
		ref = mote_process_find_pid(process, new.pid);
		if (ref) {
			take_written(process, ref, new, now);
		} else {
			run[in_run++] = new;
			begin_task(process, &run[in_run - 1], now);
		}
	}
	insert(process, in_run);
}
