/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The server with an engine whose completions the test feeds by hand, a source of rows and a log of
 * events made here, and clients that decode every byte they get.
 */
#ifndef SERVER_FIXTURE_H
#define SERVER_FIXTURE_H

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

#include "events.h"
#include "server.h"

#include "fake_engine.h"
#include "fake_ring.h"

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

static inline bool source_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
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

static inline bool source_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
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

static inline void source_totals(void *ctx, msgpack_packer *pk)
{
	msgpack_pack_uint64(pk, ((const struct source *)ctx)->ended_total);
}

static inline bool source_forgot(void *ctx, uint64_t since)
{
	return ((const struct source *)ctx)->forgot > since;
}

static const struct mote_source_ops source_ops = {
	.row = source_row,
	.ended = source_ended,
	.totals = source_totals,
	.forgot = source_forgot,
};

static inline void source_end(struct source *source, uint32_t id, uint64_t now)
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

static inline void source_set(struct source *source, uint32_t id, uint64_t value, uint64_t now)
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
	unsigned int hellos, replies, notes, keys, whole, updates, ended, frames;
	int code;
	char text[160];
	uint64_t lost_frames;
	uint64_t last_event, events, missed; /* numbered from 1: had, and left out */
	uint64_t sequence;
};

struct fixture {
	struct mote_options options;
	struct fake_engine engine;
	struct source source;
	struct mote_source sources[MOTE_STREAMS];
	struct fake_ring ring;
	struct mote_events events;
	struct mote_server *server;
	char *hello;
	uint32_t hello_len;
	uint64_t now;
	struct client clients[CLIENTS];
	/* Results of sends that were made, not told yet. */
	struct mote_cqe sends[CLIENTS];
	unsigned int nsends, accept_errors;
};

static inline struct fixture *fixture_new(uint32_t frame, uint32_t queue, uint32_t arena,
					  uint32_t hello)
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
	assert_int_equal(fake_ring_open(&f->ring, 16384, 0), 0);
	mote_events_open_ring(&f->events, &f->ring.ring, NULL);
	f->sources[MOTE_STREAM_EVENT] = (struct mote_source){ &mote_events_source, &f->events };
	f->hello_len = hello;
	f->hello = calloc(1, hello);
	assert_non_null(f->hello);
	mote_frame_header(f->hello, hello, MOTE_FRAME_HELLO, 0, 0, 0, 0);
	f->now = 100 * S;
	f->server = mote_server_new(&f->options, &f->engine.base, -1, f->sources);
	mote_server_set_hello(f->server, f->hello, hello);
	assert_non_null(f->server);
	for (int i = 0; i < CLIENTS; i++)
		f->clients[i].fd = f->clients[i].peer = -1;
	mote_server_start(f->server);
	return f;
}

static inline void fixture_free(struct fixture *f)
{
	mote_server_free(f->server);
	fake_ring_close(&f->ring);
	for (int i = 0; i < CLIENTS; i++) {
		if (f->clients[i].peer >= 0)
			close(f->clients[i].peer);
	}
	free(f->hello);
	free(f);
}

/* Each event comes once, in order; the pid is its number. */
static inline void take_events(struct client *c, const msgpack_object_array *rows)
{
	for (uint32_t i = 0; i < rows->size; i++) {
		uint64_t number = rows->ptr[i].via.array.ptr[EVENT_PID].via.u64;

		assert_true(number > c->last_event);
		c->missed += c->last_event ? number - c->last_event - 1 : 0;
		c->last_event = number;
		c->events++;
	}
}

/* What one frame says. */
static inline void take_data(struct client *c, const struct mote_frame_header *header,
			     const msgpack_object *body)
{
	const msgpack_object_array *all = &body->via.array;

	assert_int_equal(body->type, MSGPACK_OBJECT_ARRAY);
	assert_int_equal(all->size, 4);
	if (header->stream == MOTE_STREAM_EVENT)
		take_events(c, &all->ptr[1].via.array);
	if (header->stream != STREAM)
		return;
	if (header->flags & MOTE_FRAME_KEY) {
		memset(c->value, 0, sizeof(c->value));
		c->keys++;
	}
	c->whole += header->flags & (MOTE_FRAME_KEY | MOTE_FRAME_KEY_PART) &&
		    !(header->flags & MOTE_FRAME_MORE);
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

static inline void take_frame(struct client *c, const struct mote_frame_header *header,
			      const char *body)
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

static inline void client_read(struct client *c)
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

static inline struct client *client_of(struct fixture *f, int fd)
{
	for (int i = 0; i < CLIENTS; i++) {
		if (f->clients[i].fd == fd)
			return &f->clients[i];
	}
	return NULL;
}

static inline void complete(struct fixture *f, uint64_t tag, int res)
{
	struct mote_cqe cqe = { .tag = tag, .res = res };

	mote_server_complete(f->server, &cqe, ++f->now);
}

static inline int find_op(const struct fixture *f, enum mote_op op, int fd)
{
	for (unsigned int i = 0; i < f->engine.n; i++) {
		if (f->engine.pushed[i].op == op && (fd == -1 || f->engine.pushed[i].fd == fd))
			return (int)i;
	}
	return -1;
}

/* The kernel's part of a send: takes bytes while there is space. */
static inline int do_send(struct client *c, const struct msghdr *msg)
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
static inline void submit(struct fixture *f)
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
static inline void tell(struct fixture *f)
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
		if ((at = find_op(f, MOTE_OP_HANGUP, c->fd)) >= 0)
			complete(f, fake_take(&f->engine, (unsigned int)at).tag, POLLRDHUP);
		if ((c->space || recv(c->peer, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0) &&
		    (at = find_op(f, MOTE_OP_WRITABLE, c->fd)) >= 0)
			complete(f, fake_take(&f->engine, (unsigned int)at).tag, 4);
	}
}

/* Turns of the loop until nothing more goes out at once. */
static inline void settle(struct fixture *f)
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

static inline struct client *connect_client(struct fixture *f)
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
static inline void feed(struct fixture *f, struct client *c, const char *text, int len)
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

static inline void say(struct fixture *f, struct client *c, const char *text)
{
	feed(f, c, text, (int)strlen(text));
}

static inline void tick(struct fixture *f)
{
	uint64_t before = f->now - f->now % (100 * MS), now = before + 100 * MS;

	f->now = now;
	mote_server_encode(f->server, before, now, now, ~0u, 0, false);
}

static inline void same_rows(const struct fixture *f, const struct client *c)
{
	for (unsigned int i = 0; i < ROWS; i++) {
		if (c->value[i] != f->source.value[i])
			fail_msg("row %u is %lu, should be %lu (client %d)", i,
				 (unsigned long)c->value[i], (unsigned long)f->source.value[i],
				 (int)(c - f->clients));
	}
	assert_int_equal(c->totals, f->source.ended_total);
}

static inline void fill_source(struct fixture *f, unsigned int n, uint32_t pad)
{
	f->source.pad = pad;
	for (unsigned int i = 0; i < n; i++)
		source_set(&f->source, i, 1000 + i, f->now);
}

#endif
