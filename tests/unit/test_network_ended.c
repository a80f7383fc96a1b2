// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The ring of last rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "network_ended.h"

struct record {
	struct ended_record at;
	uint64_t value;
};

static void add(struct ended *ended, uint64_t now, uint64_t value)
{
	struct record *record = mote_ended_add(ended, now);

	assert_int_equal(record->value, 0);
	record->value = value;
}

/* 0: no more */
static uint64_t next(const struct ended *ended, uint64_t since, uint64_t *cursor)
{
	const struct record *record = mote_ended_next(ended, since, cursor);

	return record ? record->value : 0;
}

static void gives_what_ended_since(void **state)
{
	struct ended ended;
	uint64_t cursor = 0;

	assert_int_equal(mote_ended_new(&ended, 4, sizeof(struct record)), 0);
	assert_int_equal(next(&ended, 0, &cursor), 0);
	add(&ended, 10, 1);
	add(&ended, 20, 2);
	add(&ended, 20, 3);
	assert_int_equal(next(&ended, 10, &cursor), 2);
	assert_int_equal(next(&ended, 10, &cursor), 3);
	assert_int_equal(next(&ended, 10, &cursor), 0);
	add(&ended, 30, 4); /* the cursor holds */
	assert_int_equal(next(&ended, 10, &cursor), 4);
	cursor = 0;
	assert_int_equal(next(&ended, 30, &cursor), 0);
	mote_ended_free(&ended);
}

static void the_oldest_are_written_over(void **state)
{
	struct ended ended;
	struct mote_fill fill;
	uint64_t cursor = 0;

	assert_int_equal(mote_ended_new(&ended, 3, sizeof(struct record)), 0);
	for (uint64_t i = 1; i <= 3; i++)
		add(&ended, 10 * i, i);
	assert_int_equal(ended.forgot, 0);
	assert_int_equal(next(&ended, 1, &cursor), 1);
	for (uint64_t i = 4; i <= 6; i++)
		add(&ended, 10 * i, i);
	assert_int_equal(ended.forgot, 30);
	/* Where it was is gone: it goes on with the oldest, and gives none twice. */
	for (uint64_t i = 4; i <= 6; i++)
		assert_int_equal(next(&ended, 1, &cursor), i);
	assert_int_equal(next(&ended, 1, &cursor), 0);
	mote_ended_fill(&ended, &fill);
	assert_int_equal(fill.size, 3);
	assert_int_equal(fill.fill, 3);
	mote_ended_free(&ended);
}

static void what_is_taken_back_is_not_given(void **state)
{
	struct ended ended;
	uint64_t cursor = 0;

	assert_int_equal(mote_ended_new(&ended, 8, sizeof(struct record)), 0);
	for (uint64_t i = 1; i <= 4; i++)
		add(&ended, 10 * i, i);
	((struct record *)mote_ended_at(&ended, 2))->at.time = 0; /* 2 */
	((struct record *)mote_ended_at(&ended, 0))->at.time = 0; /* 4 */
	assert_null(mote_ended_at(&ended, 4));
	assert_int_equal(next(&ended, 5, &cursor), 1);
	assert_int_equal(next(&ended, 5, &cursor), 3);
	assert_int_equal(next(&ended, 5, &cursor), 0);
	cursor = 0;
	assert_int_equal(next(&ended, 10, &cursor), 3);
	mote_ended_free(&ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_what_ended_since),
		cmocka_unit_test(the_oldest_are_written_over),
		cmocka_unit_test(what_is_taken_back_is_not_given),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
