// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Connections, classes and frames, see server.h. Everything is allocated by mote_server_new().
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

#include "arena.h"
#include "class.h"
#include "listen.h"
#include "log.h"
#include "request.h"
#include "subscriber.h"
#include "tag.h"
#include "wake.h"

#define SMALL_FRAME 1024 /* replies and drop notes */

struct mote_server {
	const struct mote_options *options;
	struct mote_engine *engine;
	const struct mote_source *sources;
	const char *hello;
	uint32_t hello_len;
	int listener;

	struct mote_subscriber *subs;
	unsigned int nsubs;
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

static void evict(void *ctx, uint32_t id)
{
	struct mote_server *server = ctx;

	for (unsigned int i = 0; i < server->nsubs; i++) {
		if (server->subs[i].fd >= 0)
			mote_subscriber_evict(&server->subs[i], server->arena, id);
	}
}

struct mote_server *mote_server_new(const struct mote_options *options, struct mote_engine *engine,
				    int listener, const struct mote_source sources[MOTE_STREAMS],
				    const char *hello, uint32_t hello_len)
{
	struct mote_server *server = calloc(1, sizeof(*server));
	unsigned int n = options->socket_subscribers;

	if (!server)
		return NULL;
	*server = (struct mote_server){ .options = options,
					.engine = engine,
					.sources = sources,
					.hello = hello,
					.hello_len = hello_len,
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
	mote_classes_init(&server->classes, options->socket_classes);
	return server;
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
static void push(struct mote_server *server, struct mote_subscriber *sub, enum mote_tag_kind kind,
		 struct mote_sqe sqe)
{
	uint32_t index = sub ? (uint32_t)(sub - server->subs) : 0;

	sqe.tag = mote_tag(kind, index, sub ? sub->generation : 0);
	sqe.slot = -1;
	if (mote_engine_push(server->engine, &sqe))
		mote_log(MOTE_LOG_ERROR,
			 "server: the submission queue is full: raise [loop] sq_entries");
}

static void push_accept(struct mote_server *server)
{
	push(server, NULL, MOTE_TAG_ACCEPT,
	     (struct mote_sqe){ .op = MOTE_OP_ACCEPT, .fd = server->listener });
}

static void push_receive(struct mote_server *server, struct mote_subscriber *sub)
{
	sub->receiving = true;
	push(server, sub, MOTE_TAG_RECV,
	     (struct mote_sqe){ .op = MOTE_OP_RECV,
				.fd = sub->fd,
				.buf = sub->line + sub->line_len,
				.len = (uint32_t)sizeof(sub->line) - sub->line_len });
}

void mote_server_start(struct mote_server *server)
{
	mote_wake_watch(server->listener);
	push_accept(server);
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

static void leave_class(struct mote_server *server, struct mote_subscriber *sub,
			unsigned int stream)
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
	push(server, sub, MOTE_TAG_CLOSE, (struct mote_sqe){ .op = MOTE_OP_CLOSE, .fd = sub->fd });
	server->frames_sent += sub->frames_sent;
	server->bytes_sent += sub->bytes_sent;
	server->frames_dropped += sub->frames_dropped;
	server->bytes_dropped += sub->bytes_dropped;
	server->connected--;
	sub->fd = -1;
	sub->generation++;
}

static void begin_close(struct mote_server *server, struct mote_subscriber *sub)
{
	if (sub->closing)
		return;
	sub->closing = true;
	for (unsigned int i = 0; i < MOTE_STREAMS; i++)
		leave_class(server, sub, i);
	mote_subscriber_clear(sub, server->arena);
	sub->key_wanted = sub->key_begun = sub->poll_wanted = 0;
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
	push(server, sub, MOTE_TAG_HANGUP, (struct mote_sqe){ .op = MOTE_OP_HANGUP, .fd = sub->fd });
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
	push(server, NULL, MOTE_TAG_CLOSE, (struct mote_sqe){ .op = MOTE_OP_CLOSE, .fd = fd });
}

static void welcome(struct mote_server *server, struct mote_subscriber *sub, int fd)
{
	uint32_t generation = sub->generation + 1;
	char *copy = sub->copy;

	memset(sub, 0, sizeof(*sub));
	memset(sub->class_of, MOTE_NO_CLASS, sizeof(sub->class_of));
	sub->fd = fd;
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
	server->accept_later = fd < 0 && fd != -ECONNABORTED && fd != -EINTR;
	if (server->accept_later) {
		server->refused++;
		mote_log_limited(&server->refused_limit, server->now,
				 "connections cannot be accepted: %s: trying again at each tick",
				 strerrordesc_np(-fd));
		return;
	}
	push_accept(server);
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
static void queue_own(struct mote_server *server, struct mote_subscriber *sub, uint32_t len,
		      unsigned int stream)
{
	uint32_t id = mote_arena_commit(server->arena, len, (uint8_t)stream);

	server->encoded += len;
	if (mote_subscriber_queue(sub, server->arena, id, server->options->socket_queue))
		mote_subscriber_lost(sub, stream, len);
	if (sub->queued_bytes > server->queue_peak)
		server->queue_peak = sub->queued_bytes;
}

static void reply(struct mote_server *server, struct mote_subscriber *sub, int code,
		  const char *text)
{
	char *buf = mote_arena_reserve(server->arena, SMALL_FRAME);

	if (buf)
		queue_own(server, sub, mote_frame_reply(buf, SMALL_FRAME, code, text, server->now),
			  MOTE_STREAMS);
}

static void want_keyframe(struct mote_server *server, struct mote_subscriber *sub,
			  unsigned int stream)
{
	sub->key_wanted |= 1u << stream;
	sub->key_begun &= ~(1u << stream);
	server->urgent |= 1u << stream;
}

/* A class that is new to a log begins with what comes. */
static void join_log(struct mote_server *server, unsigned int c, unsigned int stream)
{
	const struct mote_source *source = &server->sources[stream];
	struct mote_class *class = &server->classes.class[c];

	if (source->ops && source->ops->head && class->users[stream] == 1)
		class->progress[stream].cursor = source->ops->head(source->ctx);
}

/* All or nothing: joins the classes of all streams, or leaves those it had joined. */
static int join_classes(struct mote_server *server, const struct mote_request *request,
			int class[MOTE_STREAMS])
{
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		uint32_t ms = request->interval_ms ? request->interval_ms
						   : mote_options_interval(server->options, i);

		class[i] = -1;
		if (!(request->streams & 1u << i))
			continue;
		class[i] = mote_classes_join(&server->classes, ms, i, server->now);
		if (class[i] >= 0) {
			join_log(server, (unsigned int)class[i], i);
			continue;
		}
		for (unsigned int j = 0; j < i; j++) {
			if (class[j] >= 0)
				mote_classes_leave(&server->classes, (unsigned int)class[j], j);
		}
		return class[i];
	}
	return 0;
}

static int subscribe(struct mote_server *server, struct mote_subscriber *sub,
		     const struct mote_request *request)
{
	int class[MOTE_STREAMS], err = join_classes(server, request, class);

	for (unsigned int i = 0; !err && i < MOTE_STREAMS; i++) {
		if (class[i] < 0)
			continue;
		leave_class(server, sub, i);
		sub->class_of[i] = (uint8_t)class[i];
		sub->poll_wanted &= ~(1u << i);
		sub->polled &= ~(1u << i);
		want_keyframe(server, sub, i);
	}
	return err;
}

static int obey(struct mote_server *server, struct mote_subscriber *sub,
		struct mote_request *request)
{
	switch (request->verb) {
	case MOTE_INTERVAL:
		for (unsigned int i = 0; i < MOTE_STREAMS; i++)
			request->streams |= (uint32_t)(sub->class_of[i] != MOTE_NO_CLASS) << i;
		return subscribe(server, sub, request);
	case MOTE_SUBSCRIBE:
		return subscribe(server, sub, request);
	case MOTE_UNSUBSCRIBE:
		for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
			if (request->streams & 1u << i)
				leave_class(server, sub, i);
		}
		sub->key_wanted &= ~request->streams | sub->poll_wanted;
		return 0;
	case MOTE_POLL:
		for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
			if (!(request->streams & 1u << i))
				continue;
			if (sub->class_of[i] == MOTE_NO_CLASS)
				sub->poll_wanted |= 1u << i;
			want_keyframe(server, sub, i);
		}
		return 0;
	case MOTE_PING:
	case MOTE_VERBS:
		break;
	}
	return 0;
}

static void request_line(struct mote_server *server, struct mote_subscriber *sub, const char *line,
			 size_t len)
{
	struct mote_request request;
	char err[160] = "ok";
	int ret = mote_request_parse(line, len, server->options->loop_base, &request, err,
				     sizeof(err));

	if (!ret) {
		ret = obey(server, sub, &request);
		if (ret == -EMFILE)
			snprintf(
				err, sizeof(err),
				"%u different intervals are in use, the most [socket] classes allows: take one of them",
				server->options->socket_classes);
	}
	server->request_errors += ret != 0;
	reply(server, sub, -ret, err);
}

/* Cuts what was received into lines. */
static void request_bytes(struct mote_server *server, struct mote_subscriber *sub, uint32_t len)
{
	char *start = sub->line, *end, *newline;

	sub->line_len += len;
	end = sub->line + sub->line_len;
	while ((newline = memchr(start, '\n', (size_t)(end - start)))) {
		if (!sub->line_too_long && newline > start)
			request_line(server, sub, start, (size_t)(newline - start));
		sub->line_too_long = false;
		start = newline + 1;
	}
	sub->line_len = (uint32_t)(end - start);
	memmove(sub->line, start, sub->line_len);
	if (sub->line_len < sizeof(sub->line))
		return;
	if (!sub->line_too_long) {
		server->request_errors++;
		reply(server, sub, E2BIG,
		      "the request is longer than 512 bytes: send shorter ones");
	}
	sub->line_too_long = true;
	sub->line_len = 0;
}

static void received(struct mote_server *server, struct mote_subscriber *sub, int res)
{
	sub->receiving = false;
	if (res > 0 && !sub->closing) {
		request_bytes(server, sub, (uint32_t)res);
		push_receive(server, sub);
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
		push(server, sub, MOTE_TAG_WRITABLE,
		     (struct mote_sqe){ .op = MOTE_OP_WRITABLE, .fd = sub->fd });
	}
	if (is_done(server, sub))
		begin_close(server, sub);
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

static bool takes(const struct mote_subscriber *sub, unsigned int class, unsigned int stream)
{
	if (sub->fd < 0 || sub->closing || sub->class_of[stream] != class)
		return false;
	/* Its keyframe, which is still to come, will have these rows too. */
	return !(sub->key_wanted & 1u << stream) || sub->key_begun & 1u << stream;
}

static void log_slow(struct mote_server *server)
{
	mote_log_limited(&server->dropped_limit, server->now,
			 "a subscriber is slow: frames are dropped for it, then a keyframe follows");
}

/* Gives a frame to all of its class. */
static void queue_shared(struct mote_server *server, uint32_t id, unsigned int class,
			 unsigned int stream)
{
	uint32_t len = mote_arena_get(server->arena, id)->len;

	server->encoded += len;
	mote_arena_ref(server->arena, id);
	for (unsigned int i = 0; i < server->nsubs; i++) {
		struct mote_subscriber *sub = &server->subs[i];

		if (!takes(sub, class, stream))
			continue;
		if (mote_subscriber_queue(sub, server->arena, id, server->options->socket_queue)) {
			mote_subscriber_lost(sub, stream, len);
			log_slow(server);
		}
		if (sub->queued_bytes > server->queue_peak)
			server->queue_peak = sub->queued_bytes;
	}
	mote_arena_unref(server->arena, id);
}

static void lose_class(struct mote_server *server, unsigned int class, unsigned int stream)
{
	for (unsigned int i = 0; i < server->nsubs; i++) {
		if (takes(&server->subs[i], class, stream))
			mote_subscriber_lost(&server->subs[i], stream, 0);
	}
}

static bool class_wanted(const struct mote_server *server, unsigned int class, unsigned int stream)
{
	for (unsigned int i = 0; i < server->nsubs; i++) {
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

	for (unsigned int i = 0; i < server->nsubs; i++) {
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
	 * Nobody is there to take it: a log must not be kept for them. Or a sample since the update's
	 * last frame may have taken the place of ended keys that were still to come.
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

		queue_shared(server, mote_arena_commit(server->arena, len, (uint8_t)stream), c, stream);
	}
	if (done)
		class->open &= ~(1u << stream);
}

/* What every class of a log has had need not be kept. */
static void trim_logs(struct mote_server *server)
{
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		const struct mote_source *source = &server->sources[i];
		uint64_t cursor;

		if (!source->ops || !source->ops->head)
			continue;
		cursor = source->ops->head(source->ctx);
		for (unsigned int c = 0; c < MOTE_CLASSES; c++) {
			const struct mote_class *class = &server->classes.class[c];

			if (class->users[i] && class->progress[i].cursor < cursor)
				cursor = class->progress[i].cursor;
		}
		source->ops->trim(source->ctx, cursor);
	}
}

static void encode_open(struct mote_server *server)
{
	for (unsigned int c = 0; c < MOTE_CLASSES; c++) {
		for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
			if (server->classes.class[c].open & 1u << i)
				encode_class(server, c, i);
		}
	}
	trim_logs(server);
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
		.sequence = class ? class->sequence[stream] : 0,
		.interval_ms = class ? class->interval_ms : 0,
		.flags = MOTE_FRAME_KEY,
	};
	bool done = true;

	if (!(sub->key_begun & 1u << stream))
		memset(progress, 0, sizeof(*progress));
	sub->key_begun |= 1u << stream;
	if (source->ops) {
		char *buf =
			mote_arena_reserve(server->arena, (uint32_t)server->options->socket_frame);
		uint32_t len = mote_frame_data(buf, (uint32_t)server->options->socket_frame,
					       &update, progress, &done);

		queue_own(server, sub, len, stream);
	}
	if (!(sub->key_begun & 1u << stream))
		return false;
	if (done) {
		sub->key_wanted &= ~(1u << stream);
		sub->key_begun &= ~(1u << stream);
		sub->polled |= sub->poll_wanted & 1u << stream;
		sub->poll_wanted &= ~(1u << stream);
	}
	return true;
}

static void tell_dropped(struct mote_server *server, struct mote_subscriber *sub)
{
	char *buf = mote_arena_reserve(server->arena, SMALL_FRAME);

	if (!buf)
		return;
	sub->tell_dropped = false;
	queue_own(server, sub,
		  mote_frame_dropped(buf, SMALL_FRAME, sub->frames_dropped, sub->bytes_dropped,
				     server->now),
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
	server->now = now;
	server->urgent &= ~sampled;
	if (server->accept_later)
		push_accept(server);
	server->accept_later = false;
	for (unsigned int c = 0; c < MOTE_CLASSES; c++) {
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
		unsigned int turn = server->first + i;
		struct mote_subscriber *sub =
			&server->subs[turn < server->nsubs ? turn : turn - server->nsubs];

		if (can_send(sub))
			encode_keys(server, sub, ~server->urgent);
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
	unsigned int n = 0;

	for (unsigned int i = 0; i < server->nsubs; i++) {
		struct mote_subscriber *sub = &server->subs[i];

		if (!can_send(sub) || !mote_subscriber_gather(sub, server->arena))
			continue;
		sub->sending = true;
		push(server, sub, MOTE_TAG_SEND,
		     (struct mote_sqe){ .op = MOTE_OP_SEND, .fd = sub->fd, .msg = &sub->msg });
		n++;
	}
	return n;
}

static bool updates_open(const struct mote_server *server)
{
	for (unsigned int c = 0; c < MOTE_CLASSES; c++) {
		for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
			if (server->classes.class[c].open & 1u << i && class_has_room(server, c, i))
				return true;
		}
	}
	return false;
}

bool mote_server_more(const struct mote_server *server)
{
	if (updates_open(server))
		return true;
	for (unsigned int i = 0; i < server->nsubs; i++) {
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

void mote_server_stats(const struct mote_server *server, struct mote_server_stats *stats)
{
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
	for (unsigned int i = 0; i < server->nsubs; i++) {
		const struct mote_subscriber *sub = &server->subs[i];

		if (sub->fd < 0)
			continue;
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
