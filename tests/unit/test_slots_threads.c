// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Slots with threads for CPUs, that count as BPF programs do (bpf/slots.h), while the owner reaps
 * and the slots are reused: what each key was given is what was folded to it, and every slot comes
 * back. The kernel's own maps are under it in tests/slots.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "slots.h"

#define WRITERS 3
#define SIZE    64
#define KEYS    20000
#define ROUNDS  4 /* events a key and writer */

struct counter {
	struct mote_slot slot;
	uint64_t sent;
	uint64_t seen; /* the owner's */
	uint32_t own;
};

static struct counter counters[SIZE];
static struct mote_slot_marks marks;
static struct mote_reap reap;
static struct mote_slot_cpu cpus[WRITERS];
static struct mote_slots *slots;

/* The kernel's maps: an index by key, and the queue, each under a lock. */
static uint32_t index_of[KEYS + 1]; /* slot + 1 */
static uint32_t queue[SIZE], queued;
static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t sent[KEYS + 1], taken[KEYS + 1];
static unsigned int running;

static bool pop(uint32_t *slot)
{
	bool some;

	pthread_mutex_lock(&queue_lock);
	some = queued > 0;
	if (some)
		*slot = queue[--queued];
	pthread_mutex_unlock(&queue_lock);
	return some;
}

static void push(uint32_t slot)
{
	pthread_mutex_lock(&queue_lock);
	assert_true(queued < SIZE);
	queue[queued++] = slot;
	pthread_mutex_unlock(&queue_lock);
}

/* What the key has in the index; 0 was there: `slot` is now. */
static uint32_t look_or_insert(uint32_t key, uint32_t slot)
{
	uint32_t had;

	pthread_mutex_lock(&index_lock);
	had = index_of[key];
	if (!had && slot)
		index_of[key] = slot;
	pthread_mutex_unlock(&index_lock);
	return had;
}

static struct counter *find_or_claim(uint32_t key)
{
	uint32_t slot, had = look_or_insert(key, 0);

	if (had)
		return &counters[had - 1];
	if (!pop(&slot))
		return NULL;
	__atomic_store_n(&counters[slot].slot.key, key, __ATOMIC_RELAXED);
	had = look_or_insert(key, slot + 1);
	if (!had)
		return &counters[slot];
	__atomic_store_n(&counters[slot].slot.key, 0, __ATOMIC_RELAXED);
	push(slot);
	return &counters[had - 1];
}

static bool count(struct mote_slot_cpu *cpu, uint32_t key)
{
	struct counter *counter;

	__atomic_fetch_add(&cpu->enter, 1, __ATOMIC_SEQ_CST);
	counter = find_or_claim(key);
	if (counter) {
		if (key % 64 == 0)
			sched_yield(); /* the owner deletes it meanwhile */
		__atomic_fetch_add(&counter->sent, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&marks.mark[counter - counters], 1, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&cpu->exit, 1, __ATOMIC_SEQ_CST);
	return counter;
}

static void *writer(void *arg)
{
	struct mote_slot_cpu *cpu = arg;

	for (uint32_t key = 1; key <= KEYS; key++)
		for (int i = 0; i < ROUNDS;) {
			if (!count(cpu, key)) {
				sched_yield();
				continue;
			}
			__atomic_fetch_add(&sent[key], 1, __ATOMIC_RELAXED);
			i++;
		}
	__atomic_fetch_sub(&running, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void fold(void *ctx, uint32_t slot, bool first)
{
	struct counter *counter = &counters[slot];
	uint64_t now = __atomic_load_n(&counter->sent, __ATOMIC_ACQUIRE);
	uint64_t key = counter->slot.key;

	taken[key] += now - counter->seen;
	counter->seen = now;
}

static void gone(void *ctx, uint32_t slot)
{
}

/* All slots are ended in turn, whether or not somebody still writes to them. */
static void end_some(unsigned int tick)
{
	for (uint32_t slot = tick % 3; slot < SIZE; slot += 3)
		mote_slots_end(slots, slot);
}

static void run_reap(void)
{
	for (uint32_t i = 0; i < reap.pushes; i++) {
		push(reap.push[i].slot);
		reap.push[i].status = MOTE_REAP_DONE;
	}
	pthread_mutex_lock(&index_lock);
	for (uint32_t i = 0; i < reap.deletes; i++) {
		assert_int_equal(index_of[reap.del[i].key], reap.del[i].slot + 1);
		index_of[reap.del[i].key] = 0;
		reap.del[i].status = MOTE_REAP_DONE;
	}
	pthread_mutex_unlock(&index_lock);
	reap.pushes = reap.deletes = 0;
	reap.passes++;
}

static void tick(unsigned int n)
{
	struct timespec t;

	mote_slots_scan(slots);
	end_some(n);
	clock_gettime(CLOCK_MONOTONIC, &t);
	mote_slots_grace(slots, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
	if (!mote_slots_prepare(slots))
		return;
	run_reap();
	mote_slots_passed(slots);
}

static void start(void)
{
	static const struct mote_slots_ops ops = { fold, gone };
	const struct mote_slots_memory m = {
		.table = MOTE_SLOTS_FLOWS,
		.slots = counters,
		.stride = sizeof(counters[0]),
		.own = offsetof(struct counter, own),
		.size = SIZE,
		.marks = &marks,
		.reap = &reap,
		.cpus = cpus,
		.ncpus = WRITERS,
	};

	assert_int_equal(mote_slots_new(&m, &ops, NULL, &slots), 0);
	for (uint32_t i = 0; i < SIZE; i++)
		push(i);
}

static void sums_are_exact(void **state)
{
	pthread_t threads[WRITERS];
	struct mote_slots_stats stats;
	unsigned int n = 0;

	start();
	running = WRITERS;
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, writer, &cpus[i]), 0);
	while (__atomic_load_n(&running, __ATOMIC_SEQ_CST)) {
		tick(n++);
		sched_yield();
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 20; i++) {
		tick(n++);
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	for (uint32_t key = 1; key <= KEYS; key++) {
		assert_int_equal(sent[key], WRITERS * ROUNDS);
		assert_int_equal(taken[key], WRITERS * ROUNDS);
	}
	mote_slots_stats(slots, 0, &stats);
	assert_int_equal(queued, SIZE);
	assert_int_equal(stats.fill.fill, 0);
	assert_int_equal(stats.waiting, 0);
	assert_true(stats.freed >= KEYS);
	assert_true(stats.grace_waits > 0);
	mote_slots_free(slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
