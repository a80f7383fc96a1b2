// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The server with an engine whose completions the test feeds by hand, and clients that decode
 * every byte they get. The stream `process` is a source made here; whatever is dropped, evicted
 * or cut on the way, a client that has read everything has exactly the source's rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server.h"

#include "fake_engine.h"

#define MS      1000000ull
#define S       1000000000ull
#define ROWS    512
#define ENDED   64
#define CLIENTS 8
#define STREAM  MOTE_STREAM_PROCESS
#define PENDING 100000000

/* The source: row `i` is [i, value, padding]; what ended is remembered newest last. */
struct source {
	uint64_t value[ROWS], changed[ROWS]; /* value 0: no such row */
	uint64_t ended_time[ENDED], forgot, ended_total;
	uint32_t ended_id[ENDED], ended_n, pad;
};

static bool source_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	static const char pad[8192];
	const struct source *source = ctx;

	for (uint64_t i = *cursor; i < ROWS; i++) {
		if (!source->value[i] || source->changed[i] <= since)
			continue;
		*cursor = i + 1;
		msgpack_pack_array(pk, 3);
		msgpack_pack_uint64(pk, i);
		msgpack_pack_uint64(pk, source->value[i]);
		msgpack_pack_bin(pk, source->pad);
		msgpack_pack_bin_body(pk, pad, source->pad);
		return true;
	}
	return false;
}

static bool source_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct source *source = ctx;

	for (uint64_t i = *cursor; i < source->ended_n; i++) {
		if (source->ended_time[i] <= since)
			continue;
		*cursor = i + 1;
		msgpack_pack_array(pk, 1);
		msgpack_pack_uint64(pk, source->ended_id[i]);
		return true;
	}
	return false;
}

static void source_totals(void *ctx, msgpack_packer *pk)
{
	msgpack_pack_uint64(pk, ((const struct source *)ctx)->ended_total);
}

static bool source_forgot(void *ctx, uint64_t since)
{
	return ((const struct source *)ctx)->forgot > since;
}

static const struct mote_source_ops source_ops = {
	.row = source_row,
	.ended = source_ended,
	.totals = source_totals,
	.forgot = source_forgot,
};

static void source_end(struct source *source, uint32_t id, uint64_t now)
{
	if (!source->value[id])
		return;
	if (source->ended_n == ENDED) {
		source->forgot = source->ended_time[0];
		memmove(source->ended_time, source->ended_time + 1, (ENDED - 1) * sizeof(uint64_t));
		memmove(source->ended_id, source->ended_id + 1, (ENDED - 1) * sizeof(uint32_t));
		source->ended_n--;
	}
	source->ended_time[source->ended_n] = now;
	source->ended_id[source->ended_n++] = id;
	source->ended_total += source->value[id];
	source->value[id] = 0;
}

static void source_set(struct source *source, uint32_t id, uint64_t value, uint64_t now)
{
	source->value[id] = value;
	source->changed[id] = now;
}

struct client {
	int fd, peer; /* the server's end and ours; -1: not connected, or closed by the server */
	bool closed;
	size_t space; /* what the socket takes now */
	char in[1 << 20];
	size_t len;
	uint64_t value[ROWS], totals;
	unsigned int hellos, replies, notes, keys, updates, ended, frames;
	int code;
	char text[160];
	uint64_t lost_frames;
	uint64_t sequence;
};

struct fixture {
	struct mote_options options;
	struct fake_engine engine;
	struct source source;
	struct mote_source sources[MOTE_STREAMS];
	struct mote_server *server;
	char *hello;
	uint32_t hello_len;
	uint64_t now;
	struct client clients[CLIENTS];
	/* Results of sends that were made, not told yet. */
	struct mote_cqe sends[CLIENTS];
	unsigned int nsends, accept_errors;
};

static struct fixture *fixture_new(uint32_t frame, uint32_t queue, uint32_t arena, uint32_t hello)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	signal(SIGIO, SIG_IGN);
	mote_options_default(&f->options);
	f->options.socket_frame = frame;
	f->options.socket_queue = queue;
	f->options.socket_arena = arena;
	f->options.socket_subscribers = CLIENTS - 1;
	fake_engine_init(&f->engine, true);
	f->sources[STREAM] = (struct mote_source){ &source_ops, &f->source };
	f->hello_len = hello;
	f->hello = calloc(1, hello);
	assert_non_null(f->hello);
	mote_frame_header(f->hello, hello, MOTE_FRAME_HELLO, 0, 0, 0, 0);
	f->now = 100 * S;
	f->server = mote_server_new(&f->options, &f->engine.base, -1, f->sources, f->hello, hello);
	assert_non_null(f->server);
	for (int i = 0; i < CLIENTS; i++)
		f->clients[i].fd = f->clients[i].peer = -1;
	mote_server_start(f->server);
	return f;
}

static void fixture_free(struct fixture *f)
{
	mote_server_free(f->server);
	for (int i = 0; i < CLIENTS; i++) {
		if (f->clients[i].peer >= 0)
			close(f->clients[i].peer);
	}
	free(f->hello);
	free(f);
}

/* What one frame says. */
static void take_data(struct client *c, const struct mote_frame_header *header,
		      const msgpack_object *body)
{
	const msgpack_object_array *all = &body->via.array;

	assert_int_equal(body->type, MSGPACK_OBJECT_ARRAY);
	assert_int_equal(all->size, 4);
	if (header->stream != STREAM)
		return;
	if (header->flags & MOTE_FRAME_KEY) {
		memset(c->value, 0, sizeof(c->value));
		c->keys++;
	}
	for (uint32_t i = 0; i < all->ptr[1].via.array.size; i++) {
		const msgpack_object *row = all->ptr[1].via.array.ptr[i].via.array.ptr;

		assert_in_range(row[0].via.u64, 0, ROWS - 1);
		c->value[row[0].via.u64] = row[1].via.u64;
	}
	for (uint32_t i = 0; i < all->ptr[2].via.array.size; i++, c->ended++)
		c->value[all->ptr[2].via.array.ptr[i].via.array.ptr[0].via.u64] = 0;
	if (all->ptr[3].type != MSGPACK_OBJECT_NIL)
		c->totals = all->ptr[3].via.u64;
	assert_int_equal(all->ptr[3].type == MSGPACK_OBJECT_NIL,
			 (header->flags & MOTE_FRAME_MORE) != 0);
	c->sequence = header->sequence;
	c->updates++;
}

static void take_frame(struct client *c, const struct mote_frame_header *header, const char *body)
{
	msgpack_unpacked out;
	size_t at = 0;

	c->frames++;
	assert_in_range(header->type, MOTE_FRAME_HELLO, MOTE_FRAME_TYPES - 1);
	c->hellos += header->type == MOTE_FRAME_HELLO;
	assert_int_equal(c->hellos, 1);
	if (header->type == MOTE_FRAME_HELLO)
		return;
	msgpack_unpacked_init(&out);
	assert_int_equal(msgpack_unpack_next(&out, body, header->length, &at),
			 MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(at, header->length);
	if (header->type == MOTE_FRAME_DATA) {
		take_data(c, header, &out.data);
	} else if (header->type == MOTE_FRAME_DROPPED) {
		c->notes++;
		c->lost_frames = out.data.via.array.ptr[0].via.u64;
	} else {
		const msgpack_object *text = &out.data.via.array.ptr[1];

		c->replies++;
		c->code = (int)out.data.via.array.ptr[0].via.i64;
		snprintf(c->text, sizeof(c->text), "%.*s", (int)text->via.str.size,
			 text->via.str.ptr);
	}
	msgpack_unpacked_destroy(&out);
}

static void client_read(struct client *c)
{
	struct mote_frame_header header;
	size_t at = 0;

	while (c->len - at >= sizeof(header)) {
		memcpy(&header, c->in + at, sizeof(header));
		assert_int_equal(header.magic, MOTE_MAGIC);
		assert_int_equal(header.version, MOTE_PROTOCOL_VERSION);
		if (c->len - at - sizeof(header) < header.length)
			break;
		take_frame(c, &header, c->in + at + sizeof(header));
		at += sizeof(header) + header.length;
	}
	memmove(c->in, c->in + at, c->len - at);
	c->len -= at;
}

static struct client *client_of(struct fixture *f, int fd)
{
	for (int i = 0; i < CLIENTS; i++) {
		if (f->clients[i].fd == fd)
			return &f->clients[i];
	}
	return NULL;
}

static void complete(struct fixture *f, uint64_t tag, int res)
{
	struct mote_cqe cqe = { .tag = tag, .res = res };

	mote_server_complete(f->server, &cqe, ++f->now);
}

static int find_op(const struct fixture *f, enum mote_op op, int fd)
{
	for (unsigned int i = 0; i < f->engine.n; i++) {
		if (f->engine.pushed[i].op == op && (fd == -1 || f->engine.pushed[i].fd == fd))
			return (int)i;
	}
	return -1;
}

/* The kernel's part of a send: takes bytes while there is space. */
static int do_send(struct client *c, const struct msghdr *msg)
{
	size_t sum = 0;

	if (c->closed || c->peer < 0)
		return -EPIPE;
	if (!c->space)
		return -EAGAIN;
	for (size_t i = 0; i < msg->msg_iovlen && c->space; i++) {
		size_t n = msg->msg_iov[i].iov_len < c->space ? msg->msg_iov[i].iov_len : c->space;

		assert_true(c->len + n <= sizeof(c->in));
		memcpy(c->in + c->len, msg->msg_iov[i].iov_base, n);
		c->len += n;
		c->space -= n;
		sum += n;
	}
	return (int)sum;
}

/* What the engine does at a wait: sends are made, closes too; nothing is told yet. */
static void submit(struct fixture *f)
{
	for (unsigned int i = 0; i < f->engine.n;) {
		const struct mote_sqe *sqe = &f->engine.pushed[i];
		struct client *c = client_of(f, sqe->fd);

		if (sqe->op == MOTE_OP_SEND) {
			assert_non_null(c);
			assert_true(f->nsends < CLIENTS);
			f->sends[f->nsends++] = (struct mote_cqe){ sqe->tag, do_send(c, sqe->msg) };
			fake_take(&f->engine, i);
		} else if (sqe->op == MOTE_OP_CLOSE) {
			f->accept_errors += sqe->fd < 0;
			if (c) {
				/* No operation of it may be under way. */
				assert_int_equal(find_op(f, MOTE_OP_RECV, c->fd), -1);
				assert_int_equal(find_op(f, MOTE_OP_WRITABLE, c->fd), -1);
				assert_int_equal(find_op(f, MOTE_OP_HANGUP, c->fd), -1);
				close(c->fd);
				c->fd = -1;
				c->closed = true;
			}
			fake_take(&f->engine, i);
		} else {
			i++;
		}
	}
}

/* Tells what sends did; and what a shutdown() or space ended. */
static void tell(struct fixture *f)
{
	char byte;

	for (unsigned int i = 0; i < f->nsends; i++)
		complete(f, f->sends[i].tag, f->sends[i].res);
	f->nsends = 0;
	for (int i = 0; i < CLIENTS; i++) {
		struct client *c = &f->clients[i];
		int at;

		if (c->fd < 0)
			continue;
		/* The server's shutdown() shows as the end of file on both sides. */
		if (recv(c->peer, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0 &&
		    (at = find_op(f, MOTE_OP_RECV, c->fd)) >= 0)
			complete(f, fake_take(&f->engine, (unsigned int)at).tag, 0);
		if (recv(c->peer, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0 &&
		    (at = find_op(f, MOTE_OP_HANGUP, c->fd)) >= 0)
			complete(f, fake_take(&f->engine, (unsigned int)at).tag, POLLHUP);
		if ((c->space || recv(c->peer, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0) &&
		    (at = find_op(f, MOTE_OP_WRITABLE, c->fd)) >= 0)
			complete(f, fake_take(&f->engine, (unsigned int)at).tag, 4);
	}
}

/* Turns of the loop until nothing more goes out at once. */
static void settle(struct fixture *f)
{
	int turns = 0;

	do {
		mote_server_flush(f->server);
		submit(f);
		tell(f);
		for (int i = 0; i < CLIENTS; i++)
			client_read(&f->clients[i]);
		assert_true(++turns < 5000);
	} while (f->nsends || mote_server_more(f->server) || find_op(f, MOTE_OP_SEND, -1) >= 0 ||
		 find_op(f, MOTE_OP_CLOSE, -1) >= 0);
	mote_server_flush(f->server);
	submit(f);
	tell(f);
	submit(f);
	for (int i = 0; i < CLIENTS; i++)
		client_read(&f->clients[i]);
}

static struct client *connect_client(struct fixture *f)
{
	int pair[2], at = find_op(f, MOTE_OP_ACCEPT, -1);
	struct client *c = client_of(f, -1);

	assert_non_null(c);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	if (c->peer >= 0)
		close(c->peer);
	memset(c, 0, sizeof(*c));
	c->fd = pair[0];
	c->peer = pair[1];
	c->space = PENDING;
	assert_true(at >= 0);
	complete(f, fake_take(&f->engine, (unsigned int)at).tag, pair[0]);
	return c;
}

/* Bytes arrive, or the end (len 0), or an error. */
static void feed(struct fixture *f, struct client *c, const char *text, int len)
{
	int at = find_op(f, MOTE_OP_RECV, c->fd);
	struct mote_sqe sqe;

	assert_true(at >= 0);
	sqe = fake_take(&f->engine, (unsigned int)at);
	assert_true(len <= (int)sqe.len);
	if (len > 0)
		memcpy(sqe.buf, text, (size_t)len);
	complete(f, sqe.tag, len);
}

static void say(struct fixture *f, struct client *c, const char *text)
{
	feed(f, c, text, (int)strlen(text));
}

static void tick(struct fixture *f)
{
	uint64_t before = f->now - f->now % (100 * MS), now = before + 100 * MS;

	f->now = now;
	mote_server_encode(f->server, before, now, now, ~0u, 0, false);
}

static void same_rows(const struct fixture *f, const struct client *c)
{
	for (unsigned int i = 0; i < ROWS; i++) {
		if (c->value[i] != f->source.value[i])
			fail_msg("row %u is %lu, should be %lu (client %d)", i,
				 (unsigned long)c->value[i], (unsigned long)f->source.value[i],
				 (int)(c - f->clients));
	}
	assert_int_equal(c->totals, f->source.ended_total);
}

static void fill_source(struct fixture *f, unsigned int n, uint32_t pad)
{
	f->source.pad = pad;
	for (unsigned int i = 0; i < n; i++)
		source_set(&f->source, i, 1000 + i, f->now);
}

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
	struct client *c = connect_client(f), *other = connect_client(f);

	fill_source(f, ROWS, 500);
	settle(f);
	say(f, c, "subscribe process interval=100ms\n");
	tick(f);
	mote_server_flush(f->server);
	c->space = 5000;
	submit(f);
	assert_true(f->nsends > 0);
	for (int i = 0; i < 60; i++)
		say(f, other,
		    "ping\nping\nping\nping\nping\nping\nping\nping\n"
		    "ping\nping\nping\nping\nping\nping\nping\nping\n");
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

/* One that is gone gives its slot back at once, though nothing is due for it. */
static void test_gone(void **state)
{
	struct fixture *f = fixture_new(4096, 16384, 65536, 64);
	struct client *c = connect_client(f);
	int at;

	say(f, c, "subscribe process interval=1h\n");
	settle(f);
	tick(f);
	settle(f);
	feed(f, c, "", 0);
	settle(f);
	assert_false(c->closed);
	at = find_op(f, MOTE_OP_HANGUP, c->fd);
	assert_true(at >= 0);
	complete(f, fake_take(&f->engine, (unsigned int)at).tag, POLLHUP);
	settle(f);
	assert_true(c->closed);
	assert_int_equal(mote_server_subscribed(f->server), 0);
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
		cmocka_unit_test(test_generation),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
