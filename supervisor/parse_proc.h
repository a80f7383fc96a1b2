/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parsers of /proc/PID files, for hosts without the task iterator: pure functions from text
 * to struct mote_task. Each sets what its file gives and the bits of it in `present`, and leaves
 * the rest alone. They return 0, or -EBADMSG with the task untouched: text that is cut or is not
 * of the kind it should be. A read of a process that has gone fails by itself (ESRCH).
 */
#ifndef MOTE_PARSE_PROC_H
#define MOTE_PARSE_PROC_H

#include "abi.h"
#include "parse.h"

/*
 * stat: pid, start, ppid, session, tty, state, nice, priority, threads, times, faults, vsize, comm
 * (cut at 15 bytes, as the kernel keeps it: a kworker's is longer here), and of `flags` KTHREAD
 * and HAS_MM. rss comes from statm.
 *
 * utime and stime are the kernel's, after its cputime_adjust(), in whole ticks. They are put into
 * counts and into prev_utime and prev_stime alike, so that doing cputime_adjust() again
 * (mote_task_cputime() of task.h) returns them as they are: it does so while counts.run_time is
 * not larger than their sum. run_time, from schedstat, can be: it is not cut to ticks. So take
 * prev_utime and prev_stime as they are wherever `present` is not 0.
 */
int mote_parse_pid_stat(struct mote_text text, struct mote_task *task);

/* statm: rss and shared, of pages of `page_size` bytes. */
int mote_parse_pid_statm(struct mote_text text, unsigned int page_size, struct mote_task *task);

/*
 * status: real uid and gid, context switches. The latter, and all of schedstat (run_time,
 * run_delay), are the leader's alone: they are the process's only while it has one thread and had
 * no other. /proc/PID/task/TID has each thread's.
 */
int mote_parse_pid_status(struct mote_text text, struct mote_task *task);
int mote_parse_pid_schedstat(struct mote_text text, struct mote_task *task);

/* io: the whole process's, exited threads included. */
int mote_parse_pid_io(struct mote_text text, struct mote_task *task);
int mote_parse_pid_oom_score_adj(struct mote_text text, struct mote_task *task);

#endif
