// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The table: what changed and when, the counter rule, presence, keys that end and come back, a
 * full table, and a comparison with a plain model over random samples.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table.h"

static struct mote_row *ask(struct mote_table *t, const char *key)
{
	return mote_table_row(t, key, strlen(key));
}

static const struct mote_row *find(const struct mote_table *t, const char *key)
{
	const struct mote_row *row = NULL;

	while ((row = mote_table_next(t, row))) {
		if (!strcmp(mote_row_get_str(t, row, 0), key))
			return row;
	}
	return NULL;
}

static void sample(struct mote_table *t, uint64_t now, const char *key, uint64_t reads)
{
	mote_table_begin(t, now);
	struct mote_row *row = ask(t, key);
	assert_non_null(row);
	mote_row_set(t, row, DISK_READS, reads);
	mote_table_end(t);
}

static uint64_t reads_of(const struct mote_table *t, const char *key)
{
	const struct mote_row *row = find(t, key);

	assert_non_null(row);
	return mote_row_get(row, DISK_READS);
}

static void refuses_what_it_cannot_hold(void **state)
{
	errno = 0;
	assert_null(mote_table_new(MOTE_STREAM_DISK, 0, 16));
	assert_int_equal(errno, EINVAL);
	assert_null(mote_table_new(MOTE_STREAM_DISK, 4, 1));
	assert_null(mote_table_new(MOTE_STREAM_PROCESS, 4, 16));
}

static void counter_rule(void **state)
{
	/* what the kernel says, and what the table must show: P5 of the field cases */
	static const uint64_t steps[][2] = {
		{ 1000, 1000 }, { 1500, 1500 }, { 1499, 1500 }, { 750, 1500 }, { 1500, 1500 },
		{ 1510, 1510 }, { 700, 1510 },  { 701, 1511 },  { 0, 1511 },   { 5, 1516 },
		{ 4, 1516 },    { 3, 1516 },    { 2, 1516 },    { 102, 1616 },
	};
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 4, 16);

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		sample(t, i + 1, "sda", steps[i][0]);
		assert_int_equal(reads_of(t, "sda"), steps[i][1]);
	}
	sample(t, 100, "sda", UINT64_MAX);
	assert_true(reads_of(t, "sda") == UINT64_MAX);
	sample(t, 101, "sda", 7);
	sample(t, 102, "sda", 8);
	assert_true(reads_of(t, "sda") == UINT64_MAX);
	mote_table_free(t);
}

static void gauges_follow(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 4, 16);

	for (uint64_t i = 0; i < 4; i++) {
		mote_table_begin(t, i + 1);
		mote_row_set(t, ask(t, "sda"), DISK_IN_FLIGHT, 9 - 3 * i);
		mote_table_end(t);
		assert_int_equal(mote_row_get(find(t, "sda"), DISK_IN_FLIGHT), 9 - 3 * i);
	}
	mote_table_free(t);
}

static void changed_tells_when(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 4, 16);

	sample(t, 10, "sda", 1);
	assert_int_equal(mote_row_changed(find(t, "sda")), 10);
	sample(t, 20, "sda", 1);
	assert_int_equal(mote_row_changed(find(t, "sda")), 10);
	sample(t, 30, "sda", 2);
	assert_int_equal(mote_row_changed(find(t, "sda")), 30);
	sample(t, 40, "sda", 1); /* goes back: nothing to tell */
	assert_int_equal(mote_row_changed(find(t, "sda")), 30);
	mote_table_free(t);
}

static void zero_is_a_value(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 4, 16);

	sample(t, 10, "sda", 0);
	assert_true(mote_row_has(find(t, "sda"), DISK_READS));
	assert_false(mote_row_has(find(t, "sda"), DISK_WRITES));
	assert_true(mote_row_has(find(t, "sda"), DISK_DEVICE));
	mote_table_begin(t, 20);
	mote_row_set(t, ask(t, "sda"), DISK_WRITES, 0);
	mote_table_end(t);
	assert_false(mote_row_has(find(t, "sda"), DISK_READS));
	assert_true(mote_row_has(find(t, "sda"), DISK_WRITES));
	assert_int_equal(mote_row_changed(find(t, "sda")), 20);
	mote_table_free(t);
}

static void a_counter_survives_absence(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 4, 16);

	sample(t, 1, "sda", 500);
	mote_table_begin(t, 2);
	ask(t, "sda");
	mote_table_end(t);
	assert_false(mote_row_has(find(t, "sda"), DISK_READS));
	sample(t, 3, "sda", 10);
	assert_int_equal(reads_of(t, "sda"), 500);
	sample(t, 4, "sda", 11);
	assert_int_equal(reads_of(t, "sda"), 501);
	mote_table_free(t);
}

static void keys_end(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 4, 16);
	unsigned int cursor = 0;

	assert_null(mote_table_totals(t));
	sample(t, 10, "sda", 100);
	sample(t, 20, "sdb", 7);
	assert_null(find(t, "sda"));
	assert_string_equal(mote_table_ended(t, 10, &cursor), "sda");
	assert_null(mote_table_ended(t, 10, &cursor));
	cursor = 0;
	assert_null(mote_table_ended(t, 20, &cursor));
	assert_int_equal(mote_row_get(mote_table_totals(t), DISK_READS), 100);
	assert_int_equal(mote_row_changed(mote_table_totals(t)), 20);
	assert_false(mote_row_has(mote_table_totals(t), DISK_WRITES));
	assert_false(mote_row_has(mote_table_totals(t), DISK_DEVICE));
	sample(t, 30, "sdc", 1);
	assert_int_equal(mote_row_get(mote_table_totals(t), DISK_READS), 107);
	assert_false(mote_table_forgot(t, 0));
	mote_table_free(t);
}

static void a_key_that_is_back_did_not_end(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 4, 16);
	unsigned int cursor = 0;

	sample(t, 10, "sda", 100);
	sample(t, 20, "sdb", 7);
	sample(t, 30, "sda", 3);
	assert_string_equal(mote_table_ended(t, 0, &cursor), "sdb");
	assert_null(mote_table_ended(t, 0, &cursor));
	assert_int_equal(reads_of(t, "sda"), 3);
	assert_int_equal(mote_row_get(mote_table_totals(t), DISK_READS), 107);
	mote_table_free(t);
}

static void ended_keys_are_bounded(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 2, 16);
	char key[16];
	unsigned int cursor = 0, n = 0;

	for (unsigned int i = 0; i < 70; i++) {
		snprintf(key, sizeof(key), "d%u", i);
		sample(t, i + 1, key, 1);
	}
	/* d0 ended at 2, ... d68 at 70; 64 are kept: d5, which ended at 7, is the oldest */
	assert_true(mote_table_forgot(t, 0));
	assert_true(mote_table_forgot(t, 5));
	assert_false(mote_table_forgot(t, 6));
	assert_string_equal(mote_table_ended(t, 0, &cursor), "d5");
	for (n = 1; mote_table_ended(t, 0, &cursor);)
		n++;
	assert_int_equal(n, 64);
	assert_int_equal(mote_row_get(mote_table_totals(t), DISK_READS), 69);
	mote_table_free(t);
}

static void a_full_table_counts(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 2, 16);
	struct mote_fill fill;

	mote_table_begin(t, 1);
	assert_non_null(ask(t, "a"));
	assert_non_null(ask(t, "b"));
	assert_null(ask(t, "c"));
	mote_table_end(t);
	mote_table_begin(t, 2);
	assert_non_null(ask(t, "b"));
	assert_null(ask(t, "c")); /* a's place is free at the end of the sample only */
	mote_table_end(t);
	mote_table_fill(t, &fill);
	assert_int_equal(fill.size, 2);
	assert_int_equal(fill.fill, 1);
	assert_int_equal(fill.peak, 2);
	assert_int_equal(fill.dropped, 2);
	mote_table_begin(t, 3);
	assert_non_null(ask(t, "c"));
	assert_non_null(ask(t, "b"));
	mote_table_end(t);
	mote_table_free(t);
}

static void the_first_of_two_equal_keys_wins(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 4, 4);
	struct mote_fill fill;

	mote_table_begin(t, 1);
	assert_non_null(ask(t, "abc"));
	assert_null(ask(t, "abc"));
	mote_table_fill(t, &fill);
	assert_int_equal(fill.dropped, 0);
	assert_null(ask(t, "abcd")); /* is cut to abc: counted as turned away */
	mote_table_fill(t, &fill);
	assert_int_equal(fill.dropped, 1);
	mote_table_end(t);
	mote_table_free(t);
}

static void strings_change_and_are_cut(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_FILESYSTEM, 4, 6);
	static const struct {
		const char *in, *out;
		uint64_t changed;
	} steps[] = {
		{ "ext4", "ext4", 1 },           { "ext4", "ext4", 1 },
		{ "ext3", "ext3", 3 },           { "", "", 4 },
		{ "abcdefgh", "abcde", 5 },      { "abcdeX", "abcde", 5 },
		{ "abcd\xc3\xa9", "abcd", 7 },   { "ab\xe2\x82\xac.", "ab\xe2\x82\xac", 8 },
		{ "abc\xe2\x82\xac", "abc", 9 },
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		mote_table_begin(t, i + 1);
		mote_row_set_str(t, ask(t, "/"), FILESYSTEM_TYPE, steps[i].in, strlen(steps[i].in));
		mote_table_end(t);
		const struct mote_row *row = find(t, "/");
		assert_string_equal(mote_row_get_str(t, row, FILESYSTEM_TYPE), steps[i].out);
		assert_int_equal(mote_row_changed(row), steps[i].changed);
	}
	mote_table_free(t);
}

static void floats(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_LOAD, 1, 16);
	const struct mote_row *row;

	for (uint64_t i = 1; i < 4; i++) {
		mote_table_begin(t, i);
		mote_row_set_f64(t, mote_table_row(t, NULL, 0), LOAD_LOAD1, i < 3 ? 0.25 : 0.125);
		mote_row_set_f64(t, mote_table_row(t, NULL, 0), LOAD_LOAD5, 0.0 / 0.0);
		mote_table_end(t);
		row = mote_table_next(t, NULL);
		assert_true(mote_row_get_f64(row, LOAD_LOAD1) == (i < 3 ? 0.25 : 0.125));
		assert_false(mote_row_has(row, LOAD_LOAD5));
		assert_int_equal(mote_row_changed(row), i < 3 ? 1 : 3);
	}
	mote_table_begin(t, 5); /* a sample without the row: it stays, empty */
	mote_table_end(t);
	row = mote_table_next(t, NULL);
	assert_non_null(row);
	assert_false(mote_row_has(row, LOAD_LOAD1));
	mote_table_free(t);
}

static void set_offline(struct mote_table *t, struct mote_row *row)
{
	mote_row_set(t, row, CPU_ONLINE, 0);
}

static void kept_rows_keep_their_fields(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_CPU, 4, 16);

	for (uint64_t now = 1; now < 6; now++) {
		mote_table_begin(t, now);
		if (now == 1 || now == 5) {
			struct mote_row *row = ask(t, "1");
			mote_row_set(t, row, CPU_ONLINE, 1);
			mote_row_set(t, row, CPU_IDLE, 70 + now);
		}
		mote_table_keep(t, set_offline);
		mote_table_end(t);
		const struct mote_row *row = find(t, "1");
		assert_int_equal(mote_row_get(row, CPU_ONLINE), now == 1 || now == 5);
		assert_int_equal(mote_row_get(row, CPU_IDLE), now < 5 ? 71 : 75);
		assert_true(mote_row_has(row, CPU_IDLE));
		assert_int_equal(mote_row_changed(row), now < 3 ? now : now < 5 ? 2 : 5);
	}
	assert_null(mote_table_totals(t));
	mote_table_free(t);
}

static void a_partial_sample_takes_nothing_away(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, 4, 16);

	sample(t, 1, "sda", 5);
	mote_table_begin(t, 2);
	ask(t, "sdb");
	mote_table_end_partial(t);
	assert_int_equal(reads_of(t, "sda"), 5);
	assert_non_null(find(t, "sdb"));
	sample(t, 3, "sda", 6);
	assert_null(find(t, "sdb"));
	mote_table_free(t);
}

#define KEYS 40
#define ROWS 25

/* Random samples in random order: rows, sums of live and ended, fill and order as in a model. */
static void equals_a_model(void **state)
{
	struct mote_table *t = mote_table_new(MOTE_STREAM_DISK, ROWS, 16);
	uint64_t value[KEYS] = { 0 }, total = 0, turned = 0;
	bool live[KEYS] = { false };
	unsigned int nlive = 0;
	struct mote_fill fill;

	srand(1);
	for (uint64_t now = 1; now < 3000; now++) {
		bool asked[KEYS] = { false };
		unsigned int tries = rand() % KEYS, at = rand() % KEYS, step = rand() % 2 ? 1 : 7;

		mote_table_begin(t, now);
		for (unsigned int i = 0; i < tries; i++, at = (at + step) % KEYS) {
			char key[16];

			snprintf(key, sizeof(key), "k%u", at);
			struct mote_row *row = ask(t, key);
			if (asked[at]) {
				assert_null(row);
				continue;
			}
			if (!live[at] && nlive == ROWS) {
				assert_null(row);
				turned++;
				continue;
			}
			nlive += !live[at];
			live[at] = asked[at] = true;
			value[at] += rand() % 3;
			mote_row_set(t, row, DISK_READS, value[at]);
		}
		mote_table_end(t);
		for (unsigned int i = 0; i < KEYS; i++) {
			char key[16];

			snprintf(key, sizeof(key), "k%u", i);
			const struct mote_row *row = find(t, key);
			if (live[i] && !asked[i]) {
				total += value[i];
				value[i] = 0;
				live[i] = false;
				nlive--;
			}
			assert_int_equal(row != NULL, live[i]);
			if (row)
				assert_int_equal(mote_row_get(row, DISK_READS), value[i]);
		}
		mote_table_fill(t, &fill);
		assert_int_equal(fill.fill, nlive);
		assert_int_equal(fill.dropped, turned);
		if (mote_table_totals(t))
			assert_int_equal(mote_row_get(mote_table_totals(t), DISK_READS), total);
	}
	assert_true(total > 1000 && turned > 100);
	mote_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_it_cannot_hold),
		cmocka_unit_test(counter_rule),
		cmocka_unit_test(gauges_follow),
		cmocka_unit_test(changed_tells_when),
		cmocka_unit_test(zero_is_a_value),
		cmocka_unit_test(a_counter_survives_absence),
		cmocka_unit_test(keys_end),
		cmocka_unit_test(a_key_that_is_back_did_not_end),
		cmocka_unit_test(ended_keys_are_bounded),
		cmocka_unit_test(a_full_table_counts),
		cmocka_unit_test(the_first_of_two_equal_keys_wins),
		cmocka_unit_test(strings_change_and_are_cut),
		cmocka_unit_test(floats),
		cmocka_unit_test(kept_rows_keep_their_fields),
		cmocka_unit_test(a_partial_sample_takes_nothing_away),
		cmocka_unit_test(equals_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
