// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Connections, see server.h. Everything is allocated by mote_server_new().
 * A client that is slow, silent, half-closed or wrong costs its slot and nothing else: sends never
 * wait, what does not fit its queue is dropped and counted, and a keyframe mends it.
 */
#include "server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listen.h"
#include "server_impl.h"
#include "wake.h"

#define UNREAD_MAX (MOTE_QUEUE_FRAMES / 4) /* frames: a receive brings a hundred pings */

static void evict(void *ctx, uint32_t id)
{
	struct mote_server *server = ctx;

	unsigned int i;

	mote_for_each_bit (i, server->present)
		mote_subscriber_evict(&server->subs[i], server->arena, id);
}

struct mote_server *mote_server_new(const struct mote_options *options, struct mote_engine *engine,
				    int listener, const struct mote_source sources[MOTE_STREAMS])
{
	struct mote_server *server = calloc(1, sizeof(*server));
	unsigned int n = options->socket_subscribers;

	if (!server)
		return NULL;
	*server = (struct mote_server){ .options = options,
					.engine = engine,
					.sources = sources,
					.listener = listener,
					.nsubs = n };
	server->subs = malloc(n * sizeof(*server->subs));
	server->copies = malloc(n * options->socket_frame);
	server->arena = mote_arena_new((uint32_t)options->socket_arena, evict, server);
	if (!server->subs || !server->copies || !server->arena) {
		mote_server_free(server);
		return NULL;
	}
	memset(server->subs, 0, n * sizeof(*server->subs));
	memset(server->copies, 0, n * options->socket_frame);
	for (unsigned int i = 0; i < n; i++) {
		server->subs[i].fd = -1;
		server->subs[i].copy = server->copies + i * options->socket_frame;
	}
	for (int i = 0; i < MOTE_STREAMS; i++)
		server->interval_ms[i] = mote_options_interval(options, (enum mote_stream_id)i);
	mote_classes_init(&server->classes, options->socket_classes);
	return server;
}

void mote_server_set_hello(struct mote_server *server, const char *hello, uint32_t len)
{
	server->hello = hello;
	server->hello_len = len;
}

void mote_server_free(struct mote_server *server)
{
	if (!server)
		return;
	for (unsigned int i = 0; server->subs && i < server->nsubs; i++) {
		if (server->subs[i].fd >= 0)
			close(server->subs[i].fd);
	}
	mote_arena_free(server->arena);
	free(server->subs);
	free(server->copies);
	free(server);
}

/* Pushes an operation; the queue always has room for the server's, see loop.c. */
void mote_server_push(struct mote_server *server, struct mote_subscriber *sub,
		      enum mote_tag_kind kind, struct mote_sqe sqe)
{
	uint32_t index = sub ? (uint32_t)(sub - server->subs) : 0;

	sqe.tag = mote_tag(kind, index, sub ? sub->generation : 0);
	sqe.slot = -1;
	if (mote_engine_push(server->engine, &sqe))
		mote_log(MOTE_LOG_ERROR,
			 "server: the submission queue is full: raise [loop] sq_entries");
}

void mote_server_accept(struct mote_server *server)
{
	mote_server_push(server, NULL, MOTE_TAG_ACCEPT,
			 (struct mote_sqe){ .op = MOTE_OP_ACCEPT, .fd = server->listener });
}

static void push_receive(struct mote_server *server, struct mote_subscriber *sub)
{
	sub->receiving = true;
	mote_server_push(server, sub, MOTE_TAG_RECV,
			 (struct mote_sqe){ .op = MOTE_OP_RECV,
					    .fd = sub->fd,
					    .buf = sub->line + sub->line_len,
					    .len = (uint32_t)sizeof(sub->line) - sub->line_len });
}

void mote_server_start(struct mote_server *server)
{
	mote_wake_watch(server->listener);
	mote_server_accept(server);
}

/* Whether it subscribed to anything that will bring frames. */
static bool is_fed(const struct mote_server *server, const struct mote_subscriber *sub)
{
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		if (sub->class_of[i] != MOTE_NO_CLASS && server->sources[i].ops)
			return true;
	}
	return false;
}

/* One that sends no more requests stays only while something is to come. */
static bool is_done(const struct mote_server *server, const struct mote_subscriber *sub)
{
	return sub->input_over && !is_fed(server, sub) && !sub->key_wanted &&
	       !mote_subscriber_pending(sub);
}

static bool subscribed(const struct mote_subscriber *sub)
{
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		if (sub->class_of[i] != MOTE_NO_CLASS)
			return true;
	}
	return false;
}

void mote_server_leave(struct mote_server *server, struct mote_subscriber *sub, unsigned int stream)
{
	if (sub->class_of[stream] == MOTE_NO_CLASS)
		return;
	mote_classes_leave(&server->classes, sub->class_of[stream], stream);
	sub->class_of[stream] = MOTE_NO_CLASS;
}

/* Gives the slot back once no operation of it is under way. */
static void finish_close(struct mote_server *server, struct mote_subscriber *sub)
{
	if (sub->receiving || sub->sending || sub->blocked || sub->asking)
		return;
	mote_server_push(server, sub, MOTE_TAG_CLOSE,
			 (struct mote_sqe){ .op = MOTE_OP_CLOSE, .fd = sub->fd });
	server->frames_sent += sub->frames_sent;
	server->bytes_sent += sub->bytes_sent;
	server->frames_dropped += sub->frames_dropped;
	server->bytes_dropped += sub->bytes_dropped;
	server->connected--;
	server->present &= ~(1ull << (sub - server->subs));
	sub->fd = -1;
	sub->generation++;
}

static void begin_close(struct mote_server *server, struct mote_subscriber *sub)
{
	if (sub->closing)
		return;
	sub->closing = true;
	for (unsigned int i = 0; i < MOTE_STREAMS; i++)
		mote_server_leave(server, sub, i);
	mote_subscriber_clear(sub, server->arena);
	sub->key_wanted = sub->key_begun = sub->key_again = sub->poll_wanted = 0;
	/* Ends the operations that wait, as close() would not. */
	if (sub->receiving || sub->blocked)
		shutdown(sub->fd, SHUT_RDWR);
}

static struct mote_subscriber *free_slot(struct mote_server *server)
{
	for (unsigned int i = 0; i < server->nsubs; i++) {
		if (server->subs[i].fd < 0)
			return &server->subs[i];
	}
	return NULL;
}

/* Silent connections must not keep others out: the oldest that asked for nothing goes. */
static void drop_oldest_silent(struct mote_server *server)
{
	struct mote_subscriber *oldest = NULL;

	for (unsigned int i = 0; i < server->nsubs; i++) {
		struct mote_subscriber *sub = &server->subs[i];

		if (!sub->closing && !subscribed(sub) && (!oldest || sub->since < oldest->since))
			oldest = sub;
	}
	if (!oldest)
		return;
	begin_close(server, oldest);
	finish_close(server, oldest); /* nothing of it may be under way */
}

/*
 * The end of its input is either that it half-closed and reads on, or that it is gone, which must
 * not keep its slot until something is due for it.
 */
static void ask_gone(struct mote_server *server, struct mote_subscriber *sub)
{
	sub->asking = true;
	mote_server_push(server, sub, MOTE_TAG_HANGUP,
			 (struct mote_sqe){ .op = MOTE_OP_HANGUP, .fd = sub->fd });
}

static void gone(struct mote_server *server, struct mote_subscriber *sub, int res)
{
	sub->asking = false;
	if (res < 0 || res & POLLHUP)
		begin_close(server, sub);
}

/* There is no slot free: those that half-closed may be gone by now, and silent ones give way. */
static void make_room(struct mote_server *server)
{
	for (unsigned int i = 0; i < server->nsubs; i++) {
		struct mote_subscriber *sub = &server->subs[i];

		if (sub->input_over && !sub->closing && !sub->asking)
			ask_gone(server, sub);
	}
	drop_oldest_silent(server);
}

static void refuse(struct mote_server *server, int fd, const char *why)
{
	server->refused++;
	mote_log_limited(&server->refused_limit, server->now, "a connection was refused: %s", why);
	mote_server_push(server, NULL, MOTE_TAG_CLOSE,
			 (struct mote_sqe){ .op = MOTE_OP_CLOSE, .fd = fd });
}

static void welcome(struct mote_server *server, struct mote_subscriber *sub, int fd)
{
	uint32_t generation = sub->generation + 1;
	char *copy = sub->copy;

	memset(sub, 0, sizeof(*sub));
	memset(sub->class_of, MOTE_NO_CLASS, sizeof(sub->class_of));
	sub->fd = fd;
	server->present |= 1ull << (sub - server->subs);
	sub->copy = copy;
	sub->generation = generation;
	sub->since = server->now;
	sub->rest = server->hello;
	sub->rest_len = server->hello_len;
	if (++server->connected > server->connected_peak)
		server->connected_peak = server->connected;
	mote_wake_watch(fd);
	push_receive(server, sub);
}

static void accepted(struct mote_server *server, int fd)
{
	struct mote_subscriber *sub = free_slot(server);

	/* One that fails for lack of descriptors or memory fails again at once, and for ever. */
	server->accept_later = fd < 0 && fd != -ECONNABORTED && fd != -EINTR && fd != -EAGAIN;
	if (server->accept_later) {
		server->refused++;
		mote_log_limited(&server->refused_limit, server->now,
				 "connections cannot be accepted: %s: trying again at each tick",
				 strerrordesc_np(-fd));
		return;
	}
	mote_server_accept(server);
	if (fd < 0)
		return;
	if (mote_peer_check(fd, server->options))
		refuse(server, fd, "its user is neither root, mote's own, nor in [socket] group");
	else if (!sub) {
		make_room(server);
		refuse(server, fd, "[socket] subscribers are connected already");
	} else {
		welcome(server, sub, fd);
	}
}

/* A frame of the subscriber's own. */
void mote_server_queue_own(struct mote_server *server, struct mote_subscriber *sub, uint32_t len,
			   unsigned int stream)
{
	uint32_t id = mote_arena_commit(server->arena, len, (uint8_t)stream);

	server->encoded += len;
	if (mote_subscriber_queue(sub, server->arena, id, server->options->socket_queue))
		mote_subscriber_lost(sub, stream, len);
	if (sub->queued_bytes > server->queue_peak)
		server->queue_peak = sub->queued_bytes;
}

void mote_server_reply(struct mote_server *server, struct mote_subscriber *sub, int code,
		       const char *text)
{
	char *buf = mote_arena_reserve(server->arena, MOTE_SMALL_FRAME);

	if (buf)
		mote_server_queue_own(server, sub,
				      mote_frame_reply(buf, MOTE_SMALL_FRAME, code, text,
						       server->now),
				      MOTE_STREAMS);
}

/*
 * Requests faster than their replies are read would cost as much time as the client likes: they
 * wait in its socket.
 */
static void hear(struct mote_server *server, struct mote_subscriber *sub)
{
	if (!sub->unheard || sub->closing || sub->count >= UNREAD_MAX)
		return;
	sub->unheard = false;
	push_receive(server, sub);
}

static void received(struct mote_server *server, struct mote_subscriber *sub, int res)
{
	sub->receiving = false;
	if (res > 0 && !sub->closing) {
		mote_server_request(server, sub, (uint32_t)res);
		sub->unheard = true;
		hear(server, sub);
		return;
	}
	if ((res == -EINTR || res == -EAGAIN) && !sub->closing) {
		push_receive(server, sub);
		return;
	}
	/* Half-closed: it wants to read on, if it asked for something. */
	sub->input_over = true;
	if (res < 0 || sub->closing || is_done(server, sub)) {
		begin_close(server, sub);
		return;
	}
	ask_gone(server, sub);
}

static void sent(struct mote_server *server, struct mote_subscriber *sub, int res)
{
	sub->sending = false;
	if (sub->closing)
		return;
	if (sub->torn || (res <= 0 && res != -EAGAIN && res != -EINTR)) {
		begin_close(server, sub);
	} else if (res > 0) {
		mote_subscriber_sent(sub, server->arena, (uint32_t)res);
	} else if (res == -EAGAIN) {
		sub->blocked = true;
		mote_server_push(server, sub, MOTE_TAG_WRITABLE,
				 (struct mote_sqe){ .op = MOTE_OP_WRITABLE, .fd = sub->fd });
	}
	if (is_done(server, sub))
		begin_close(server, sub);
	hear(server, sub);
}

void mote_server_complete(struct mote_server *server, const struct mote_cqe *cqe, uint64_t now)
{
	enum mote_tag_kind kind = mote_tag_kind(cqe->tag);
	struct mote_subscriber *sub = &server->subs[mote_tag_index(cqe->tag) % server->nsubs];

	server->now = now;
	if (kind == MOTE_TAG_ACCEPT)
		accepted(server, cqe->res);
	if (kind == MOTE_TAG_ACCEPT || kind == MOTE_TAG_CLOSE ||
	    sub->generation != mote_tag_generation(cqe->tag) || sub->fd < 0)
		return;
	if (kind == MOTE_TAG_RECV)
		received(server, sub, cqe->res);
	else if (kind == MOTE_TAG_SEND)
		sent(server, sub, cqe->res);
	else if (kind == MOTE_TAG_WRITABLE)
		sub->blocked = false;
	else if (kind == MOTE_TAG_HANGUP)
		gone(server, sub, cqe->res);
	if (sub->closing)
		finish_close(server, sub);
}

uint32_t mote_server_subscribed(const struct mote_server *server)
{
	return mote_classes_streams(&server->classes);
}

uint32_t mote_server_period_ms(const struct mote_server *server)
{
	return mote_classes_period_ms(&server->classes);
}

uint32_t mote_server_due(const struct mote_server *server, uint64_t before, uint64_t now)
{
	return mote_classes_due(&server->classes, before, now);
}

uint32_t mote_server_urgent(const struct mote_server *server)
{
	return server->urgent;
}

void mote_server_stats(const struct mote_server *server, struct mote_server_stats *stats)
{
	unsigned int i;

	*stats = (struct mote_server_stats){
		.subscribers = server->connected,
		.refused = server->refused,
		.request_errors = server->request_errors,
		.frames_sent = server->frames_sent,
		.bytes_sent = server->bytes_sent,
		.frames_dropped = server->frames_dropped,
		.bytes_dropped = server->bytes_dropped,
		.connections = { server->nsubs, server->connected, server->connected_peak,
				 server->refused },
		.queue = { server->options->socket_queue, 0, server->queue_peak, 0 },
	};
	mote_for_each_bit (i, server->present) {
		const struct mote_subscriber *sub = &server->subs[i];

		stats->frames_sent += sub->frames_sent;
		stats->bytes_sent += sub->bytes_sent;
		stats->frames_dropped += sub->frames_dropped;
		stats->bytes_dropped += sub->bytes_dropped;
		if (sub->queued_bytes > stats->queue.fill)
			stats->queue.fill = sub->queued_bytes;
	}
	stats->queue.dropped = stats->frames_dropped;
	mote_classes_fill(&server->classes, &stats->classes);
	mote_arena_fill(server->arena, &stats->arena);
}
