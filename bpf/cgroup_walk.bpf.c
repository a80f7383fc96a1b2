// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The walk over the cgroups of version 2: one read() of the pinned iterator goes through all of
 * them, from the root down, and writes what each uses to its row. Which row that is says an index
 * that user space keeps; of those that it does not have yet, id, parent and name are given.
 * Counters of CPUs are flushed once, at the root.
 *
 * The iterator holds cgroup_mutex and each cgroup; what hangs on its controllers is read by
 * bpf_probe_read_kernel(), as the verifier does not know these types.
 */
#include "maps.h"
#include "compat.h"
#include "abi.h"

char _license[] SEC("license") = "Dual BSD/GPL";

const volatile u32 cgroup_max;  /* rows, without that of `other` */
const volatile u32 cgroup_mask; /* entries of the index less one */
const volatile u64 page_size;
/* Addresses in the kernel; user space looks for them, libbpf takes six times as long to. */
const volatile u64 memcg_stats_index, memcg_events_index;

struct mote_cgroup_ctl cgroup_ctl;

ARRAY(cgroup_rows, struct mote_cgroup_row, 2);
ARRAY(cgroup_index, struct mote_cgroup_slot, 2);

#define LONGS 64 /* that are read of an array of counters; they lie within their struct */

struct scratch {
	u64 state[LONGS], events[LONGS];
	u64 happened[8];
	struct mote_cgroup_row row;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} cgroup_scratch SEC(".maps");

/* Where in memcg_vmstats each of these is. */
static struct compat_memcg_places places;

#define BIT(value) (1ull << MOTE_CGROUP_##value)

#define SET(row, value, number)                           \
	do {                                              \
		(row)->v[MOTE_CGROUP_##value] = (number); \
		(row)->present |= BIT(value);             \
	} while (0)

/* A limit that is none stays absent. */
#define SET_LIMIT(row, value, limit, none)       \
	do {                                     \
		u64 limit_ = (limit);            \
		if (limit_ < (none))             \
			SET(row, value, limit_); \
	} while (0)

/* Of struct task_group. Shares are kept times 1024, and 1024 of them are a weight of 100. */
static __always_inline void take_cpu(struct mote_cgroup_row *r, const struct task_group *tg)
{
	u64 shares = BPF_CORE_READ(tg, shares) >> 10,
	    quota = BPF_CORE_READ(tg, cfs_bandwidth.quota);

	SET(r, CPU_WEIGHT, (shares * 100 + 512) / 1024);
	SET(r, CPU_PERIOD, BPF_CORE_READ(tg, cfs_bandwidth.period));
	SET_LIMIT(r, CPU_QUOTA, quota, ~0ull);
	SET(r, CPU_PERIODS, (u32)BPF_CORE_READ(tg, cfs_bandwidth.nr_periods));
	SET(r, CPU_THROTTLED, (u32)BPF_CORE_READ(tg, cfs_bandwidth.nr_throttled));
	SET(r, CPU_THROTTLED_TIME, BPF_CORE_READ(tg, cfs_bandwidth.throttled_time));
}

/* PAGE_COUNTER_MAX: no limit */
#define NO_LIMIT (0x7fffffffffffffffull / page_size)

static __always_inline void take_memory(struct mote_cgroup_row *r, struct scratch *s,
					const struct mem_cgroup *m)
{
	u64 max = BPF_CORE_READ(m, memory.max), high = BPF_CORE_READ(m, memory.high);
	u64 swap = BPF_CORE_READ(m, swap.max);

	SET(r, MEMORY_CURRENT, BPF_CORE_READ(m, memory.usage.counter) * page_size);
	SET(r, MEMORY_PEAK, BPF_CORE_READ(m, memory.watermark) * page_size);
	SET(r, SWAP_CURRENT, BPF_CORE_READ(m, swap.usage.counter) * page_size);
	if (max < NO_LIMIT)
		SET(r, MEMORY_MAX, max * page_size);
	if (high < NO_LIMIT)
		SET(r, MEMORY_HIGH, high * page_size);
	if (swap < NO_LIMIT)
		SET(r, SWAP_MAX, swap * page_size);
	bpf_probe_read_kernel(s->happened, sizeof(s->happened), &m->memory_events);
	SET(r, LOW, s->happened[0]);
	SET(r, HIGH, s->happened[1]);
	SET(r, MAX, s->happened[2]);
	SET(r, OOM, s->happened[3]);
	SET(r, OOM_KILL, s->happened[4]);
	bpf_probe_read_kernel(s->happened, sizeof(s->happened), &m->memory_events_local);
	SET(r, LOCAL_LOW, s->happened[0]);
	SET(r, LOCAL_HIGH, s->happened[1]);
	SET(r, LOCAL_MAX, s->happened[2]);
	SET(r, LOCAL_OOM, s->happened[3]);
	SET(r, LOCAL_OOM_KILL, s->happened[4]);
}

/* A sum over CPUs may be just below 0. */
static __always_inline u64 at(const u64 *array, u32 place)
{
	s64 v = place < LONGS ? (s64)array[place & (LONGS - 1)] : 0;

	return v < 0 ? 0 : v;
}

static __always_inline void take_stat(struct mote_cgroup_row *r, struct scratch *s,
				      const struct mem_cgroup *m)
{
	const struct memcg_vmstats *stats = BPF_CORE_READ(m, vmstats);
	const struct compat_memcg_places *p = &places;

	if (!p->known || bpf_probe_read_kernel(s->state, sizeof(s->state), &stats->state) ||
	    bpf_probe_read_kernel(s->events, sizeof(s->events), &stats->events))
		return;
	SET(r, ANON, at(s->state, p->anon) * page_size);
	SET(r, FILE, at(s->state, p->file) * page_size);
	SET(r, SHMEM, at(s->state, p->shmem) * page_size);
	SET(r, FILE_DIRTY, at(s->state, p->dirty) * page_size);
	SET(r, FILE_WRITEBACK, at(s->state, p->writeback) * page_size);
	SET(r, INACTIVE_FILE, at(s->state, p->inactive_file) * page_size);
	SET(r, SLAB, at(s->state, p->slab_reclaimable) + at(s->state, p->slab_unreclaimable));
	SET(r, REFAULT_ANON, at(s->state, p->refault_anon));
	SET(r, REFAULT_FILE, at(s->state, p->refault_file));
	if (p->kernel < LONGS)
		SET(r, KERNEL, at(s->state, p->kernel) * page_size);
	SET(r, PGFAULT, at(s->events, p->pgfault));
	SET(r, PGMAJFAULT, at(s->events, p->pgmajfault));
	SET(r, PGSCAN,
	    at(s->events, p->pgscan[0]) + at(s->events, p->pgscan[1]) +
		    at(s->events, p->pgscan[2]) + at(s->events, p->pgscan[3]));
	SET(r, PGSTEAL,
	    at(s->events, p->pgsteal[0]) + at(s->events, p->pgsteal[1]) +
		    at(s->events, p->pgsteal[2]) + at(s->events, p->pgsteal[3]));
}

#define PIDS_MAX_ 4194304ull /* PID_MAX_LIMIT; above: no limit */

static __always_inline void take_pids(struct mote_cgroup_row *r, const struct pids_cgroup *p)
{
	u64 limit = BPF_CORE_READ(p, limit.counter);

	SET(r, PIDS_CURRENT, BPF_CORE_READ(p, counter.counter));
	SET_LIMIT(r, PIDS_MAX, limit, PIDS_MAX_ + 1);
}

#define SETS_MAX 64

/* Of all sets of cgroups that this one is in, as cgroup.threads would list them. */
static __always_inline void take_threads(struct mote_cgroup_row *r, const struct cgroup *c)
{
	const struct list_head *head = &c->cset_links;
	const struct list_head *node = BPF_CORE_READ(c, cset_links.next);
	u64 threads = 0;

	for (int i = 0; i < SETS_MAX && node != head; i++) {
		const struct cgrp_cset_link *link =
			(void *)node - bpf_core_field_offset(struct cgrp_cset_link, cset_link);

		threads += (u32)BPF_CORE_READ(link, cset, nr_tasks);
		node = BPF_CORE_READ(node, next);
	}
	if (node == head)
		SET(r, THREADS, threads);
}

/*
 * Its subsystem's state; 0: the cgroup has not got this controller. Not a pointer, which the
 * verifier would take for one to the state alone.
 */
static __always_inline void *state_of(const struct cgroup *c, u32 subsystem)
{
	void *state = NULL;

	bpf_probe_read_kernel(&state, sizeof(state), &c->subsys[subsystem]);
	return state;
}

#define SUBSYSTEM(name) bpf_core_enum_value(enum cgroup_subsys_id, name##_cgrp_id)

/* What the root has is the machine's, and its files do not show it, but for some. */
static __always_inline void take_controllers(struct mote_cgroup_row *r, struct scratch *s,
					     const struct cgroup *c)
{
	void *cpu = state_of(c, SUBSYSTEM(cpu)), *pids = state_of(c, SUBSYSTEM(pids));
	void *memory = state_of(c, SUBSYSTEM(memory));

	if (memory)
		take_stat(r, s, memory);
	if (!c->level)
		return;
	if (cpu)
		take_cpu(r, cpu);
	if (memory)
		take_memory(r, s, memory);
	if (pids)
		take_pids(r, pids);
	SET(r, FROZEN, c->freezer.freeze);
	SET(r, CPU_USAGE, c->bstat.cputime.sum_exec_runtime);
	r->utime = c->bstat.cputime.utime;
	r->stime = c->bstat.cputime.stime;
	r->prev_utime = c->prev_cputime.utime;
	r->prev_stime = c->prev_cputime.stime;
}

/* The split of CPU time is user space's, of the sums that are given. */
#define FAST (((1ull << MOTE_CGROUP_FAST) - 1) & ~(BIT(CPU_USER) | BIT(CPU_SYSTEM)))

/*
 * Copies what is there to the row; a row in which nothing is new stays as it is, and so does what
 * user space has read of files, which may be in another tick.
 */
static __always_inline void store(struct mote_cgroup_row *to, const struct mote_cgroup_row *from)
{
	u64 ours = places.known ? FAST : FAST & ~MOTE_CGROUP_STAT;
	bool changed = (to->present & ours) != from->present || to->utime != from->utime ||
		       to->stime != from->stime;

	for (u32 i = 0; i < MOTE_CGROUP_FAST; i++) {
		if (!(ours >> i & 1))
			continue;
		changed |= to->v[i] != from->v[i];
		to->v[i] = from->v[i];
	}
	to->walk = cgroup_ctl.begun;
	if (!changed)
		return;
	to->present = (to->present & ~ours) | from->present;
	to->utime = from->utime;
	to->stime = from->stime;
	to->prev_utime = from->prev_utime;
	to->prev_stime = from->prev_stime;
	to->written = cgroup_ctl.begun;
}

/* Those that there is no room for, summed; of the split of CPU time what it is made of. */
static __always_inline void add(struct mote_cgroup_row *to, const struct mote_cgroup_row *from)
{
	for (u32 i = 0; i < MOTE_CGROUP_FAST; i++) {
		if (FAST >> i & 1)
			to->v[i] += from->v[i];
	}
	to->present |= from->present;
	to->utime += from->utime;
	to->stime += from->stime;
	to->prev_utime += from->prev_utime;
	to->prev_stime += from->prev_stime;
	to->written = cgroup_ctl.begun;
}

/* Of one below those: what they do not have of it. */
static __always_inline void add_local(struct mote_cgroup_row *to,
				      const struct mote_cgroup_row *from)
{
	for (u32 i = 0; i < MOTE_CGROUP_FAST; i++) {
		if (MOTE_CGROUP_LOCAL >> i & 1)
			to->v[i] += from->v[i];
	}
	to->present |= from->present & MOTE_CGROUP_LOCAL;
}

static __always_inline struct mote_cgroup_slot *find(u64 id)
{
	u32 place = mote_cgroup_place(id, cgroup_mask);

	for (u32 i = 0; i < MOTE_CGROUP_PROBES; i++) {
		u32 at = (place + i) & cgroup_mask;
		struct mote_cgroup_slot *slot = bpf_map_lookup_elem(&cgroup_index, &at);

		if (!slot || !slot->id)
			return NULL;
		if (slot->id == id)
			return slot;
	}
	return NULL;
}

/* What the walk begins with has nobody above it, wherever that is in the hierarchy. */
static __always_inline void tell(const struct cgroup *c, u64 id)
{
	bool first = !cgroup_ctl.known && !cgroup_ctl.unknown;
	u32 at = cgroup_ctl.unknown++;
	struct mote_cgroup_new *fresh;
	long len;

	if (at >= MOTE_CGROUP_NEW)
		return;
	fresh = &cgroup_ctl.fresh[at & (MOTE_CGROUP_NEW - 1)];
	fresh->id = id;
	fresh->parent = first ? 0 : BPF_CORE_READ(c, self.parent, cgroup, kn, id);
	fresh->level = c->level;
	len = bpf_probe_read_kernel_str(fresh->name, sizeof(fresh->name), c->kn->name);
	fresh->name_len = len > 0 ? len - 1 : 0;
}

static __always_inline void visit(const struct cgroup *c)
{
	u64 id = c->kn->id;
	struct mote_cgroup_slot *slot = find(id);
	struct mote_cgroup_row *row;
	struct scratch *s;
	u32 zero = 0, at;
	bool part;

	if (!slot) {
		tell(c, id);
		return;
	}
	slot->seen = cgroup_ctl.begun;
	cgroup_ctl.known++;
	part = slot->row == cgroup_max + 1;
	at = part ? cgroup_max : slot->row;
	row = at <= cgroup_max ? bpf_map_lookup_elem(&cgroup_rows, &at) : NULL;
	s = bpf_map_lookup_elem(&cgroup_scratch, &zero);
	if (!row || !s)
		return;
	__builtin_memset(&s->row, 0, sizeof(s->row));
	SET(&s->row, DESCENDANTS, (u32)c->nr_descendants);
	SET(&s->row, DYING, (u32)c->nr_dying_descendants);
	take_threads(&s->row, c);
	take_controllers(&s->row, s, c);
	if (part)
		add_local(row, &s->row);
	else if (at == cgroup_max)
		add(row, &s->row);
	else
		store(row, &s->row);
}

/* User space may still show what it has of them until the walk begins. */
static __always_inline void clear_others(void)
{
	u32 at = cgroup_max;
	struct mote_cgroup_row *others = bpf_map_lookup_elem(&cgroup_rows, &at);

	if (!others)
		return;
	others->present = 0;
	others->utime = others->stime = others->prev_utime = others->prev_stime = 0;
	__builtin_memset(others->v, 0, sizeof(others->v));
}

static __always_inline void begin(const struct cgroup *c)
{
	const struct compat_memcg_arrays arrays = { .stats_index = memcg_stats_index,
						    .events_index = memcg_events_index };

	clear_others();
	cgroup_ctl.begun++;
	cgroup_ctl.root_level = c->level;
	cgroup_ctl.known = cgroup_ctl.unknown = 0;
	if (cgroup_ctl.begun == 1)
		compat_find_memcg_places(&places, &arrays);
	cgroup_ctl.has_stat = places.known;
}

/* Up to 6.15 one flush is for all controllers. */
SEC("?iter.s/cgroup")
int walk_flush(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *c = ctx->cgroup;

	if (!c) {
		cgroup_ctl.done = cgroup_ctl.begun;
		return 0;
	}
	if (!ctx->meta->seq_num) {
		begin(c);
		cgroup_rstat_flush(c);
	}
	visit(c);
	return 0;
}

/*
 * From 6.16 on each has its own, and this is of CPU time: user space has memory's flushed before.
 */
SEC("?iter.s/cgroup")
int walk_css_flush(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *c = ctx->cgroup;

	if (!c) {
		cgroup_ctl.done = cgroup_ctl.begun;
		return 0;
	}
	if (!ctx->meta->seq_num) {
		begin(c);
		css_rstat_flush(&c->self);
	}
	visit(c);
	return 0;
}
