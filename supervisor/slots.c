// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The owner's side of the counter slots, see slots.h and docs/SLOTS.md: every slot is in one state,
 * and in one list at most. What this module keeps of a slot is a word of its own in the mapped slot
 * itself: `state << 29 | next of its list, plus 1`. BPF's word is taken for nothing that could
 * harm: a slot that is in no state to be reaped is not.
 */
#include "slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Where stores of another CPU can be seen out of order, and adds are no barrier (arm64; the
 * fetching form is one, which 5.10 has not): the add to `enter` of a writer that found the key can
 * be seen after its delete, and a mark before what it tells of. But not by much: store buffers
 * drain in microseconds. So a CPU's counters are believed SETTLE_NS after the delete, and a mark is
 * taken once more by the next scan.
 */
#ifndef WEAK
#	ifdef __x86_64__
#		define WEAK false
#	else
#		define WEAK true
#	endif
#endif
#define SETTLE_NS  1000000
#define MARK_AGAIN 2

#define STATE_SHIFT 29
#define NEXT_MASK   ((1u << STATE_SHIFT) - 1)
#define GEN_MASK    ((1u << MOTE_SOCKET_GEN_BITS) - 1)

enum state {
	FREE = 0, /* in the queue, or claimed by a writer that has not marked it yet */
	LIVE,
	ENDED,    /* still in the index; in the list `ended` */
	UNLINKED, /* taken out of the index; in `next` or `batch` */
	QUIESCED, /* nobody's; in `quiesced` */
};

struct list {
	uint32_t first, last; /* slot + 1, 0: none */
	uint32_t count;
};

struct mote_slots {
	struct mote_slots_memory m;
	struct mote_slots_ops ops;
	void *ctx;
	struct list ended;       /* to be deleted */
	struct list next, batch; /* deleted: `batch` before the grace that runs, `next` since */
	struct list quiesced;    /* to be pushed */
	uint64_t grace_since;    /* 0: not begun */
	bool asked;              /* the reap list is filled, and waits for its pass */
	uint32_t deletes, pushes;
	uint64_t passes; /* the program's count when it was filled */
	uint64_t used, peak, freed, grace_waits, orphans, retried;
	uint8_t inside[]; /* by CPU: not yet seen empty in this grace */
};

static struct mote_slot *slot_at(const struct mote_slots *s, uint32_t slot)
{
	return (struct mote_slot *)((char *)s->m.slots + slot * s->m.stride);
}

static uint32_t *own(const struct mote_slots *s, uint32_t slot)
{
	return (uint32_t *)((char *)slot_at(s, slot) + s->m.own);
}

static enum state state_of(const struct mote_slots *s, uint32_t slot)
{
	return *own(s, slot) >> STATE_SHIFT;
}

static void set_state(struct mote_slots *s, uint32_t slot, enum state state)
{
	*own(s, slot) = (uint32_t)state << STATE_SHIFT;
}

static void list_add(struct mote_slots *s, struct list *list, uint32_t slot)
{
	if (list->last)
		*own(s, list->last - 1) |= slot + 1;
	else
		list->first = slot + 1;
	list->last = slot + 1;
	list->count++;
}

/* Its first slot; the list must not be empty. The slot keeps its state. */
static uint32_t list_take(struct mote_slots *s, struct list *list)
{
	uint32_t slot = list->first - 1;

	list->first = *own(s, slot) & NEXT_MASK;
	if (!list->first)
		list->last = 0;
	list->count--;
	*own(s, slot) &= ~NEXT_MASK;
	return slot;
}

static void enlist(struct mote_slots *s, struct list *list, uint32_t slot, enum state state)
{
	set_state(s, slot, state);
	list_add(s, list, slot);
}

int mote_slots_new(const struct mote_slots_memory *memory, const struct mote_slots_ops *ops,
		   void *ctx, struct mote_slots **out)
{
	struct mote_slots *s;

	if (!memory->size || memory->size > MOTE_SLOTS_MAX || !memory->ncpus ||
	    memory->own < sizeof(struct mote_slot) ||
	    memory->own + sizeof(uint32_t) > memory->stride)
		return -EINVAL;
	s = calloc(1, sizeof(*s) + memory->ncpus);
	if (!s)
		return -ENOMEM;
	s->m = *memory;
	s->ops = *ops;
	s->ctx = ctx;
	*out = s;
	return 0;
}

void mote_slots_free(struct mote_slots *slots)
{
	free(slots);
}

void mote_slots_end(struct mote_slots *s, uint32_t slot)
{
	if (slot < s->m.size && state_of(s, slot) == LIVE)
		enlist(s, &s->ended, slot, ENDED);
}

static void begin_use(struct mote_slots *s)
{
	s->used++;
	if (s->used > s->peak)
		s->peak = s->used;
}

static void set_mark(struct mote_slots *s, uint32_t slot, uint8_t mark)
{
	__atomic_store_n(&s->m.marks->mark[slot], mark, __ATOMIC_RELAXED);
}

/*
 * The first mark of a slot since it was free: from now on the key in it is its key. False: it has
 * none to be folded to.
 */
static bool first_sight(struct mote_slots *s, uint32_t slot)
{
	struct mote_slot *head = slot_at(s, slot);

	if (__atomic_load_n(&head->left, __ATOMIC_ACQUIRE) == MOTE_SLOT_ORPHAN) {
		/* no grace: nobody but the writer that gave it up has ever seen it */
		head->left = 0;
		s->orphans++;
		begin_use(s);
		enlist(s, &s->quiesced, slot, QUIESCED);
		return false;
	}
	if (!__atomic_load_n(&head->key, __ATOMIC_ACQUIRE)) {
		/* a mark that came before the key, as stores can on arm64: next time */
		set_mark(s, slot, 1);
		return false;
	}
	begin_use(s);
	set_state(s, slot, LIVE);
	return true;
}

static uint32_t take_mark(struct mote_slots *s, uint32_t slot, uint8_t mark)
{
	enum state state = state_of(s, slot);
	bool first = state == FREE;

	if (state == QUIESCED || (first && !first_sight(s, slot)))
		return 0;
	if (WEAK && mark != MARK_AGAIN)
		set_mark(s, slot, MARK_AGAIN);
	s->ops.fold(s->ctx, slot, first);
	return 1;
}

typedef uint64_t __attribute__((may_alias)) mark_word;

/* The eight marks that begin with that of `slot`, a multiple of 8. */
static mark_word *marks_from(const struct mote_slots *s, uint32_t slot)
{
	return (mark_word *)&s->m.marks->mark[slot];
}

/* Eight marks; the exchange is the barrier between the marks and the counters read after it. */
static uint32_t take_marks(struct mote_slots *s, uint32_t slot)
{
	uint32_t folded = 0;
	union {
		uint64_t word;
		uint8_t mark[8];
	} taken = { __atomic_exchange_n(marks_from(s, slot), 0, __ATOMIC_SEQ_CST) };

	for (unsigned int i = 0; i < 8 && slot + i < s->m.size; i++)
		if (taken.mark[i])
			folded += take_mark(s, slot + i, taken.mark[i]);
	return folded;
}

uint32_t mote_slots_scan(struct mote_slots *s)
{
	uint32_t folded = 0;

	for (uint32_t slot = 0; slot < s->m.size; slot += 8)
		if (__atomic_load_n(marks_from(s, slot), __ATOMIC_RELAXED))
			folded += take_marks(s, slot);
	return folded;
}

static uint32_t next_gen(uint32_t gen)
{
	gen++;
	return gen & GEN_MASK ? gen : gen + 1;
}

static void quiesce(struct mote_slots *s, uint32_t slot)
{
	struct mote_slot *head = slot_at(s, slot);

	set_mark(s, slot, 0);
	s->ops.fold(s->ctx, slot, false);
	s->ops.gone(s->ctx, slot);
	__atomic_store_n(&head->key, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&head->gen, next_gen(head->gen), __ATOMIC_RELEASE);
	__atomic_store_n(&head->left, 0, __ATOMIC_RELEASE);
	enlist(s, &s->quiesced, slot, QUIESCED);
}

/*
 * A program never leaves its CPU, so that each CPU has to be seen empty once after the delete, and
 * not all at the same moment. `exit` is read first: exit(t1) == enter(t2 > t1) proves that nobody
 * was inside at t1, however programs nest.
 */
static bool anybody_inside(struct mote_slots *s)
{
	bool any = false;

	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* the delete, then the counters */
	for (unsigned int i = 0; i < s->m.ncpus; i++) {
		uint64_t exit;

		if (!s->inside[i])
			continue;
		exit = __atomic_load_n(&s->m.cpus[i].exit, __ATOMIC_SEQ_CST);
		s->inside[i] = exit != __atomic_load_n(&s->m.cpus[i].enter, __ATOMIC_SEQ_CST);
		any |= s->inside[i];
	}
	return any;
}

static void begin_grace(struct mote_slots *s, uint64_t now)
{
	s->batch = s->next;
	s->next = (struct list){ 0 };
	s->grace_since = now;
	memset(s->inside, 1, s->m.ncpus);
}

/* True if a grace ended. */
static bool end_grace(struct mote_slots *s, uint64_t now)
{
	if (!s->batch.count || (WEAK && now - s->grace_since < SETTLE_NS))
		return false;
	if (anybody_inside(s)) {
		s->grace_waits++;
		return false;
	}
	while (s->batch.count)
		quiesce(s, list_take(s, &s->batch));
	return true;
}

void mote_slots_grace(struct mote_slots *s, uint64_t now)
{
	if (s->batch.count && !end_grace(s, now))
		return;
	if (!s->next.count)
		return;
	begin_grace(s, now);
	end_grace(s, now);
}

bool mote_slots_prepare(struct mote_slots *s)
{
	struct mote_reap *r = s->m.reap;
	uint32_t slot;

	if (s->asked)
		mote_slots_passed(s);
	for (s->pushes = 0; s->pushes < MOTE_REAP && s->quiesced.count; s->pushes++) {
		slot = list_take(s, &s->quiesced);
		/* before the push: from then on a writer can claim it, and mark it */
		set_state(s, slot, FREE);
		r->push[s->pushes].slot = slot;
		r->push[s->pushes].status = MOTE_REAP_NONE;
	}
	for (s->deletes = 0; s->deletes < MOTE_REAP && s->ended.count; s->deletes++) {
		slot = list_take(s, &s->ended);
		r->del[s->deletes].key = slot_at(s, slot)->key;
		r->del[s->deletes].slot = slot;
		r->del[s->deletes].status = MOTE_REAP_NONE;
	}
	s->passes = r->passes;
	r->pushes = s->pushes;
	r->deletes = s->deletes;
	s->asked = s->pushes || s->deletes;
	return s->asked;
}

static void pushed(struct mote_slots *s, uint32_t slot, uint32_t status)
{
	if (status == MOTE_REAP_DONE) {
		s->freed++;
		s->used--;
		return;
	}
	s->retried++;
	enlist(s, &s->quiesced, slot, QUIESCED);
}

static void deleted(struct mote_slots *s, uint32_t slot, uint32_t status)
{
	if (status == MOTE_REAP_NONE || status == MOTE_REAP_ERROR) {
		s->retried++;
		enlist(s, &s->ended, slot, ENDED);
		return;
	}
	/* ABSENT, OTHER_SLOT: BPF deleted it, the key may have been written again since */
	__atomic_store_n(&slot_at(s, slot)->left, MOTE_SLOT_UNLINKED, __ATOMIC_RELAXED);
	enlist(s, &s->next, slot, UNLINKED);
}

void mote_slots_passed(struct mote_slots *s)
{
	struct mote_reap *r = s->m.reap;

	if (!s->asked)
		return;
	s->asked = false;
	if (__atomic_load_n(&r->passes, __ATOMIC_ACQUIRE) == s->passes)
		r->pushes = r->deletes = 0; /* it did not run: every status is NONE */
	for (uint32_t i = 0; i < s->pushes; i++)
		pushed(s, r->push[i].slot, r->push[i].status);
	for (uint32_t i = 0; i < s->deletes; i++)
		deleted(s, r->del[i].slot, r->del[i].status);
}

static uint64_t turned_away(const struct mote_slots *s)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < s->m.ncpus; i++)
		sum += s->m.cpus[i].turned_away[s->m.table] + s->m.cpus[i].refused[s->m.table];
	return sum;
}

void mote_slots_stats(const struct mote_slots *s, uint64_t now, struct mote_slots_stats *stats)
{
	*stats = (struct mote_slots_stats){
		.fill = { s->m.size, s->used, s->peak, turned_away(s) },
		.freed = s->freed,
		.waiting = s->ended.count + s->next.count + s->batch.count + s->quiesced.count,
		.grace_age = s->batch.count ? now - s->grace_since : 0,
		.grace_waits = s->grace_waits,
		.orphans = s->orphans,
		.retried = s->retried,
	};
	if (s->asked)
		stats->waiting += s->deletes + s->pushes;
}
