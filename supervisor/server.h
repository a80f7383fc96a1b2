/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Subscribers and what they asked for. Frames are encoded once for each class, that is a stream at
 * an interval, and shared. The server makes no system call but getsockopt() and shutdown() at
 * accept; the rest goes through the engine.
 */
#ifndef MOTE_SERVER_H
#define MOTE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "frame.h"
#include "options.h"
#include "table.h"

struct mote_server;

struct mote_server_stats {
	uint64_t subscribers, refused, request_errors;
	uint64_t frames_sent, bytes_sent, frames_dropped, bytes_dropped;
	struct mote_fill connections, classes, arena, queue; /* queue: the fullest one */
};

/*
 * `sources` has one entry a stream; ops NULL: absent here, and its frames have no rows. Returns
 * NULL if there is no memory.
 */
struct mote_server *mote_server_new(const struct mote_options *options, struct mote_engine *engine,
				    int listener, const struct mote_source sources[MOTE_STREAMS]);
/* What a connection gets first: a whole frame that lives as long as the server. */
void mote_server_set_hello(struct mote_server *server, const char *hello, uint32_t len);
void mote_server_free(struct mote_server *server);

/* Makes the first accept; after the engine is there. */
void mote_server_start(struct mote_server *server);
/* Takes a completion of kind ACCEPT, RECV, SEND, WRITABLE, HANGUP or CLOSE. `now`: monotonic ns. */
void mote_server_complete(struct mote_server *server, const struct mote_cqe *cqe, uint64_t now);

/* Streams that have subscribers. */
uint32_t mote_server_subscribed(const struct mote_server *server);
/* The greatest interval that divides every subscriber's, in ms; 0: no subscribers. */
uint32_t mote_server_period_ms(const struct mote_server *server);
/* Streams of which a class is due in (before, now]. */
uint32_t mote_server_due(const struct mote_server *server, uint64_t before, uint64_t now);
/* Streams that should be sampled at once, as somebody waits for a first keyframe of them. */
uint32_t mote_server_urgent(const struct mote_server *server);

/*
 * Encodes what is due in (before, tick], sampled at `now`, and lets keyframes of the streams in
 * `sampled` be made. Streams in `at_once` go to all their classes, due or not. `gap`: the time
 * since the tick before is not what it should be.
 */
void mote_server_encode(struct mote_server *server, uint64_t before, uint64_t tick, uint64_t now,
			uint32_t sampled, uint32_t at_once, bool gap);

/*
 * Pushes the sends of all subscribers that can take some; returns how many completions are sure
 * to be there at the next wait. Keyframes of any size go on from here.
 */
unsigned int mote_server_flush(struct mote_server *server);
/* Whether another flush would send more at once. */
bool mote_server_more(const struct mote_server *server);

void mote_server_stats(const struct mote_server *server, struct mote_server_stats *stats);

#endif
