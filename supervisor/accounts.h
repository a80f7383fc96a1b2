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

struct mote_accounts;

struct mote_account {
	uint64_t start;
	uint32_t pid;
	uint32_t next; /* of the same hash, or of the free ones */
	uint64_t counters[PROCESS__FIELDS]; /* those of kind COUNTER */
};

struct mote_accounts *mote_accounts_new(unsigned int max);
void mote_accounts_free(struct mote_accounts *accounts);

struct mote_account *mote_accounts_find(struct mote_accounts *accounts, uint32_t pid,
					uint64_t start);
/* A new one, all zero; closes the oldest if it must. */
struct mote_account *mote_accounts_open(struct mote_accounts *accounts, uint32_t pid,
					uint64_t start);
void mote_accounts_close(struct mote_accounts *accounts, struct mote_account *account);
/* Accounts that were closed for lack of room since start. */
void mote_accounts_fill(const struct mote_accounts *accounts, struct mote_fill *fill);

#endif
