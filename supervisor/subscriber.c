// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queue of one connection. Frames belong to the arena; a subscriber holds references. Sends
 * are made with MSG_DONTWAIT and so are over when the engine's wait returns; what was sent in part
 * is copied, so that no frame is ever held by the kernel.
 */
#include "subscriber.h"

#include <errno.h>
#include <string.h>

static uint32_t *queue_at(struct mote_subscriber *sub, uint32_t i)
{
	return &sub->queue[(sub->head + i) % MOTE_QUEUE_FRAMES];
}

int mote_subscriber_queue(struct mote_subscriber *sub, struct mote_arena *arena, uint32_t id,
			  uint64_t limit)
{
	uint32_t len = mote_arena_get(arena, id)->len;

	if (sub->count == MOTE_QUEUE_FRAMES || sub->queued_bytes + sub->rest_len + len > limit)
		return -ENOBUFS;
	*queue_at(sub, sub->count++) = id;
	sub->queued_bytes += len;
	mote_arena_ref(arena, id);
	return 0;
}

static void count_lost(struct mote_subscriber *sub, uint32_t bytes)
{
	sub->frames_dropped++;
	sub->bytes_dropped += bytes;
	sub->tell_dropped = true;
}

void mote_subscriber_missed(struct mote_subscriber *sub, unsigned int stream, uint32_t bytes)
{
	if (!(sub->key_begun & 1u << stream)) {
		mote_subscriber_lost(sub, stream, bytes);
		return;
	}
	count_lost(sub, bytes);
	sub->key_again |= 1u << stream;
}

void mote_subscriber_lost(struct mote_subscriber *sub, unsigned int stream, uint32_t bytes)
{
	count_lost(sub, bytes);
	if (stream >= MOTE_STREAMS)
		return;
	/* A keyframe whose parts are lost begins again. A poll's stays a poll's. */
	sub->poll_wanted |= sub->polled & 1u << stream;
	sub->polled &= ~(1u << stream);
	if (sub->class_of[stream] != MOTE_NO_CLASS || sub->key_wanted & 1u << stream ||
	    sub->poll_wanted & 1u << stream)
		sub->key_wanted |= 1u << stream;
	sub->key_begun &= ~(1u << stream);
	sub->key_again &= ~(1u << stream);
}

bool mote_subscriber_evict(struct mote_subscriber *sub, struct mote_arena *arena, uint32_t id)
{
	const struct mote_arena_frame *frame = mote_arena_get(arena, id);

	for (uint32_t i = 0; i < sub->count; i++) {
		if (*queue_at(sub, i) != id)
			continue;
		sub->torn |= sub->sending && i < sub->in_flight;
		for (; i + 1 < sub->count; i++)
			*queue_at(sub, i) = *queue_at(sub, i + 1);
		sub->count--;
		sub->queued_bytes -= frame->len;
		mote_subscriber_lost(sub, frame->stream, frame->len);
		mote_arena_unref(arena, id);
		return true;
	}
	return false;
}

bool mote_subscriber_gather(struct mote_subscriber *sub, const struct mote_arena *arena)
{
	unsigned int n = 0;

	if (sub->rest_len)
		sub->vectors[n++] = (struct iovec){ (void *)sub->rest, sub->rest_len };
	for (uint32_t i = 0; i < sub->count && n < MOTE_SEND_VECTORS; i++) {
		const struct mote_arena_frame *frame = mote_arena_get(arena, *queue_at(sub, i));

		sub->vectors[n++] = (struct iovec){ (void *)frame->data, frame->len };
	}
	sub->in_flight = n - (sub->rest_len != 0);
	sub->msg = (struct msghdr){ .msg_iov = sub->vectors, .msg_iovlen = n };
	return n > 0;
}

static void pop(struct mote_subscriber *sub, struct mote_arena *arena)
{
	uint32_t id = *queue_at(sub, 0);

	sub->queued_bytes -= mote_arena_get(arena, id)->len;
	mote_arena_unref(arena, id);
	sub->head = (sub->head + 1) % MOTE_QUEUE_FRAMES;
	sub->count--;
}

void mote_subscriber_sent(struct mote_subscriber *sub, struct mote_arena *arena, uint32_t sent)
{
	uint32_t rest = sent < sub->rest_len ? sent : sub->rest_len;

	sub->bytes_sent += sent;
	sub->rest += rest;
	sub->rest_len -= rest;
	sub->frames_sent += rest && !sub->rest_len;
	sent -= rest;
	while (sent) {
		const struct mote_arena_frame *frame = mote_arena_get(arena, *queue_at(sub, 0));

		if (sent < frame->len) {
			memcpy(sub->copy, frame->data + sent, frame->len - sent);
			sub->rest = sub->copy;
			sub->rest_len = frame->len - sent;
			sent = frame->len;
		} else {
			sub->frames_sent++;
		}
		sent -= frame->len;
		pop(sub, arena);
	}
	if (!sub->count)
		sub->polled = 0;
}

void mote_subscriber_clear(struct mote_subscriber *sub, struct mote_arena *arena)
{
	while (sub->count)
		pop(sub, arena);
	sub->rest_len = 0;
}
