// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The circle of frames beside a model that knows every live frame and its bytes: frames never
 * overlap, keep what was written to them until they are freed, leave in order, and are taken from
 * their owners only if the room is needed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"

#define SIZE 4096
#define LIVE 2048

struct live {
	uint32_t id, at, len;
	unsigned int refs;
	uint8_t fill;
};

struct model {
	struct mote_arena *arena;
	const char *base;
	struct live live[LIVE]; /* oldest first; those without refs stay until they must go */
	unsigned int n, evicted;
};

static struct live *find(struct model *m, uint32_t id)
{
	for (unsigned int i = 0; i < m->n; i++) {
		if (m->live[i].id == id)
			return &m->live[i];
	}
	return NULL;
}

static void check_bytes(const struct model *m, const struct live *live)
{
	const struct mote_arena_frame *frame = mote_arena_get(m->arena, live->id);

	assert_ptr_equal(frame->data, m->base + live->at);
	assert_int_equal(frame->len, live->len);
	for (uint32_t i = 0; i < live->len; i++)
		assert_int_equal((uint8_t)frame->data[i], live->fill);
}

static void evict(void *ctx, uint32_t id)
{
	struct model *m = ctx;
	struct live *live = find(m, id);

	assert_non_null(live);
	assert_true(live->refs > 0);
	check_bytes(m, live);
	/* Nothing that is older is still had by somebody. */
	for (struct live *older = m->live; older < live; older++)
		assert_int_equal(older->refs, 0);
	for (; live->refs; live->refs--)
		mote_arena_unref(m->arena, id);
	m->evicted++;
}

static struct model *model_new(uint32_t size)
{
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->arena = mote_arena_new(size, evict, m);
	assert_non_null(m->arena);
	m->base = mote_arena_reserve(m->arena, 1);
	return m;
}

static void model_free(struct model *m)
{
	mote_arena_free(m->arena);
	free(m);
}

/* Forgets frames that nobody has and that a new one lies upon; one with refs must not. */
static void drop_overwritten(struct model *m, uint32_t at, uint32_t len)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < m->n; i++) {
		const struct live *live = &m->live[i];

		if (live->at < at + len && at < live->at + live->len)
			assert_int_equal(live->refs, 0);
		else if (live->refs)
			m->live[kept++] = *live;
	}
	m->n = kept;
}

static bool add(struct model *m, uint32_t room, uint32_t len, unsigned int refs)
{
	char *buf = mote_arena_reserve(m->arena, room);
	struct live live;

	if (!buf)
		return false;
	assert_true(buf >= m->base);
	live.at = (uint32_t)(buf - m->base);
	drop_overwritten(m, live.at, room);
	live.len = len;
	live.fill = (uint8_t)rand();
	live.refs = refs;
	memset(buf, ~live.fill, room); /* ASan: all of it is ours */
	memset(buf, live.fill, len);
	live.id = mote_arena_commit(m->arena, len, 3);
	for (unsigned int i = 0; i < refs; i++)
		mote_arena_ref(m->arena, live.id);
	assert_int_equal(mote_arena_get(m->arena, live.id)->stream, 3);
	assert_true(m->n < LIVE);
	m->live[m->n++] = live;
	return true;
}

static uint64_t bytes_held(const struct model *m)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < m->n; i++)
		sum += m->live[i].refs ? m->live[i].len : 0;
	return sum;
}

static void check_all(struct model *m, uint32_t size)
{
	struct mote_fill fill;

	for (unsigned int i = 0; i < m->n; i++) {
		if (m->live[i].refs)
			check_bytes(m, &m->live[i]);
	}
	mote_arena_fill(m->arena, &fill);
	assert_int_equal(fill.size, size);
	assert_true(fill.fill >= bytes_held(m) && fill.fill <= size);
	assert_true(fill.peak >= fill.fill && fill.peak <= size);
	assert_int_equal(fill.dropped, m->evicted);
}

static void unref_some(struct model *m, unsigned int odds)
{
	for (unsigned int i = 0; i < m->n; i++) {
		if (m->live[i].refs && (unsigned int)rand() % 100 < odds) {
			mote_arena_unref(m->arena, m->live[i].id);
			m->live[i].refs--;
		}
	}
}

/* Odd sizes, owners that take their time, at several speeds. */
static void test_random(void **state)
{
	static const unsigned int odds[] = { 0, 2, 20, 60, 100 };
	static const uint32_t sizes[] = { 64, 257, SIZE, SIZE + 1 };

	srand(7);
	for (unsigned int s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (unsigned int o = 0; o < sizeof(odds) / sizeof(odds[0]); o++) {
			struct model *m = model_new(sizes[s]);

			for (int i = 0; i < 4000; i++) {
				uint32_t most = rand() % 4 ? sizes[s] / 2 : sizes[s] / 16 + 1;
				uint32_t room = 1 + (uint32_t)rand() % most;

				assert_true(add(m, room, 1 + (uint32_t)rand() % room,
						(unsigned int)rand() % 3));
				unref_some(m, odds[o]);
				check_all(m, sizes[s]);
			}
			assert_true(odds[o] == 100 || m->evicted > 0);
			model_free(m);
		}
	}
}

/* With all frames given back at once nothing is ever evicted, whatever the sizes. */
static void test_no_eviction_without_need(void **state)
{
	struct model *m = model_new(SIZE);

	srand(8);
	for (int i = 0; i < 20000; i++) {
		uint32_t room = 1 + (uint32_t)rand() % (SIZE / 2);

		assert_true(add(m, room, room, 1));
		unref_some(m, 100);
	}
	assert_int_equal(m->evicted, 0);
	model_free(m);
}

/* Two thirds of the circle can be held while frames of a sixth come and go. */
static void test_holds_what_fits(void **state)
{
	struct model *m = model_new(SIZE);

	for (int i = 0; i < 3; i++)
		assert_true(add(m, SIZE / 6, SIZE / 6, 1));
	assert_int_equal(m->evicted, 0);
	for (int i = 0; i < 2; i++)
		assert_true(add(m, SIZE / 6, SIZE / 6, 1));
	assert_int_equal(m->evicted, 0);
	/* The sixth does not fit behind (strictly less than the rest is used) nor in front. */
	assert_true(add(m, SIZE / 6 + 8, SIZE / 6 + 8, 1));
	assert_true(m->evicted >= 1 && m->evicted <= 2);
	check_all(m, SIZE);
	model_free(m);
}

static void test_too_large(void **state)
{
	struct model *m = model_new(SIZE);

	assert_false(add(m, SIZE / 2 + 1, 1, 0));
	assert_true(add(m, SIZE / 2, SIZE / 2, 1));
	assert_true(add(m, SIZE / 2, SIZE / 2, 1));
	assert_true(add(m, SIZE / 2, SIZE / 2, 1));
	check_all(m, SIZE);
	model_free(m);
}

/* More tiny frames than there are descriptors: the oldest goes, though there are bytes. */
static void test_descriptors(void **state)
{
	struct model *m = model_new(1 << 20);

	for (int i = 0; i < 1024; i++)
		assert_true(add(m, 8, 8, 1));
	assert_int_equal(m->evicted, 0);
	assert_true(add(m, 8, 8, 1));
	assert_int_equal(m->evicted, 1);
	assert_int_equal(m->live[0].id, 1);
	check_all(m, 1 << 20);
	model_free(m);
}

/* A frame that is done with behind one that is not waits, and then leaves without eviction. */
static void test_done_in_the_middle(void **state)
{
	struct model *m = model_new(SIZE);
	struct mote_fill fill;

	assert_true(add(m, 1000, 1000, 1));
	assert_true(add(m, 1000, 1000, 0));
	assert_true(add(m, 1000, 1000, 0));
	mote_arena_fill(m->arena, &fill);
	assert_int_equal(fill.fill, 3000);
	unref_some(m, 100);
	assert_true(add(m, 2000, 2000, 1));
	mote_arena_fill(m->arena, &fill);
	assert_int_equal(fill.fill, 2000);
	assert_int_equal(m->evicted, 0);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_no_eviction_without_need),
		cmocka_unit_test(test_holds_what_fits),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_done_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
