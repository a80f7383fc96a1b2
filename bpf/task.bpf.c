// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The task iterator: one read() of the pinned iterator walks every task of the machine and leaves
 * a record of each in mapped memory; nothing goes through the read itself, which returns 0. User
 * space owns the memory between walks and chooses the half of task_recs to fill. What does not fit
 * is counted. Tasks come in ascending order of their pid, threads among them.
 */
#include "kernel.h"
#include "compat.h"
#include "abi.h"

char _license[] SEC("license") = "Dual BSD/GPL";

const volatile u32 task_max;   /* entries of a half of task_recs */
const volatile u32 thread_max; /* entries of thread_recs */
const volatile u64 page_size = 4096;
const volatile u64 task_present;       /* what mote_task.present shall be: 0 for all */
const volatile bool probe_read = true; /* false: lockdown refuses bpf_probe_read_kernel() */

struct mote_ctl task_ctl;
struct mote_ident_want ident_want;
struct mote_ident ident_recs[MOTE_IDENTS];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct mote_task);
} task_recs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mote_thread);
} thread_recs SEC(".maps");

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

/* The leader's counts and those of the threads that are gone. */
static __always_inline void leader_counts(struct mote_thread_counts *c, const struct task_struct *t,
					  const struct signal_struct *s)
{
	c->utime = t->utime + s->utime;
	c->stime = t->stime + s->stime;
	c->run_time = t->se.sum_exec_runtime + s->sum_sched_runtime;
	c->run_delay = t->sched_info.run_delay;
	c->minflt = t->min_flt + s->min_flt;
	c->majflt = t->maj_flt + s->maj_flt;
	c->nvcsw = t->nvcsw + s->nvcsw;
	c->nivcsw = t->nivcsw + s->nivcsw;
	c->rchar = t->ioac.rchar + s->ioac.rchar;
	c->wchar = t->ioac.wchar + s->ioac.wchar;
	c->syscr = t->ioac.syscr + s->ioac.syscr;
	c->syscw = t->ioac.syscw + s->ioac.syscw;
	c->read_bytes = t->ioac.read_bytes + s->ioac.read_bytes;
	c->write_bytes = t->ioac.write_bytes + s->ioac.write_bytes;
	c->cancelled_write_bytes = t->ioac.cancelled_write_bytes + s->ioac.cancelled_write_bytes;
}

static __always_inline int thread_record(const struct task_struct *t)
{
	u32 at = task_ctl.threads;
	struct mote_thread *r = at < thread_max ? bpf_map_lookup_elem(&thread_recs, &at) : NULL;

	if (!r) {
		task_ctl.threads_lost++;
		return 0;
	}
	r->pid = t->pid;
	r->tgid = t->tgid;
	own_counts(&r->counts, t);
	task_ctl.threads = at + 1;
	return 0;
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

/* Bits of a table that has outgrown the one inside files_struct; its size is a multiple of 64. */
static __always_inline u32 count_big_table(const unsigned long *bits, u32 words)
{
	u64 w[CHUNK];
	u32 n = 0;

	for (u32 i = 0; i < FDS_MAX / 64; i += CHUNK) {
		if (i >= words)
			break;
		/* Beyond a table of 128 lie its other bitmaps, in the same piece of memory. */
		if (bpf_probe_read_kernel(w, sizeof(w), bits + i))
			break;
		n += popcount(w[0]);
		n += i + 1 < words ? popcount(w[1]) : 0;
		n += i + 2 < words ? popcount(w[2]) : 0;
		n += i + 3 < words ? popcount(w[3]) : 0;
	}
	return n;
}

static __always_inline u32 descriptors(struct mote_task *r, const struct files_struct *files)
{
	const struct fdtable *fdt;
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
	r->fds = count_big_table(fdt->open_fds, max / 64);
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

static __always_inline void process_record(struct mote_task *r, const struct task_struct *t)
{
	const struct signal_struct *s = t->signal;
	const struct cred *cred = t->real_cred;
	u32 flags = t->flags & PF_KTHREAD ? MOTE_TASK_KTHREAD : 0;

	r->pid = t->pid;
	r->ppid = t->real_parent->tgid;
	r->start = t->start_boottime;
	leader_counts(&r->counts, t, s);
	r->cutime = s->cutime;
	r->cstime = s->cstime;
	r->prev_utime = s->prev_cputime.utime;
	r->prev_stime = s->prev_cputime.stime;
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
	flags |= memory(r, flags & MOTE_TASK_KTHREAD ? NULL : t->mm);
	r->flags = flags | descriptors(r, t->files);
}

SEC("?iter/task")
int tasks(struct bpf_iter__task *ctx)
{
	const struct task_struct *t = ctx->task;
	struct mote_task *r;
	u32 at;

	if (!t) {
		task_ctl.done = task_ctl.begun;
		return 0;
	}
	if (!ctx->meta->seq_num) {
		task_ctl.begun++;
		task_ctl.tasks = task_ctl.tasks_lost = 0;
		task_ctl.threads = task_ctl.threads_lost = 0;
	}
	if (t->pid != t->tgid)
		return thread_record(t);

	at = task_ctl.tasks;
	if (at >= task_max) {
		task_ctl.tasks_lost++;
		return 0;
	}
	task_ctl.tasks = at + 1;
	at += task_ctl.half & 1 ? task_max : 0;
	r = bpf_map_lookup_elem(&task_recs, &at);
	if (r)
		process_record(r, t);
	return 0;
}

#define COMPONENTS 40 /* names and mounts passed on the way to the root */

/* Names from the file up, as mote_task_exe() takes them. All by probe_read: nothing holds the file.
 */
static __always_inline void exe_path(struct mote_ident *r, const struct file *file)
{
	struct dentry *d = BPF_CORE_READ(file, f_path.dentry), *up;
	struct vfsmount *vm = BPF_CORE_READ(file, f_path.mnt);
	u32 flags = MOTE_EXE_CUT;
	u64 off = 0, at;
	long n;

	if (!BPF_CORE_READ(d, d_hash.pprev))
		flags |= MOTE_EXE_DELETED;
	for (int i = 0; i < COMPONENTS; i++) {
		up = BPF_CORE_READ(d, d_parent);
		if (d == BPF_CORE_READ(vm, mnt_root)) {
			struct mount *m = (void *)vm - bpf_core_field_offset(struct mount, mnt);
			struct mount *parent = BPF_CORE_READ(m, mnt_parent);

			if (parent == m) {
				flags &= ~MOTE_EXE_CUT;
				break;
			}
			d = BPF_CORE_READ(m, mnt_mountpoint);
			vm = (void *)parent + bpf_core_field_offset(struct mount, mnt);
			continue;
		}
		if (off > MOTE_EXE_MAX / 2 - 1)
			break;
		at = compat_bounded(off, MOTE_EXE_MAX / 2 - 1);
		n = bpf_probe_read_kernel_str(r->exe + at, MOTE_EXE_MAX / 2,
					      BPF_CORE_READ(d, d_name.name));
		if (n < 1 || n >= MOTE_EXE_MAX / 2) /* failed, or cut */
			break;
		off += n;
		if (up == d) {
			flags = (flags & ~MOTE_EXE_CUT) | MOTE_EXE_DETACHED;
			break;
		}
		d = up;
	}
	r->exe_len = off;
	r->exe_flags = flags;
}

/* Loads on one side stay there. */
#define barrier() asm volatile("" ::: "memory")

/*
 * False if it is to be asked again. An exec changes mm, frees the old one, and only then counts in
 * self_exec_id; arg_start is set after that: while it is 0, the path would be given to the image
 * before. And a task that ended or began another program meanwhile did not hold the file, so that
 * the path may be that of somebody else's. What is kept over the loop is kept as a number: states
 * with pointers in them are not pruned before 6.12, and exceed a million instructions.
 */
static __always_inline bool ident_record(struct mote_ident *r, const struct bpf_iter__task *ctx,
					 const struct task_struct *t)
{
	u64 was = probe_read ? (u64)BPF_CORE_READ(t, mm) : 0;
	const struct mm_struct *mm;

	barrier();
	mm = t->flags & PF_KTHREAD ? NULL : t->mm;
	if (mm && !mm->arg_start)
		return false;
	barrier();
	r->pid = t->pid;
	r->exec_id = t->self_exec_id;
	r->start = t->start_boottime;
	r->exe_len = 0;
	r->exe_flags = probe_read ? 0 : MOTE_EXE_ABSENT;
	if (!mm || !probe_read)
		return true;
	exe_path(r, BPF_CORE_READ(t, mm, exe_file));
	barrier();
	t = *(struct task_struct *const volatile *)&ctx->task;
	return t && (u64)BPF_CORE_READ(t, mm) == was;
}

SEC("?iter/task")
int idents(struct bpf_iter__task *ctx)
{
	const struct task_struct *t = ctx->task;
	u32 pid, at;

	if (!t) {
		task_ctl.idents_done = task_ctl.idents_begun;
		return 0;
	}
	if (!ctx->meta->seq_num) {
		task_ctl.idents_begun++;
		task_ctl.idents = task_ctl.idents_more = 0;
	}
	pid = t->pid;
	if (pid != (u32)t->tgid ||
	    !(ident_want.bits[pid % MOTE_IDENT_BITS / 64] & 1ull << (pid % 64)))
		return 0;
	at = task_ctl.idents;
	if (at >= MOTE_IDENTS) {
		task_ctl.idents_more++;
		return 0;
	}
	if (ident_record(&ident_recs[at], ctx, t))
		task_ctl.idents = at + 1;
	return 0;
}
