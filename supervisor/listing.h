/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which processes there are: a thread lists /proc, because the ring has no opcode for that, and
 * hands the newest list to the loop, which never waits for it.
 */
#ifndef MOTE_LISTING_H
#define MOTE_LISTING_H

#include <stdbool.h>
#include <stdint.h>

struct mote_listing;

struct mote_pids {
	const uint32_t *pid; /* ascending */
	unsigned int n;
	unsigned int more; /* listed, but beyond the most that are held */
};

/*
 * Lists `proc` (NULL: /proc) once before it returns, and then every `interval_ms`. At most `max`
 * processes are held. 0 or negative errno.
 */
int mote_listing_start(const char *proc, unsigned int max, unsigned int interval_ms,
		       struct mote_listing **out);
void mote_listing_stop(struct mote_listing *listing);

/* The newest list, valid until the next call; false: there is none that was not taken before. */
bool mote_listing_take(struct mote_listing *listing, struct mote_pids *out);

#endif
