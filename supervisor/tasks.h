/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where the processes of a sample come from: the list walk (tasks_walk.c), the task iterator
 * (tasks_iter.c), or /proc files (tasks_proc.c). The latter two fill an array of struct mote_task,
 * sorted by pid; two halves are filled in turn, so that a sample can be compared with the one
 * before. Of the list walk a process has the same place in both halves as long as it lives, a
 * record is written only if something changed, to the half that is not current for that process,
 * and references tell what there is.
 */
#ifndef MOTE_TASKS_H
#define MOTE_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "engine.h"
#include "table.h"

struct mote_tasks;

/* A process of a sample. Its record: half[side][place]. */
struct mote_task_ref {
	uint32_t pid;
	uint32_t place : 24;
	uint32_t side : 1;
	uint32_t written : 1; /* since the sample before; else there is nothing new in the record */
	uint32_t : 6;
};

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
	/* A process has ended, its place can be given to another; NULL without references. */
	void (*release)(struct mote_tasks *tasks, uint32_t place);
	void (*fill)(const struct mote_tasks *tasks, struct mote_fill *processes,
		     struct mote_fill *threads);
	void (*close)(struct mote_tasks *tasks);
};

struct mote_tasks {
	const struct mote_tasks_ops *ops;
	struct mote_task *half[2];
	/* Of the sample, sorted by pid, until the next is pushed; NULL: each record, in order. */
	const struct mote_task_ref *refs;
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
