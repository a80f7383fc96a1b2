/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The comparison: moted's rows against the ledger, to the byte.
 */
#ifndef MOTE_CONSERVE_CHECK_H
#define MOTE_CONSERVE_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "ledger.h"
#include "watch.h"

struct check {
	bool reconcile;     /* moted compares with the kernel's own counters */
	bool sums_only;     /* tables are too small for rows of each socket */
	bool strict;        /* all are closed: unseen bytes must be known by now */
	bool alone;         /* nothing else on this machine has traffic */
	unsigned int first; /* of the accounts that are looked at */
	FILE *explain;      /* NULL: do not say what differs */
	unsigned int said;
};

/* The totals at some moment. */
struct totals {
	struct sums network[2], other[2], process[2], flow[2], socket[2], unattributed[2];
};

/* Whether sockets, flows and processes of the accounts from `first` on are as the ledger has them.
 */
bool check_accounts(struct check *check, const struct rows *rows);
void check_read_totals(const struct rows *rows, struct totals *totals);
/* Whether the totals fit each other, and grew since `before` by what the ledger has (if alone; else
 * at least by that much). */
bool check_totals(struct check *check, const struct rows *rows, const struct totals *before);
/* Whether no socket of the ledger has a row any more. */
bool check_gone(struct check *check, const struct rows *rows);

#endif
