// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queue of process events: what is seen and when, records that are being written or were
 * discarded, what the event stream gives, and the connector's own buffer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>

#include <cmocka.h>

#include "events.h"
#include "parse.h"

#include "fake_engine.h"
#include "fake_ring.h"

#define SIZE 8192

/* What the event stream gave last; its texts are in `out`. */
static msgpack_object row[EVENT__FIELDS];
static msgpack_unpacked out;

struct fixture {
	struct fake_ring ring;
	struct mote_events events;
	struct mote_event_ctl ctl;
};

static int setup_at(void **state, uint64_t position)
{
	static struct fixture f;

	memset(&f.ctl, 0, sizeof(f.ctl));
	assert_int_equal(fake_ring_open(&f.ring, SIZE, position), 0);
	mote_events_open_ring(&f.events, &f.ring.ring, &f.ctl);
	*state = &f;
	return 0;
}

static int setup(void **state)
{
	return setup_at(state, 0);
}

/* A ring that others used before: positions are large, and near its end. */
static int setup_used(void **state)
{
	return setup_at(state, (1ull << 40) + SIZE - 72);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	msgpack_unpacked_destroy(&out);
	mote_events_close(&f->events);
	fake_ring_close(&f->ring);
	return 0;
}

static uint32_t *put(struct fixture *f, uint32_t pid, uint64_t time, uint32_t bits)
{
	struct mote_event event = {
		.kind = MOTE_EVENT_FORK, .pid = pid, .ppid = 1, .time = time, .start = 5
	};
	uint32_t *header = fake_ring_put(&f->ring, &event, sizeof(event), bits);

	assert_non_null(header);
	return header;
}

static void expect(struct fixture *f, uint64_t until, uint32_t pid)
{
	const struct mote_event *event = mote_events_next(&f->events, until);

	if (!pid) {
		assert_null(event);
		return;
	}
	assert_non_null(event);
	assert_int_equal(event->pid, pid);
}

static void test_until(void **state)
{
	struct fixture *f = *state;

	expect(f, 100, 0);
	put(f, 1, 10, 0);
	put(f, 2, 20, 0);
	put(f, 3, 30, 0);
	expect(f, 9, 0);
	expect(f, 20, 1);
	expect(f, 20, 2);
	expect(f, 20, 0);
	expect(f, 20, 0);
	expect(f, 30, 3);
	expect(f, UINT64_MAX, 0);
}

/* A record that is being written holds up what is behind it; a discarded one is passed over. */
static void test_busy_and_discarded(void **state)
{
	struct fixture *f = *state;
	uint32_t *busy;

	put(f, 1, 10, FAKE_DISCARD);
	put(f, 2, 10, FAKE_DISCARD);
	busy = put(f, 3, 10, FAKE_BUSY);
	put(f, 4, 10, 0);
	put(f, 5, 10, FAKE_DISCARD);
	expect(f, 100, 0);
	expect(f, 100, 0);
	*busy &= ~FAKE_BUSY;
	expect(f, 100, 3);
	expect(f, 100, 4);
	expect(f, 100, 0);
	mote_events_release(&f->events, f->events.seen);
	assert_int_equal(f->ring.consumer, f->ring.producer); /* the discarded one's room too */
}

/* Round and round: nothing is lost, room is given back up to the position only. */
static void test_wraps(void **state)
{
	struct fixture *f = *state;
	struct mote_fill fill;
	uint64_t head;

	for (uint32_t i = 1; i < 1000; i += 3) {
		put(f, i, i, 0);
		put(f, i + 1, i, i % 5 ? 0 : FAKE_DISCARD);
		expect(f, i, i);
		head = f->events.seen;
		put(f, i + 2, i, 0);
		if (i % 5)
			expect(f, i, i + 1);
		expect(f, i, i + 2);
		expect(f, i, 0);
		mote_events_release(&f->events, head);
		assert_int_equal(f->ring.consumer, head);
		mote_events_release(&f->events, f->events.seen);
		assert_int_equal(f->ring.consumer, f->ring.producer);
	}
	mote_events_fill(&f->events, &fill);
	assert_int_equal(fill.size, SIZE);
	assert_int_equal(fill.fill, 0);
	assert_int_equal(fill.peak, 3 * 56);
}

static void test_dropped(void **state)
{
	struct fixture *f = *state;

	f->ctl.dropped[MOTE_EVENT_FORK] = 3;
	f->ctl.dropped[MOTE_EVENT_FINAL] = 4;
	assert_int_equal(mote_events_dropped(&f->events), 7);
}

/* Takes what it gives next; false: nothing. */
static bool next_row(struct mote_events *events, uint64_t since, uint64_t *cursor)
{
	static char buf[4096];
	struct mote_writer writer;
	msgpack_packer pk;

	mote_writer_init(&writer, &pk, buf, sizeof(buf));
	if (!mote_events_source.row(events, since, cursor, &pk))
		return false;
	assert_false(writer.full);
	msgpack_unpacked_destroy(&out);
	msgpack_unpacked_init(&out);
	assert_int_equal(msgpack_unpack_next(&out, buf, writer.len, NULL), MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(out.data.via.array.size, EVENT__FIELDS);
	memcpy(row, out.data.via.array.ptr, sizeof(row));
	return true;
}

static bool is_text(const msgpack_object *object, const char *text)
{
	return object->type == MSGPACK_OBJECT_STR && object->via.str.size == strlen(text) &&
	       !memcmp(object->via.str.ptr, text, strlen(text));
}

/* The stream gives what the process table has seen, and no more. */
static void test_rows_follow_seen(void **state)
{
	struct fixture *f = *state;
	uint64_t cursor = mote_events_source.head(&f->events);

	put(f, 1, 10, 0);
	put(f, 2, 10, FAKE_DISCARD);
	put(f, 3, 20, 0);
	assert_false(next_row(&f->events, 1, &cursor));
	expect(f, 10, 1);
	expect(f, 10, 0);
	assert_true(next_row(&f->events, 1, &cursor));
	assert_int_equal(row[EVENT_PID].via.u64, 1);
	assert_false(next_row(&f->events, 1, &cursor));
	expect(f, 20, 3);
	assert_false(next_row(&f->events, 0, &cursor)); /* a keyframe has none */
	assert_true(next_row(&f->events, 1, &cursor));
	assert_int_equal(row[EVENT_PID].via.u64, 3);
	assert_false(next_row(&f->events, 1, &cursor));
	assert_int_equal(cursor, mote_events_source.head(&f->events));
	mote_events_source.trim(&f->events, cursor);
	assert_int_equal(f->ring.consumer, f->ring.producer);
}

static void test_patient(void **state)
{
	struct fixture *f = *state;

	assert_true(mote_events_source.patient(&f->events));
	for (int i = 0; i < SIZE / 2 / 56 + 1; i++)
		put(f, 1, 1, 0);
	assert_false(mote_events_source.patient(&f->events));
}

static void test_exec_row(void **state)
{
	struct fixture *f = *state;
	struct mote_event_exec exec = {
		.event = { .kind = MOTE_EVENT_EXEC,
			   .pid = 7,
			   .ppid = 6,
			   .uid = 5,
			   .time = 9,
			   .start = 3 * MOTE_NS_PER_TICK + 1,
			   .comm = "0123456789abcde" },
		.argv_len = 7,
		.argv = "ls\0-l\0x",
	};
	uint64_t cursor = mote_events_source.head(&f->events);

	/* The record is cut after argv. */
	fake_ring_put(&f->ring, &exec, offsetof(struct mote_event_exec, argv) + 7, 0);
	expect(f, 9, 7);
	assert_true(next_row(&f->events, 1, &cursor));
	assert_true(is_text(&row[EVENT_TYPE], "exec"));
	assert_int_equal(row[EVENT_START].via.u64, 3);
	assert_int_equal(row[EVENT_PPID].via.u64, 6);
	assert_true(is_text(&row[EVENT_COMM], "0123456789abcde"));
	assert_int_equal(row[EVENT_ARGV].via.array.size, 3);
	assert_true(is_text(&row[EVENT_ARGV].via.array.ptr[1], "-l"));
	assert_true(is_text(&row[EVENT_ARGV].via.array.ptr[2], "x"));
	assert_int_equal(row[EVENT_EXIT_CODE].type, MSGPACK_OBJECT_NIL);
	assert_int_equal(row[EVENT_UTIME].type, MSGPACK_OBJECT_NIL);
}

static void test_exit_row(void **state)
{
	struct fixture *f = *state;
	struct mote_event_exit event = {
		.event = { .kind = MOTE_EVENT_EXIT, .pid = 7, .time = 9, .start = 1 },
		.exit_code = 256,
		.counts = { .utime = 30, .stime = 10, .run_time = 80, .nivcsw = 4 },
	};
	uint64_t cursor = mote_events_source.head(&f->events);

	fake_ring_put(&f->ring, &event, sizeof(event), 0);
	expect(f, 9, 7);
	assert_true(next_row(&f->events, 1, &cursor));
	assert_true(is_text(&row[EVENT_TYPE], "exit"));
	assert_int_equal(row[EVENT_EXIT_CODE].via.u64, 256);
	assert_int_equal(row[EVENT_UTIME].via.u64, 60);
	assert_int_equal(row[EVENT_STIME].via.u64, 20);
	assert_int_equal(row[EVENT_NIVCSW].via.u64, 4);
	assert_int_equal(row[EVENT_ARGV].type, MSGPACK_OBJECT_NIL);
}

/* A socket: of its process nothing is known but what its slot has. */
static void test_socket_row(void **state)
{
	struct fixture *f = *state;
	struct mote_event_socket event = {
		.event = { .kind = MOTE_EVENT_CLOSED, .pid = 7, .uid = 5, .time = 9 },
		.socket = 77,
		.ends = { .local = { 127, 0, 0, 1 },
			  .local_port = 80,
			  .family = 2,
			  .protocol = MOTE_TCP,
			  .state = 10 },
	};
	uint64_t cursor = mote_events_source.head(&f->events);

	fake_ring_put(&f->ring, &event, sizeof(event), 0);
	event.event.kind = MOTE_EVENT_OPENED;
	event.event.pid = 0;
	event.socket = 0;
	event.ends.remote_port = 1;
	event.ends.protocol = MOTE_UDP;
	fake_ring_put(&f->ring, &event, sizeof(event), 0);
	expect(f, 9, 7);
	assert_non_null(mote_events_next(&f->events, 9));
	assert_true(next_row(&f->events, 1, &cursor));
	assert_true(is_text(&row[EVENT_TYPE], "socket_closed"));
	assert_int_equal(row[EVENT_PID].via.u64, 7);
	assert_int_equal(row[EVENT_UID].via.u64, 5);
	assert_int_equal(row[EVENT_PPID].type, MSGPACK_OBJECT_NIL);
	assert_int_equal(row[EVENT_UTIME].type, MSGPACK_OBJECT_NIL);
	assert_int_equal(row[EVENT_SOCKET].via.u64, 77);
	assert_true(is_text(&row[EVENT_PROTOCOL], "tcp"));
	assert_true(is_text(&row[EVENT_LOCAL_ADDRESS], "127.0.0.1"));
	assert_int_equal(row[EVENT_LOCAL_PORT].via.u64, 80);
	assert_int_equal(row[EVENT_REMOTE_ADDRESS].type, MSGPACK_OBJECT_NIL);
	assert_true(is_text(&row[EVENT_STATE], "LISTEN"));
	assert_true(next_row(&f->events, 1, &cursor));
	assert_true(is_text(&row[EVENT_TYPE], "socket_opened"));
	assert_int_equal(row[EVENT_PID].type, MSGPACK_OBJECT_NIL);
	assert_int_equal(row[EVENT_SOCKET].type, MSGPACK_OBJECT_NIL);
	assert_true(is_text(&row[EVENT_REMOTE_ADDRESS], "0.0.0.0"));
	assert_true(is_text(&row[EVENT_STATE], "UNCONN"));
}

/* The connector: its datagrams become events; what has no room is counted. */
static uint32_t datagram(void *buf, uint32_t pid)
{
	struct nlmsghdr *nl = buf;
	struct cn_msg *cn = NLMSG_DATA(nl);
	struct proc_event event = { .what = PROC_EVENT_EXIT, .timestamp_ns = 50 };

	event.event_data.exit.process_pid = (int)pid;
	event.event_data.exit.process_tgid = (int)pid;
	memset(buf, 0, 256);
	cn->id.idx = CN_IDX_PROC;
	cn->id.val = CN_VAL_PROC;
	cn->len = sizeof(event);
	memcpy(cn->data, &event, sizeof(event));
	nl->nlmsg_type = NLMSG_DONE;
	nl->nlmsg_len = NLMSG_LENGTH(sizeof(*cn) + sizeof(event));
	return nl->nlmsg_len;
}

static void test_connector(void **state)
{
	static struct fake_engine fake;
	struct mote_events events;
	unsigned int n, seen = 0;

	fake_engine_init(&fake, true);
	assert_int_equal(mote_events_open_connector(&events, socket(AF_UNIX, SOCK_DGRAM, 0), 4096),
			 0);
	n = mote_events_push(&events, &fake.base, 3);
	assert_int_equal(n, fake.n);
	assert_int_equal(n, 64);
	for (int i = 0; fake.n; i++) {
		struct mote_sqe sqe = fake_take(&fake, 0);

		assert_int_equal(sqe.op, MOTE_OP_RECV);
		assert_true(sqe.flags & MOTE_SQE_NOWAIT);
		mote_events_complete(&events, mote_tag_generation(sqe.tag),
				     i < 3 ? (int)datagram(sqe.buf, 100 + (uint32_t)i) : -EAGAIN);
	}
	for (; seen < 3; seen++)
		assert_int_equal(mote_events_next(&events, 60)->pid, 100 + seen);
	assert_null(mote_events_next(&events, 60));
	assert_int_equal(mote_events_dropped(&events), 0);
	assert_int_equal(mote_events_push_more(&events, &fake.base, 3), 0);
	/* All were used: more at once, as long as that goes on, but not for ever. */
	n = mote_events_push(&events, &fake.base, 3);
	assert_int_equal(n, 64);
	for (unsigned int round = 0; n; round++) {
		while (fake.n) {
			struct mote_sqe sqe = fake_take(&fake, 0);

			mote_events_complete(&events, mote_tag_generation(sqe.tag),
					     (int)datagram(sqe.buf, 5));
		}
		n = mote_events_push_more(&events, &fake.base, 3);
		assert_int_equal(n, round < 32 ? 128 : 0);
	}
	/* Events were lost: what is behind them is read all the same. */
	mote_events_push(&events, &fake.base, 3);
	mote_events_complete(&events, 0, -ENOBUFS);
	assert_int_equal(mote_events_push_more(&events, &fake.base, 3), 128);
	assert_true(mote_events_dropped(&events) > 0);
	mote_events_close(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_until, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_and_discarded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_and_discarded, setup_used, teardown),
		cmocka_unit_test_setup_teardown(test_wraps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wraps, setup_used, teardown),
		cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_follow_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_follow_seen, setup_used, teardown),
		cmocka_unit_test_setup_teardown(test_patient, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_row, setup, teardown),
		cmocka_unit_test_setup_teardown(test_socket_row, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exit_row, setup, teardown),
		cmocka_unit_test(test_connector),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
