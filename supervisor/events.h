/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue of process events between their source (the BPF ring buffer, or the proc connector)
 * and their two readers: the process table, which settles its accounts with them, and the event
 * stream. Events are taken up to a time only: those after it belong to the next tick.
 */
#ifndef MOTE_EVENTS_H
#define MOTE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "engine.h"
#include "frame.h"
#include "ringbuf.h"
#include "table.h"

struct mote_events {
	struct mote_ringbuf ring;
	const struct mote_event_ctl *ctl; /* drops in the kernel; NULL: none are counted there */
	uint64_t seen;                    /* position up to which the process table has seen them */
	uint64_t overruns;                /* the connector's: datagrams were lost */

	/* The connector only. */
	int fd;
	void *memory;
	uint64_t own_consumer, own_producer;
	char (*datagrams)[256];
	unsigned int asked, taken, rounds; /* reads of this round; rounds of this tick */
};

/* The ring buffer of BPF programs; the mapping stays the caller's. */
void mote_events_open_ring(struct mote_events *events, const struct mote_ringbuf *ring,
			   const struct mote_event_ctl *ctl);
/* The connector's socket; `bytes` of memory, a power of two. */
int mote_events_open_connector(struct mote_events *events, int fd, uint32_t bytes);
void mote_events_close(struct mote_events *events);

/* The next event not later than `until` that the process table has not seen; NULL: no more. */
const struct mote_event *mote_events_next(struct mote_events *events, uint64_t until);
/* Whether there is any. */
bool mote_events_pending(const struct mote_events *events);
/* Lets the kernel have the room of what is before `position`. */
void mote_events_release(struct mote_events *events, uint64_t position);

uint64_t mote_events_dropped(const struct mote_events *events);
void mote_events_fill(const struct mote_events *events, struct mote_fill *fill); /* bytes */

/* The connector's reads of a tick, linked to what comes next; completions by step. */
unsigned int mote_events_push(struct mote_events *events, struct mote_engine *engine,
			      uint32_t index);
/* After these have completed: more, if all of them brought something; 0 if it is empty. */
unsigned int mote_events_push_more(struct mote_events *events, struct mote_engine *engine,
				   uint32_t index);
void mote_events_complete(struct mote_events *events, uint32_t step, int res);

/* The event stream; ctx is the struct mote_events. */
extern const struct mote_source_ops mote_events_source;

#endif
