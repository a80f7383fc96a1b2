/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A subscriber of moted's network streams, read by a thread of its own, and the crowd of others
 * that come and go meanwhile.
 */
#ifndef MOTE_CONSERVE_WATCH_H
#define MOTE_CONSERVE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "rows.h"

enum watch_stream {
	WATCH_SOCKET,
	WATCH_FLOW,
	WATCH_PROCESS,
	WATCH_NETWORK,
	WATCH_TABLE,
	WATCH_STREAMS,
};

struct watch;

/*
 * Connects, subscribes to all streams at an interval, waits for the first of each. NULL: it failed,
 * and stderr says how. `lazy_ms`: it sleeps so long between frames and has a small receive buffer,
 * so that moted drops frames of it.
 */
struct watch *watch_start(const char *path, unsigned int interval_ms, unsigned int lazy_ms);
void watch_stop(struct watch *watch);
/* From now on it reads as fast as it can. */
void watch_hurry(struct watch *watch);

/* Its rows, which do not change between the two calls. */
const struct rows *watch_lock(struct watch *watch); /* an array of WATCH_STREAMS */
void watch_unlock(struct watch *watch);

/* Waits until `holds` says so, asked after every update, at most `ms`. */
bool watch_until(struct watch *watch, bool (*holds)(const struct rows *rows, void *ctx), void *ctx,
		 unsigned int ms);
/* What moted told at the start. */
const struct mote_hello *watch_hello(const struct watch *watch);
/* moted closed the connection, or sent what cannot be read; NULL: it did not. */
const char *watch_broken(const struct watch *watch);
/* Frames that moted dropped of it. */
uint64_t watch_dropped(const struct watch *watch);

/*
 * The crowd: one subscriber of the stream `network` at `fastest_ms`, so that moted swaps that
 * often, and `n` threads that subscribe for some ms to something at some interval, and go, in all
 * ways.
 */
struct crowd;
struct crowd *crowd_start(const char *path, unsigned int fastest_ms, unsigned int n);
/* Ends it. Sets what it has seen; returns what went wrong, or NULL. */
struct crowd_seen {
	uint64_t updates;     /* of the fastest subscriber */
	uint64_t connections; /* of the others */
	uint64_t frames;      /* that they read */
};
const char *crowd_stop(struct crowd *crowd, struct crowd_seen *seen);

#endif
