/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the slots' stress test and its BPF programs share.
 */
#ifndef MOTE_TEST_FILLER_H
#define MOTE_TEST_FILLER_H

#include "abi.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/* Rules of docs/SLOTS.md to break: the sums must be wrong then. */
enum filler_mutant {
	MUTANT_NONE = 0,
	/* of the writer */
	MUTANT_NO_KEY_CHECK = 1, /* only the generation is compared */
	MUTANT_NO_CHECK = 2,
	MUTANT_INSERT_ANY = 3,
	MUTANT_MARK_FIRST = 4,        /* the mark, then the add */
	MUTANT_NO_UNLINKED_CHECK = 8, /* a remembered slot is used after its delete */
	/* of the owner */
	MUTANT_NO_GRACE = 5,
	MUTANT_LOOSE_GRACE = 6, /* one writer inside is taken for none */
	MUTANT_FOLD_EARLY = 7,  /* what came between the last scan and the grace is not taken */
};

/* In the map `.rodata.config`. */
struct filler_config {
	u32 tgid; /* whose calls are counted */
	u32 mutant;
	u32 stall_mask; /* 0: no stalls; else about one event in so many sits in the program */
	u32 stall_us;   /* an eighth of them for so long, the others for up to 40 us */
	u32 failures;   /* 1: a quarter of the pushes and deletes fail */
	u32 recall;     /* 1: slots are remembered by key */
};

struct filler_counter {
	struct mote_slot slot;
	u64 bytes, events;
	/* The owner's */
	u64 seen_bytes, seen_events;
	u32 own, pad0;
	u64 pad1;
};

struct filler_stats {
	u64 stalls;
	u64 recalled; /* events whose slot was remembered */
};

#pragma GCC diagnostic pop

#define FILLER_MAGIC 99 /* getpriority(FILLER_MAGIC, key | bytes << 32) is an event */

#endif
