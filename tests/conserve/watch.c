// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * One subscriber: a thread reads frames into rows under a lock and tells who waits. Owns its
 * client.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "watch.h"

static const char *const stream_names[WATCH_STREAMS] = {
	[WATCH_SOCKET] = "socket",   [WATCH_FLOW] = "flow",   [WATCH_PROCESS] = "process_network",
	[WATCH_NETWORK] = "network", [WATCH_TABLE] = "table",
};

struct watch {
	struct mote_client *client;
	struct rows rows[WATCH_STREAMS];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t updated;
	unsigned int lazy_ms;
	uint64_t dropped;
	bool stop;
	char broken[160];
};

static void nap(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l }, NULL);
}

static void take(struct watch *watch, const struct mote_message *message)
{
	if (message->type == MOTE_MESSAGE_DROPPED)
		watch->dropped = message->dropped_frames;
	if (message->type == MOTE_MESSAGE_REPLY && message->code)
		snprintf(watch->broken, sizeof(watch->broken), "moted replied: %.*s",
			 (int)message->text_size, message->text);
	if (message->type != MOTE_MESSAGE_DATA || !message->stream)
		return;
	for (int i = 0; i < WATCH_STREAMS; i++)
		if (!strcmp(watch->rows[i].name, message->stream->name))
			rows_take(&watch->rows[i], message);
}

static bool stopped(struct watch *watch)
{
	bool stop;

	pthread_mutex_lock(&watch->lock);
	stop = watch->stop;
	pthread_mutex_unlock(&watch->lock);
	return stop;
}

static void *run(void *arg)
{
	struct watch *watch = arg;
	struct mote_message message;

	while (!stopped(watch)) {
		unsigned int lazy;
		int rc = mote_next(watch->client, &message, 50);

		if (rc == -EAGAIN || rc == -EINTR)
			continue;
		pthread_mutex_lock(&watch->lock);
		if (rc == 1)
			take(watch, &message);
		else
			snprintf(watch->broken, sizeof(watch->broken), "%s",
				 rc ? mote_error(watch->client) : "moted closed the connection");
		lazy = watch->lazy_ms;
		pthread_cond_broadcast(&watch->updated);
		pthread_mutex_unlock(&watch->lock);
		if (rc != 1)
			break;
		if (lazy)
			nap(lazy);
	}
	return NULL;
}

static bool all_there(const struct rows *rows, void *ctx)
{
	for (int i = 0; i < WATCH_STREAMS; i++)
		if (!rows[i].updates)
			return false;
	return true;
}

static bool hello(struct watch *watch, unsigned int interval_ms)
{
	struct mote_message message;
	char line[128];

	if (mote_next(watch->client, &message, 10000) != 1 || !mote_hello(watch->client)) {
		fprintf(stderr, "conserve: no hello: %s\n", mote_error(watch->client));
		return false;
	}
	for (int i = 0; i < WATCH_STREAMS; i++)
		if (!rows_init(&watch->rows[i], mote_hello(watch->client), stream_names[i])) {
			fprintf(stderr, "conserve: moted has no stream %s\n", stream_names[i]);
			return false;
		}
	snprintf(line, sizeof(line),
		 "subscribe socket,flow,process_network,network,table interval=%ums", interval_ms);
	return mote_request(watch->client, line) == 0;
}

struct watch *watch_start(const char *path, unsigned int interval_ms, unsigned int lazy_ms)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	int rc = watch ? mote_open(path, &watch->client) : -ENOMEM;

	if (rc) {
		fprintf(stderr, "conserve: %s: %s\n", path, strerror(-rc));
		free(watch);
		return NULL;
	}
	if (lazy_ms)
		setsockopt(mote_fd(watch->client), SOL_SOCKET, SO_RCVBUF, &(int){ 4096 },
			   sizeof(int));
	watch->lazy_ms = lazy_ms;
	pthread_mutex_init(&watch->lock, NULL);
	pthread_cond_init(&watch->updated, NULL);
	if (!hello(watch, interval_ms) || pthread_create(&watch->thread, NULL, run, watch)) {
		mote_close(watch->client);
		free(watch);
		return NULL;
	}
	if (!lazy_ms && !watch_until(watch, all_there, NULL, 20000)) {
		fprintf(stderr, "conserve: not all streams came: %s\n", watch->broken);
		watch_stop(watch);
		return NULL;
	}
	return watch;
}

void watch_stop(struct watch *watch)
{
	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->stop = true;
	pthread_mutex_unlock(&watch->lock);
	pthread_join(watch->thread, NULL);
	mote_close(watch->client);
	for (int i = 0; i < WATCH_STREAMS; i++)
		rows_free(&watch->rows[i]);
	free(watch);
}

void watch_hurry(struct watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	watch->lazy_ms = 0;
	pthread_mutex_unlock(&watch->lock);
}

const struct rows *watch_lock(struct watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	return watch->rows;
}

void watch_unlock(struct watch *watch)
{
	pthread_mutex_unlock(&watch->lock);
}

bool watch_until(struct watch *watch, bool (*holds)(const struct rows *rows, void *ctx), void *ctx,
		 unsigned int ms)
{
	struct timespec until;
	bool held;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000l;
	if (until.tv_nsec >= 1000000000l) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000l;
	}
	pthread_mutex_lock(&watch->lock);
	while (!(held = holds(watch->rows, ctx)) && !watch->broken[0])
		if (pthread_cond_timedwait(&watch->updated, &watch->lock, &until) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&watch->lock);
	return held;
}

const struct mote_hello *watch_hello(const struct watch *watch)
{
	return mote_hello(watch->client);
}

const char *watch_broken(const struct watch *watch)
{
	return watch->broken[0] ? watch->broken : NULL;
}

uint64_t watch_dropped(const struct watch *watch)
{
	return watch->dropped;
}
