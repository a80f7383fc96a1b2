/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a record of a process is made of, for both ways of walking. Each of the two objects that
 * include this has the switches below for itself.
 */
#ifndef MOTE_RECORD_H
#define MOTE_RECORD_H

#include "kernel.h"
#include "compat.h"
#include "abi.h"

const volatile u64 page_size = 4096;
const volatile u64 task_present;       /* what mote_task.present shall be: 0 for all */
const volatile bool probe_read = true; /* false: lockdown refuses bpf_probe_read_kernel() */

static __always_inline void copy_comm(char *to, const char *from)
{
	((u64 *)to)[0] = ((const u64 *)from)[0];
	((u64 *)to)[1] = ((const u64 *)from)[1];
}

static __always_inline void own_counts(struct mote_thread_counts *c, const struct task_struct *t)
{
	c->utime = t->utime;
	c->stime = t->stime;
	c->run_time = t->se.sum_exec_runtime;
	c->run_delay = t->sched_info.run_delay;
	c->minflt = t->min_flt;
	c->majflt = t->maj_flt;
	c->nvcsw = t->nvcsw;
	c->nivcsw = t->nivcsw;
	c->rchar = t->ioac.rchar;
	c->wchar = t->ioac.wchar;
	c->syscr = t->ioac.syscr;
	c->syscw = t->ioac.syscw;
	c->read_bytes = t->ioac.read_bytes;
	c->write_bytes = t->ioac.write_bytes;
	c->cancelled_write_bytes = t->ioac.cancelled_write_bytes;
}

static __always_inline void add_counts(struct mote_thread_counts *c,
				       const struct mote_thread_counts *by)
{
	u64 *to = (u64 *)c;
	const u64 *from = (const u64 *)by;

	for (u32 i = 0; i < sizeof(*c) / sizeof(*to); i++)
		to[i] += from[i];
}

/* Of the threads that are gone. */
static __always_inline void gone_counts(struct mote_thread_counts *c, const struct signal_struct *s)
{
	c->utime = s->utime;
	c->stime = s->stime;
	c->run_time = s->sum_sched_runtime;
	c->run_delay = 0; /* the kernel does not keep it */
	c->minflt = s->min_flt;
	c->majflt = s->maj_flt;
	c->nvcsw = s->nvcsw;
	c->nivcsw = s->nivcsw;
	c->rchar = s->ioac.rchar;
	c->wchar = s->ioac.wchar;
	c->syscr = s->ioac.syscr;
	c->syscw = s->ioac.syscw;
	c->read_bytes = s->ioac.read_bytes;
	c->write_bytes = s->ioac.write_bytes;
	c->cancelled_write_bytes = s->ioac.cancelled_write_bytes;
}

/* The leader's counts and those of the threads that are gone. */
static __always_inline void leader_counts(struct mote_thread_counts *c, const struct task_struct *t,
					  const struct signal_struct *s)
{
	struct mote_thread_counts gone;

	own_counts(c, t);
	gone_counts(&gone, s);
	add_counts(c, &gone);
}

static __always_inline u64 positive(s64 v)
{
	return v > 0 ? v : 0;
}

/* get_mm_rss(); a kernel thread may borrow a process's memory, which /proc does not show. */
static __always_inline u32 memory(struct mote_task *r, const struct mm_struct *mm)
{
	s64 pages[NR_MM_COUNTERS] = {};
	u64 shared;

	if (!mm) {
		r->vsize = r->rss = r->shared = 0;
		return MOTE_TASK_HAS_RSS;
	}
	r->vsize = mm->total_vm * page_size;
	if (!compat_rss(mm, probe_read, pages)) {
		r->rss = r->shared = 0;
		return MOTE_TASK_HAS_MM;
	}
	shared = positive(pages[MM_FILEPAGES]) + positive(pages[MM_SHMEMPAGES]);
	r->rss = (shared + positive(pages[MM_ANONPAGES])) * page_size;
	r->shared = shared * page_size;
	return MOTE_TASK_HAS_MM | MOTE_TASK_HAS_RSS;
}

static __always_inline u32 popcount(u64 w)
{
	w -= (w >> 1) & 0x5555555555555555ull;
	w = (w & 0x3333333333333333ull) + ((w >> 2) & 0x3333333333333333ull);
	w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (w * 0x0101010101010101ull) >> 56;
}

#define FDS_MAX 65536
#define CHUNK   4

/*
 * Bits of a piece of a table that has outgrown the one inside files_struct; -1: it cannot be read.
 * Global functions, as all that is looped over: the verifier looks at them once, not in each turn.
 */
__noinline int count_chunk(u64 bits, u32 words)
{
	u64 w[CHUNK];
	u32 n;

	/* Beyond a table of 128 lie its other bitmaps, in the same piece of memory. */
	if (!probe_read || bpf_probe_read_kernel(w, sizeof(w), (void *)bits))
		return -1;
	n = popcount(w[0]);
	n += words > 1 ? popcount(w[1]) : 0;
	n += words > 2 ? popcount(w[2]) : 0;
	n += words > 3 ? popcount(w[3]) : 0;
	return n;
}

/* Of all of it; its size is a multiple of 64. */
__noinline int count_big_table(u64 bits, u32 words)
{
	u32 all = 0;

	for (u32 i = 0; i < FDS_MAX / 64 && i < words; i += CHUNK) {
		int n = count_chunk(bits + i * sizeof(u64), words - i);

		if (n < 0)
			break;
		all += n;
	}
	return all;
}

static __always_inline u32 descriptors(struct mote_task *r, const struct files_struct *files)
{
	const struct fdtable *fdt;
	u64 bits;
	u32 max;

	r->fds = 0;
	if (!files)
		return MOTE_TASK_HAS_FDS;
	fdt = files->fdt;
	max = fdt->max_fds;
	if (max <= 64) {
		r->fds = popcount(files->open_fds_init[0]);
		return MOTE_TASK_HAS_FDS;
	}
	if (!probe_read || max > FDS_MAX)
		return 0;
	/* As a number: from 6.17 on what is loaded directly is a pointer to the verifier. */
	if (bpf_core_read(&bits, sizeof(bits), &fdt->open_fds))
		return 0;
	r->fds = count_big_table(bits, max / 64);
	return MOTE_TASK_HAS_FDS;
}

/* new_encode_dev(tty_devnum(tty)), as do_task_stat() shows it */
static __always_inline u32 tty_number(const struct tty_struct *tty)
{
	u32 minor;

	if (!tty)
		return 0;
	minor = tty->driver->minor_start + tty->index;
	return (minor & 0xff) | tty->driver->major << 8 | (minor & ~0xffu) << 12;
}

static __always_inline void counter_record(struct mote_task *r, const struct task_struct *t)
{
	const struct signal_struct *s = t->signal;

	leader_counts(&r->counts, t, s);
	r->cutime = s->cutime;
	r->cstime = s->cstime;
	r->prev_utime = s->prev_cputime.utime;
	r->prev_stime = s->prev_cputime.stime;
}

/* All that is no counter, but for descriptors. */
static __always_inline void plain_gauges(struct mote_task *r, const struct task_struct *t)
{
	const struct signal_struct *s = t->signal;
	const struct cred *cred = t->real_cred;
	u32 flags = t->flags & PF_KTHREAD ? MOTE_TASK_KTHREAD : 0;

	r->pid = t->tgid;
	r->ppid = t->real_parent->tgid;
	r->start = t->start_boottime;
	r->cgroup_id = t->cgroups->dfl_cgrp->kn->id;
	r->uid = cred->uid.val;
	r->gid = cred->gid.val;
	r->session = s->pids[PIDTYPE_SID]->numbers[0].nr;
	r->tty = tty_number(s->tty);
	r->nice = t->static_prio - DEFAULT_PRIO;
	r->priority = t->prio - MAX_RT_PRIO;
	r->oom_score_adj = s->oom_score_adj;
	r->threads = s->nr_threads;
	r->exec_id = t->self_exec_id;
	r->state = compat_state_letter(compat_task_state(t), t->exit_state);
	copy_comm(r->comm, t->comm);
	r->present = task_present;
	r->flags = flags | memory(r, flags & MOTE_TASK_KTHREAD ? NULL : t->mm);
}

/* All that is no counter. */
static __always_inline void gauge_record(struct mote_task *r, const struct task_struct *t)
{
	plain_gauges(r, t);
	r->flags |= descriptors(r, t->files);
}

#endif
