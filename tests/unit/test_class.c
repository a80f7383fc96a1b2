// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Classes: who shares one, when it is due, and that one which is used anew begins anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>

#include <cmocka.h>

#include "class.h"

#define MS          1000000ull
#define BIT(stream) (1u << MOTE_STREAM_##stream)

static void test_join_and_leave(void **state)
{
	struct mote_classes classes;
	int a, b;

	mote_classes_init(&classes, 8);
	assert_int_equal(mote_classes_period_ms(&classes), 0);
	a = mote_classes_join(&classes, 1000, MOTE_STREAM_CPU, 5);
	b = mote_classes_join(&classes, 1000, MOTE_STREAM_DISK, 6);
	assert_int_equal(a, b);
	assert_int_equal(mote_classes_streams(&classes), BIT(CPU) | BIT(DISK));
	assert_int_equal(classes.class[a].last[MOTE_STREAM_CPU], 5);
	assert_int_equal(classes.class[a].last[MOTE_STREAM_DISK], 6);
	mote_classes_join(&classes, 1000, MOTE_STREAM_CPU, 9); /* not the first */
	assert_int_equal(classes.class[a].last[MOTE_STREAM_CPU], 5);
	mote_classes_leave(&classes, (unsigned int)a, MOTE_STREAM_CPU);
	assert_int_equal(mote_classes_streams(&classes), BIT(CPU) | BIT(DISK));
	mote_classes_leave(&classes, (unsigned int)a, MOTE_STREAM_CPU);
	assert_int_equal(mote_classes_streams(&classes), BIT(DISK));
	mote_classes_join(&classes, 1000, MOTE_STREAM_CPU, 20); /* the first again */
	assert_int_equal(classes.class[a].last[MOTE_STREAM_CPU], 20);
	mote_classes_leave(&classes, (unsigned int)a, MOTE_STREAM_CPU);
	mote_classes_leave(&classes, (unsigned int)a, MOTE_STREAM_DISK);
	assert_int_equal(mote_classes_streams(&classes), 0);
	assert_int_equal(mote_classes_period_ms(&classes), 0);
}

static void test_reuse(void **state)
{
	struct mote_classes classes;
	int a;

	mote_classes_init(&classes, 1);
	a = mote_classes_join(&classes, 1000, MOTE_STREAM_CPU, 5);
	classes.class[a].sequence[MOTE_STREAM_CPU] = 70;
	classes.class[a].last[MOTE_STREAM_CPU] = 70;
	assert_int_equal(mote_classes_join(&classes, 2000, MOTE_STREAM_CPU, 5), -EMFILE);
	mote_classes_leave(&classes, (unsigned int)a, MOTE_STREAM_CPU);
	a = mote_classes_join(&classes, 2000, MOTE_STREAM_CPU, 80);
	assert_true(a >= 0);
	assert_int_equal(classes.class[a].sequence[MOTE_STREAM_CPU], 0);
	assert_int_equal(classes.class[a].last[MOTE_STREAM_CPU], 80);
	assert_int_equal(classes.class[a].interval_ms, 2000);
}

static void test_full(void **state)
{
	struct mote_classes classes;
	struct mote_fill fill;

	mote_classes_init(&classes, 3);
	for (uint32_t i = 1; i <= 3; i++)
		assert_true(mote_classes_join(&classes, i * 50, MOTE_STREAM_CPU, 0) >= 0);
	assert_int_equal(mote_classes_join(&classes, 999, MOTE_STREAM_CPU, 0), -EMFILE);
	assert_true(mote_classes_join(&classes, 100, MOTE_STREAM_VM, 0) >= 0);
	mote_classes_fill(&classes, &fill);
	assert_int_equal(fill.size, 3);
	assert_int_equal(fill.fill, 3);
	assert_int_equal(fill.peak, 3);
	assert_int_equal(fill.dropped, 1);
	mote_classes_init(&classes, 100);
	mote_classes_fill(&classes, &fill);
	assert_int_equal(fill.size, MOTE_CLASSES);
}

static void test_period(void **state)
{
	struct mote_classes classes;

	mote_classes_init(&classes, 8);
	mote_classes_join(&classes, 30000, MOTE_STREAM_CPU, 0);
	assert_int_equal(mote_classes_period_ms(&classes), 30000);
	mote_classes_join(&classes, 1500, MOTE_STREAM_CPU, 0);
	assert_int_equal(mote_classes_period_ms(&classes), 1500);
	mote_classes_join(&classes, 1000, MOTE_STREAM_CPU, 0);
	assert_int_equal(mote_classes_period_ms(&classes), 500);
}

/* Every interval's multiple is due exactly once, however the clock is cut into ticks. */
static void test_due(void **state)
{
	srand(4);
	for (int round = 0; round < 200; round++) {
		struct mote_classes classes;
		uint32_t ms = 50 * (1 + (uint32_t)rand() % 40);
		uint64_t start = (uint64_t)rand() * 1000, now = start;
		unsigned int due = 0;
		int c;

		mote_classes_init(&classes, 8);
		c = mote_classes_join(&classes, ms, MOTE_STREAM_CPU, start);
		for (int i = 0; i < 500; i++) {
			uint64_t next = now + (uint64_t)rand() % (ms * MS);
			bool is = mote_class_due(&classes.class[c], now, next);

			assert_int_equal(mote_classes_due(&classes, now, next), is ? BIT(CPU) : 0);
			due += is;
			now = next;
		}
		assert_int_equal(due, now / (ms * MS) - start / (ms * MS));
	}
}

static void test_due_streams(void **state)
{
	struct mote_classes classes;

	mote_classes_init(&classes, 8);
	mote_classes_join(&classes, 100, MOTE_STREAM_CPU, 0);
	mote_classes_join(&classes, 200, MOTE_STREAM_DISK, 0);
	mote_classes_join(&classes, 300, MOTE_STREAM_CPU, 0);
	assert_int_equal(mote_classes_due(&classes, 0, 100 * MS), BIT(CPU));
	assert_int_equal(mote_classes_due(&classes, 100 * MS, 200 * MS), BIT(CPU) | BIT(DISK));
	assert_int_equal(mote_classes_due(&classes, 200 * MS, 200 * MS), 0);
	assert_int_equal(mote_classes_due(&classes, 200 * MS, 299 * MS), 0);
	assert_int_equal(mote_classes_due(&classes, 299 * MS, 300 * MS), BIT(CPU));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join_and_leave),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_period),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_due_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
