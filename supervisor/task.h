/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sums over task records: pure functions of memory, no allocation, no system call.
 */
#ifndef MOTE_TASK_H
#define MOTE_TASK_H

#include <stdint.h>

#include "abi.h"

/* Sorts by pid; a walk that is ascending already, as the kernel's are, costs one comparison a
 * record. */
void mote_task_sort(struct mote_task *tasks, unsigned int n);

/*
 * Adds each thread's counts to its process's record; `tasks` are sorted by pid. Sets or clears
 * MOTE_TASK_TORN and _TWICE in each task. Returns how many threads had no process in `tasks`.
 */
unsigned int mote_task_add_threads(struct mote_task *tasks, unsigned int n,
				   const struct mote_thread *threads, unsigned int m);

/* The record of `pid`, or NULL; `tasks` are sorted by pid. */
struct mote_task *mote_task_find(struct mote_task *tasks, unsigned int n, uint32_t pid);

void mote_task_add_counts(struct mote_thread_counts *sum, const struct mote_thread_counts *counts);

/*
 * User and system time as /proc/PID/stat shows them: kernel/sched/cputime.c, cputime_adjust().
 * `counts` holds the whole process. prev_utime and prev_stime are what was shown before: the larger
 * of the kernel's and our own; they are replaced by what is shown now. Exact in 128 bits.
 */
void mote_task_cputime(const struct mote_thread_counts *counts, uint64_t *prev_utime,
		       uint64_t *prev_stime);

/*
 * cputime of a record: from its prev_utime and prev_stime and what was shown before
 * (shown_utime, shown_stime), which are updated and hold the result.
 */
void mote_task_adjust(struct mote_task *task);

/*
 * The executable's path as readlink(/proc/PID/exe) gives it, " (deleted)" included, NUL-terminated;
 * "..." begins a path whose beginning is missing. `names` and `flags` (MOTE_EXE_*) are those of a
 * mote_ident. Returns its length; 0: not known, or none.
 */
unsigned int mote_task_exe(const char *names, unsigned int len, unsigned int flags, char *path,
			   unsigned int size);

#endif
