// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The server with an engine whose completions the test feeds by hand, and clients that decode
 * every byte they get. The stream `process` is a source made here; whatever is dropped, evicted
 * or cut on the way, a client that has read everything has exactly the source's rows.
 */
#include "server_fixture.h"

#include "subscriber.h"

static void test_hello_and_requests(void **state)
{
	struct fixture *f = fixture_new(4096, 65536, 262144, 20000);
	struct client *c = connect_client(f);

	settle(f);
	assert_int_equal(c->hellos, 1);
	say(f, c, "ping\nnonsense\n\npoll net");
	settle(f);
	assert_int_equal(c->replies, 2);
	assert_int_equal(c->code, 22);
	say(f, c, "dev\n");
	settle(f);
	assert_int_equal(c->code, 0);
	assert_int_equal(mote_server_urgent(f->server), 1u << MOTE_STREAM_NETDEV);
	assert_int_equal(mote_server_period_ms(f->server), 0);
	say(f, c, "subscribe process interval=100ms\n");
	assert_int_equal(mote_server_subscribed(f->server), 1u << STREAM);
	assert_int_equal(mote_server_period_ms(f->server), 100);
	fixture_free(f);
}

static void test_long_line(void **state)
{
	struct fixture *f = fixture_new(4096, 65536, 262144, 64);
	struct client *c = connect_client(f);
	struct mote_server_stats stats;
	char line[512];

	memset(line, 'x', sizeof(line));
	for (int i = 0; i < 3; i++)
		feed(f, c, line, sizeof(line));
	settle(f);
	assert_int_equal(c->replies, 1);
	assert_int_equal(c->code, 7);
	say(f, c, "ping\nping\n"); /* the first ends the long line */
	settle(f);
	assert_int_equal(c->replies, 2);
	assert_int_equal(c->code, 0);
	/* 511 bytes and a newline are a line; with one more it is none. */
	feed(f, c, line, 511);
	say(f, c, "\n");
	settle(f);
	assert_int_equal(c->replies, 3);
	assert_int_equal(c->code, 22);
	mote_server_stats(f->server, &stats);
	assert_int_equal(stats.request_errors, 2);
	fixture_free(f);
}

/* Who does not read replies is not heard any more, and loses none. */
static void test_unread_replies(void **state)
{
	struct fixture *f = fixture_new(4096, 65536, 262144, 64);
	struct client *c = connect_client(f);
	unsigned int said = 0;

	settle(f);
	c->space = 0;
	for (; said < 1000 && find_op(f, MOTE_OP_RECV, c->fd) >= 0; said++) {
		say(f, c, "ping\n");
		settle(f);
	}
	assert_in_range(said, 2, MOTE_QUEUE_FRAMES);
	c->space = PENDING;
	settle(f);
	assert_int_equal(c->replies, said);
	assert_int_equal(c->notes, 0);
	say(f, c, "ping\n");
	settle(f);
	assert_int_equal(c->replies, said + 1);
	fixture_free(f);
}

static void test_keyframe_then_changes(void **state)
{
	struct fixture *f = fixture_new(4096, 65536, 262144, 64);
	struct client *c = connect_client(f);

	fill_source(f, 100, 20);
	say(f, c, "subscribe process interval=100ms\n");
	assert_true(mote_server_urgent(f->server) & 1u << STREAM);
	settle(f);
	assert_int_equal(c->keys, 0); /* nothing was sampled yet */
	tick(f);
	settle(f);
	assert_int_equal(c->keys, 1);
	same_rows(f, c);
	source_set(&f->source, 5, 9, f->now + 100 * MS);
	source_end(&f->source, 6, f->now + 100 * MS);
	f->now += 50 * MS;
	tick(f);
	settle(f);
	assert_int_equal(c->keys, 1);
	assert_int_equal(c->ended, 1);
	assert_int_equal(c->sequence, 2);
	same_rows(f, c);
	fixture_free(f);
}

/* A keyframe much larger than the queue and the arena, to a client that takes little at a time,
 * while rows change and end. */
static void test_large_keyframe(void **state)
{
	static const uint32_t arenas[] = { 16384, 32768, 65536, 262144 };

	for (unsigned int a = 0; a < 4; a++) {
		struct fixture *f = fixture_new(4096, 16384, arenas[a], 64);
		struct client *c = connect_client(f), *slow = connect_client(f);

		fill_source(f, ROWS, 500);
		say(f, c, "subscribe process interval=100ms\n");
		say(f, slow, "subscribe process interval=100ms\n");
		for (int i = 0; i < 60; i++) {
			for (int k = 0; k < 3; k++)
				source_set(&f->source, (uint32_t)(rand() % ROWS), (uint64_t)i + 1,
					   f->now - f->now % (100 * MS) + 100 * MS);
			if (i % 7 == 0)
				source_end(&f->source, (uint32_t)(rand() % ROWS),
					   f->now - f->now % (100 * MS) + 100 * MS);
			tick(f);
			slow->space = (size_t)rand() % 9000;
			settle(f);
			same_rows(f, c);
		}
		slow->space = PENDING;
		settle(f);
		tick(f);
		settle(f);
		same_rows(f, slow);
		fixture_free(f);
	}
}

/* Everybody wants a large keyframe at once: nobody starves. */
static void test_many_keyframes(void **state)
{
	struct fixture *f = fixture_new(4096, 65536, 65536, 64);
	struct client *c[6];

	fill_source(f, ROWS, 400);
	for (int i = 0; i < 6; i++)
		c[i] = connect_client(f);
	for (int i = 0; i < 6; i++)
		say(f, c[i], "subscribe process interval=100ms\n");
	tick(f);
	settle(f);
	for (int i = 0; i < 6; i++) {
		same_rows(f, c[i]);
		assert_int_equal(c[i]->keys, 1); /* none was begun twice */
		assert_int_equal(c[i]->notes, 0);
	}
	fixture_free(f);
}

/*
 * A send has been made, but before its result is told a request of another makes a reply whose
 * room is that of the frames just sent. What the first client reads must stay whole.
 */
static void test_evicted_in_flight(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 16384, 64);
	struct client *c = connect_client(f), *others[5];
	struct mote_server_stats stats;

	for (int i = 0; i < 5; i++)
		others[i] = connect_client(f);
	fill_source(f, ROWS, 500);
	settle(f);
	say(f, c, "subscribe process interval=100ms\n");
	tick(f);
	mote_server_flush(f->server);
	c->space = 5000;
	submit(f);
	assert_true(f->nsends > 0);
	for (int i = 0; i < 5; i++) {
		while (find_op(f, MOTE_OP_RECV, others[i]->fd) >= 0)
			say(f, others[i], "a\nb\nc\nd\ne\nf\ng\nh\n");
	}
	mote_server_stats(f->server, &stats);
	assert_true(stats.arena.dropped > 0);
	tell(f);
	c->space = PENDING;
	settle(f);
	tick(f);
	settle(f);
	if (!c->closed)
		same_rows(f, c);
	fixture_free(f);
}

static void test_slow_is_told(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c = connect_client(f), *fast = connect_client(f);
	struct mote_server_stats stats;

	fill_source(f, 20, 400);
	say(f, c, "subscribe process interval=100ms\n");
	say(f, fast, "subscribe process interval=100ms\n");
	tick(f);
	settle(f);
	c->space = 0;
	for (int i = 0; i < 20; i++) {
		fill_source(f, 20, 400);
		for (int k = 0; k < 20; k++)
			f->source.changed[k] = f->now - f->now % (100 * MS) + 100 * MS;
		tick(f);
		settle(f);
		same_rows(f, fast);
	}
	assert_int_equal(fast->notes, 0);
	mote_server_stats(f->server, &stats);
	assert_true(stats.frames_dropped > 0 && stats.bytes_dropped > 0);
	assert_int_equal(stats.queue.dropped, stats.frames_dropped);
	assert_true(stats.queue.peak <= 16384);
	c->space = PENDING;
	settle(f);
	assert_int_equal(c->notes, 1);
	assert_int_equal(c->lost_frames, stats.frames_dropped);
	assert_int_equal(c->keys, 2);
	same_rows(f, c);
	fixture_free(f);
}

/* Closing in every state gives the slot back, and only when nothing is under way. */
static void test_closing(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct mote_server_stats stats;

	for (int i = 0; i < 50; i++) {
		struct client *c = connect_client(f);

		fill_source(f, 50, 400);
		if (i % 3)
			settle(f);
		if (i % 5)
			say(f, c, "subscribe process interval=100ms\n");
		if (i % 7 == 0)
			c->space = 100;
		tick(f);
		if (i % 2)
			settle(f);
		if (i % 11 == 0) {
			mote_server_flush(f->server);
			submit(f);
		}
		if (i % 4)
			feed(f, c, "", i % 4 == 1 ? 0 : -ECONNRESET);
		close(c->peer);
		c->peer = -1;
		for (int k = 0; k < 3; k++) {
			int at;

			c->closed = true;
			fill_source(f, 50, 400);
			f->source.changed[0] = f->now + 100 * MS;
			if (c->fd >= 0 && (at = find_op(f, MOTE_OP_WRITABLE, c->fd)) >= 0)
				complete(f, fake_take(&f->engine, (unsigned int)at).tag, 16);
			if (c->fd >= 0 && (at = find_op(f, MOTE_OP_RECV, c->fd)) >= 0)
				complete(f, fake_take(&f->engine, (unsigned int)at).tag, 0);
			if (c->fd >= 0 && (at = find_op(f, MOTE_OP_HANGUP, c->fd)) >= 0)
				complete(f, fake_take(&f->engine, (unsigned int)at).tag, POLLHUP);
			tick(f);
			mote_server_flush(f->server);
			submit(f);
			for (unsigned int s = 0; s < f->nsends; s++)
				complete(f, f->sends[s].tag, f->sends[s].res);
			f->nsends = 0;
			mote_server_flush(f->server);
			submit(f);
		}
		assert_int_equal(c->fd, -1);
		mote_server_stats(f->server, &stats);
		assert_int_equal(stats.subscribers, 0);
		assert_int_equal(mote_server_subscribed(f->server), 0);
	}
	assert_int_equal(f->engine.n, 1); /* the accept */
	fixture_free(f);
}

/* `echo poll process | nc`: all of it, and then the end. */
static void test_half_closed(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c = connect_client(f);

	fill_source(f, ROWS, 400);
	say(f, c, "poll process\n");
	feed(f, c, "", 0);
	settle(f);
	assert_false(c->closed);
	tick(f);
	settle(f);
	assert_true(c->closed);
	assert_int_equal(c->keys, 1);
	same_rows(f, c);
	fixture_free(f);
}

static void hang_up(struct fixture *f, struct client *c)
{
	int at = find_op(f, MOTE_OP_HANGUP, c->fd);

	assert_true(at >= 0);
	complete(f, fake_take(&f->engine, (unsigned int)at).tag, POLLRDHUP | POLLHUP);
	settle(f);
	assert_true(c->closed);
}

/* One that is gone gives its slot back at once, though nothing is due for it. */
static void test_gone(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c = connect_client(f), *half = NULL;

	say(f, c, "subscribe process interval=1h\n");
	settle(f);
	tick(f);
	settle(f);
	feed(f, c, "", 0);
	hang_up(f, c);
	assert_int_equal(mote_server_subscribed(f->server), 0);

	/* One that half-closed stays; who knocks at a full house has it asked again. */
	for (int i = 0; i < CLIENTS - 1; i++) {
		c = connect_client(f);
		say(f, c, "subscribe process interval=1h\n");
		settle(f);
		half = half ? half : c;
	}
	feed(f, half, "", 0);
	settle(f);
	assert_false(half->closed);
	connect_client(f);
	hang_up(f, half);
	fixture_free(f);
}

/* Silent connections give way, in whatever state they are; nobody's slot is lost. */
static void test_silent_give_way(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct mote_server_stats stats;
	struct client *c;

	for (int i = 0; i < CLIENTS - 1; i++) {
		c = connect_client(f);
		settle(f);
		/* It polls what is not sampled yet, and half-closes: nothing is under way. */
		say(f, c, "poll process\n");
		settle(f);
		feed(f, c, "", 0);
	}
	c = connect_client(f); /* refused, but the oldest goes */
	settle(f);
	assert_true(c->closed);
	mote_server_stats(f->server, &stats);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.subscribers, CLIENTS - 2);
	c = connect_client(f);
	settle(f);
	assert_int_equal(c->hellos, 1);
	fixture_free(f);
}

/* A client that subscribed to what is absent here and went away must not stay for ever. */
static void test_absent_stream_half_closed(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c = connect_client(f);

	say(f, c, "subscribe netdev interval=100ms\n");
	settle(f);
	tick(f);
	settle(f);
	feed(f, c, "", 0);
	tick(f);
	settle(f);
	assert_true(c->closed);
	fixture_free(f);
}

/* No descriptors left: accept fails at once. It must not be tried in a circle. */
static void test_accept_fails(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c;
	int at = find_op(f, MOTE_OP_ACCEPT, -1);

	complete(f, fake_take(&f->engine, (unsigned int)at).tag, -EMFILE);
	settle(f);
	assert_int_equal(find_op(f, MOTE_OP_ACCEPT, -1), -1);
	tick(f);
	c = connect_client(f); /* has its accept again */
	settle(f);
	assert_int_equal(c->hellos, 1);
	at = find_op(f, MOTE_OP_ACCEPT, -1);
	complete(f, fake_take(&f->engine, (unsigned int)at).tag, -ECONNABORTED);
	assert_true(find_op(f, MOTE_OP_ACCEPT, -1) >= 0);
	assert_int_equal(f->accept_errors, 0);
	fixture_free(f);
}

/* The parts of a poll were all queued, then evicted for others: it is owed all the same. */
static void test_poll_evicted(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 16384, 64);
	struct client *c = connect_client(f), *other = connect_client(f);

	fill_source(f, 12, 400);
	settle(f);
	c->space = 0;
	say(f, c, "poll process\n");
	settle(f); /* the reply blocks it */
	say(f, other, "subscribe process interval=100ms\n");
	c->space = 20;
	tick(f);
	settle(f);
	c->space = 0;
	for (int i = 0; i < 12; i++) {
		fill_source(f, 12, 400);
		for (int k = 0; k < 12; k++)
			f->source.changed[k] = f->now - f->now % (100 * MS) + 100 * MS;
		tick(f);
		settle(f);
	}
	c->space = PENDING;
	settle(f);
	tick(f);
	settle(f);
	assert_true(c->lost_frames > 0);
	same_rows(f, c);
	fixture_free(f);
}

/* Between two frames of one update more ended than is remembered. */
static void test_forgot_while_open(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c = connect_client(f);

	fill_source(f, ROWS, 500);
	say(f, c, "subscribe process interval=100ms\n");
	tick(f);
	settle(f);
	same_rows(f, c);
	for (unsigned int i = 0; i < ROWS; i++)
		source_set(&f->source, i, 7, f->now - f->now % (100 * MS) + 100 * MS);
	for (uint32_t i = 400; i < 440; i++)
		source_end(&f->source, i, f->now - f->now % (100 * MS) + 100 * MS);
	tick(f);
	mote_server_flush(f->server);
	submit(f);
	tell(f);
	for (uint32_t i = 0; i < 60; i++)
		source_end(&f->source, i, f->now);
	settle(f);
	tick(f);
	settle(f);
	same_rows(f, c);
	fixture_free(f);
}

/*
 * In each interval more ends than is remembered, and a keyframe takes longer than one: it comes to
 * its end all the same, and so does the one that is owed for it.
 */
static void test_forgot_during_keyframe(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c = connect_client(f);

	fill_source(f, ROWS, 500);
	settle(f);
	say(f, c, "subscribe process interval=100ms\n");
	for (int i = 0; i < 60; i++) {
		uint64_t next = f->now - f->now % (100 * MS) + 100 * MS;

		for (uint32_t k = 0; k < ENDED + 10; k++) {
			source_end(&f->source, k, next);
			source_set(&f->source, k, 7, next);
		}
		tick(f);
		c->space = 30000; /* of 256,000 */
		settle(f);
	}
	assert_in_range(c->keys, 4, 8);
	assert_true(c->whole >= c->keys - 1);
	/* Then it is quiet: what is on its way, one more, and that is all. */
	c->keys = c->whole = 0;
	c->space = PENDING;
	for (int i = 0; i < 10; i++) {
		tick(f);
		settle(f);
		if (i > 1)
			same_rows(f, c);
	}
	assert_in_range(c->keys, 1, 2);
	assert_in_range(c->whole, c->keys, c->keys + 1);
	fixture_free(f);
}

/* A completion of a connection that is gone is not its successor's. */
static void test_generation(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c = connect_client(f);
	uint64_t recv_tag, send_tag;

	recv_tag = f->engine.pushed[find_op(f, MOTE_OP_RECV, c->fd)].tag;
	settle(f);
	send_tag = mote_tag(MOTE_TAG_SEND, mote_tag_index(recv_tag), mote_tag_generation(recv_tag));
	feed(f, c, "", -ECONNRESET);
	settle(f);
	assert_true(c->closed);
	c = connect_client(f);
	complete(f, recv_tag, -ECONNRESET);
	complete(f, send_tag, 30);
	complete(f,
		 mote_tag(MOTE_TAG_WRITABLE, mote_tag_index(recv_tag),
			  mote_tag_generation(recv_tag)),
		 4);
	settle(f);
	assert_false(c->closed);
	assert_int_equal(c->hellos, 1);
	fixture_free(f);
}

static void random_request(struct fixture *f, struct client *c)
{
	static const char *const lines[] = {
		"subscribe process interval=100ms\n",
		"subscribe process interval=200ms\n",
		"unsubscribe process\n",
		"poll process\n",
		"interval 300ms\n",
		"ping\nping\n",
		"subscribe process,netdev\n",
		"what\n",
	};

	if (find_op(f, MOTE_OP_RECV, c->fd) >= 0)
		say(f, c, lines[rand() % 8]);
}

/* Any sequence of it all. In the end each client asks again and has what there is. */
static void test_random(void **state)
{
	static const uint32_t sizes[][2] = { { 16384, 16384 }, { 16384, 65536 }, { 65536, 65536 } };

	for (int seed = 0; seed < 60; seed++) {
		struct fixture *f = fixture_new(4096, sizes[seed % 3][0], sizes[seed % 3][1],
						(uint32_t)(32 + seed * 500));

		srand((unsigned int)seed);
		for (int i = 0; i < 5; i++)
			connect_client(f);
		fill_source(f, (unsigned int)(rand() % ROWS), (uint32_t)(rand() % 1000));
		for (int step = 0; step < 400; step++) {
			struct client *c = &f->clients[rand() % 5];
			uint64_t next = f->now - f->now % (100 * MS) + 100 * MS;

			c->space = rand() % 3 ? PENDING : (size_t)(rand() % 6000);
			if (c->fd >= 0 && rand() % 3 == 0)
				random_request(f, c);
			for (int k = rand() % 20; k > 0; k--)
				source_set(&f->source, (uint32_t)(rand() % ROWS),
					   (uint64_t)rand() + 1, next);
			for (int k = rand() % 6; k > 0; k--)
				source_end(&f->source, (uint32_t)(rand() % ROWS), next);
			tick(f);
			if (rand() % 2)
				settle(f);
		}
		for (int i = 0; i < 5; i++)
			f->clients[i].space = PENDING;
		settle(f);
		for (int i = 0; i < 5; i++) {
			assert_false(f->clients[i].closed);
			say(f, &f->clients[i], "subscribe process interval=100ms\n");
		}
		tick(f);
		settle(f);
		for (int i = 0; i < 5; i++)
			same_rows(f, &f->clients[i]);
		fixture_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello_and_requests),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_unread_replies),
		cmocka_unit_test(test_keyframe_then_changes),
		cmocka_unit_test(test_large_keyframe),
		cmocka_unit_test(test_many_keyframes),
		cmocka_unit_test(test_evicted_in_flight),
		cmocka_unit_test(test_slow_is_told),
		cmocka_unit_test(test_closing),
		cmocka_unit_test(test_half_closed),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_silent_give_way),
		cmocka_unit_test(test_absent_stream_half_closed),
		cmocka_unit_test(test_accept_fails),
		cmocka_unit_test(test_forgot_while_open),
		cmocka_unit_test(test_forgot_during_keyframe),
		cmocka_unit_test(test_poll_evicted),
		cmocka_unit_test(test_generation),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
