// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Subscribers that come and go. The fastest stays and makes moted swap at its interval; the others
 * leave without a word, after a request that is not understood, with frames unread, or politely.
 * Each looks whether the process totals ever fall while it is there.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "watch.h"

#define CROWD_MAX 16

struct crowd {
	const char *path;
	unsigned int fastest_ms, n;
	pthread_t fastest, thread[CROWD_MAX];
	atomic_bool stop;
	_Atomic uint64_t updates, connections, frames;
	pthread_mutex_t lock;
	char wrong[160];
};

struct guest {
	struct crowd *crowd;
	unsigned int seed;
};

static const char *const wishes[] = {
	"subscribe socket,flow interval=1ms",
	"subscribe process_network interval=7ms",
	"subscribe all",
	"subscribe network,process_network interval=3ms",
	"subscribe nothing-of-this-name",
	"poll socket,flow,process_network,network",
	"subscribe socket,flow,process_network,network interval=20ms",
	"",
};

static void complain(struct crowd *crowd, const char *what)
{
	pthread_mutex_lock(&crowd->lock);
	if (!crowd->wrong[0])
		snprintf(crowd->wrong, sizeof(crowd->wrong), "%s", what);
	pthread_mutex_unlock(&crowd->lock);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Opens and reads the hello. NULL: moted was full, which is no fault. */
static struct mote_client *arrive(struct crowd *crowd)
{
	struct mote_client *client;
	struct mote_message message;

	if (mote_open(crowd->path, &client))
		return NULL;
	if (mote_next(client, &message, 5000) == 1 && mote_hello(client))
		return client;
	mote_close(client);
	return NULL;
}

static uint64_t whole(const struct rows *rows)
{
	return rows_sum(rows, "tcp_bytes_sent") + rows_sum(rows, "tcp_bytes_received") +
	       rows_sum(rows, "udp_bytes_sent") + rows_sum(rows, "udp_bytes_received");
}

/*
 * Reads for some ms. A sum counts once the stream is whole: while a keyframe comes in several
 * frames (message.more) rows are missing.
 */
static void listen_for(struct crowd *crowd, struct mote_client *client, uint64_t ms)
{
	struct rows rows;
	struct mote_message message;
	uint64_t until = now_ms() + ms, last = 0;

	if (!rows_init(&rows, mote_hello(client), "process_network"))
		return;
	while (now_ms() < until && !crowd->stop) {
		int rc = mote_next(client, &message, 5);

		if (rc == -EAGAIN || rc == -EINTR)
			continue;
		if (rc != 1) {
			complain(crowd, rc ? mote_error(client) : "moted closed a connection");
			break;
		}
		crowd->frames++;
		if (message.type != MOTE_MESSAGE_DATA || !message.stream ||
		    strcmp(message.stream->name, "process_network") != 0)
			continue;
		rows_take(&rows, &message);
		if (message.more || message.missed)
			continue;
		if (whole(&rows) < last)
			complain(crowd, "the sum of process_network fell");
		last = whole(&rows);
	}
	rows_free(&rows);
}

static void visit(struct crowd *crowd, unsigned int *seed)
{
	struct mote_client *client = arrive(crowd);
	unsigned int wish = (unsigned int)rand_r(seed) % (sizeof(wishes) / sizeof(*wishes));
	unsigned int ms = 1 + (unsigned int)rand_r(seed) % 60;

	if (!client)
		return;
	crowd->connections++;
	if (wishes[wish][0])
		mote_request(client, wishes[wish]);
	if (rand_r(seed) % 3)
		listen_for(crowd, client, ms);
	else /* leaves what it asked for unread */
		nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000l }, NULL);
	if (rand_r(seed) % 2)
		mote_request(client, "unsubscribe all");
	mote_close(client);
}

static void *guest(void *arg)
{
	struct guest *guest = arg;

	while (!guest->crowd->stop) {
		visit(guest->crowd, &guest->seed);
		nanosleep(&(struct timespec){ .tv_nsec = rand_r(&guest->seed) % 10 * 1000000l },
			  NULL);
	}
	free(guest);
	return NULL;
}

static void *fastest(void *arg)
{
	struct crowd *crowd = arg;
	struct mote_client *client = arrive(crowd);
	struct mote_message message;
	char line[64];
	int rc;

	if (!client) {
		complain(crowd, "the fastest subscriber could not connect");
		return NULL;
	}
	snprintf(line, sizeof(line), "subscribe network interval=%ums", crowd->fastest_ms);
	mote_request(client, line);
	while (!crowd->stop) {
		rc = mote_next(client, &message, 20);
		if (rc == 1 && message.type == MOTE_MESSAGE_DATA)
			crowd->updates++;
		if (rc == 1 && message.type == MOTE_MESSAGE_REPLY && message.code)
			complain(crowd, "the fastest subscriber's request was refused");
		if (rc != 1 && rc != -EAGAIN && rc != -EINTR) {
			complain(crowd, rc ? mote_error(client) : "moted closed the fastest");
			break;
		}
	}
	mote_close(client);
	return NULL;
}

struct crowd *crowd_start(const char *path, unsigned int fastest_ms, unsigned int n)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));

	if (!crowd)
		return NULL;
	*crowd = (struct crowd){ .path = path, .fastest_ms = fastest_ms };
	pthread_mutex_init(&crowd->lock, NULL);
	pthread_create(&crowd->fastest, NULL, fastest, crowd);
	for (; crowd->n < n && crowd->n < CROWD_MAX; crowd->n++) {
		struct guest *one = malloc(sizeof(*one));

		*one = (struct guest){ .crowd = crowd, .seed = crowd->n + 1 };
		pthread_create(&crowd->thread[crowd->n], NULL, guest, one);
	}
	return crowd;
}

const char *crowd_stop(struct crowd *crowd, struct crowd_seen *seen)
{
	static char wrong[160];

	crowd->stop = true;
	pthread_join(crowd->fastest, NULL);
	for (unsigned int i = 0; i < crowd->n; i++)
		pthread_join(crowd->thread[i], NULL);
	*seen = (struct crowd_seen){ crowd->updates, crowd->connections, crowd->frames };
	snprintf(wrong, sizeof(wrong), "%s", crowd->wrong);
	free(crowd);
	return wrong[0] ? wrong : NULL;
}
