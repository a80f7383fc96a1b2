// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The process table, see process.h. Records are the source's memory; what is here are references to
 * them, sorted by pid. The list walk tells what to change in these. Of another source they are made
 * anew for each sample, and comparing them with those of the one before tells births and deaths.
 * Events later than the beginning of a sample wait for the next, as their process may be in it.
 */
#include "process_impl.h"

#include <stdlib.h>
#include <string.h>

struct mote_process *mote_process_new(const struct mote_options *options, struct mote_tasks *tasks,
				      struct mote_events *events)
{
	struct mote_process *process = malloc(sizeof(*process));

	if (!process)
		return NULL;
	memset(process, 0, sizeof(*process));
	process->tasks = tasks;
	process->events = events;
	process->start_unit = strcmp(tasks->ops->name, "proc") ? 1 : MOTE_NS_PER_TICK;
	for (unsigned int i = 0; i < 2; i++)
		process->refs[i] = malloc(tasks->max * sizeof(*process->refs[i]));
	process->ended_max = options->tables_ended;
	process->ended = malloc(process->ended_max * sizeof(*process->ended));
	process->texts = mote_texts_new((uint32_t)options->tables_text);
	process->accounts =
		mote_accounts_new(process->ended_max < 512 ? 64 : process->ended_max / 8);
	if (!process->ended || !process->texts || !process->accounts || !process->refs[0] ||
	    !process->refs[1]) {
		mote_process_free(process);
		return NULL;
	}
	memset(process->ended, 0, process->ended_max * sizeof(*process->ended));
	for (unsigned int i = 0; i < 2; i++)
		memset(process->refs[i], 0, tasks->max * sizeof(*process->refs[i]));
	return process;
}

void mote_process_free(struct mote_process *process)
{
	if (!process)
		return;
	free(process->refs[0]);
	free(process->refs[1]);
	free(process->ended);
	mote_texts_free(process->texts);
	mote_accounts_free(process->accounts);
	free(process);
}

unsigned int mote_process_half(const struct mote_process *process)
{
	return !process->current;
}

unsigned int mote_process_lower_bound(const struct mote_process *process, uint64_t pid)
{
	const struct mote_process_ref *refs = process->refs[process->current];
	unsigned int low = 0, n = process->n[process->current];

	while (n) {
		unsigned int half = n / 2;

		if (refs[low + half].pid < pid) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

struct mote_process_ref *mote_process_find_pid(const struct mote_process *process, uint32_t pid)
{
	struct mote_process_ref *refs = process->refs[process->current];
	unsigned int at = mote_process_lower_bound(process, pid);

	return at < process->n[process->current] && refs[at].pid == pid ? &refs[at] : NULL;
}

struct mote_process_ref *mote_process_find(const struct mote_process *process, uint32_t pid,
					   uint64_t start)
{
	struct mote_process_ref *ref = mote_process_find_pid(process, pid);

	/* As it is shown: /proc has no more than ticks, where BPF events have nanoseconds. */
	return ref && task_of(process, ref)->start / MOTE_NS_PER_TICK == start / MOTE_NS_PER_TICK
		       ? ref
		       : NULL;
}

uint64_t mote_process_start_of(const struct mote_process *process, const struct mote_event *event)
{
	return event->start - event->start % process->start_unit;
}

static void take_events(struct mote_process *process, uint64_t until, uint64_t now)
{
	const struct mote_event *event;
	bool bpf = process->events->fd < 0;

	while ((event = mote_events_next(process->events, until))) {
		if ((event->kind == MOTE_EVENT_FORK || event->kind == MOTE_EVENT_EXEC) &&
		    process->tasks->ops->born)
			process->tasks->ops->born(process->tasks, event->pid);
		if ((event->kind == MOTE_EVENT_EXIT || event->kind == MOTE_EVENT_FINAL) && bpf)
			mote_process_exited(process, (const struct mote_event_exit *)event);
		if (event->kind == MOTE_EVENT_EXEC && bpf)
			mote_process_executed(process, (const struct mote_event_exec *)event, now);
	}
}

static uint64_t youngest_of(const struct mote_process *process)
{
	uint64_t youngest = 0;

	for (unsigned int i = 0; i < process->n[process->current]; i++) {
		const struct mote_process_ref *ref = &process->refs[process->current][i];
		uint64_t start = task_of(process, ref)->start;

		youngest = start > youngest ? start : youngest;
	}
	return youngest;
}

void mote_process_sampled(struct mote_process *process, unsigned int n, uint64_t began,
			  uint64_t now)
{
	unsigned int half = mote_process_half(process);

	if (process->tasks->found) {
		mote_process_take_walk(process, n, now);
	} else {
		process->n[half] = n;
		mote_process_merge(process, half, now);
		process->current = half;
	}
	if (!process->sampled)
		process->youngest = youngest_of(process);
	process->sampled = now;
	if (process->events)
		take_events(process, began, now);
}

bool mote_process_lives(struct mote_process *process, uint32_t pid, uint64_t start)
{
	return mote_process_find(process, pid, start) != NULL;
}

bool mote_process_whole(const struct mote_process *process)
{
	return !process->tasks->cut;
}

int mote_process_next_ended(const struct mote_process *process, uint64_t *cursor, uint32_t *pid,
			    uint64_t *start)
{
	uint64_t oldest = process->ended_total - process->ended_n;
	const struct mote_process_ended *ended;

	if (*cursor < oldest) {
		*cursor = oldest;
		return -1;
	}
	if (*cursor == process->ended_total)
		return 0;
	ended = &process->ended[(*cursor)++ % process->ended_max];
	*pid = ended->pid;
	*start = ended->start / MOTE_NS_PER_TICK;
	return 1;
}

void mote_process_set_absent(struct mote_process *process, uint64_t fields)
{
	process->absent = fields;
}

void mote_process_stats(const struct mote_process *process, struct mote_process_stats *stats)
{
	stats->processes = process->n[process->current];
	stats->ended = (struct mote_fill){ .size = process->ended_max,
					   .fill = process->ended_n,
					   .peak = process->ended_n };
	mote_accounts_fill(process->accounts, &stats->accounts);
	stats->accounts.dropped = process->unaccounted;
	mote_texts_fill(process->texts, &stats->texts);
}
