/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The one header that BPF programs and the supervisor share: records and maps between them.
 * Fixed-width types, padding named; both compilers check the layout.
 */
#ifndef MOTE_ABI_H
#define MOTE_ABI_H

#ifdef __bpf__
/* kernel.h has the fixed-width types there */
#else
#include <assert.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

#define MOTE_COMM_LEN 16
#define MOTE_ARGV_MAX 512
#define MOTE_EXE_MAX 256

/* What is kept of one thread; cumulative since the thread began. Times in ns, memory in bytes. */
struct mote_thread_counts {
	u64 utime, stime;  /* as the tick or vtime accounting counted them, before cputime_adjust */
	u64 run_time;      /* se.sum_exec_runtime */
	u64 run_delay;     /* sched_info.run_delay */
	u64 minflt, majflt;
	u64 nvcsw, nivcsw;
	u64 rchar, wchar, syscr, syscw;
	u64 read_bytes, write_bytes, cancelled_write_bytes;
};

/* A thread other than its process's leader, exited ones that were not reaped included. */
struct mote_thread {
	u32 pid, tgid;
	struct mote_thread_counts counts;
};

/*
 * A process. The task iterator, or the /proc tier, fills it with the leader's own counts plus
 * signal_struct's (threads that are gone); user space adds the living threads' to `counts`.
 */
struct mote_task {
	u32 pid, ppid;
	u64 start; /* task_struct.start_boottime, ns; from /proc: ticks * 10^7 */
	struct mote_thread_counts counts;
	u64 cutime, cstime;          /* of children waited for */
	u64 prev_utime, prev_stime;  /* signal->prev_cputime */
	u64 vsize, rss, shared;
	u64 cgroup_id;
	u32 uid, gid, session, tty;
	s32 nice, priority, oom_score_adj;
	u32 threads, fds;
	u32 exec_id; /* task_struct.self_exec_id: grows with each exec */
	u32 flags;   /* MOTE_TASK_* */
	char state;  /* R S D T t I Z X P */
	char comm[MOTE_COMM_LEN];
	char pad0[3];
	u64 present; /* bit PROCESS_<FIELD> of schema.h: which fields are known; 0 from BPF: all */

	/* User space's own; BPF never writes below. */
	u64 changed;              /* sample time at which a value last changed */
	u64 shown_utime, shown_stime; /* last given out; cputime_adjust keeps them monotonic */
	u32 text;                 /* handle of argv and exe in the text store, 0: none yet */
	u32 text_exec_id;         /* exec_id that `text` belongs to */
};

enum mote_task_flags {
	MOTE_TASK_KTHREAD = 1,
	MOTE_TASK_HAS_MM = 2,
	MOTE_TASK_HAS_FDS = 4, /* fds was counted */
};

#pragma GCC diagnostic pop
#endif
