/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the server's files share: server.c has connections, server_request.c what they ask for,
 * server_publish.c what they get.
 */
#ifndef MOTE_SERVER_IMPL_H
#define MOTE_SERVER_IMPL_H

#include "arena.h"
#include "class.h"
#include "log.h"
#include "server.h"
#include "subscriber.h"
#include "tag.h"

#define MOTE_SMALL_FRAME 1024 /* replies and drop notes */

struct mote_server {
	const struct mote_options *options;
	struct mote_engine *engine;
	const struct mote_source *sources;
	const char *hello;
	uint32_t hello_len;
	uint32_t interval_ms[MOTE_STREAMS]; /* if a subscriber does not say */
	int listener;

	struct mote_subscriber *subs;
	unsigned int nsubs;
	uint64_t present; /* bit per slot that has a connection; there are at most 64 */
	struct mote_arena *arena;
	struct mote_classes classes;
	uint32_t urgent;
	uint64_t now;
	uint64_t encoded;   /* bytes since the last flush */
	unsigned int first; /* whose keyframes are encoded first, in turn */
	bool accept_later;  /* at the next tick: accept failed */

	uint64_t connected, connected_peak, refused, request_errors, queue_peak;
	/* Of connections that are gone. */
	uint64_t frames_sent, bytes_sent, frames_dropped, bytes_dropped;
	struct mote_limit refused_limit, dropped_limit;
	char *copies;
};

/* Pushes an operation of a connection, or of the server (`sub` NULL). */
void mote_server_push(struct mote_server *server, struct mote_subscriber *sub,
		      enum mote_tag_kind kind, struct mote_sqe sqe);
/* Accepts the next connection. */
void mote_server_accept(struct mote_server *server);
void mote_server_leave(struct mote_server *server, struct mote_subscriber *sub,
		       unsigned int stream);
/* Queues a frame of this connection alone, of `len` bytes that were reserved in the arena. */
void mote_server_queue_own(struct mote_server *server, struct mote_subscriber *sub, uint32_t len,
			   unsigned int stream);
void mote_server_reply(struct mote_server *server, struct mote_subscriber *sub, int code,
		       const char *text);
/* `len` bytes came in behind those of the line that are there. */
void mote_server_request(struct mote_server *server, struct mote_subscriber *sub, uint32_t len);

#endif
