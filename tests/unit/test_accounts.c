// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Open accounts beside a model: found by pid and start, closed one by one, and the oldest only
 * when all are in use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "accounts.h"

#define MAX 64

static uint64_t dropped(const struct mote_accounts *accounts)
{
	struct mote_fill fill;

	mote_accounts_fill(accounts, &fill);
	return fill.dropped;
}

static void test_open_find_close(void **state)
{
	struct mote_accounts *accounts = mote_accounts_new(MAX);
	struct mote_account *a = mote_accounts_open(accounts, 5, 100, 1), *b;

	a->counters[3] = 9;
	assert_null(mote_accounts_find(accounts, 5, 101));
	assert_null(mote_accounts_find(accounts, 6, 100));
	b = mote_accounts_open(accounts, 5, 101, 1);
	assert_ptr_equal(mote_accounts_find(accounts, 5, 100), a);
	assert_ptr_equal(mote_accounts_find(accounts, 5, 101), b);
	assert_int_equal(b->counters[3], 0);
	mote_accounts_close(accounts, a);
	assert_null(mote_accounts_find(accounts, 5, 100));
	assert_ptr_equal(mote_accounts_find(accounts, 5, 101), b);
	mote_accounts_free(accounts);
	mote_accounts_free(NULL);
}

/* One that stays open for long is not closed while there is room. */
static void test_old_stays_while_there_is_room(void **state)
{
	struct mote_accounts *accounts = mote_accounts_new(MAX);

	mote_accounts_open(accounts, 1, 1, 1);
	for (uint32_t i = 2; i < 10 * MAX; i++)
		mote_accounts_close(accounts, mote_accounts_open(accounts, i, i, 1));
	assert_non_null(mote_accounts_find(accounts, 1, 1));
	assert_int_equal(dropped(accounts), 0);
	mote_accounts_free(accounts);
}

static void test_oldest_goes_when_full(void **state)
{
	struct mote_accounts *accounts = mote_accounts_new(MAX);

	for (uint32_t i = 1; i <= MAX; i++)
		mote_accounts_open(accounts, i, i, 1);
	mote_accounts_close(accounts, mote_accounts_find(accounts, 1, 1));
	mote_accounts_close(accounts, mote_accounts_find(accounts, 7, 7));
	mote_accounts_open(accounts, 1000, 1, 1);
	mote_accounts_open(accounts, 1001, 1, 1);
	assert_int_equal(dropped(accounts), 0);
	mote_accounts_open(accounts, 1002, 1, 1);
	assert_int_equal(dropped(accounts), 1);
	assert_null(mote_accounts_find(accounts, 2, 2));
	assert_non_null(mote_accounts_find(accounts, 3, 3));
	assert_non_null(mote_accounts_find(accounts, 1000, 1));
	mote_accounts_free(accounts);
}

struct model {
	uint32_t pid, serial;
	uint64_t start;
};

/* Pids that share a hash, any order. */
static void test_random(void **state)
{
	struct mote_accounts *accounts = mote_accounts_new(MAX);
	struct model live[MAX];
	unsigned int n = 0, drops = 0;
	struct mote_fill fill;

	srand(3);
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t pid = 1 + (uint32_t)rand() % 8 * 64 + (uint32_t)rand() % 4;
		struct mote_account *account;

		if (rand() % 100 < 55) {
			if (n == MAX) { /* the first is the oldest */
				memmove(live, live + 1, --n * sizeof(live[0]));
				drops++;
			}
			account = mote_accounts_open(accounts, pid, i, 1);
			for (unsigned int k = 0; k < MOTE_COUNTERS; k++)
				assert_int_equal(account->counters[k], 0);
			account->counters[0] = i;
			live[n++] = (struct model){ pid, i, i };
		} else if (n) {
			unsigned int at = (unsigned int)rand() % n;

			account = mote_accounts_find(accounts, live[at].pid, live[at].start);
			assert_non_null(account);
			mote_accounts_close(accounts, account);
			assert_null(mote_accounts_find(accounts, live[at].pid, live[at].start));
			memmove(live + at, live + at + 1, (--n - at) * sizeof(live[0]));
		}
		for (unsigned int k = 0; k < n; k++) {
			account = mote_accounts_find(accounts, live[k].pid, live[k].start);
			assert_non_null(account);
			assert_int_equal(account->counters[0], live[k].serial);
		}
		mote_accounts_fill(accounts, &fill);
		assert_int_equal(fill.fill, n);
		assert_int_equal(fill.dropped, drops);
	}
	assert_int_equal(fill.size, MAX);
	assert_int_equal(fill.peak, MAX);
	assert_true(drops > 100);
	mote_accounts_free(accounts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_find_close),
		cmocka_unit_test(test_old_stays_while_there_is_room),
		cmocka_unit_test(test_oldest_goes_when_full),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
