// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The task iterator: one read() of the pinned iterator walks every task of the machine and leaves
 * a record of each in mapped memory; nothing goes through the read itself, which returns 0. User
 * space owns the memory between walks and chooses the half of task_recs to fill. What does not fit
 * is counted. Tasks come in ascending order of their pid, threads among them.
 */
#define EXE_NAME(name)       ident_exe_##name
#define ident_exe_probe_read probe_read

#include "maps.h"
#include "record.h"
#include "exe.h"

char _license[] SEC("license") = "Dual BSD/GPL";

const volatile u32 task_max = 1;   /* entries of a half of task_recs */
const volatile u32 thread_max = 1; /* entries of thread_recs */

struct mote_ctl task_ctl;

/* Processes that have had a thread before their first one in this walk; more may have the bit. */
#define EARLY 4096
u64 early[EARLY / 64];
u32 early_last;

struct mote_ident_want ident_want;
struct mote_ident ident_recs[MOTE_IDENTS];

ARRAY(task_recs, struct mote_task, 2);
ARRAY(thread_recs, struct mote_thread, 1);

/* Loads on one side stay there. */
#define barrier() asm volatile("" ::: "memory")

static __always_inline struct mote_thread *new_thread(void)
{
	u32 at = task_ctl.threads;
	struct mote_thread *r = at < thread_max ? bpf_map_lookup_elem(&thread_recs, &at) : NULL;

	if (r)
		task_ctl.threads = at + 1;
	else
		task_ctl.threads_lost++;
	return r;
}

static __always_inline int thread_record(const struct task_struct *t)
{
	struct mote_thread *r = new_thread();

	if (!r)
		return 0;
	r->pid = t->pid;
	r->tgid = t->tgid;
	own_counts(&r->counts, t);
	return 0;
}

static __always_inline void gone_record(const struct task_struct *t, u32 pid)
{
	struct mote_thread *r = new_thread();

	if (!r)
		return;
	r->pid = pid;
	r->tgid = t->tgid;
	gone_counts(&r->counts, t->signal);
}

/* The sums first: a thread that ends after them is not in them, whatever its record has. */
static __always_inline void early_thread(const struct task_struct *t)
{
	u32 tgid = t->tgid;

	if (early_last == tgid)
		return;
	early_last = tgid;
	early[tgid % EARLY / 64] |= 1ull << (tgid % 64);
	gone_record(t, 0);
	barrier();
}

static __always_inline bool had_early(u32 tgid)
{
	return early[tgid % EARLY / 64] & 1ull << (tgid % 64);
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
		__builtin_memset(early, 0, sizeof(early));
		early_last = 0;
	}
	if (t->pid != t->tgid) {
		if (t->pid < t->tgid)
			early_thread(t);
		return thread_record(t);
	}

	at = task_ctl.tasks;
	if (at >= task_max) {
		task_ctl.tasks_lost++;
		return 0;
	}
	task_ctl.tasks = at + 1;
	at += task_ctl.half & 1 ? task_max : 0;
	r = bpf_map_lookup_elem(&task_recs, &at);
	if (!r)
		return 0;
	counter_record(r, t);
	barrier();
	/* after the record: if more have ended meanwhile, too much is taken off, not too little */
	if (had_early(t->tgid))
		gone_record(t, t->pid);
	gauge_record(r, t);
	return 0;
}

/*
 * False if it is to be asked again. An exec changes mm, frees the old one, and only then counts in
 * self_exec_id; arg_start is set after that: while it is 0, the path would be given to the image
 * before. And a task that ended or began another program meanwhile did not hold the file, so that
 * the path may be that of somebody else's.
 */
static __always_inline bool ident_record(u32 record, const struct bpf_iter__task *ctx,
					 const struct task_struct *t)
{
	struct mote_ident *r = &ident_recs[record];
	u64 was = probe_read ? (u64)BPF_CORE_READ(t, mm) : 0;
	const struct mm_struct *mm;
	const struct exe_walk *w;

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
	w = exe_path(BPF_CORE_READ(t, mm, exe_file));
	if (!w)
		return false;
	__builtin_memcpy(r->exe, w->names, sizeof(r->exe));
	r->exe_len = w->len;
	r->exe_flags = w->flags;
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
	if (ident_record(at, ctx, t))
		task_ctl.idents = at + 1;
	return 0;
}
