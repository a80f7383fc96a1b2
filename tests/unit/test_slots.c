// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Slots as their owner sees them: every edge of the state table of docs/SLOTS.md and every status
 * that the reaper can answer, on memory that the test writes as BPF would. What runs at the same
 * time is in test_slots_threads.c and tests/slots.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "slots.h"

#define CPUS 3
#define SIZE 5003 /* no multiple of 8, more than two passes take */

static struct mote_flow flows[SIZE];
static struct mote_slot_marks marks;
static struct mote_reap reap;
static struct mote_slot_cpu cpus[CPUS];
static struct mote_slots *slots;
static unsigned int folds[SIZE], firsts[SIZE], gones[SIZE];
static bool end_when_folded;

static void fold(void *ctx, uint32_t slot, bool first)
{
	assert_ptr_equal(ctx, &flows);
	assert_int_equal(marks.mark[slot], 0); /* cleared before the counters are read */
	assert_true(flows[slot].slot.key != 0);
	folds[slot]++;
	firsts[slot] += first;
	if (end_when_folded)
		mote_slots_end(slots, slot);
}

static void gone(void *ctx, uint32_t slot)
{
	assert_true(flows[slot].slot.key != 0);
	gones[slot]++;
}

static const struct mote_slots_ops ops = { fold, gone };

static struct mote_slots_memory memory(void)
{
	return (struct mote_slots_memory){
		.table = MOTE_SLOTS_FLOWS,
		.slots = flows,
		.stride = sizeof(flows[0]),
		.own = offsetof(struct mote_flow, state),
		.size = SIZE,
		.marks = &marks,
		.reap = &reap,
		.cpus = cpus,
		.ncpus = CPUS,
	};
}

static int setup(void **state)
{
	struct mote_slots_memory m = memory();

	memset(flows, 0, sizeof(flows));
	memset(&marks, 0, sizeof(marks));
	memset(&reap, 0, sizeof(reap));
	memset(cpus, 0, sizeof(cpus));
	memset(folds, 0, sizeof(folds));
	memset(firsts, 0, sizeof(firsts));
	memset(gones, 0, sizeof(gones));
	end_when_folded = false;
	for (int i = 0; i < SIZE; i++)
		flows[i].slot.gen = 1;
	return mote_slots_new(&m, &ops, flows, &slots);
}

static int teardown(void **state)
{
	mote_slots_free(slots);
	return 0;
}

static void write_to(uint32_t slot, uint64_t key)
{
	flows[slot].slot.key = key;
	marks.mark[slot] = 1;
}

/* The reaper's pass, with these statuses for all that is asked. */
static void answer(uint32_t deletes, uint32_t pushes)
{
	for (uint32_t i = 0; i < reap.deletes; i++)
		reap.del[i].status = deletes;
	for (uint32_t i = 0; i < reap.pushes; i++)
		reap.push[i].status = pushes;
	reap.deletes = reap.pushes = 0;
	reap.passes++;
	mote_slots_passed(slots);
}

static void stats_are(uint64_t used, uint32_t waiting, uint64_t freed)
{
	struct mote_slots_stats stats;

	mote_slots_stats(slots, 0, &stats);
	assert_int_equal(stats.fill.fill, used);
	assert_int_equal(stats.waiting, waiting);
	assert_int_equal(stats.freed, freed);
}

/* A slot that was written, ended, deleted and has had its grace. */
static void quiesce_one(uint32_t slot)
{
	write_to(slot, 100 + slot);
	mote_slots_scan(slots);
	mote_slots_end(slots, slot);
	assert_true(mote_slots_prepare(slots));
	answer(MOTE_REAP_DONE, MOTE_REAP_DONE);
	mote_slots_grace(slots, 1);
	mote_slots_grace(slots, 2000001); /* arm64: not before a millisecond has passed */
}

static void refuses_what_cannot_be(void **state)
{
	struct mote_slots *none = NULL;
	struct mote_slots_memory m = memory();

	m.own = 0;
	assert_int_equal(mote_slots_new(&m, &ops, NULL, &none), -EINVAL);
	m.own = sizeof(struct mote_flow) - 2;
	assert_int_equal(mote_slots_new(&m, &ops, NULL, &none), -EINVAL);
	m = memory();
	m.size = MOTE_SLOTS_MAX + 1;
	assert_int_equal(mote_slots_new(&m, &ops, NULL, &none), -EINVAL);
	m.size = 0;
	assert_int_equal(mote_slots_new(&m, &ops, NULL, &none), -EINVAL);
	m = memory();
	m.ncpus = 0;
	assert_int_equal(mote_slots_new(&m, &ops, NULL, &none), -EINVAL);
	assert_null(none);
}

static void marks_are_taken_once(void **state)
{
	static const uint32_t some[] = { 0, 1, 7, 8, 500, SIZE - 4, SIZE - 1 };

	assert_int_equal(mote_slots_scan(slots), 0);
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
		write_to(some[i], 5);
	marks.mark[SIZE] = 1; /* beyond the table */
	assert_int_equal(mote_slots_scan(slots), 7);
	assert_int_equal(mote_slots_scan(slots), 0);
	marks.mark[500] = 1;
	assert_int_equal(mote_slots_scan(slots), 1);
	assert_int_equal(folds[500], 2);
	assert_int_equal(firsts[500], 1);
	assert_int_equal(folds[SIZE - 1], 1);
	stats_are(7, 0, 0);
}

static void lives_and_is_reaped(void **state)
{
	write_to(3, 77);
	mote_slots_scan(slots);
	mote_slots_end(slots, 3);
	mote_slots_end(slots, 3);
	mote_slots_end(slots, 4); /* free */
	mote_slots_end(slots, SIZE);
	stats_are(1, 1, 0);
	assert_true(mote_slots_prepare(slots));
	assert_int_equal(reap.deletes, 1);
	assert_int_equal(reap.pushes, 0);
	assert_int_equal(reap.del[0].key, 77);
	assert_int_equal(reap.del[0].slot, 3);
	stats_are(1, 1, 0);
	answer(MOTE_REAP_DONE, MOTE_REAP_NONE);

	write_to(3, 77); /* held across the delete: the last fold takes it */
	mote_slots_grace(slots, 1);
	mote_slots_grace(slots, 2000001);
	assert_int_equal(folds[3], 2);
	assert_int_equal(firsts[3], 1);
	assert_int_equal(gones[3], 1);
	assert_int_equal(marks.mark[3], 0);
	assert_int_equal(flows[3].slot.key, 0);
	assert_int_equal(flows[3].slot.gen, 2);

	assert_true(mote_slots_prepare(slots));
	assert_int_equal(reap.pushes, 1);
	assert_int_equal(reap.deletes, 0);
	assert_int_equal(reap.push[0].slot, 3);
	answer(MOTE_REAP_NONE, MOTE_REAP_DONE);
	stats_are(0, 0, 1);
	assert_false(mote_slots_prepare(slots));

	write_to(3, 78); /* claimed again */
	assert_int_equal(mote_slots_scan(slots), 1);
	assert_int_equal(firsts[3], 2);
}

static void ended_is_written_on(void **state)
{
	write_to(3, 77);
	mote_slots_scan(slots);
	mote_slots_end(slots, 3);
	write_to(3, 77);
	assert_int_equal(mote_slots_scan(slots), 1); /* before the delete is asked for */
	mote_slots_prepare(slots);
	write_to(3, 77);
	assert_int_equal(mote_slots_scan(slots), 1); /* while it is */
	answer(MOTE_REAP_DONE, MOTE_REAP_NONE);
	write_to(3, 77);
	assert_int_equal(mote_slots_scan(slots), 1); /* and in quarantine */
	mote_slots_end(slots, 3);
	stats_are(1, 1, 0);
	assert_int_equal(firsts[3], 1);
}

static void ends_in_its_own_fold(void **state)
{
	end_when_folded = true;
	write_to(9, 1);
	mote_slots_scan(slots);
	write_to(9, 1);
	mote_slots_scan(slots);
	assert_true(mote_slots_prepare(slots));
	assert_int_equal(reap.deletes, 1);
}

static void deletes_that_fail(void **state)
{
	struct mote_slots_stats stats;

	write_to(3, 77);
	mote_slots_scan(slots);
	mote_slots_end(slots, 3);
	mote_slots_prepare(slots);
	answer(MOTE_REAP_ERROR, MOTE_REAP_NONE);
	mote_slots_grace(slots, 5);
	mote_slots_grace(slots, 2000005);
	assert_int_equal(gones[3], 0);
	assert_true(mote_slots_prepare(slots)); /* asked for again */
	assert_int_equal(reap.del[0].slot, 3);
	mote_slots_passed(slots); /* it did not run */
	assert_int_equal(reap.deletes, 0);
	assert_true(mote_slots_prepare(slots));
	mote_slots_prepare(slots); /* nobody told us how it went */
	assert_int_equal(reap.deletes, 1);
	mote_slots_stats(slots, 0, &stats);
	assert_int_equal(stats.retried, 3);
	answer(MOTE_REAP_DONE, MOTE_REAP_NONE);
	mote_slots_passed(slots); /* repeated: nothing */
	mote_slots_grace(slots, 5);
	mote_slots_grace(slots, 2000005);
	assert_int_equal(gones[3], 1);
}

static void deleted_by_bpf(void **state)
{
	static const uint32_t answers[] = { MOTE_REAP_ABSENT, MOTE_REAP_OTHER_SLOT };

	for (uint32_t i = 0; i < 2; i++) {
		write_to(i, 77);
		mote_slots_scan(slots);
		mote_slots_end(slots, i);
		mote_slots_prepare(slots);
		answer(answers[i], MOTE_REAP_DONE);
		assert_int_equal(gones[i], 0); /* needs its grace like any other */
		mote_slots_grace(slots, 5);
		mote_slots_grace(slots, 2000005);
		assert_int_equal(gones[i], 1);
	}
}

static void pushes_that_fail(void **state)
{
	quiesce_one(3);
	assert_true(mote_slots_prepare(slots));
	answer(MOTE_REAP_NONE, MOTE_REAP_ERROR);
	stats_are(1, 1, 0);
	assert_true(mote_slots_prepare(slots));
	mote_slots_passed(slots); /* it did not run */
	stats_are(1, 1, 0);
	marks.mark[3] = 1; /* nobody's: not folded, and not for ever */
	assert_int_equal(mote_slots_scan(slots), 0);
	assert_int_equal(marks.mark[3], 0);
	assert_true(mote_slots_prepare(slots));
	assert_int_equal(reap.push[0].slot, 3);
	answer(MOTE_REAP_NONE, MOTE_REAP_DONE);
	stats_are(0, 0, 1);
	assert_int_equal(gones[3], 1);
}

/* Pushed, and claimed by a writer before we hear that the pass is over. */
static void claimed_before_the_pass_is_over(void **state)
{
	quiesce_one(3);
	mote_slots_prepare(slots);
	write_to(3, 500);
	assert_int_equal(mote_slots_scan(slots), 1);
	assert_int_equal(firsts[3], 2);
	answer(MOTE_REAP_NONE, MOTE_REAP_DONE);
	stats_are(1, 0, 1);
	mote_slots_end(slots, 3);
	stats_are(1, 1, 1);
}

static void orphans_come_back(void **state)
{
	struct mote_slots_stats stats;

	flows[6].slot.left = MOTE_SLOT_ORPHAN;
	marks.mark[6] = 1;
	assert_int_equal(mote_slots_scan(slots), 0);
	stats_are(1, 1, 0);
	assert_true(mote_slots_prepare(slots)); /* without a grace */
	assert_int_equal(reap.push[0].slot, 6);
	answer(MOTE_REAP_NONE, MOTE_REAP_DONE);
	assert_int_equal(flows[6].slot.left, 0);
	mote_slots_stats(slots, 0, &stats);
	assert_int_equal(stats.orphans, 1);
	stats_are(0, 0, 1);
	assert_int_equal(folds[6] + gones[6], 0);
}

/* Who remembers a slot must see that it is out of the index while a writer can still be inside. */
static void unlinked_is_told_before_the_grace(void **state)
{
	write_to(3, 77);
	mote_slots_scan(slots);
	mote_slots_end(slots, 3);
	assert_true(mote_slots_prepare(slots));
	assert_int_equal(flows[3].slot.left, 0);
	cpus[0].enter = 1;
	answer(MOTE_REAP_DONE, MOTE_REAP_DONE);
	assert_int_equal(flows[3].slot.left, MOTE_SLOT_UNLINKED);
	mote_slots_grace(slots, 1);
	mote_slots_grace(slots, 2000001);
	assert_int_equal(flows[3].slot.key, 77);
	assert_int_equal(flows[3].slot.left, MOTE_SLOT_UNLINKED);
	cpus[0].exit = 1;
	mote_slots_grace(slots, 2000002);
	assert_int_equal(flows[3].slot.key, 0);
	assert_int_equal(flows[3].slot.left, 0);
	assert_int_equal(flows[3].slot.gen, 2);
}

static void a_mark_before_its_key(void **state)
{
	marks.mark[6] = 1;
	assert_int_equal(mote_slots_scan(slots), 0);
	assert_int_equal(marks.mark[6], 1); /* it is looked at again */
	stats_are(0, 0, 0);
	flows[6].slot.key = 1;
	assert_int_equal(mote_slots_scan(slots), 1);
	stats_are(1, 0, 0);
}

static void unlink_one(uint32_t slot)
{
	write_to(slot, 9);
	mote_slots_scan(slots);
	mote_slots_end(slots, slot);
	mote_slots_prepare(slots);
	answer(MOTE_REAP_DONE, MOTE_REAP_DONE);
}

/* Each CPU has to be seen empty once; what is deleted meanwhile waits for the grace after. */
static void grace_is_sticky_by_cpu(void **state)
{
	struct mote_slots_stats stats;
	const uint64_t ms = 1000000;

	cpus[0].enter = 7;
	cpus[0].exit = 6;
	cpus[1].enter = cpus[1].exit = 4;
	unlink_one(3);
	mote_slots_grace(slots, 1 * ms);
	mote_slots_grace(slots, 3 * ms);
	cpus[0].exit++;  /* it left */
	cpus[1].enter++; /* this one came after the delete: no matter */
	unlink_one(4);
	assert_int_equal(gones[3], 0);
	mote_slots_stats(slots, 5 * ms, &stats);
	assert_int_equal(stats.grace_age, 4 * ms);
	mote_slots_grace(slots, 5 * ms);
	assert_int_equal(gones[3], 1);
	mote_slots_grace(slots, 7 * ms);
	assert_int_equal(gones[4], 0); /* cpus[1] is inside since before its delete */
	mote_slots_stats(slots, 8 * ms, &stats);
	assert_true(stats.grace_waits >= 2);
	assert_int_equal(stats.grace_age, 3 * ms);
	cpus[1].exit++;
	mote_slots_grace(slots, 9 * ms);
	assert_int_equal(gones[4], 1);
	mote_slots_stats(slots, 9 * ms, &stats);
	assert_int_equal(stats.grace_age, 0);
}

static void more_than_a_pass(void **state)
{
	for (uint32_t i = 0; i < SIZE; i++) {
		write_to(i, i + 1);
		mote_slots_scan(slots);
		mote_slots_end(slots, i);
	}
	for (uint32_t done = 0, n; done < SIZE; done += n) {
		assert_true(mote_slots_prepare(slots));
		n = reap.deletes;
		assert_int_equal(n, SIZE - done < MOTE_REAP ? SIZE - done : MOTE_REAP);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(reap.del[i].slot,
					 done + i); /* in the order of their end */
		answer(MOTE_REAP_DONE, MOTE_REAP_NONE);
	}
	mote_slots_grace(slots, 1);
	mote_slots_grace(slots, 2000001);
	for (uint32_t done = 0; done < SIZE; done += MOTE_REAP) {
		assert_true(mote_slots_prepare(slots));
		answer(MOTE_REAP_DONE, MOTE_REAP_DONE);
	}
	stats_are(0, 0, SIZE);
}

static void ids_are_never_zero(void **state)
{
	const uint32_t last = (1u << MOTE_SOCKET_GEN_BITS) - 1;

	assert_int_equal(flows[0].slot.gen, 1);
	flows[0].slot.gen = last;
	quiesce_one(0);
	assert_int_not_equal(MOTE_SOCKET_ID(0, flows[0].slot.gen), 0);
	flows[1].slot.gen = UINT32_MAX;
	quiesce_one(1);
	assert_int_not_equal(flows[1].slot.gen & last, 0);
}

static void counts_what_was_turned_away(void **state)
{
	struct mote_slots_stats stats;

	cpus[0].turned_away[MOTE_SLOTS_FLOWS] = 3;
	cpus[2].refused[MOTE_SLOTS_FLOWS] = 4;
	cpus[2].turned_away[MOTE_SLOTS_SOCKETS] = 100;
	mote_slots_stats(slots, 0, &stats);
	assert_int_equal(stats.fill.dropped, 7);
	assert_int_equal(stats.fill.size, SIZE);
}

static volatile char *faulted[2];
static volatile int nfaults;
static long page;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	char *at = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(page - 1));

	if (nfaults == 2 || mprotect(at, (size_t)page, PROT_READ | PROT_WRITE))
		_exit(99);
	faulted[nfaults++] = at;
}

/* `enter` on one page and `exit` on the next, so that the order of the two reads shows. */
static void exit_is_read_before_enter(void **state)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, before;
	struct mote_slots_memory m = memory();
	char *pages;

	page = sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	assert_true(pages != MAP_FAILED);
	mote_slots_free(slots);
	m.cpus = (struct mote_slot_cpu *)(pages + page - sizeof(uint64_t));
	m.ncpus = 1;
	assert_int_equal(mote_slots_new(&m, &ops, flows, &slots), 0);
	sigaction(SIGSEGV, &action, &before);
	unlink_one(4);
	nfaults = 0;
	assert_int_equal(mprotect(pages, 2 * (size_t)page, PROT_NONE), 0);
	mote_slots_grace(slots, 1);
	mote_slots_grace(slots, 2000001);
	sigaction(SIGSEGV, &before, NULL);
	assert_int_equal(nfaults, 2);
	assert_ptr_equal(faulted[0], pages + page);
	assert_ptr_equal(faulted[1], pages);
	munmap(pages, 2 * (size_t)page);
}

#define SLOTS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_cannot_be),
		SLOTS_TEST(marks_are_taken_once),
		SLOTS_TEST(lives_and_is_reaped),
		SLOTS_TEST(ended_is_written_on),
		SLOTS_TEST(ends_in_its_own_fold),
		SLOTS_TEST(deletes_that_fail),
		SLOTS_TEST(deleted_by_bpf),
		SLOTS_TEST(pushes_that_fail),
		SLOTS_TEST(claimed_before_the_pass_is_over),
		SLOTS_TEST(orphans_come_back),
		SLOTS_TEST(unlinked_is_told_before_the_grace),
		SLOTS_TEST(a_mark_before_its_key),
		SLOTS_TEST(grace_is_sticky_by_cpu),
		SLOTS_TEST(more_than_a_pass),
		SLOTS_TEST(ids_are_never_zero),
		SLOTS_TEST(counts_what_was_turned_away),
		SLOTS_TEST(exit_is_read_before_enter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
