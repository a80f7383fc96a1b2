/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The owner's side of the counter slots (abi.h; docs/SLOTS.md): takes the marks that BPF sets,
 * and brings slots of ended objects back to the free ones, without a system call: one read of the
 * pinned iterator `reap` in the tick's chain is all the kernel is asked for. Works on mapped memory
 * only, allocates at creation only.
 *
 * A pass of the loop: notices (mote_slots_end) of what ended, mote_slots_scan, mote_slots_grace,
 * mote_slots_prepare; if that is true the read of `reap` goes into the chain, and mote_slots_passed
 * follows when it is complete. Notices come before the scan, so that every write that preceded a
 * notice has its slot known.
 */
#ifndef MOTE_SLOTS_H
#define MOTE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "table.h"

/* Memory of one table, mapped for as long as the object lives. */
struct mote_slots_memory {
	enum mote_slot_table table;
	void *slots; /* `size` objects of `stride` bytes, each beginning with struct mote_slot */
	size_t stride;
	size_t own;    /* offset in an object of a u32 that is this module's, 0 at first */
	uint32_t size; /* at most MOTE_SLOTS_MAX */
	struct mote_slot_marks *marks;
	struct mote_reap *reap;     /* this table's */
	struct mote_slot_cpu *cpus; /* the same for all tables */
	unsigned int ncpus;         /* possible CPUs */
};

struct mote_slots_ops {
	/* Its counters are to be read, and added to its key. `first`: it was not known before.
	   mote_slots_end() may be called from here. */
	void (*fold)(void *ctx, uint32_t slot, bool first);
	/* Nobody writes to the slot any more and its last fold is over; it still has its key, and
	   is about to be free. */
	void (*gone)(void *ctx, uint32_t slot);
};

struct mote_slots;

/*
 * -EINVAL for a size or offsets that cannot be, -ENOMEM. Slots may be in use by then; their
 * generations began at 1, so that no id is 0.
 */
int mote_slots_new(const struct mote_slots_memory *memory, const struct mote_slots_ops *ops,
		   void *ctx, struct mote_slots **out);
void mote_slots_free(struct mote_slots *slots);

/*
 * The object of this slot has ended (or shall be forgotten). Repeated notices do nothing, nor does
 * one of a slot that has not been folded yet. It does no harm if BPF took the key out of the index
 * already. A key that is written again after it was taken out gets another slot, which needs an
 * end of its own.
 */
void mote_slots_end(struct mote_slots *slots, uint32_t slot);
/* Takes every mark. Returns how many slots were folded. */
uint32_t mote_slots_scan(struct mote_slots *slots);
/* Looks at the CPUs; what nobody can be writing to any more is folded for the last time. `now`: ns.
 */
void mote_slots_grace(struct mote_slots *slots, uint64_t now);
/* Fills the reap list; true if `reap` is to be run. */
bool mote_slots_prepare(struct mote_slots *slots);
/* The read of `reap` is over. Whether the program ran tells its own count: else all is retried. */
void mote_slots_passed(struct mote_slots *slots);

struct mote_slots_stats {
	struct mote_fill fill; /* slots in use; dropped: turned away or refused by BPF */
	uint64_t freed;        /* slots given back since start */
	uint32_t waiting;      /* slots between their end and their return */
	uint64_t grace_age;    /* ns that the grace has lasted that now runs; 0: none does */
	uint64_t grace_waits;  /* mote_slots_grace() calls that found a CPU inside */
	uint64_t orphans;      /* slots that a writer could not give back, and we did */
	uint64_t retried;      /* deletes and pushes that had to be asked for again */
};
void mote_slots_stats(const struct mote_slots *slots, uint64_t now, struct mote_slots_stats *stats);

#endif
