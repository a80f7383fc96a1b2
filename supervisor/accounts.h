/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The open accounts of dead processes: what has been added to the totals for each, so that a later
 * word about it adds the difference only. Bounded: the oldest is closed when another needs room.
 */
#ifndef MOTE_ACCOUNTS_H
#define MOTE_ACCOUNTS_H

#include <stdint.h>

#include "schema.h"
#include "table.h"

/* The fields of the process stream among which its counters are. */
#define MOTE_COUNTER_FIRST PROCESS_UTIME
#define MOTE_COUNTERS      (PROCESS_RUN_DELAY - PROCESS_UTIME + 1)

struct mote_accounts;

struct mote_account {
	uint64_t start; /* ticks */
	uint32_t pid;
	uint32_t next;                    /* of the same hash, or of the free ones */
	uint32_t older, newer;            /* in the order of opening */
	uint64_t opened;                  /* when, ns */
	uint64_t counters[MOTE_COUNTERS]; /* of field MOTE_COUNTER_FIRST and up */
};

struct mote_accounts *mote_accounts_new(unsigned int max);
void mote_accounts_free(struct mote_accounts *accounts);

struct mote_account *mote_accounts_find(struct mote_accounts *accounts, uint32_t pid,
					uint64_t start);
/* A new one, all zero; closes the oldest if all are in use. `now`: monotonic ns, grows. */
struct mote_account *mote_accounts_open(struct mote_accounts *accounts, uint32_t pid,
					uint64_t start, uint64_t now);
void mote_accounts_close(struct mote_accounts *accounts, struct mote_account *account);
/* When the youngest of those that were closed for lack of room was opened; 0: none was. */
uint64_t mote_accounts_lost(const struct mote_accounts *accounts);
/* dropped: closed for lack of room since start */
void mote_accounts_fill(const struct mote_accounts *accounts, struct mote_fill *fill);

#endif
