// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What connections get. An update of a class is opened when it is due and encoded as its
 * subscribers take it; what is not taken when the next is due is lost to those who are slow, who
 * are owed a keyframe then. Keyframes are a subscriber's own and go on piece by piece.
 */
#include <string.h>

#include "server_impl.h"

static bool takes(const struct mote_subscriber *sub, unsigned int class, unsigned int stream)
{
	if (sub->fd < 0 || sub->closing || sub->class_of[stream] != class)
		return false;
	/* Its keyframe, which is still to come, will have these rows too. */
	return !(sub->key_wanted & 1u << stream) || sub->key_begun & 1u << stream;
}

static void log_slow(struct mote_server *server)
{
	mote_log_limited(
		&server->dropped_limit, server->now,
		"a subscriber is slow: frames are dropped for it, then a keyframe follows");
}

/* Gives a frame to all of its class. */
static void queue_shared(struct mote_server *server, uint32_t id, unsigned int class,
			 unsigned int stream)
{
	uint32_t len = mote_arena_get(server->arena, id)->len;
	unsigned int i;

	server->encoded += len;
	mote_arena_ref(server->arena, id);
	mote_for_each_bit (i, server->present) {
		struct mote_subscriber *sub = &server->subs[i];

		if (!takes(sub, class, stream))
			continue;
		if (mote_subscriber_queue(sub, server->arena, id, server->options->socket_queue)) {
			mote_subscriber_missed(sub, stream, len);
			log_slow(server);
		}
		if (sub->queued_bytes > server->queue_peak)
			server->queue_peak = sub->queued_bytes;
	}
	mote_arena_unref(server->arena, id);
}

static void lose_class(struct mote_server *server, unsigned int class, unsigned int stream)
{
	unsigned int i;

	mote_for_each_bit (i, server->present) {
		if (takes(&server->subs[i], class, stream))
			mote_subscriber_missed(&server->subs[i], stream, 0);
	}
}

static bool class_wanted(const struct mote_server *server, unsigned int class, unsigned int stream)
{
	unsigned int i;

	mote_for_each_bit (i, server->present) {
		if (takes(&server->subs[i], class, stream))
			return true;
	}
	return false;
}

/* Whether one more part would still leave what was encoded since the last flush in the arena. */
static bool arena_has_room(const struct mote_server *server)
{
	return server->encoded + server->options->socket_frame <= server->options->socket_arena / 2;
}

/* An update that is still open when the next is due is not taken fast enough: its rest is lost. */
static void close_update(struct mote_server *server, unsigned int c, unsigned int stream)
{
	struct mote_class *class = &server->classes.class[c];
	const struct mote_source *source = &server->sources[stream];

	if (class_wanted(server, c, stream))
		log_slow(server);
	lose_class(server, c, stream);
	class->open &= ~(1u << stream);
	if (source->ops && source->ops->head)
		class->progress[stream].cursor = source->ops->head(source->ctx);
}

static void open_update(struct mote_server *server, unsigned int c, unsigned int stream, bool gap)
{
	struct mote_class *class = &server->classes.class[c];
	const struct mote_source *source = &server->sources[stream];
	uint64_t since = class->last[stream];
	uint64_t cursor = class->progress[stream].cursor;
	bool log = source->ops && source->ops->head;

	if (class->open & 1u << stream) {
		if (log && source->ops->patient(source->ctx))
			return; /* it goes on, and comes to what is new */
		close_update(server, c, stream);
		cursor = class->progress[stream].cursor;
	}
	class->last[stream] = server->now;
	class->sequence[stream]++;
	if (source->ops && source->ops->forgot(source->ctx, since)) {
		lose_class(server, c, stream);
		return;
	}
	class->update[stream] = (struct mote_update){
		.stream = (enum mote_stream_id)stream,
		.source = source,
		.since = since,
		.time = server->now,
		.sequence = class->sequence[stream],
		.interval_ms = class->interval_ms,
		.flags = gap ? MOTE_FRAME_GAP : 0,
	};
	class->progress[stream] = (struct mote_progress){ .cursor = log ? cursor : 0 };
	if (source->ops)
		class->open |= 1u << stream;
}

/*
 * Whether one more frame of the class finds somebody who can take it. Who is blocked is not waited
 * for, as long as others are not; alone, he has his queue.
 */
static bool class_has_room(const struct mote_server *server, unsigned int c, unsigned int stream)
{
	bool any = false, blocked_room = false;
	unsigned int i;

	mote_for_each_bit (i, server->present) {
		const struct mote_subscriber *sub = &server->subs[i];
		bool room = sub->count < MOTE_QUEUE_FRAMES - 1 &&
			    sub->queued_bytes + sub->rest_len + server->options->socket_frame <=
				    server->options->socket_queue;

		if (!takes(sub, c, stream))
			continue;
		if (!sub->blocked && !room)
			return false;
		any |= !sub->blocked;
		blocked_room |= sub->blocked && room;
	}
	return any || blocked_room;
}

static void encode_class(struct mote_server *server, unsigned int c, unsigned int stream)
{
	struct mote_class *class = &server->classes.class[c];
	uint32_t size = (uint32_t)server->options->socket_frame;
	const struct mote_source *source = &server->sources[stream];
	bool done = false;

	/*
	 * Nobody is there to take it: a log must not be kept for them. Or a sample since the
	 * update's last frame may have taken the place of ended keys that were still to come.
	 */
	if (!class_wanted(server, c, stream) ||
	    source->ops->forgot(source->ctx, class->update[stream].since)) {
		close_update(server, c, stream);
		return;
	}
	while (!done && class_has_room(server, c, stream) && arena_has_room(server)) {
		char *buf = mote_arena_reserve(server->arena, size);
		uint32_t len = mote_frame_data(buf, size, &class->update[stream],
					       &class->progress[stream], &done);

		queue_shared(server, mote_arena_commit(server->arena, len, (uint8_t)stream), c,
			     stream);
	}
	if (done)
		class->open &= ~(1u << stream);
}

/* What every class of a log has had need not be kept. */
static void trim_logs(struct mote_server *server)
{
	unsigned int c;

	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		const struct mote_source *source = &server->sources[i];
		uint64_t cursor;

		if (!source->ops || !source->ops->head)
			continue;
		cursor = source->ops->head(source->ctx);
		mote_for_each_bit (c, server->classes.used) {
			const struct mote_class *class = &server->classes.class[c];

			if (class->users[i] && class->progress[i].cursor < cursor)
				cursor = class->progress[i].cursor;
		}
		source->ops->trim(source->ctx, cursor);
	}
}

static void encode_open(struct mote_server *server)
{
	unsigned int c, i;

	mote_for_each_bit (c, server->classes.used) {
		mote_for_each_bit (i, server->classes.class[c].open)
			encode_class(server, c, i);
	}
	trim_logs(server);
}

/* Its last part is in the queue. */
static void end_key(struct mote_subscriber *sub, unsigned int stream)
{
	uint32_t bit = 1u << stream;

	if (!(sub->key_again & bit))
		sub->key_wanted &= ~bit;
	sub->key_begun &= ~bit;
	sub->key_again &= ~bit;
	sub->polled |= sub->poll_wanted & bit;
	sub->poll_wanted &= ~bit;
}

/* The next part of a keyframe; false if it was lost at once, and is to begin again later. */
static bool encode_key_part(struct mote_server *server, struct mote_subscriber *sub,
			    unsigned int stream)
{
	const struct mote_source *source = &server->sources[stream];
	struct mote_progress *progress = &sub->progress[stream];
	struct mote_class *class = sub->class_of[stream] == MOTE_NO_CLASS
					   ? NULL
					   : &server->classes.class[sub->class_of[stream]];
	struct mote_update update = {
		.stream = (enum mote_stream_id)stream,
		.source = source,
		.time = server->now,
		.interval_ms = class ? class->interval_ms : 0,
		.flags = MOTE_FRAME_KEY,
	};
	bool done = true;

	if (!(sub->key_begun & 1u << stream)) {
		memset(progress, 0, sizeof(*progress));
		sub->key_sequence[stream] = class ? class->sequence[stream] : 0;
	}
	update.sequence = sub->key_sequence[stream];
	sub->key_begun |= 1u << stream;
	if (source->ops) {
		char *buf =
			mote_arena_reserve(server->arena, (uint32_t)server->options->socket_frame);
		uint32_t len = mote_frame_data(buf, (uint32_t)server->options->socket_frame,
					       &update, progress, &done);

		mote_server_queue_own(server, sub, len, stream);
	}
	if (!(sub->key_begun & 1u << stream))
		return false;
	if (done)
		end_key(sub, stream);
	return true;
}

static void tell_dropped(struct mote_server *server, struct mote_subscriber *sub)
{
	char *buf = mote_arena_reserve(server->arena, MOTE_SMALL_FRAME);

	if (!buf)
		return;
	sub->tell_dropped = false;
	mote_server_queue_own(server, sub,
			      mote_frame_dropped(buf, MOTE_SMALL_FRAME, sub->frames_dropped,
						 sub->bytes_dropped, server->now),
			      MOTE_STREAMS);
}

/* Keyframes as long as they fit half the queue, so that updates have room beside them. */
static void encode_keys(struct mote_server *server, struct mote_subscriber *sub, uint32_t ready)
{
	uint64_t limit = server->options->socket_queue / 2;
	bool part = true;

	if (sub->tell_dropped && !sub->blocked && sub->count < MOTE_QUEUE_FRAMES / 2 &&
	    sub->queued_bytes < limit)
		tell_dropped(server, sub);
	while (part && sub->key_wanted & ready && sub->count < MOTE_QUEUE_FRAMES / 2 &&
	       sub->queued_bytes + server->options->socket_frame <= limit && arena_has_room(server))
		part = encode_key_part(server, sub,
				       (unsigned int)__builtin_ctz(sub->key_wanted & ready));
}

void mote_server_encode(struct mote_server *server, uint64_t before, uint64_t tick, uint64_t now,
			uint32_t sampled, uint32_t at_once, bool gap)
{
	unsigned int c;

	server->now = now;
	server->urgent &= ~sampled;
	if (server->accept_later)
		mote_server_accept(server);
	server->accept_later = false;
	mote_for_each_bit (c, server->classes.used) {
		struct mote_class *class = &server->classes.class[c];
		uint32_t streams = mote_class_due(class, before, tick) ? ~0u : at_once;

		for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
			if (streams & 1u << i && class->users[i])
				open_update(server, c, i, gap);
		}
	}
}

static bool can_send(const struct mote_subscriber *sub)
{
	return sub->fd >= 0 && !sub->closing && !sub->sending && !sub->blocked;
}

static void encode_all_keys(struct mote_server *server)
{
	for (unsigned int i = 0; i < server->nsubs; i++) {
		unsigned int turn = (server->first + i) % server->nsubs;

		if (server->present >> turn & 1 && can_send(&server->subs[turn]))
			encode_keys(server, &server->subs[turn], ~server->urgent);
	}
	if (++server->first == server->nsubs)
		server->first = 0;
}

static void encode_more(struct mote_server *server)
{
	encode_open(server);
	encode_all_keys(server);
	server->encoded = 0;
}

static unsigned int send_all(struct mote_server *server)
{
	unsigned int n = 0, i;

	mote_for_each_bit (i, server->present) {
		struct mote_subscriber *sub = &server->subs[i];

		if (!can_send(sub) || !mote_subscriber_gather(sub, server->arena))
			continue;
		sub->sending = true;
		mote_server_push(server, sub, MOTE_TAG_SEND,
				 (struct mote_sqe){
					 .op = MOTE_OP_SEND, .fd = sub->fd, .msg = &sub->msg });
		n++;
	}
	return n;
}

static bool updates_open(const struct mote_server *server)
{
	unsigned int c, i;

	mote_for_each_bit (c, server->classes.used) {
		mote_for_each_bit (i, server->classes.class[c].open) {
			if (class_has_room(server, c, i))
				return true;
		}
	}
	return false;
}

bool mote_server_more(const struct mote_server *server)
{
	unsigned int i;

	if (updates_open(server))
		return true;
	mote_for_each_bit (i, server->present) {
		const struct mote_subscriber *sub = &server->subs[i];

		/* What one send takes is on its way; is there more than that? */
		if (sub->fd < 0 || sub->closing || sub->blocked)
			continue;
		if (sub->key_wanted & ~server->urgent || sub->count >= MOTE_SEND_VECTORS)
			return true;
	}
	return false;
}

unsigned int mote_server_flush(struct mote_server *server)
{
	unsigned int n;

	encode_more(server);
	n = send_all(server);
	if (n || !mote_server_more(server))
		return n;
	/* What was encoded fills the arena and is for those who are blocked: others go on. */
	encode_more(server);
	return send_all(server);
}
