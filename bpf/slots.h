/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The writer's and the reaper's half of the counter slots (abi.h; docs/SLOTS.md has the states, the
 * ordering and why each step is where it is). Everything is inlined with a `struct slots` that is
 * built where it is used, so that its maps are constants to the verifier.
 *
 * A writer:
 *	cpu = slots_enter(&net_cpus);
 *	if (!cpu)
 *		return 0;
 *	flow = slots_get(&flows, cpu, key, &slot, fill_flow, &arg);
 *	if (flow) {
 *		__sync_fetch_and_add(&flow->traffic.sent, bytes);
 *		SLOT_ADD(flow->traffic.sent_calls, 1);
 *		slots_mark(&flows, slot);
 *	} else {
 *		add to cpu->other: nothing is lost, only whose it was
 *	}
 *	slots_exit(cpu);
 * Every path from enter leads to exit, there are no tail calls in between, and the last add before
 * the mark is a SLOT_ADD.
 */
#ifndef MOTE_BPF_SLOTS_H
#define MOTE_BPF_SLOTS_H

#include "kernel.h"
#include "abi.h"

#define SLOT_TRIES 4 /* more than 2 were never seen; what fails goes to `other` */

/*
 * An add that is also a full barrier. x86 has one in every atomic add ("lock add"). arm64 only in
 * the form that fetches, and whose result is used: objects for arm64 >= 6.1 are built with
 * -mcpu=v3 -DMOTE_FETCH; 5.10 refuses it even in dead code, and user space then looks at the CPUs a
 * millisecond late instead.
 */
#ifdef MOTE_FETCH
#	define SLOT_ADD(x, n)                                         \
		do {                                                   \
			u64 before_ = __sync_fetch_and_add(&(x), (n)); \
			asm volatile("" ::"r"(before_));               \
		} while (0)
#else
#	define SLOT_ADD(x, n) ((void)__sync_fetch_and_add(&(x), (n)))
#endif

/* tests/slots: where a writer may be held up, what may fail, and which rule is to be broken */
#ifndef SLOT_POINT
#	define SLOT_POINT(where)  ((void)0)
#	define SLOT_FAILS()       false
#	define SLOT_MUTANT(which) false
#endif

/* The maps of one table. */
struct slots {
	void *index; /* hash: u64 key -> gen << 32 | slot; has as many entries as there are slots */
	void *free;  /* queue of u32 */
	void *slots; /* array, mmapable: objects that begin with struct mote_slot */
	void *marks; /* array, mmapable: struct mote_slot_marks_line */
	enum mote_slot_table table;
};

/* Before any look at an index. `cpus`: array of struct mote_slot_cpu. */
static __always_inline struct mote_slot_cpu *slots_enter(void *cpus)
{
	u32 number = bpf_get_smp_processor_id();
	struct mote_slot_cpu *cpu = bpf_map_lookup_elem(cpus, &number);

	if (cpu)
		SLOT_ADD(cpu->enter, 1);
	SLOT_POINT(1);
	return cpu;
}

/* After the last touch of slots and marks. */
static __always_inline void slots_exit(struct mote_slot_cpu *cpu)
{
	SLOT_POINT(6);
	SLOT_ADD(cpu->exit, 1);
}

/* After the add: user space clears the mark before it reads. */
static __always_inline void slots_mark(const struct slots *t, u32 slot)
{
	u32 number = slot / MOTE_MARKS_LINE;
	struct mote_slot_marks_line *line = bpf_map_lookup_elem(t->marks, &number);

	SLOT_POINT(5);
	if (line)
		*(volatile u8 *)&line->mark[slot % MOTE_MARKS_LINE] = 1;
}

/*
 * Hash elements are reused at once when they are deleted, so that by now `value` may be another
 * key's: then the slot it leads to has another key too. The generation alone does not tell.
 */
static __always_inline void *slots_check(const struct slots *t, struct mote_slot_cpu *cpu, u64 key,
					 u64 value, u32 *slot)
{
	struct mote_slot *s;

	*slot = (u32)value;
	s = bpf_map_lookup_elem(t->slots, slot);
	if (s && *(volatile u32 *)&s->gen == value >> 32 && *(volatile u64 *)&s->key == key)
		return s;
	if (s && SLOT_MUTANT(NO_KEY_CHECK) && *(volatile u32 *)&s->gen == value >> 32)
		return s;
	if (s && SLOT_MUTANT(NO_CHECK))
		return s;
	__sync_fetch_and_add(&cpu->mismatches, 1);
	return NULL;
}

/* NULL, *absent true: the key has no slot; false: it has by now another, look again. */
static __always_inline void *slots_lookup(const struct slots *t, struct mote_slot_cpu *cpu, u64 key,
					  u32 *slot, bool *absent)
{
	u64 *value = bpf_map_lookup_elem(t->index, &key);

	*absent = !value;
	if (!value)
		return NULL;
	SLOT_POINT(2);
	return slots_check(t, cpu, key, *(volatile u64 *)value, slot);
}

/* The slot of a key if it has one; claims none. */
static __always_inline void *slots_find(const struct slots *t, struct mote_slot_cpu *cpu, u64 key,
					u32 *slot)
{
	bool absent = false;
	void *s = NULL;

	for (int i = 0; i < SLOT_TRIES && !s && !absent; i++)
		s = slots_lookup(t, cpu, key, slot, &absent);
	return s;
}

/*
 * A slot and the low bits of its generation, for who comes with the same key again and again, and
 * remembers where it was: that saves looking into the index. Such a writer may come after the key
 * was taken out of it, and after the grace for those who found it there: hence MOTE_SLOT_UNLINKED.
 * It is read together with the generation, which user space writes first when the slot is free: so
 * nobody can see the one of before and the other of after, whatever the order of two reads.
 */
#define SLOT_PLACE(slot, gen) ((slot) | (u32)(gen) << MOTE_SOCKET_SLOT_BITS)

static __always_inline void *slots_recall(const struct slots *t, u64 key, u32 place, u32 *slot)
{
	struct mote_slot *s;
	u64 life; /* gen, and in the upper half `left` */

	*slot = place & (MOTE_SLOTS_MAX - 1);
	s = bpf_map_lookup_elem(t->slots, slot);
	if (!s || *(volatile u64 *)&s->key != key)
		return NULL;
	SLOT_POINT(7);
	life = *(volatile u64 *)&s->gen;
	if (life >> 32 && !SLOT_MUTANT(NO_UNLINKED_CHECK))
		return NULL;
	return SLOT_PLACE(*slot, (u32)life) == place ? s : NULL;
}

/*
 * A free slot with this key in it, that nobody else knows: the caller sets the fields of its own
 * that a new key needs (counters go on as they are), then slots_insert(). NULL: none was free.
 */
static __always_inline void *slots_claim(const struct slots *t, struct mote_slot_cpu *cpu, u64 key,
					 u32 *slot)
{
	struct mote_slot *s;

	/* (int): up to 6.3 the verifier inlines calls to map functions that return int, and the
	   upper half of the register is not a sign */
	if ((int)bpf_map_pop_elem(t->free, slot)) {
		__sync_fetch_and_add(&cpu->turned_away[t->table], 1);
		return NULL;
	}
	s = bpf_map_lookup_elem(t->slots, slot);
	if (s)
		s->key = key;
	return s;
}

/* 7.x: the queue's lock can give up. Then the slot is left to user space. */
static __always_inline void slots_give_back(const struct slots *t, struct mote_slot_cpu *cpu,
					    struct mote_slot *s, u32 slot)
{
	s->key = 0;
	if (!SLOT_FAILS() && !(int)bpf_map_push_elem(t->free, &slot, 0))
		return;
	s->left = MOTE_SLOT_ORPHAN;
	SLOT_ADD(cpu->push_failed, 1); /* orphan, and no key, before the mark */
	slots_mark(t, slot);
}

#define SLOT_EEXIST (-17)

/* 0; or the slot is given back: SLOT_EEXIST, another CPU was faster; else the kernel refused. */
static __always_inline int slots_insert(const struct slots *t, struct mote_slot_cpu *cpu,
					struct mote_slot *s, u32 slot)
{
	u64 key = s->key;
	u64 value = (u64)s->gen << 32 | slot;
	int err;

	SLOT_POINT(4);
	err = (int)bpf_map_update_elem(t->index, &key, &value,
				       SLOT_MUTANT(INSERT_ANY) ? BPF_ANY : BPF_NOEXIST);
	if (!err) {
		__sync_fetch_and_add(&cpu->claims, 1);
		return 0;
	}
	slots_give_back(t, cpu, s, slot);
	if (err == SLOT_EEXIST)
		__sync_fetch_and_add(&cpu->lost_races, 1);
	return err;
}

/*
 * One try to get the slot of a key, claimed if it has none; NULL: no room, or refused, or it is to
 * be tried `again`. `fill` (NULL: nothing to do) sets what a claimed slot needs before others can
 * see it; it must be inlined too.
 */
static __always_inline void *slots_try(const struct slots *t, struct mote_slot_cpu *cpu, u64 key,
				       u32 *slot, void (*fill)(void *s, void *arg), void *arg,
				       bool *again)
{
	bool absent;
	void *s = slots_lookup(t, cpu, key, slot, &absent);
	int err;

	*again = !s && !absent;
	if (!absent)
		return s;
	s = slots_claim(t, cpu, key, slot);
	if (!s)
		return NULL;
	if (fill)
		fill(s, arg);
	err = slots_insert(t, cpu, s, *slot);
	if (!err)
		return s;
	*again = err == SLOT_EEXIST;
	if (!*again)
		__sync_fetch_and_add(&cpu->refused[t->table], 1);
	return NULL;
}

/* All tries. */
static __always_inline void *slots_get(const struct slots *t, struct mote_slot_cpu *cpu, u64 key,
				       u32 *slot, void (*fill)(void *s, void *arg), void *arg)
{
	bool again = true;
	void *s = NULL;

	for (int i = 0; i < SLOT_TRIES && again; i++)
		s = slots_try(t, cpu, key, slot, fill, arg, &again);
	if (again)
		__sync_fetch_and_add(&cpu->refused[t->table], 1);
	return s;
}

static __always_inline u32 slots_delete(const struct slots *t, u64 key, u32 slot)
{
	u64 *value = bpf_map_lookup_elem(t->index, &key);

	if (!value)
		return MOTE_REAP_ABSENT;
	if ((u32)*value != slot)
		return MOTE_REAP_OTHER_SLOT;
	if (SLOT_FAILS() || (int)bpf_map_delete_elem(t->index, &key))
		return MOTE_REAP_ERROR;
	return MOTE_REAP_DONE;
}

/*
 * Takes a slot's key out of the index, for who knows that its object ended: before the key can be
 * another object's. User space learns of it by a mark, and gives the slot back. False: the kernel's
 * lock gave up; user space deletes the key then.
 */
static __always_inline bool slots_remove(const struct slots *t, u64 key, u32 slot)
{
	return slots_delete(t, key, slot) != MOTE_REAP_ERROR;
}

static __always_inline u32 slots_push(const struct slots *t, u32 slot)
{
	if (SLOT_FAILS() || (int)bpf_map_push_elem(t->free, &slot, 0))
		return MOTE_REAP_ERROR;
	return MOTE_REAP_DONE;
}

/*
 * Whether the reaper's iterator (iter/task) is to make its pass: once for each time it is opened,
 * at the first task. What is written fills the reader's buffer, which ends the walk there: it must
 * not be larger. (iter/bpf_map_elem would do without, but is refused on some kernels: EPERM.)
 */
#define SLOTS_PASS_BYTES 64

static __always_inline bool slots_pass(struct bpf_iter_meta *meta)
{
	static const u64 full[SLOTS_PASS_BYTES / sizeof(u64)];

	bpf_seq_write(meta->seq, full, sizeof(full));
	return !meta->seq_num;
}

/*
 * Entry `i` of both lists of one table; 0: neither has so many. It belongs into a global function,
 * at which the verifier looks once, and not for each entry. One loop for all: each turn of each is
 * a jump that the verifier has to come back to, and it keeps 8,192 in mind.
 */
static __always_inline int slots_reap(const struct slots *t, struct mote_reap *r, u32 i)
{
	bool push = i < r->pushes, delete = i < r->deletes;

	i &= MOTE_REAP - 1; /* as the verifier understands it */
	if (push)
		r->push[i].status = slots_push(t, r->push[i].slot);
	if (delete)
		r->del[i].status = slots_delete(t, r->del[i].key, r->del[i].slot);
	return push || delete;
}

static __always_inline void slots_reaped(struct mote_reap *r)
{
	r->pushes = 0;
	r->deletes = 0;
	r->passes++;
}

#endif
