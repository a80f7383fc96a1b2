// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The event stream through the server: a client that reads has each event once and in order, at
 * any interval; one that does not read loses some, is told so, and keeps the buffer from nobody.
 */
#include "server_fixture.h"

static uint64_t made;

/* One more event, as the kernel makes it; false: no room. */
static bool make_event(struct fixture *f)
{
	struct mote_event_exec exec = {
		.event = { .kind = MOTE_EVENT_EXEC,
			   .pid = (uint32_t)made + 1,
			   .time = f->now,
			   .start = 1,
			   .comm = "x" },
		.argv_len = (uint16_t)(rand() % 300),
	};
	uint32_t len = (uint32_t)offsetof(struct mote_event_exec, argv) + exec.argv_len;

	if (!fake_ring_put(&f->ring, &exec, len, 0))
		return false;
	made++;
	return true;
}

/* A tick as the loop makes it: events are seen, and go out at once if there are any. */
static void event_tick(struct fixture *f)
{
	uint64_t before = f->now - f->now % (100 * MS), now = before + 100 * MS,
		 seen = f->events.seen;

	f->now = now;
	while (mote_events_next(&f->events, now))
		;
	mote_server_encode(f->server, before, now, now, ~0u,
			   seen != f->events.seen ? 1u << MOTE_STREAM_EVENT : 0, false);
}

static struct client *subscriber(struct fixture *f, const char *interval)
{
	struct client *c = connect_client(f);
	char line[80];

	snprintf(line, sizeof(line), "subscribe event interval=%s\n", interval);
	say(f, c, line);
	event_tick(f);
	settle(f);
	return c;
}

/* All that were made since the client came, each once. */
static void has_all(const struct client *c, uint64_t since)
{
	assert_int_equal(c->missed, 0);
	assert_int_equal(c->last_event, made);
	assert_int_equal(c->events, made - since);
	assert_int_equal(c->notes, 0);
}

static void test_each_once(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *a, *b;
	uint64_t since = made = 0;

	srand(1);
	a = subscriber(f, "100ms");
	b = subscriber(f, "10s");
	for (int i = 0; i < 300; i++) {
		for (int k = rand() % 25; k > 0; k--)
			assert_true(make_event(f));
		event_tick(f);
		settle(f);
		has_all(a, since);
		assert_int_equal(f->ring.consumer, f->ring.producer);
	}
	has_all(b, since);
	fixture_free(f);
}

/* What was there before a client came is not for it; the buffer is drained without clients too. */
static void test_newcomer(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *a;

	made = 0;
	for (int i = 0; i < 200; i++) {
		assert_true(make_event(f));
		event_tick(f);
		settle(f);
		assert_int_equal(f->ring.consumer, f->ring.producer);
	}
	a = subscriber(f, "100ms");
	assert_int_equal(a->events, 0);
	assert_true(make_event(f));
	event_tick(f);
	settle(f);
	assert_int_equal(a->events, 1);
	assert_int_equal(a->last_event, made);
	fixture_free(f);
}

/* One does not read: the other misses nothing, and the kernel always finds room. */
static void test_slow(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *fast, *slow;
	uint64_t since = made = 0;

	srand(2);
	fast = subscriber(f, "100ms");
	slow = subscriber(f, "100ms");
	for (int i = 0; i < 300; i++) {
		slow->space = rand() % 5 ? 0 : (size_t)rand() % 3000;
		for (int k = rand() % 20; k > 0; k--)
			assert_true(make_event(f));
		event_tick(f);
		settle(f);
		has_all(fast, since);
	}
	slow->space = PENDING;
	settle(f);
	event_tick(f);
	settle(f);
	assert_true(slow->missed > 0);
	assert_true(slow->notes > 0 && slow->lost_frames > 0);
	/* It goes on with what is new. */
	assert_true(make_event(f));
	event_tick(f);
	settle(f);
	assert_int_equal(slow->last_event, made);
	fixture_free(f);
}

/* Nobody reads for long, alone or with others: the buffer still takes new events. */
static void test_stuck(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c;
	unsigned int refused = 0;

	made = 0;
	c = subscriber(f, "100ms");
	c->space = 0;
	for (int i = 0; i < 400; i++) {
		for (int k = 0; k < 8; k++)
			refused += !make_event(f);
		event_tick(f);
		settle(f);
	}
	assert_int_equal(refused, 0);
	c->space = PENDING;
	settle(f);
	assert_true(make_event(f));
	event_tick(f);
	settle(f);
	assert_int_equal(c->last_event, made);
	assert_true(c->events + c->missed <= made);
	fixture_free(f);
}

/* It leaves in the middle of an update: nothing waits for it. */
static void test_leaves(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c, *other;

	made = 0;
	c = subscriber(f, "100ms");
	other = subscriber(f, "200ms");
	c->space = 0;
	for (int i = 0; i < 40; i++)
		make_event(f);
	event_tick(f);
	mote_server_flush(f->server);
	submit(f);
	feed(f, c, "", -ECONNRESET);
	settle(f);
	assert_true(c->closed);
	say(f, other, "unsubscribe event\n");
	for (int i = 0; i < 20; i++) {
		make_event(f);
		event_tick(f);
		settle(f);
	}
	assert_int_equal(f->ring.consumer, f->ring.producer);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_once), cmocka_unit_test(test_newcomer),
		cmocka_unit_test(test_slow),      cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
