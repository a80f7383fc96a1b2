// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The list walk: one read() of the pinned iterator runs this program once, and it goes through the
 * kernel's list of processes, in the order in which they were made. What did not run since the walk
 * before is recognised by a stamp and left alone; of the others a record is written.
 *
 * The stamp is the time at which a thread was last given a CPU, sched_info.last_arrival, which lies
 * beside the link of the list: the walk looks at one cache line of a process. A thread that was on
 * no CPU and no run queue when the stamp was taken has to be queued before it runs again, and then
 * sched_info_enqueue() sets last_queued, and sched_info_arrive() takes that away and sets
 * last_arrival before the thread's first instruction. (One that is preempted on its way to sleep
 * arrives again without either, but it has not left its run queue.) So where last_arrival is that
 * of the stamp and last_queued is 0, nothing changed that only the thread can change. These are all
 * the counters: faults, bytes and times are added to the running thread, those of children waited
 * for by the thread that waits (wait_task_zombie()), those of ended threads by the ending thread; a
 * tracer that reaps a thread moves its counts from one place to another, and the number of threads
 * tells. utime and stime come last at the switch itself, before the thread is said to be off its
 * CPU. The kernel's own prev_cputime moves when somebody reads /proc, but not what it is the split
 * of. Also uid, gid, session, comm and exec_id.
 *
 * What others change: nice, priority, parent, cgroup, tty, number of threads (a reaping tracer),
 * memory (reclaim, truncation, who shares it), descriptors (who shares them), oom_score_adj, a
 * kernel thread's comm: a process is looked at for these once in MOTE_WALK_TURN walks or
 * MOTE_WALK_TURN_MS, and its record written if they are not what they were. State: who is queued
 * has no stamp, and all other changes are the thread's own, but for those of the freezer of cgroup
 * v1 and of suspend, which the turn finds. A thread that is just being woken, or moved to another
 * queue, may pass for one that sleeps until the next walk. Clocks: a thread that arrives twice in
 * one nanosecond of its run queue's clock is not told apart; where that clock is jiffies, its
 * process may be late by a turn.
 *
 * The address of the task is part of it because an exec by another thread makes that one the first,
 * with the start time of the one before.
 */
#include "maps.h"
#include "record.h"
#include "walk.h"

char _license[] SEC("license") = "Dual BSD/GPL";

const volatile u32 task_max; /* entries of a half of task_recs, and of the arrays below */

struct mote_walk_ctl walk_ctl;

ARRAY(walk_recs, struct mote_task, 2);
ARRAY(walk_refs, struct mote_ref, 1);
ARRAY(walk_pairs, struct mote_pair, 1);

/* A process as the walk before found it, in the order of the list. */
struct entry {
	u64 task; /* address of the first thread's task_struct */
	u64 start;
	u64 stamp;   /* of all its threads; 0: one may have been running */
	u64 gauges;  /* hash of what others can change, and of the context switches */
	u64 written; /* the last walk that wrote a record */
	u32 pid, pair;
	u32 threads; /* beside the first */
	u32 pad0;
};

/* Not mapped: user space has no business with kernel addresses. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct entry);
} walk_entries SEC(".maps");

/*
 * The process that is looked at. All but the loops is in global functions, which the verifier looks
 * at once and by themselves; as a part of the loops they are too much for it. As they take and give
 * numbers only, what they work on is here.
 */
struct place {
	u64 process, thread; /* addresses */
	u64 stamp;
	u32 threads; /* beside the first */
	u32 entry;   /* its entry of the walk before, or NONE */
	u32 at;      /* the record that is being written, or NONE: stamps are compared */
	u32 seq;     /* of stats_lock, when its sums were taken */
	u64 fence[2];
	struct entry fresh;
	struct mote_task scratch;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct place);
} walk_place SEC(".maps");

static u32 known;  /* entries of the walk before */
static u32 born;   /* of this walk: those that were not among them */
static u32 next;   /* of these: the one that is expected now */
static u64 looked; /* when that walk was, ns */

/*
 * Pairs lie on a circle, and each walk looks at what others can change in those on the arc behind
 * that of the walk before: none is passed over when the length of the arcs varies.
 */
static u32 arc_at;
static u64 arc;

#define NONE   0xffffffffu
#define CIRCLE (1ull << 32)
#define GOLDEN 0x9e3779b1u /* places of neighbours are far apart, and evenly spread */
#define BATCH  4           /* a power of two */
#define TRIES  4           /* at the sums of threads that ended, until none ends meanwhile */

/* Odd, and otherwise of no meaning. */
#define MIX1 0x9e3779b97f4a7c15ull
#define MIX2 0xc2b2ae3d27d4eb4full

/* A full barrier: an atomic operation whose result is wanted. */
static __always_inline void fence(struct place *p)
{
	p->fence[1] = __sync_fetch_and_add(&p->fence[0], 1);
}

/* Between two loads; x86 keeps their order. */
static __always_inline void keep_order(struct place *p)
{
#ifdef __TARGET_ARCH_arm64
	fence(p);
#else
	asm volatile("" ::: "memory");
#endif
}

/* To be compared with one that was taken. 0: it waits for a CPU, or never had one. */
static __always_inline u64 stamp_now(const struct task_struct *t)
{
	u64 arrival = t->sched_info.last_arrival;

	return t->sched_info.last_queued || !arrival ? 0 : arrival * MIX2 | 1;
}

/*
 * 0 also if it runs, or is just leaving its CPU. Were last_arrival taken after the look at the CPU,
 * a thread that arrives in between would run on under its stamp; and who leaves is off its queue
 * before it is off its CPU, so they are looked at in this order, as by try_to_wake_up().
 */
static __always_inline u64 take_stamp(struct place *p, const struct task_struct *t)
{
	u64 stamp = stamp_now(t);

	keep_order(p);
	if (t->on_rq)
		return 0;
	keep_order(p);
	return compat_on_cpu(t) ? 0 : stamp;
}

/* Others can change its descriptors. A process's threads do, too, and are taken for others. */
static __always_inline bool shares_files(const struct task_struct *t)
{
	return t->files->count.counter > 1;
}

#define WORD(field_) (__builtin_offsetof(struct mote_task, field_) / 8)
_Static_assert(__builtin_offsetof(struct mote_task, fds) % 8 == 0 &&
		       __builtin_offsetof(struct mote_task, flags) % 8 == 0,
	       "lower halves of words");

/* Without descriptors if these can be only what they were. */
static __always_inline u64 hash_gauges(const struct mote_task *r, const struct task_struct *t)
{
	const u64 *word = (const u64 *)r;
	u64 hash = word[0] + ((u64)t->nvcsw + t->nivcsw) * MIX2; /* word 0: pid, ppid */
	bool all = shares_files(t);

	for (u32 i = MOTE_GAUGES_AT / 8; i < MOTE_GAUGES_END / 8; i++) {
		u64 w = word[i];

		if (i == WORD(fds) && !all)
			w &= ~0xffffffffull;
		if (i == WORD(flags) && !all)
			w &= ~(u64)MOTE_TASK_HAS_FDS;
		hash = (hash ^ w) * MIX1;
		hash ^= hash >> 29;
	}
	return hash;
}

static __always_inline struct place *place(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&walk_place, &zero);
}

static __always_inline const struct task_struct *task_at(u64 address)
{
	return bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct task_struct));
}

static __always_inline struct entry *entry_at(u32 at)
{
	return bpf_map_lookup_elem(&walk_entries, &at);
}

/*
 * The list is a chain of cache misses. The addresses of those that come next are known from the
 * walk before: loads that nothing waits for, several at once. They may hit a task that is gone;
 * what they load is of no use then, and of no harm.
 */
static __always_inline void touch(u32 from)
{
	for (u32 i = 0; i < BATCH; i++) {
		struct entry *e = entry_at(from + i);
		const struct task_struct *t;

		if (!e)
			break;
		t = task_at(e->task);
		(void)*(const volatile unsigned long long *)&t->sched_info.last_arrival;
		(void)*(struct list_head *const volatile *)&t->tasks.next;
	}
}

struct search {
	u64 start;
	u32 pid, from, found;
};

static long search_step(u64 i, struct search *s)
{
	struct entry *e = entry_at(s->from + i);

	if (e && (e->pid != s->pid || e->start != s->start))
		return 0;
	s->found = s->from + i;
	return 1;
}

/* Those passed over are gone: the others keep their order, and new ones come at the end. */
static __always_inline struct entry *find_entry(const struct task_struct *t)
{
	struct search s = {
		.start = t->start_boottime, .pid = t->tgid, .from = next, .found = known
	};

	if (next < known)
		bpf_loop(known - next, search_step, &s, 0);
	next = s.found;
	return next < known ? entry_at(next) : NULL;
}

static __always_inline void put_ref(u32 pid, u32 pair)
{
	u32 at = walk_ctl.tasks;
	struct mote_ref *ref = bpf_map_lookup_elem(&walk_refs, &at);

	if (ref && (ref->pid != pid || ref->pair != pair)) {
		ref->pid = pid;
		ref->pair = pair;
	}
	walk_ctl.tasks = at + 1;
}

/* Nothing new: its entry moves up to where there are gaps of those that are gone. */
static __always_inline void keep(struct place *p, const struct entry *e)
{
	u32 pair = e->pair, at = walk_ctl.tasks;
	struct entry *to = at != p->entry ? entry_at(at) : NULL;

	if (e->written > walk_ctl.taken)
		pair |= MOTE_REF_WRITTEN;
	if (to)
		*to = *e;
	put_ref(e->pid, pair);
	walk_ctl.threads += p->threads;
}

/* A pair for a new process; NONE: there is none. */
static __always_inline u32 take_pair(void)
{
	u32 at = walk_ctl.free - 1;
	struct mote_pair *pair = bpf_map_lookup_elem(&walk_pairs, &at);

	if (!pair || walk_ctl.tasks >= task_max) {
		walk_ctl.tasks_lost++;
		return NONE;
	}
	walk_ctl.free = at;
	return pair->free;
}

static __always_inline u32 sequence(const struct signal_struct *s)
{
	return s->stats_lock.seqcount.seqcount.sequence;
}

/*
 * A thread that ended since the sums were taken is in neither these nor the threads that were
 * added: too little, which the next walk has.
 */
static __always_inline void end_record(struct place *p, const struct signal_struct *s)
{
	struct mote_task *r = bpf_map_lookup_elem(&walk_recs, &p->at);
	struct entry *to = entry_at(walk_ctl.tasks);

	fence(p);
	if (!r || !to)
		return;
	if (r->flags & MOTE_TASK_TWICE || p->seq != sequence(s) || r->threads != p->threads + 1) {
		r->flags |= MOTE_TASK_TORN;
		p->stamp = 0;
	}
	p->fresh.stamp = p->stamp;
	p->fresh.threads = p->threads;
	p->fresh.written = walk_ctl.begun;
	*to = p->fresh;
	put_ref(to->pid, to->pair | MOTE_REF_WRITTEN);
	born += p->entry == NONE;
	walk_ctl.threads += p->threads;
	walk_ctl.written++;
}

/*
 * __exit_signal() moves an ending thread's counts to signal_struct inside stats_lock: sums that are
 * taken meanwhile may have a thread that is still in the list, or a part of it. False also of a
 * first thread whose place an exec by another has taken: it is in the sums, too.
 */
static __always_inline bool take_counters(struct place *p, struct mote_task *r,
					  const struct task_struct *t)
{
	const struct signal_struct *s = t->signal;

	for (u32 i = 0; i < TRIES; i++) {
		p->seq = sequence(s);
		fence(p);
		counter_record(r, t);
		fence(p);
		if (!(p->seq & 1) && p->seq == sequence(s))
			return t->group_leader == t;
	}
	return false;
}

/* Has been waited for since the list led to it: it is in its own sums now, and its end was told. */
static __always_inline bool is_gone(const struct signal_struct *s)
{
	return !s->nr_threads;
}

/*
 * Of the first thread. The stamp is taken before the counts, so that what changes in between is
 * found by the next walk. True if other threads are to be added.
 */
static __always_inline bool begin_record(struct place *p, const struct entry *e)
{
	const struct task_struct *t = task_at(p->process);
	const struct signal_struct *s = t->signal;
	struct mote_pair *which;
	struct mote_task *r;
	bool once;
	u32 pair;

	if (e && e->start != t->start_boottime) { /* the address is another's now */
		e = find_entry(t);
		p->entry = e ? next++ : NONE;
	}
	pair = e ? e->pair : take_pair();
	which = bpf_map_lookup_elem(&walk_pairs, &pair);
	if (!which)
		return false;
	p->at = pair + (which->side ? 0 : task_max);
	r = bpf_map_lookup_elem(&walk_recs, &p->at);
	if (!r)
		return false;
	p->stamp = take_stamp(p, t);
	p->threads = 0;
	fence(p);
	once = take_counters(p, r, t);
	if (is_gone(s)) {
		walk_ctl.free += !e;
		return false;
	}
	gauge_record(r, t);
	p->fresh = (struct entry){ .task = p->process,
				   .start = r->start,
				   .gauges = hash_gauges(r, t),
				   .pid = r->pid,
				   .pair = pair };
	r->flags |= once ? 0 : MOTE_TASK_TWICE;
	if (s->nr_threads > 1)
		return true;
	end_record(p, s);
	return false;
}

static __always_inline bool gauges_stand(struct place *p, const struct entry *e)
{
	const struct task_struct *t = task_at(p->process);

	if ((u32)(e->pair * GOLDEN - arc_at) >= arc)
		return true;
	plain_gauges(&p->scratch, t);
	if (shares_files(t))
		p->scratch.flags |= descriptors(&p->scratch, t->files);
	return hash_gauges(&p->scratch, t) == e->gauges;
}

/* All stamps are there. True if a record was begun that other threads are to be added to. */
static __always_inline bool end_stamps(struct place *p)
{
	struct entry *e = entry_at(p->entry);

	if (!e)
		return false;
	if (!p->stamp || p->stamp != e->stamp || !gauges_stand(p, e))
		return begin_record(p, e);
	keep(p, e);
	return false;
}

/* A process: true if its other threads are to be looked at. */
__noinline int begin_process(void)
{
	struct place *p = place();
	const struct task_struct *t;
	struct entry *e;

	if (!p)
		return false;
	t = task_at(p->process);
	if (next % BATCH == 0)
		touch(next + BATCH);
	e = next < known ? entry_at(next) : NULL;
	if (!e || e->task != p->process) {
		if (!t->tgid) /* the list begins with init_task */
			return false;
		e = find_entry(t);
	}
	p->entry = e ? next++ : NONE;
	if (!e || e->task != p->process || walk_ctl.full)
		return begin_record(p, e);
	p->at = NONE;
	p->threads = 0;
	p->stamp = stamp_now(t);
	return e->threads && p->stamp ? true : end_stamps(p);
}

/* One of its other threads. */
__noinline int add_thread(void)
{
	struct place *p = place();
	struct mote_thread_counts counts;
	const struct task_struct *t;
	struct mote_task *r;
	u64 stamp;

	if (!p)
		return 0;
	t = task_at(p->thread);
	stamp = p->at == NONE ? stamp_now(t) : take_stamp(p, t);
	p->stamp = stamp && p->stamp ? (p->stamp + stamp) | 1 : 0;
	p->threads++;
	r = bpf_map_lookup_elem(&walk_recs, &p->at);
	if (!r)
		return 0;
	fence(p);
	own_counts(&counts, t);
	add_counts(&r->counts, &counts);
	return 0;
}

/* They were all added. True if they are to be looked at once more. */
__noinline int end_threads(void)
{
	struct place *p = place();

	if (!p)
		return false;
	if (p->at == NONE)
		return end_stamps(p);
	end_record(p, task_at(p->process)->signal);
	return false;
}

static __always_inline void add_threads(struct place *p, struct task_struct *t)
{
	struct task_struct *held = bpf_task_acquire(t), *thread;
	struct bpf_iter_task it;

	if (!held)
		return;
	bpf_iter_task_new(&it, held, BPF_TASK_ITER_PROC_THREADS);
	while ((thread = bpf_iter_task_next(&it))) {
		if (thread->pid == thread->tgid)
			continue;
		p->thread = (u64)thread;
		add_thread();
	}
	bpf_iter_task_destroy(&it);
	bpf_task_release(held);
}

/* Of the walks, or of the time, whichever makes it longer. */
static __always_inline void set_arc(void)
{
	u64 now = bpf_ktime_get_ns(), ms = (now - looked) / 1000000, walks = MOTE_WALK_TURN;

	looked = now;
	arc_at += arc;
	if (ms * MOTE_WALK_TURN > MOTE_WALK_TURN_MS)
		walks = ms < MOTE_WALK_TURN_MS ? MOTE_WALK_TURN_MS / ms : 1;
	arc = (CIRCLE - 1) / walks + 1;
}

/* Of an iterator over tasks that has one task, or none: the call at its end is made in any case. */
SEC("?iter/task")
int walk(struct bpf_iter__task *ctx)
{
	struct place *p = place();
	struct bpf_iter_task it;
	struct task_struct *t;

	if (ctx->task || !p)
		return 0;
	walk_ctl.begun++;
	walk_ctl.tasks = walk_ctl.tasks_lost = walk_ctl.threads = walk_ctl.written = 0;
	next = born = 0;
	set_arc();
	bpf_iter_task_new(&it, NULL, BPF_TASK_ITER_ALL_PROCS);
	while ((t = bpf_iter_task_next(&it))) {
		p->process = (u64)t;
		if (!begin_process())
			continue;
		add_threads(p, t);
		if (!end_threads())
			continue;
		add_threads(p, t);
		end_threads();
	}
	bpf_iter_task_destroy(&it);
	if (born || walk_ctl.tasks != known)
		walk_ctl.moved = walk_ctl.begun;
	known = walk_ctl.tasks;
	walk_ctl.full = 0;
	walk_ctl.done = walk_ctl.begun;
	return 0;
}
