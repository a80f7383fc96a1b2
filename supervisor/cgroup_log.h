/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue of cgroups that came and went, between what tells of them (a BPF ring buffer, or the
 * watching thread) and its readers: the set of known cgroups, and the stream `cgroup_event`, which
 * gets them from the queue's own memory.
 */
#ifndef MOTE_CGROUP_LOG_H
#define MOTE_CGROUP_LOG_H

#include <stdint.h>

#include "abi.h"
#include "cgroup_set.h"
#include "frame.h"
#include "ringbuf.h"

struct mote_cgroup_log {
	struct mote_ringbuf *ring; /* NULL: nothing tells */
	const uint64_t *dropped;   /* a count, or NULL */
	const struct mote_cgroup_set *set;
	uint64_t seen; /* position up to which the set has them */
};

/* The next that the set has not had; NULL: no more. */
const struct mote_cgroup_event *mote_cgroup_log_next(struct mote_cgroup_log *log);
void mote_cgroup_log_fill(const struct mote_cgroup_log *log, struct mote_fill *fill); /* bytes */

/* The stream; ctx is the log. */
extern const struct mote_source_ops mote_cgroup_event_source;

/* Whether all that it has given was told to all who read. */
bool mote_cgroup_log_told(const struct mote_cgroup_log *log);
/* Whether there are records that mote_cgroup_log_next() has not given yet. */
bool mote_cgroup_log_has_more(const struct mote_cgroup_log *log);

#endif
