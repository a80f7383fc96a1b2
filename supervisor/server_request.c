// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What a connection asks for: lines of text, cut, parsed and obeyed. A line changes all that it
 * asks for or nothing, and is answered by one reply.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "request.h"
#include "server_impl.h"

static void want_keyframe(struct mote_server *server, struct mote_subscriber *sub,
			  unsigned int stream)
{
	sub->key_wanted |= 1u << stream;
	sub->key_begun &= ~(1u << stream);
	sub->key_again &= ~(1u << stream);
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
		uint32_t ms = request->interval_ms ? request->interval_ms : server->interval_ms[i];

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
		mote_server_leave(server, sub, i);
		sub->class_of[i] = (uint8_t) class[i];
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
				mote_server_leave(server, sub, i);
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
	mote_server_reply(server, sub, -ret, err);
}

/* Cuts what was received into lines. */
void mote_server_request(struct mote_server *server, struct mote_subscriber *sub, uint32_t len)
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
		mote_server_reply(server, sub, E2BIG,
				  "the request is longer than 512 bytes: send shorter ones");
	}
	sub->line_too_long = true;
	sub->line_len = 0;
}
