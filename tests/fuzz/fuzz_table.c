// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The table under any sequence of calls: each two bytes are one. Whatever comes, rows and fill
 * agree, live and ended rows together never lose a count, and a key that ended is remembered or
 * known to be forgotten.
 */
#include "fuzz_tables.h"

static void gone(struct mote_table *table, struct mote_row *row)
{
	mote_row_set(table, row, DISK_IN_FLIGHT, 0);
}

/* The calls of one sample; returns where it ended. */
static size_t one_sample(const uint8_t *data, size_t size, size_t at, struct mote_table *table)
{
	struct mote_row *row = NULL;

	for (; at + 1 < size && data[at] < 0xf0; at += 2) {
		uint64_t v = data[at + 1] < 250 ? data[at + 1] : UINT64_MAX >> (data[at + 1] & 3);
		char key[2] = { "abcdefghijklmnopqrst"[data[at + 1] % 20], 'x' };

		if (data[at] < 0x40) {
			row = mote_table_row(table, key, 1 + (data[at] & 1));
		} else if (row && data[at] < 0xe0) {
			unsigned int field = 1 + data[at] % (DISK__FIELDS - 1);

			mote_row_set(table, row, field, v);
			FUZZ_REQUIRE(mote_row_has(row, field));
		} else if (data[at] >= 0xe0) {
			mote_table_keep(table, gone);
		}
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mote_table *table = mote_table_new(MOTE_STREAM_DISK, 6, 3);
	struct check_sums sums = { 0 };
	uint64_t now = 0;

	FUZZ_REQUIRE(table);
	for (size_t at = 0; at < size; at += 2) {
		mote_table_begin(table, ++now);
		at = one_sample(data, size, at, table);
		if (at < size && data[at] & 1)
			mote_table_end_partial(table);
		else
			mote_table_end(table);
		fuzz_consistent(table);
		FUZZ_REQUIRE(check_counters(table, &sums));
	}
	mote_table_free(table);
	return 0;
}
