// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The writers: each goes through its share of the keys, tells the owner that a key has ended, and
 * writes some of them again afterwards, its own and the other writers'.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stress.h"

#define ROOM 24 /* free slots below which a writer waits: more than all can claim meanwhile */

struct writer {
	struct stress *stress;
	uint32_t number;
	uint32_t random;
};

static uint32_t next_random(struct writer *w)
{
	w->random = w->random * 1664525 + 1013904223;
	return w->random >> 8;
}

static void pin(uint32_t number)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number % (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void wait_for_room(const struct stress *stress)
{
	if (stress->config->overload || stress->config->marks_only)
		return;
	while (STRESS_SUM(stress, claims) + ROOM >=
	       __atomic_load_n(&stress->freed, __ATOMIC_RELAXED) + stress->config->slots)
		usleep(50);
}

static void event(struct writer *w, uint32_t key)
{
	uint32_t bytes = 1 + next_random(w) % 3000;

	syscall(SYS_getpriority, FILLER_MAGIC, (uint64_t)bytes << 32 | key, 0);
	__atomic_fetch_add(&w->stress->sent_bytes[key], bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&w->stress->sent_events[key], 1, __ATOMIC_RELAXED);
}

static void notice(struct writer *w, uint32_t key)
{
	struct stress_notices *n = &w->stress->notices[w->number];

	if (w->stress->config->marks_only)
		return;
	while (n->tail - __atomic_load_n(&n->head, __ATOMIC_ACQUIRE) >= STRESS_NOTICES)
		usleep(100);
	n->key[n->tail % STRESS_NOTICES] = key;
	__atomic_store_n(&n->tail, n->tail + 1, __ATOMIC_RELEASE);
}

static void event_and_end(struct writer *w, uint32_t key)
{
	wait_for_room(w->stress);
	event(w, key);
	notice(w, key);
}

/* One that somebody is ending now, or ended a while ago; 0: none. */
static uint32_t late_key(struct writer *w, const uint32_t *position)
{
	uint32_t step = w->stress->config->writers;
	uint32_t far = w->stress->config->recall ? 150 : 1500;
	uint32_t back = (next_random(w) % 4 ? next_random(w) % 3 : next_random(w) % far) * step;
	uint32_t at = position[next_random(w) % step];

	return at > back ? at - back : 0;
}

static void use_key(struct writer *w, uint32_t key, uint32_t *position)
{
	uint32_t events = 1 + next_random(w) % 5, late;

	wait_for_room(w->stress);
	__atomic_store_n(&position[w->number], key, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < events; i++)
		event(w, key);
	notice(w, key);
	if (next_random(w) % 4 == 0)
		event_and_end(w, key);
	/* who remembers slots is wrong only between a delete and the end of its grace */
	for (uint32_t i = 0; i < (w->stress->config->recall ? 8 : 1); i++) {
		late = next_random(w) % 3 == 0 ? late_key(w, position) : 0;
		if (late)
			event_and_end(w, late);
	}
}

static bool again(const struct stress *stress)
{
	return stress->config->ticks && !__atomic_load_n(&stress->enough, __ATOMIC_RELAXED);
}

void *stress_writer(void *arg)
{
	static uint32_t position[64]; /* by writer: the key it is at */
	const struct stress_writer *me = arg;
	const struct stress_config *config = me->stress->config;
	struct writer w = { me->stress, me->number, me->number * 7919 + 17 };

	pin(w.number);
	do {
		for (uint32_t key = 1 + w.number; key <= config->keys; key += config->writers)
			use_key(&w, key, position);
	} while (again(w.stress));
	__atomic_fetch_sub(&w.stress->running, 1, __ATOMIC_SEQ_CST);
	return NULL;
}
