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

/*
 * 5.19, cef216fc32d7: the tracepoint io_uring_complete tells the request. Before, as in the
 * io_uring of 5.15 that 5.10.162 and later have, what a request returned is seen by functions, and
 * what an earlier part of it read is in its async_data. Delete the second at 5.19.
 */
struct trace_event_raw_io_uring_complete {
	void *req;
	int res;
};

struct io_async_rw {
	unsigned long bytes_done;
};

struct io_kiocb___with_data {
	void *async_data;
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

/*
 * 6.16, 5da3bfa029d6 and others: cgroup_rstat_flush() became css_rstat_flush(), and each controller
 * has a tree of its own. Delete the first at 6.16.
 */
extern void cgroup_rstat_flush(struct cgroup *cgrp) __ksym __weak;
extern void css_rstat_flush(struct cgroup_subsys_state *css) __ksym __weak;

/*
 * What memory.stat shows lies in memcg_vmstats. Up to 6.9 state[] has a place for every number of
 * the kernel's enums; from 6.10 on (ff48c71c26aa) for those only that a memcg counts, and where
 * these are says an array of bytes. events[] is like that in all supported kernels; up to 6.9 its
 * array has numbers of four bytes, one more than the place. The arrays are static: without them in
 * kallsyms (CONFIG_KALLSYMS_ALL is off, or kptr_restrict=2) there is no way to know. Delete the
 * older half at 6.10.
 */
struct compat_memcg_arrays {
	u64 stats_index, events_index; /* where mem_cgroup_stats_index is, and ..events..; or 0 */
};

enum node_stat_item {
	NR_INACTIVE_FILE,
	NR_SLAB_RECLAIMABLE_B,
	NR_SLAB_UNRECLAIMABLE_B,
	WORKINGSET_REFAULT_ANON,
	WORKINGSET_REFAULT_FILE,
	NR_ANON_MAPPED,
	NR_FILE_PAGES,
	NR_FILE_DIRTY,
	NR_WRITEBACK,
	NR_SHMEM,
};

enum memcg_stat_item {
	MEMCG_KMEM, /* 5.18 */
	MEMCG_NR_STAT,
};

enum vm_event_item {
	PGFAULT,
	PGMAJFAULT,
	PGSTEAL_KSWAPD,
	PGSTEAL_DIRECT,
	PGSTEAL_KHUGEPAGED, /* 6.3 */
	PGSTEAL_PROACTIVE,  /* 6.15 */
	PGSCAN_KSWAPD,
	PGSCAN_DIRECT,
	PGSCAN_KHUGEPAGED,
	PGSCAN_PROACTIVE,
};

/* Places in the arrays; 255: none. */
struct compat_memcg_places {
	u8 known; /* 0: not to be found on this kernel */
	u8 anon, file, shmem, dirty, writeback, inactive_file;
	u8 slab_reclaimable, slab_unreclaimable, refault_anon, refault_file, kernel;
	u8 pgfault, pgmajfault, pgscan[4], pgsteal[4];
};

static __always_inline u8 compat_memcg_place(u64 index, bool bytes, u32 item)
{
	u32 number = 0;
	u8 place = 255;

	if (bytes)
		return bpf_probe_read_kernel(&place, 1, (const void *)(index + item)) ? 255 : place;
	if (bpf_probe_read_kernel(&number, 4, (const void *)(index + 4 * item)) || !number ||
	    number > 255)
		return 255;
	return number - 1;
}

#define COMPAT_STATE(enum_, item)                                             \
	(!bpf_core_enum_value_exists(enum enum_, item) ? 255                  \
	 : packed ? compat_memcg_place(arrays->stats_index, true,             \
				       bpf_core_enum_value(enum enum_, item)) \
		  : bpf_core_enum_value(enum enum_, item))
#define COMPAT_EVENT(item)                                          \
	(!bpf_core_enum_value_exists(enum vm_event_item, item)      \
		 ? 255                                              \
		 : compat_memcg_place(arrays->events_index, packed, \
				      bpf_core_enum_value(enum vm_event_item, item)))

static __always_inline void compat_find_memcg_places(struct compat_memcg_places *p,
						     const struct compat_memcg_arrays *arrays)
{
	bool packed = bpf_core_field_size(struct memcg_vmstats, state) !=
		      8 * bpf_core_enum_value(enum memcg_stat_item, MEMCG_NR_STAT);

	if (!arrays->events_index || (packed && !arrays->stats_index))
		return;
	p->anon = COMPAT_STATE(node_stat_item, NR_ANON_MAPPED);
	p->file = COMPAT_STATE(node_stat_item, NR_FILE_PAGES);
	p->shmem = COMPAT_STATE(node_stat_item, NR_SHMEM);
	p->dirty = COMPAT_STATE(node_stat_item, NR_FILE_DIRTY);
	p->writeback = COMPAT_STATE(node_stat_item, NR_WRITEBACK);
	p->inactive_file = COMPAT_STATE(node_stat_item, NR_INACTIVE_FILE);
	p->slab_reclaimable = COMPAT_STATE(node_stat_item, NR_SLAB_RECLAIMABLE_B);
	p->slab_unreclaimable = COMPAT_STATE(node_stat_item, NR_SLAB_UNRECLAIMABLE_B);
	p->refault_anon = COMPAT_STATE(node_stat_item, WORKINGSET_REFAULT_ANON);
	p->refault_file = COMPAT_STATE(node_stat_item, WORKINGSET_REFAULT_FILE);
	p->kernel = COMPAT_STATE(memcg_stat_item, MEMCG_KMEM);
	p->pgfault = COMPAT_EVENT(PGFAULT);
	p->pgmajfault = COMPAT_EVENT(PGMAJFAULT);
	p->pgscan[0] = COMPAT_EVENT(PGSCAN_KSWAPD);
	p->pgscan[1] = COMPAT_EVENT(PGSCAN_DIRECT);
	p->pgscan[2] = COMPAT_EVENT(PGSCAN_KHUGEPAGED);
	p->pgscan[3] = COMPAT_EVENT(PGSCAN_PROACTIVE);
	p->pgsteal[0] = COMPAT_EVENT(PGSTEAL_KSWAPD);
	p->pgsteal[1] = COMPAT_EVENT(PGSTEAL_DIRECT);
	p->pgsteal[2] = COMPAT_EVENT(PGSTEAL_KHUGEPAGED);
	p->pgsteal[3] = COMPAT_EVENT(PGSTEAL_PROACTIVE);
	p->known = 1;
}

/*
 * The inner file of a stacked file system (overlayfs, passthrough of fuse), which is asked for
 * after the outer. It has FMODE_BACKING from 6.5 on, and FMODE_NOACCOUNT then and before; no
 * descriptor has that.
 */
#define FMODE_NOACCOUNT 0x20000000u

static __always_inline bool compat_is_backing(u32 f_mode)
{
	return f_mode & FMODE_NOACCOUNT;
}

#endif
