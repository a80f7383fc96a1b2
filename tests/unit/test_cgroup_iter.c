// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* How many walks a sample may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "abi.h"
#include "cgroup_iter.h"

/* Each walk finds as many new ones as were made meanwhile, without an end. */
static unsigned int walks_of_churn(uint32_t unknown)
{
	unsigned int walks = 1, calm = 0;

	while (walks < 1000 && mote_cgroup_iter_goes_on(walks, &calm, unknown))
		walks++;
	return walks;
}

static void churn_is_bounded(void **state)
{
	assert_int_equal(walks_of_churn(0), 1);
	assert_int_equal(walks_of_churn(1), 2);
	assert_int_equal(walks_of_churn(MOTE_CGROUP_NEW), 2);
	assert_int_equal(walks_of_churn(MOTE_CGROUP_NEW + 1), 64);
}

/* The first sample knows all of 4,000, though a walk tells of some only, and has all rows. */
static void backlog_is_taken(void **state)
{
	uint32_t left = 4000;
	unsigned int walks = 1, calm = 0;

	while (mote_cgroup_iter_goes_on(walks, &calm, left)) {
		left -= left < MOTE_CGROUP_NEW ? left : MOTE_CGROUP_NEW;
		walks++;
	}
	assert_int_equal(left, 0);
	assert_int_equal(walks, 4000 / MOTE_CGROUP_NEW + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(churn_is_bounded),
		cmocka_unit_test(backlog_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
