// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/net/dev. Its `total` row is the machine's traffic, summed over leaf devices (a bridge, a
 * bond and its slaves would count the same bytes twice), by this rule: what a leaf's own counter
 * grows by from one sample to the next is added. So the total never falls: neither when a device
 * goes or starts anew, nor when it stops being a leaf. A device of the first sample counts in
 * full, since boot, as soon as it is known for a leaf. One that appears later counts from the
 * value it was first seen with: after a rename or a move from another network namespace it comes
 * with bytes that were counted before or elsewhere. What a new device did before its first sample,
 * less than a tick, is in its own row only.
 */
#include "scan.h"

#include <assert.h>

#define COLUMNS (NETDEV_TX_COMPRESSED - NETDEV_RX_BYTES + 1)
static_assert(COLUMNS == 16, "netdev fields stand in the order of /proc/net/dev");

/* Marks of a device's row; of the total's, not 0 once there was a whole sample. */
enum { NEW, OWED /* was there from the start, not in the total yet */, COUNTED };

struct totals {
	uint64_t sum[COLUMNS];
	bool first; /* no whole sample yet */
};

/*
 * `  eth0: 26279936 704 ...`, without a blank where the number is wide. The kernel allows any
 * byte in a name but blanks, `/` and `:`.
 */
static bool read_device(struct mote_scan *line, struct mote_text *name, uint64_t columns[COLUMNS])
{
	struct mote_text before = mote_scan_until(line, ':');
	struct mote_scan head = mote_scan_text(before);

	*name = mote_scan_word(&head);
	if (!name->len || !mote_scan_done(&head))
		return false;
	for (unsigned int i = 0; i < COLUMNS; i++) {
		if (!mote_scan_u64(line, &columns[i]))
			return false;
	}
	return true;
}

/* Sets `leaf` of the row, as far as it is known; returns whether it is one. */
static bool set_leaf(struct mote_table *table, struct mote_row *row, mote_leaf_fn is_leaf,
		     void *ctx)
{
	int leaf = is_leaf(ctx, mote_row_get_str(table, row, NETDEV_DEVICE));

	if (leaf < 0 && !mote_row_has(row, NETDEV_LEAF))
		return false;
	if (leaf < 0)
		leaf = mote_row_get(row, NETDEV_LEAF);
	mote_row_set(table, row, NETDEV_LEAF, leaf != 0);
	if (!leaf)
		mote_row_set_mark(row, COUNTED); /* from here on, if it becomes one */
	return leaf;
}

static void add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

static void take_device(struct mote_table *table, struct mote_row *row,
			const uint64_t columns[COLUMNS], mote_leaf_fn is_leaf, void *ctx,
			struct totals *totals)
{
	bool fresh = mote_row_mark(row) == NEW, leaf;

	if (fresh)
		mote_row_set_mark(row, totals->first ? OWED : COUNTED);
	leaf = set_leaf(table, row, is_leaf, ctx);
	for (unsigned int i = 0; i < COLUMNS; i++) {
		unsigned int field = NETDEV_RX_BYTES + i;
		uint64_t before = mote_row_get(row, field), after;

		mote_row_set(table, row, field, columns[i]);
		after = mote_row_get(row, field);
		if (leaf && mote_row_mark(row) == OWED)
			add(&totals->sum[i], after);
		else if (leaf && !fresh)
			add(&totals->sum[i], after - before);
	}
	if (leaf)
		mote_row_set_mark(row, COUNTED);
}

static void load_totals(struct totals *totals, const struct mote_row *row)
{
	totals->first = !row || mote_row_mark(row) == NEW;
	for (unsigned int i = 0; i < COLUMNS; i++)
		totals->sum[i] = row ? mote_row_get(row, NETDEV_RX_BYTES + i) : 0;
}

static void store_totals(const struct totals *totals, struct mote_table *table,
			 struct mote_row *row, bool whole)
{
	for (unsigned int i = 0; i < COLUMNS; i++)
		mote_row_set(table, row, NETDEV_RX_BYTES + i, totals->sum[i]);
	if (whole)
		mote_row_set_mark(row, COUNTED);
}

int mote_parse_netdev(struct mote_text text, struct mote_table *netdev, uint64_t now,
		      mote_leaf_fn is_leaf, void *ctx)
{
	struct mote_scan scan = mote_scan_text(text), line;
	uint64_t columns[COLUMNS];
	struct totals totals;
	struct mote_text name;
	bool whole;

	if (!mote_scan_line(&scan, &line) || !mote_text_is(mote_scan_word(&line), "Inter-|"))
		return -EBADMSG;
	mote_table_begin(netdev, now);
	/* asked for first: there is always room for it, and a device of this name is left out */
	struct mote_row *total = mote_table_row(netdev, "total", 5);
	load_totals(&totals, total);
	while (mote_scan_line(&scan, &line)) {
		struct mote_row *row = NULL;

		if (read_device(&line, &name, columns))
			row = mote_table_row(netdev, name.data, name.len);
		if (row)
			take_device(netdev, row, columns, is_leaf, ctx, &totals);
	}
	whole = mote_scan_done(&scan);
	if (total)
		store_totals(&totals, netdev, total, whole);
	return mote_scan_finish(netdev, whole);
}
