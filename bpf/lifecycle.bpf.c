// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Births, execs and deaths of processes into a ring buffer that user space reads as memory on its
 * tick: nobody is woken. What finds no room is counted by kind.
 *
 * Two sets of entry points for one logic, of which user space loads one. Classic tracepoints run
 * with preemption off and lose nothing. tp_btf needs no tracefs, but from 7.0 on the kernel skips
 * the program where another task was preempted inside it.
 */
#include "kernel.h"
#include "compat.h"
#include "abi.h"

#define EXE_NAME(name)      exec_exe_##name
#define exec_exe_probe_read event_probe_read

char _license[] SEC("license") = "Dual BSD/GPL";

const volatile u32 argv_max = MOTE_ARGV_MAX;
/* Tasks are loaded from directly: tp_btf, and bpf_get_current_task_btf() (5.11, 3ca1032ab7ab). */
const volatile bool event_direct = true;
const volatile bool event_probe_read = true; /* false: lockdown refuses it */

#include "exe.h"

struct mote_event_ctl event_ctl;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* Built here and copied out, because ring buffer space of a variable size cannot be reserved. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mote_event_exec);
} exec_scratch SEC(".maps");

/* Sums over the threads of a process that ends; `node`: the next to be added. */
struct exit_sum {
	struct mote_thread_counts counts;
	u64 node;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct exit_sum);
} exit_scratch SEC(".maps");

#define LOAD(p, field)                                               \
	({                                                           \
		typeof((p)->field) v_;                               \
		if (event_direct)                                    \
			v_ = (p)->field;                             \
		else                                                 \
			bpf_core_read(&v_, sizeof(v_), &(p)->field); \
		v_;                                                  \
	})

static __always_inline struct task_struct *current_task(void)
{
	return event_direct ? (void *)bpf_get_current_task_btf() : (void *)bpf_get_current_task();
}

static __always_inline void dropped(enum mote_event_kind kind)
{
	__sync_fetch_and_add(&event_ctl.dropped[kind], 1);
}

static __always_inline void load_comm(char *to, struct task_struct *t)
{
	if (event_direct) {
		((u64 *)to)[0] = ((u64 *)t->comm)[0];
		((u64 *)to)[1] = ((u64 *)t->comm)[1];
	} else {
		bpf_core_read(to, MOTE_COMM_LEN, &t->comm);
	}
}

/* `t` is current, or for a fork by tp_btf the child. */
static __always_inline void event_head(struct mote_event *e, struct task_struct *t, u32 kind)
{
	struct task_struct *parent = LOAD(t, real_parent);
	struct cred *cred = (void *)LOAD(t, real_cred);

	e->kind = kind;
	e->pid = LOAD(t, tgid);
	e->ppid = LOAD(parent, tgid);
	e->uid = LOAD(cred, uid.val);
	e->time = bpf_ktime_get_ns();
	e->start = LOAD(t, start_boottime);
	load_comm(e->comm, t);
}

/* tp_btf shows the child itself. */
static __always_inline int on_child(struct task_struct *child, u64 clone_flags)
{
	struct mote_event *e;

	if (clone_flags & CLONE_THREAD)
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		dropped(MOTE_EVENT_FORK);
		return 0;
	}
	event_head(e, child, MOTE_EVENT_FORK);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The classic tracepoint shows its pid only; user and command are the parent's. */
static __always_inline int on_fork(struct task_struct *parent, u32 pid, u64 clone_flags)
{
	struct mote_event *e;

	if (clone_flags & CLONE_THREAD)
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		dropped(MOTE_EVENT_FORK);
		return 0;
	}
	event_head(e, parent, MOTE_EVENT_FORK);
	if (!(clone_flags & CLONE_PARENT))
		e->ppid = e->pid;
	e->pid = pid;
	e->start = 0;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline u32 command_line(struct mote_event_exec *e, struct task_struct *t)
{
	struct mm_struct *mm = LOAD(t, mm);
	unsigned long from = LOAD(mm, arg_start);
	u64 len = LOAD(mm, arg_end) - from;

	e->argv_cut = len > argv_max;
	if (len > argv_max)
		len = argv_max;
	if (len > MOTE_ARGV_MAX)
		len = MOTE_ARGV_MAX;
	if (bpf_probe_read_user(e->argv, len, (void *)from)) {
		e->argv_cut = 1;
		return 0;
	}
	return len;
}

/* Behind the command line; its length. */
static __always_inline u32 executable(struct mote_event_exec *e, struct task_struct *t, u64 at)
{
	struct mm_struct *mm = LOAD(t, mm);
	struct exe_walk *w;

	e->exe_flags = MOTE_EXE_ABSENT;
	if (!event_probe_read)
		return 0;
	w = exe_path(BPF_CORE_READ(mm, exe_file));
	if (!w)
		return 0;
	e->exe_flags = w->flags;
	bpf_probe_read_kernel(e->argv + at, MOTE_EXE_MAX, w->names);
	return w->len;
}

static __always_inline int on_exec(struct task_struct *t)
{
	u32 zero = 0;
	u64 argv, exe;
	struct mote_event_exec *e = bpf_map_lookup_elem(&exec_scratch, &zero);

	if (!e)
		return 0;
	event_head(&e->event, t, MOTE_EVENT_EXEC);
	e->exec_id = LOAD(t, self_exec_id);
	argv = command_line(e, t);
	e->argv_len = argv;
	if (argv > MOTE_ARGV_MAX) /* the verifier forgot */
		argv = MOTE_ARGV_MAX;
	exe = compat_bounded(executable(e, t, argv), MOTE_EXE_MAX - 1);
	e->exe_len = exe;
	if (bpf_ringbuf_output(&events, e,
			       __builtin_offsetof(struct mote_event_exec, argv) + argv + exe,
			       BPF_RB_NO_WAKEUP))
		dropped(MOTE_EVENT_EXEC);
	return 0;
}

#define ADD_OWN(c, t, load)                                                        \
	do {                                                                       \
		(c)->utime += load(t, utime);                                      \
		(c)->stime += load(t, stime);                                      \
		(c)->run_time += load(t, se.sum_exec_runtime);                     \
		(c)->run_delay += load(t, sched_info.run_delay);                   \
		(c)->minflt += load(t, min_flt);                                   \
		(c)->majflt += load(t, maj_flt);                                   \
		(c)->nvcsw += load(t, nvcsw);                                      \
		(c)->nivcsw += load(t, nivcsw);                                    \
		(c)->rchar += load(t, ioac.rchar);                                 \
		(c)->wchar += load(t, ioac.wchar);                                 \
		(c)->syscr += load(t, ioac.syscr);                                 \
		(c)->syscw += load(t, ioac.syscw);                                 \
		(c)->read_bytes += load(t, ioac.read_bytes);                       \
		(c)->write_bytes += load(t, ioac.write_bytes);                     \
		(c)->cancelled_write_bytes += load(t, ioac.cancelled_write_bytes); \
	} while (0)

/* The threads that are gone: __exit_signal() put their sums here. */
static __always_inline void set_gone(struct mote_thread_counts *c, struct signal_struct *s)
{
	c->utime = LOAD(s, utime);
	c->stime = LOAD(s, stime);
	c->run_time = LOAD(s, sum_sched_runtime);
	c->run_delay = 0;
	c->minflt = LOAD(s, min_flt);
	c->majflt = LOAD(s, maj_flt);
	c->nvcsw = LOAD(s, nvcsw);
	c->nivcsw = LOAD(s, nivcsw);
	c->rchar = LOAD(s, ioac.rchar);
	c->wchar = LOAD(s, ioac.wchar);
	c->syscr = LOAD(s, ioac.syscr);
	c->syscw = LOAD(s, ioac.syscw);
	c->read_bytes = LOAD(s, ioac.read_bytes);
	c->write_bytes = LOAD(s, ioac.write_bytes);
	c->cancelled_write_bytes = LOAD(s, ioac.cancelled_write_bytes);
}

#define THREADS_MAX 256

/*
 * Two global functions: the verifier looks at each once, and not in every turn of two loops. What
 * they take are numbers, as 5.10 wants. 0: there is no thread more.
 */
__attribute__((noinline)) int exit_add_thread(u64 head)
{
	u32 zero = 0;
	struct exit_sum *sum = bpf_map_lookup_elem(&exit_scratch, &zero);
	const struct list_head *node;
	const struct task_struct *t;

	if (!event_probe_read || !sum || sum->node == head)
		return 0;
	node = (const void *)sum->node;
	t = (const void *)node - bpf_core_field_offset(struct task_struct, thread_node);
	ADD_OWN(&sum->counts, t, BPF_CORE_READ);
	sum->node = (u64)BPF_CORE_READ(node, next);
	return 1;
}

/* To the sum, from `node` on up to the list's head. */
__attribute__((noinline)) int exit_add_threads(u64 head)
{
	for (int i = 0; i < THREADS_MAX; i++) {
		if (!exit_add_thread(head))
			break;
	}
	return 0;
}

/* Adds every thread that is still there; false: there are more than can be walked. */
static __always_inline bool add_listed(struct mote_thread_counts *c, struct signal_struct *s)
{
	struct list_head *head =
		(void *)s + bpf_core_field_offset(struct signal_struct, thread_head);
	u32 zero = 0;
	struct exit_sum *sum = bpf_map_lookup_elem(&exit_scratch, &zero);
	u64 address = 0;

	if (!sum)
		return false;
	bpf_probe_read_kernel(&address, sizeof(address), &head); /* the number of a pointer */
	sum->counts = *c;
	sum->node = (u64)BPF_CORE_READ(s, thread_head.next);
	exit_add_threads(address);
	*c = sum->counts;
	return sum->node == address;
}

/*
 * Threads that end at once are partly in the list and partly summed: __exit_signal() moves a thread
 * from the one to the other inside stats_lock, whose sequence tells whether a look was consistent.
 */
static __always_inline u32 exit_totals(struct mote_thread_counts *c, struct task_struct *t,
				       struct signal_struct *s)
{
	for (int try = 0; try < 4; try++) {
		u32 seq = LOAD(s, stats_lock.seqcount.seqcount.sequence);
		bool all = true;

		set_gone(c, s);
		if (LOAD(s, nr_threads) == 1) {
			ADD_OWN(c, t, LOAD);
		} else if (event_probe_read) {
			all = add_listed(c, s);
		} else {
			ADD_OWN(c, t, LOAD);
			all = false;
		}
		if (!all)
			return MOTE_EXIT_PARTIAL;
		if (!(seq & 1) && seq == LOAD(s, stats_lock.seqcount.seqcount.sequence))
			return 0;
	}
	return MOTE_EXIT_PARTIAL;
}

/* wait_task_zombie() */
static __always_inline u32 wait_status(struct task_struct *t, struct signal_struct *s)
{
	struct task_struct *leader = LOAD(t, group_leader);

	if (LOAD(s, flags) & SIGNAL_GROUP_EXIT)
		return LOAD(s, group_exit_code);
	return LOAD(leader, exit_code);
}

static __always_inline int on_exit(struct task_struct *t)
{
	struct task_struct *leader = LOAD(t, group_leader);
	struct signal_struct *s = LOAD(t, signal);
	struct css_set *css = LOAD(t, cgroups);
	struct cgroup *cgroup = LOAD(css, dfl_cgrp);
	struct kernfs_node *kn = LOAD(cgroup, kn);
	struct mote_event_exit *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		dropped(MOTE_EVENT_EXIT);
		return 0;
	}
	event_head(&e->event, t, MOTE_EVENT_EXIT);
	/* Of the process, not of the thread that happens to be the last. */
	e->event.start = LOAD(leader, start_boottime);
	e->exit_code = wait_status(t, s);
	e->flags = exit_totals(&e->counts, t, s);
	e->prev_utime = LOAD(s, prev_cputime.utime);
	e->prev_stime = LOAD(s, prev_cputime.stime);
	e->cgroup_id = LOAD(kn, id);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline bool nobody_lives(struct task_struct *t)
{
	struct signal_struct *s = LOAD(t, signal);

	return LOAD(s, live.counter) == 0;
}

/*
 * The last thread of a process, its leader, is freed: every thread's counts are in signal_struct,
 * the leader's too. What it ran after it was reaped is only in its own, which matters where nobody
 * waits: it then reaps itself. Its parent may be gone.
 */
static __always_inline int on_free(struct task_struct *t)
{
	struct signal_struct *s = LOAD(t, signal);
	struct cred *cred = (void *)LOAD(t, real_cred);
	struct mote_event_exit *e;
	u64 own = LOAD(t, se.sum_exec_runtime);

	if (LOAD(t, pid) != LOAD(t, tgid))
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		dropped(MOTE_EVENT_FINAL);
		return 0;
	}
	e->event.kind = MOTE_EVENT_FINAL;
	e->event.pid = LOAD(t, tgid);
	e->event.ppid = 0;
	e->event.uid = LOAD(cred, uid.val);
	e->event.time = bpf_ktime_get_ns();
	e->event.start = LOAD(t, start_boottime);
	load_comm(e->event.comm, t);
	e->exit_code = wait_status(t, s);
	e->flags = 0;
	set_gone(&e->counts, s);
	if (e->counts.run_time < own)
		e->counts.run_time = own;
	e->prev_utime = LOAD(s, prev_cputime.utime);
	e->prev_stime = LOAD(s, prev_cputime.stime);
	e->cgroup_id = 0;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("?tp/task/task_newtask")
int fork_tp(struct trace_event_raw_task_newtask *ctx)
{
	return on_fork(current_task(), ctx->pid, ctx->clone_flags);
}

SEC("?tp/sched/sched_process_exec")
int exec_tp(void *ctx)
{
	return on_exec(current_task());
}

SEC("?tp/sched/sched_process_exit")
int exit_tp(struct trace_event_raw_sched_process_exit___group_dead *ctx)
{
	struct task_struct *t = current_task();
	bool dead = bpf_core_field_exists(ctx->group_dead) ? ctx->group_dead : nobody_lives(t);

	return dead ? on_exit(t) : 0;
}

SEC("?tp_btf/task_newtask")
int fork_btf(u64 *ctx)
{
	return on_child((struct task_struct *)ctx[0], ctx[1]);
}

SEC("?tp_btf/sched_process_exec")
int exec_btf(u64 *ctx)
{
	return on_exec((struct task_struct *)ctx[0]);
}

SEC("?tp_btf/sched_process_exit")
int exit_btf(u64 *ctx)
{
	struct task_struct *t = (struct task_struct *)ctx[0];
	bool dead = bpf_core_field_exists(struct trace_event_raw_sched_process_exit___group_dead,
					  group_dead)
			    ? ctx[1]
			    : nobody_lives(t);

	return dead ? on_exit(t) : 0;
}

/* Classic, it would only tell a pid. It is called with preemption off, and so loses nothing. */
SEC("?tp_btf/sched_process_free")
int final_btf(u64 *ctx)
{
	return on_free((struct task_struct *)ctx[0]);
}
