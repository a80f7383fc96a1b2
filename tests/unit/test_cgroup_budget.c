// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* How long ticks do not wait for files of cgroupfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroup_budget.h"

static uint64_t s(uint64_t n)
{
	return n * 1000000000;
}

static void in_time(void **state)
{
	struct mote_cgroup_budget budget = { .limit = s(1) };

	assert_false(mote_cgroup_budget_is_apart(&budget, s(5)));
	assert_false(mote_cgroup_budget_exceeds(&budget, s(5), s(6) - 1));
	assert_false(mote_cgroup_budget_is_apart(&budget, s(6)));
}

static void once(void **state)
{
	struct mote_cgroup_budget budget = { .limit = s(1) };

	assert_true(mote_cgroup_budget_exceeds(&budget, s(5), s(6)));
	assert_true(mote_cgroup_budget_is_apart(&budget, s(6)));
	assert_true(mote_cgroup_budget_is_apart(&budget, s(65)));
	assert_false(mote_cgroup_budget_is_apart(&budget, s(66)));
	/* it went well for longer than that */
	assert_true(mote_cgroup_budget_exceeds(&budget, s(126), s(127)));
	assert_false(mote_cgroup_budget_is_apart(&budget, s(187)));
}

/* Each trial costs a late tick: they become rare, but there is always one more. */
static void again_and_again(void **state)
{
	struct mote_cgroup_budget budget = { .limit = s(1) };
	uint64_t now = s(100), trials = 0;

	for (; now < s(24 * 3600); now += s(1)) {
		if (!mote_cgroup_budget_is_apart(&budget, now)) {
			assert_true(mote_cgroup_budget_exceeds(&budget, now - s(3), now));
			trials++;
		}
	}
	assert_in_range(trials, 24, 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_time),
		cmocka_unit_test(once),
		cmocka_unit_test(again_and_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
