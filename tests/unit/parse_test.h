/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the unit tests of the parsers share. */
#ifndef MOTE_PARSE_TEST_H
#define MOTE_PARSE_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "parse_check.h"

/* One file's text to one table; `now` grows. */
typedef int (*parse_fn)(struct mote_text text, struct mote_table *table, uint64_t now);

/* The value of a field of the row `key`, which must be there; "" for a stream without keys. */
static inline uint64_t value_of(const struct mote_table *table, const char *key, unsigned int field)
{
	const struct mote_row *row = *key ? check_find(table, key) : mote_table_next(table, NULL);

	assert_non_null(row);
	assert_true(mote_row_has(row, field));
	return mote_row_get(row, field);
}

static inline bool is_absent(const struct mote_table *table, const char *key, unsigned int field)
{
	const struct mote_row *row = *key ? check_find(table, key) : mote_table_next(table, NULL);

	assert_non_null(row);
	return !mote_row_has(row, field);
}

/*
 * The text cut at every byte, into a table that has seen it whole: a cut within a line is
 * refused and changes nothing; no cut makes a counter fall; the whole text then changes nothing
 * either. And the same into a new table, where only nothing may be read past the end.
 */
static inline void check_cuts(parse_fn parse, enum mote_stream_id stream, const char *whole,
			      bool lines_can_miss)
{
	struct mote_table *table = mote_table_new(stream, 16, 32);
	size_t len = strlen(whole);
	struct check_sums sums = { 0 };
	uint64_t now = 1;

	assert_int_equal(parse(check_text(whole), table, now), 0);
	assert_true(check_counters(table, &sums));
	for (size_t cut = 0; cut < len; cut++) {
		struct mote_table *fresh = mote_table_new(stream, 16, 32);
		char *copy = check_copy(whole, cut);
		struct mote_text text = { copy, cut };
		int ret = parse(text, table, ++now);

		assert_true(ret == 0 || ret == -EBADMSG);
		if (cut && copy[cut - 1] != '\n' && !lines_can_miss) {
			assert_int_equal(ret, -EBADMSG);
			assert_true(check_unchanged(table, now));
		}
		assert_true(check_counters(table, &sums));
		assert_int_equal(parse(check_text(whole), table, ++now), 0);
		assert_true(check_counters(table, &sums));
		parse(text, fresh, 1);
		free(copy);
		mote_table_free(fresh);
	}
	assert_int_equal(parse(check_text(whole), table, ++now), 0);
	assert_int_equal(parse(check_text(whole), table, ++now), 0);
	assert_true(check_unchanged(table, now));
	mote_table_free(table);
}

#endif
