/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The last rows of what ended: a ring, the oldest of which is written over. An update gives the
 * rows that ended since the one before, and then their keys as ended.
 */
#ifndef MOTE_NETWORK_ENDED_H
#define MOTE_NETWORK_ENDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table.h"

/* How every record begins. */
struct ended_record {
	uint64_t time; /* sample time; 0: the key is there again */
};

struct ended {
	char *base;
	size_t record;
	uint32_t size, n;
	uint64_t total;  /* records since start; the newest has number total - 1 */
	uint64_t forgot; /* time of the youngest that was written over */
};

int mote_ended_new(struct ended *ended, uint32_t size, size_t record);
void mote_ended_free(struct ended *ended);
/* Room for one more, with its time. */
void *mote_ended_add(struct ended *ended, uint64_t now);
/*
 * The first record of those that ended after `since`, from `*cursor` on, which is 0 to begin with
 * and holds across samples; NULL: no more.
 */
const void *mote_ended_next(const struct ended *ended, uint64_t since, uint64_t *cursor);
/* By age, 0 is the newest; NULL after the oldest. */
void *mote_ended_at(const struct ended *ended, uint32_t age);
void mote_ended_fill(const struct ended *ended, struct mote_fill *fill);

#endif
