/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One connection: what it asked for, the frames that wait for it, and what it lost. Its memory is
 * bounded and allocated at start; it never waits on its client.
 */
#ifndef MOTE_SUBSCRIBER_H
#define MOTE_SUBSCRIBER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "arena.h"
#include "frame.h"
#include "protocol.h"

#define MOTE_QUEUE_FRAMES 256 /* a power of two */
#define MOTE_SEND_VECTORS 32
#define MOTE_NO_CLASS     0xff

struct mote_subscriber {
	int fd; /* -1: the slot is free */
	uint32_t generation;
	uint64_t since; /* when it connected */
	/* Operations under way; blocked: waits until writable, asking: whether the peer is gone. */
	bool receiving, sending, blocked, asking;
	bool input_over; /* it sends no more requests; it may still read */
	bool unheard;    /* nothing is received until it has read replies */
	bool closing;

	uint8_t class_of[MOTE_STREAMS]; /* MOTE_NO_CLASS: not subscribed */
	uint32_t key_wanted;            /* streams whose keyframe is owed */
	uint32_t poll_wanted;           /* of these, those that were polled only */
	uint32_t key_begun;             /* of these, those whose keyframe is on its way */
	uint32_t key_again; /* of these, those that are owed one more when it has come to its end */
	uint32_t polled;    /* streams whose polled keyframe is in the queue to its end */
	struct mote_progress progress[MOTE_STREAMS];
	/* Of a begun keyframe; updates between its parts do not change it. */
	uint64_t key_sequence[MOTE_STREAMS];

	uint32_t queue[MOTE_QUEUE_FRAMES];
	uint32_t head, count;
	uint64_t queued_bytes;

	/* What was begun goes on from here: the hello frame, or a copy of a frame's rest. */
	const char *rest;
	uint32_t rest_len;
	char *copy; /* room for the rest of the largest frame */

	uint64_t frames_sent, bytes_sent, frames_dropped, bytes_dropped;
	bool tell_dropped;

	char line[MOTE_REQUEST_MAX];
	uint32_t line_len;
	bool line_too_long; /* the rest of a line is thrown away */

	uint32_t in_flight; /* frames at the queue's head that the send under way holds */
	bool torn;          /* one of them was evicted: what was sent is not known any more */
	struct msghdr msg;
	struct iovec vectors[MOTE_SEND_VECTORS];
};

/* Puts a frame at the end of the queue; -ENOBUFS if the queue would hold more than `limit` bytes.
 */
int mote_subscriber_queue(struct mote_subscriber *sub, struct mote_arena *arena, uint32_t id,
			  uint64_t limit);
/*
 * Takes a frame that is being evicted out of the queue; counts it as dropped. True if it had it. If
 * it was sent and the result is not told yet, the subscriber is `torn`: what follows would not join
 * what went out, so it must be closed when the result comes.
 */
bool mote_subscriber_evict(struct mote_subscriber *sub, struct mote_arena *arena, uint32_t id);
/* Counts a frame that it did not get, and owes it a keyframe of that stream. */
void mote_subscriber_lost(struct mote_subscriber *sub, unsigned int stream, uint32_t bytes);
/*
 * The same of an update. A keyframe that is on its way goes on, and one more follows: who loses
 * updates faster than a keyframe takes would never have a whole one.
 */
void mote_subscriber_missed(struct mote_subscriber *sub, unsigned int stream, uint32_t bytes);

/* Fills `msg` with what is to be sent next; false if there is nothing. */
bool mote_subscriber_gather(struct mote_subscriber *sub, const struct mote_arena *arena);
/* `sent` bytes of it have gone out. */
void mote_subscriber_sent(struct mote_subscriber *sub, struct mote_arena *arena, uint32_t sent);
/* Lets go of everything that waits. */
void mote_subscriber_clear(struct mote_subscriber *sub, struct mote_arena *arena);

static inline bool mote_subscriber_pending(const struct mote_subscriber *sub)
{
	return sub->rest_len || sub->count;
}

#endif
