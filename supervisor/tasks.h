/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where the processes of a sample come from: the list walk (tasks_walk.c), the task iterator
 * (tasks_iter.c), or /proc files (tasks_proc.c). The latter two fill an array of struct mote_task,
 * sorted by pid; two halves are filled in turn, so that a sample can be compared with the one
 * before. Of the list walk a process has the same place in both halves as long as it lives, a
 * record is written only if something changed, to the half that is not current for that process,
 * and what was found is told in the order of the kernel's list.
 */
#ifndef MOTE_TASKS_H
#define MOTE_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "engine.h"
#include "table.h"

struct mote_tasks;

struct mote_tasks_ops {
	const char *name; /* "list", "iterator" or "proc" */
	/*
	 * Pushes the operations of a sample, tagged MOTE_TAG_FILE with `index`; returns how many.
	 * They are linked to what comes next (the caller pushes something behind them), but with
	 * `apart` they are not linked at all. It is called again when these have completed, until
	 * it returns 0: the sample is complete then. It pushes at most `room` at a time.
	 */
	unsigned int (*push)(struct mote_tasks *tasks, struct mote_engine *engine,
			     unsigned int half, uint32_t index, unsigned int room);
	/* A completion of these: `step` is the tag's generation. */
	void (*complete)(struct mote_tasks *tasks, uint32_t step, int res);
	/* After the last: how many processes the half holds, or negative errno. */
	int (*finish)(struct mote_tasks *tasks, unsigned int half);
	/* A process was born or has made an exec, as an event told; may be NULL. */
	void (*born)(struct mote_tasks *tasks, uint32_t pid);
	/* A process has ended, its pair can be given to another; NULL without pairs. */
	void (*release)(struct mote_tasks *tasks, uint32_t place);
	void (*fill)(const struct mote_tasks *tasks, struct mote_fill *processes,
		     struct mote_fill *threads);
	void (*close)(struct mote_tasks *tasks);
};

struct mote_tasks {
	const struct mote_tasks_ops *ops;
	struct mote_task *half[2];
	/*
	 * Of the list walk, until the next is pushed: the processes of the sample (else NULL),
	 * their pairs, and what `seen` of these is. `same`: they are those of the sample before.
	 */
	const struct mote_ref *found;
	const struct mote_pair *pairs;
	uint32_t seen;
	bool same;
	unsigned int max;         /* processes a half can hold */
	uint64_t absent;          /* bits PROCESS_<FIELD> that this source never gives */
	unsigned int descriptors; /* that it may hold open */
	bool cut;                 /* the newest sample had no room for all processes */
	/*
	 * Its operations do not hang on the timer but are submitted when the timer's chain is
	 * complete: a thousand links cost two and a half times as much as a thousand reads.
	 */
	bool apart;
};

struct mote_options;
/*
 * Processes from /proc: pooled descriptors of /proc/PID/{stat,statm,status,schedstat,io}, opened
 * and closed by the engine; new processes come by born() and by a listing in a thread. `why`, for
 * each absent field, is a reason for a person. 0 or negative errno.
 */
int mote_tasks_proc_open(const struct mote_options *options, bool direct, bool has_events,
			 struct mote_tasks **out);
/* Why a field is absent, for hello; NULL if it is not. `field`: PROCESS_<FIELD>. */
const char *mote_tasks_proc_why(const struct mote_tasks *tasks, unsigned int field);

#endif
