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
	void *slots; /* `size` objects of `stride` bytes, each beginning with struct mote_slot */
	size_t stride;
	uint32_t size; /* at most MOTE_SLOTS_MAX */
	uint8_t *marks;
	struct mote_reap *reap;
	struct mote_slot_cpu *cpus; /* the same for all tables */
	unsigned int ncpus;         /* possible CPUs */
};

struct mote_slots_ops {
	/* The slot is marked: its counters are to be read. `first`: it was not known before. */
	void (*fold)(void *ctx, uint32_t slot, bool first);
	/* Nobody writes to the slot any more and its last fold is over; it is about to be free. */
	void (*gone)(void *ctx, uint32_t slot);
};

struct mote_slots;

int mote_slots_new(const struct mote_slots_memory *memory, const struct mote_slots_ops *ops,
		   void *ctx, struct mote_slots **out);
void mote_slots_free(struct mote_slots *slots);

/*
 * The object of this slot has ended (or shall be forgotten); repeated notices do nothing. A key
 * that BPF took out of the index itself is as good as deleted.
 */
void mote_slots_end(struct mote_slots *slots, uint32_t slot);
/* Takes every mark. Returns how many slots were folded. */
uint32_t mote_slots_scan(struct mote_slots *slots);
/* Looks at the CPUs; what nobody can be writing to any more is folded for the last time. `now`: ns.
 */
void mote_slots_grace(struct mote_slots *slots, uint64_t now);
/* Fills the reap list; true if `reap` is to be run. */
bool mote_slots_prepare(struct mote_slots *slots);
/* `reap` has run (or, ok false, could not: everything is tried again). */
void mote_slots_passed(struct mote_slots *slots, bool ok);

struct mote_slots_stats {
	struct mote_fill fill; /* slots in use; dropped: turned away or refused by BPF */
	uint64_t freed;        /* slots given back since start */
	uint32_t waiting;      /* slots between their end and their return */
	uint64_t grace_age;    /* ns the oldest of them has waited by now */
	uint64_t orphans, retried;
};
void mote_slots_stats(const struct mote_slots *slots, uint64_t now, struct mote_slots_stats *stats);

#endif
