// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queue of one connection: what is gathered and sent in parts of any size is the frames' bytes
 * in order; references and byte counts come out even; evicted and lost frames are owed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "subscriber.h"

#define ARENA 65536
#define FRAME 4096
#define BIT   (1u << MOTE_STREAM_CPU)

struct fixture {
	struct mote_arena *arena;
	struct mote_subscriber sub;
	char copy[FRAME], hello[500];
	char sent[1 << 20], expected[1 << 20];
	size_t nsent, nexpected;
	unsigned int evicted;
};

static void evict(void *ctx, uint32_t id)
{
	struct fixture *f = ctx;

	assert_true(mote_subscriber_evict(&f->sub, f->arena, id));
	assert_false(mote_subscriber_evict(&f->sub, f->arena, id));
	f->evicted++;
}

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.arena = mote_arena_new(ARENA, evict, &f);
	memset(f.hello, 'h', sizeof(f.hello));
	memset(f.sub.class_of, MOTE_NO_CLASS, sizeof(f.sub.class_of));
	f.sub.copy = f.copy;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	mote_subscriber_clear(&f->sub, f->arena);
	assert_int_equal(f->sub.queued_bytes, 0);
	assert_false(mote_subscriber_pending(&f->sub));
	mote_arena_free(f->arena);
	return 0;
}

/* Makes a frame; returns its id. */
static uint32_t frame(struct fixture *f, uint32_t len)
{
	char *buf = mote_arena_reserve(f->arena, FRAME);

	for (uint32_t i = 0; i < len; i++)
		buf[i] = (char)rand();
	return mote_arena_commit(f->arena, len, MOTE_STREAM_CPU);
}

static int queue(struct fixture *f, uint32_t id, uint64_t limit)
{
	const struct mote_arena_frame *made = mote_arena_get(f->arena, id);
	int err = mote_subscriber_queue(&f->sub, f->arena, id, limit);

	if (!err) {
		memcpy(f->expected + f->nexpected, made->data, made->len);
		f->nexpected += made->len;
	}
	return err;
}

/* The kernel takes at most `most` bytes of what is gathered. */
static bool send_some(struct fixture *f, uint32_t most)
{
	uint32_t n = 0;

	if (!mote_subscriber_gather(&f->sub, f->arena))
		return false;
	assert_true(f->sub.msg.msg_iovlen <= MOTE_SEND_VECTORS);
	for (size_t i = 0; i < f->sub.msg.msg_iovlen && n < most; i++) {
		const struct iovec *v = &f->sub.msg.msg_iov[i];
		uint32_t len = v->iov_len < most - n ? (uint32_t)v->iov_len : most - n;

		assert_true(v->iov_len > 0);
		memcpy(f->sent + f->nsent, v->iov_base, len);
		f->nsent += len;
		n += len;
	}
	mote_subscriber_sent(&f->sub, f->arena, n);
	return true;
}

static void test_random_parts(void **state)
{
	struct fixture *f = *state;
	unsigned int frames = 0;
	struct mote_fill fill;

	srand(5);
	f->sub.rest = f->hello;
	f->sub.rest_len = sizeof(f->hello);
	memcpy(f->expected, f->hello, sizeof(f->hello));
	f->nexpected = sizeof(f->hello);
	for (int i = 0; i < 3000 && f->nexpected < sizeof(f->expected) - 4 * FRAME; i++) {
		for (int k = rand() % 4; k > 0; k--) {
			/* Half of the arena: nothing is evicted. */
			frames +=
				!queue(f, frame(f, 1 + (uint32_t)rand() % 1000), ARENA / 2 - FRAME);
		}
		for (int k = rand() % 3; k > 0; k--)
			send_some(f, rand() % 3 ? (uint32_t)rand() % 3000 : 1);
	}
	while (send_some(f, 777))
		;
	assert_int_equal(f->evicted, 0);
	assert_int_equal(f->nsent, f->nexpected);
	assert_memory_equal(f->sent, f->expected, f->nsent);
	assert_int_equal(f->sub.bytes_sent, f->nsent);
	assert_int_equal(f->sub.frames_sent, frames + 1); /* the hello too */
	assert_int_equal(f->sub.queued_bytes, 0);
	mote_arena_reserve(f->arena, 1); /* frees what is done with */
	mote_arena_fill(f->arena, &fill);
	assert_int_equal(fill.fill, 0);
}

static void test_limits(void **state)
{
	struct fixture *f = *state;
	uint32_t id;

	assert_int_equal(queue(f, frame(f, 100), 99), -ENOBUFS);
	assert_int_equal(queue(f, frame(f, 100), 100), 0);
	assert_int_equal(queue(f, frame(f, 1), 100), -ENOBUFS);
	send_some(f, 40);
	/* Its rest is no frame any more, but its bytes still count. */
	assert_int_equal(f->sub.count, 0);
	assert_int_equal(queue(f, frame(f, 41), 100), -ENOBUFS);
	assert_int_equal(queue(f, frame(f, 40), 100), 0);
	while (send_some(f, 1000))
		;
	for (int i = 0; i < MOTE_QUEUE_FRAMES; i++)
		assert_int_equal(queue(f, frame(f, 1), ARENA), 0);
	id = frame(f, 1);
	assert_int_equal(queue(f, id, ARENA), -ENOBUFS);
	assert_int_equal(mote_arena_get(f->arena, id)->refs, 0);
}

static void test_evict(void **state)
{
	struct fixture *f = *state;
	uint32_t ids[3];

	f->sub.class_of[MOTE_STREAM_CPU] = 0;
	for (int i = 0; i < 3; i++) {
		ids[i] = frame(f, 100);
		assert_int_equal(mote_subscriber_queue(&f->sub, f->arena, ids[i], ARENA), 0);
	}
	assert_true(mote_subscriber_evict(&f->sub, f->arena, ids[1]));
	assert_int_equal(mote_arena_get(f->arena, ids[1])->refs, 0);
	assert_int_equal(f->sub.queued_bytes, 200);
	assert_int_equal(f->sub.frames_dropped, 1);
	assert_int_equal(f->sub.bytes_dropped, 100);
	assert_true(f->sub.tell_dropped);
	assert_int_equal(f->sub.key_wanted, BIT);
	assert_false(f->sub.torn);
	mote_subscriber_gather(&f->sub, f->arena);
	assert_int_equal(f->sub.in_flight, 2);
	assert_ptr_equal(f->sub.vectors[1].iov_base, mote_arena_get(f->arena, ids[2])->data);
	/* Now they are sent, and it is not known how far. */
	f->sub.sending = true;
	assert_true(mote_subscriber_evict(&f->sub, f->arena, ids[0]));
	assert_true(f->sub.torn);
}

/* What is behind the frames of the send under way may go. */
static void test_evict_behind_the_send(void **state)
{
	struct fixture *f = *state;
	uint32_t first = frame(f, 100), last = 0;

	assert_int_equal(mote_subscriber_queue(&f->sub, f->arena, first, ARENA), 0);
	for (int i = 0; i < MOTE_SEND_VECTORS; i++) {
		last = frame(f, 10);
		assert_int_equal(mote_subscriber_queue(&f->sub, f->arena, last, ARENA), 0);
	}
	mote_subscriber_gather(&f->sub, f->arena);
	f->sub.sending = true;
	assert_true(mote_subscriber_evict(&f->sub, f->arena, last));
	assert_false(f->sub.torn);
	mote_subscriber_sent(&f->sub, f->arena, 100 + 10 * (MOTE_SEND_VECTORS - 1));
	assert_int_equal(f->sub.count, 0);
}

/* Only who has the stream, or is owed a poll of it, is owed a keyframe. */
static void test_lost(void **state)
{
	struct fixture *f = *state;

	mote_subscriber_lost(&f->sub, MOTE_STREAM_CPU, 10);
	assert_int_equal(f->sub.key_wanted, 0);
	mote_subscriber_lost(&f->sub, MOTE_STREAMS, 10); /* its own: a reply */
	assert_int_equal(f->sub.key_wanted, 0);
	f->sub.class_of[MOTE_STREAM_CPU] = 2;
	f->sub.key_begun = BIT;
	mote_subscriber_lost(&f->sub, MOTE_STREAM_CPU, 10);
	assert_int_equal(f->sub.key_wanted, BIT);
	assert_int_equal(f->sub.key_begun, 0);
	assert_int_equal(f->sub.frames_dropped, 3);
	assert_int_equal(f->sub.bytes_dropped, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_evict, setup, teardown),
		cmocka_unit_test_setup_teardown(test_evict_behind_the_send, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
