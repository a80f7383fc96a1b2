/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What differs between kernels by more than an offset, and nothing of it elsewhere. Each entry says
 * since when, what changed, and the oldest supported kernel at which it can be deleted.
 *
 * Not here because CO-RE bridges it: pid.numbers[1] became numbers[] (6.5), file.f_path got a const
 * twin and dentry.d_name too (6.17), the clone_flags of task_newtask u64 (6.18, the same 8 bytes).
 */
#ifndef MOTE_COMPAT_H
#define MOTE_COMPAT_H

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* 5.14, 2f064a59a11f: task_struct.state (long) became __state (unsigned int). Delete at 5.14. */
struct task_struct___state {
	long state;
};

struct task_struct___new_state {
	unsigned int __state;
};

/*
 * 6.2, f1a7941243c1: mm_struct.rss_stat became an array of per-CPU counters. Before, it is a struct
 * of an array of typedef'd structs, which the verifier does not let a program load from: it takes
 * bpf_probe_read_kernel(). Delete the first half at 6.2.
 */
struct mm_rss_stat {
	struct {
		long counter;
	} count[4];
};

struct mm_struct___rss_struct {
	struct mm_rss_stat rss_stat;
};

struct percpu_counter {
	s64 count;
};

struct mm_struct___rss_percpu {
	struct percpu_counter rss_stat[4];
};

/*
 * 6.16: the tracepoint sched_process_exit says whether the whole process ends. Before, several
 * threads that end at once can all find signal->live at 0. Delete at 6.16.
 */
struct trace_event_raw_sched_process_exit___group_dead {
	bool group_dead;
};

#pragma clang attribute pop

/* What of a socket is read together: since 3.9 the kernel has it in this order. */
struct compat_sock_head {
	u32 hash;
	__be16 dport;
	u16 num, family;
	u8 state, pad0;
};

/* A read is a call; the fields are where BTF says if that is elsewhere. */
static __always_inline void compat_sock_head(struct compat_sock_head *head, const struct sock *sk)
{
	bpf_core_read(head, sizeof(*head), &sk->__sk_common.skc_hash);
	if (bpf_core_field_offset(sk->__sk_common.skc_state) !=
	    bpf_core_field_offset(sk->__sk_common.skc_hash) +
		    __builtin_offsetof(struct compat_sock_head, state))
		head->state = BPF_CORE_READ(sk, __sk_common.skc_state);
}

/*
 * Between 6.1 and 6.12: the verifier takes a bound that was checked on one copy of a spilled number
 * to hold for the others. Before (refused on 5.10 and 6.1), a number must be bounded by an AND
 * right where it is used, which the compiler must not find needless. `mask` + 1 is a power of two.
 * Delete at 6.12.
 */
static __always_inline u64 compat_bounded(u64 n, u64 mask)
{
	asm volatile("" : "+r"(n));
	return n & mask;
}

static __always_inline unsigned int compat_task_state(const struct task_struct *t)
{
	if (bpf_core_field_exists(struct task_struct___state, state))
		return ((const struct task_struct___state *)t)->state;
	return ((const struct task_struct___new_state *)t)->__state;
}

/* enum in include/linux/mm_types_task.h, unchanged since 4.5 */
#define MM_FILEPAGES   0
#define MM_ANONPAGES   1
#define MM_SHMEMPAGES  3
#define NR_MM_COUNTERS 4

/* Pages by kind; false if they cannot be had. On 6.2 and later up to 64 pages per CPU behind. */
static __always_inline bool compat_rss(const struct mm_struct *mm, bool probe_read, s64 *pages)
{
	if (bpf_core_type_exists(struct mm_rss_stat)) {
		const struct mm_struct___rss_struct *old = (const void *)mm;

		return probe_read && !bpf_probe_read_kernel(pages, NR_MM_COUNTERS * sizeof(*pages),
							    &old->rss_stat.count);
	}
	pages[MM_FILEPAGES] = ((const struct mm_struct___rss_percpu *)mm)->rss_stat[0].count;
	pages[MM_ANONPAGES] = ((const struct mm_struct___rss_percpu *)mm)->rss_stat[1].count;
	pages[MM_SHMEMPAGES] = ((const struct mm_struct___rss_percpu *)mm)->rss_stat[3].count;
	return true;
}

/* 6.17: kernels for one CPU have it, too. Delete at 6.17. */
static __always_inline u32 compat_on_cpu(const struct task_struct *t)
{
	return bpf_core_field_exists(t->on_cpu) ? t->on_cpu : 0;
}

/*
 * The state's letter: __task_state_index() of include/linux/sched.h. The bits of TASK_RTLOCK_WAIT
 * (5.16) and TASK_FROZEN (6.1) are not in use before, and both show as D.
 */
#define TASK_REPORT          0x7f
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_IDLE            0x0402
#define TASK_RTLOCK_WAIT     0x1000
#define TASK_FROZEN          0x8000

static __always_inline char compat_state_letter(unsigned int state, unsigned int exit_state)
{
	unsigned int bits = (state | exit_state) & TASK_REPORT;

	if (state & (TASK_RTLOCK_WAIT | TASK_FROZEN))
		bits = TASK_UNINTERRUPTIBLE;
	else if ((state & TASK_IDLE) == TASK_IDLE)
		return 'I';
	if (bits & 0x40)
		return 'P';
	if (bits & 0x20)
		return 'Z';
	if (bits & 0x10)
		return 'X';
	if (bits & 0x08)
		return 't';
	if (bits & 0x04)
		return 'T';
	if (bits & 0x02)
		return 'D';
	return bits & 0x01 ? 'S' : 'R';
}

/*
 * 5.12, 3bfe6106693b: io_uring's workers became threads of the process that they work for. Before,
 * they are kernel threads that use its memory while they do, as vhost's were up to 6.3. NULL: a
 * kernel thread works for nobody else. Delete at 6.4.
 */
static __always_inline struct task_struct *compat_works_for(struct task_struct *kthread)
{
	struct mm_struct *mm = BPF_CORE_READ(kthread, mm);

	if (!mm || !bpf_core_field_exists(mm->owner))
		return NULL;
	return BPF_CORE_READ(mm, owner);
}

#endif
