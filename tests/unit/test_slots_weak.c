// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Slots on a machine whose stores can be seen out of order, as slots.c treats it: built in here for
 * one, whatever this machine is.
 */
#define WEAK true
#include "slots.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SIZE 16

static struct mote_flow flows[SIZE];
static struct mote_slot_marks marks;
static struct mote_reap reap;
static struct mote_slot_cpu cpu;
static struct mote_slots *slots;
static uint64_t taken, gones;

static void fold(void *ctx, uint32_t slot, bool first)
{
	taken += flows[slot].traffic.sent - flows[slot].seen.sent;
	flows[slot].seen = flows[slot].traffic;
}

static void gone(void *ctx, uint32_t slot)
{
	gones++;
}

static int setup(void **state)
{
	static const struct mote_slots_ops ops = { fold, gone };
	const struct mote_slots_memory m = {
		.table = MOTE_SLOTS_FLOWS,
		.slots = flows,
		.stride = sizeof(flows[0]),
		.own = offsetof(struct mote_flow, state),
		.size = SIZE,
		.marks = &marks,
		.reap = &reap,
		.cpus = &cpu,
		.ncpus = 1,
	};

	memset(flows, 0, sizeof(flows));
	memset(&marks, 0, sizeof(marks));
	taken = gones = 0;
	return mote_slots_new(&m, &ops, NULL, &slots);
}

static int teardown(void **state)
{
	mote_slots_free(slots);
	return 0;
}

static void a_mark_that_is_early(void **state)
{
	flows[3].slot.key = 1;
	marks.mark[3] = 1;
	assert_int_equal(mote_slots_scan(slots), 1);
	assert_int_equal(taken, 0);
	flows[3].traffic.sent = 7; /* now it can be seen */
	assert_int_equal(mote_slots_scan(slots), 1);
	assert_int_equal(taken, 7);
	assert_int_equal(mote_slots_scan(slots), 0);
	marks.mark[3] = 1;
	mote_slots_scan(slots);
	marks.mark[3] = 1; /* another, before it is looked at again */
	assert_int_equal(mote_slots_scan(slots), 1);
	assert_int_equal(mote_slots_scan(slots), 1);
	assert_int_equal(mote_slots_scan(slots), 0);
}

static void counters_of_cpus_settle(void **state)
{
	flows[3].slot.key = 1;
	marks.mark[3] = 1;
	mote_slots_scan(slots);
	mote_slots_end(slots, 3);
	mote_slots_prepare(slots);
	reap.del[0].status = MOTE_REAP_DONE;
	reap.passes++;
	mote_slots_passed(slots);
	mote_slots_grace(slots, 1000);
	mote_slots_grace(slots, 1000 + SETTLE_NS - 1);
	assert_int_equal(gones, 0);
	mote_slots_grace(slots, 1000 + SETTLE_NS);
	assert_int_equal(gones, 1);
	assert_int_equal(marks.mark[3], 0); /* not again: it is nobody's */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_mark_that_is_early, setup, teardown),
		cmocka_unit_test_setup_teardown(counters_of_cpus_settle, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
