/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cgroups: which there are, what they use, and that they come and go: the streams cgroup and
 * cgroup_event. What belongs to it begins with cgroup_.
 */
#ifndef MOTE_CGROUPS_H
#define MOTE_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "frame.h"
#include "options.h"
#include "tier.h"

struct mote_cgroups;

#define MOTE_CGROUP_STREAMS (1u << MOTE_STREAM_CGROUP | 1u << MOTE_STREAM_CGROUP_EVENT)

/* Finds the mounts and loads the programs, while mote is privileged. 0 or -ENOMEM. */
int mote_cgroups_new(const struct mote_options *options, unsigned int kernel,
		     struct mote_cgroups **out);
/*
 * Opens the rest, and adds the tiers `cgroups` and `cgroup_events`. -EOPNOTSUPP: there are none
 * here, as the tier says; -ENOENT: [cgroup] source = iterator, and it is not to be had. `held`:
 * descriptors that others may come to hold.
 */
int mote_cgroups_open(struct mote_cgroups *cgroups, bool direct, unsigned int held,
		      struct mote_tiers *tiers);
void mote_cgroups_close(struct mote_cgroups *cgroups);

/* Why this field of the stream cgroup is absent on this host, or NULL. */
const char *mote_cgroups_why(const struct mote_cgroups *cgroups, unsigned int field);
struct mote_source mote_cgroups_source(struct mote_cgroups *cgroups, enum mote_stream_id stream);

/* Takes notice of those that came and went. `now`: time of the sample, ns, which grows. */
void mote_cgroups_drain(struct mote_cgroups *cgroups, uint64_t now);

/* Whether what was collected last is too old for somebody who asks at `now`. */
bool mote_cgroups_stale(const struct mote_cgroups *cgroups, uint64_t now);
/* Whether there are events of cgroups that only a walk knows the names of. */
bool mote_cgroups_needs_names(const struct mote_cgroups *cgroups);
/*
 * What is part of the tick's chain: at most `room` operations of a sample at about `now`, not
 * ended. When they have completed, begin and push as without them: for what they leave to do.
 */
unsigned int mote_cgroups_push_ahead(struct mote_cgroups *cgroups, struct mote_engine *engine,
				     uint32_t index, unsigned int room, uint64_t now);
/* Begins to collect. Then push until that gives 0; all of a round must have completed before. */
void mote_cgroups_begin(struct mote_cgroups *cgroups, uint64_t now);
/* The same, but only for the names that events need. */
void mote_cgroups_begin_names(struct mote_cgroups *cgroups, uint64_t now);
/* At most `room` operations of MOTE_TAG_FILE, with as many indices from `index` on. */
#define MOTE_CGROUPS_INDICES 5
unsigned int mote_cgroups_push(struct mote_cgroups *cgroups, struct mote_engine *engine,
			       uint32_t index, unsigned int room);
void mote_cgroups_complete(struct mote_cgroups *cgroups, uint32_t index, uint32_t step, int res);

/*
 * Files that take longer than [cgroup] budget are read beside the ticks, by operations of
 * MOTE_TAG_CGROUP that no push counts. How many of them have not completed yet: 0 and busy means
 * that it is time for go_on(), which takes what they brought as of `now`.
 */
unsigned int mote_cgroups_apart(const struct mote_cgroups *cgroups);
void mote_cgroups_apart_complete(struct mote_cgroups *cgroups, uint32_t step, int res);
void mote_cgroups_go_on(struct mote_cgroups *cgroups, struct mote_engine *engine, uint32_t index,
			uint64_t now);
/* A collection is under way apart. */
bool mote_cgroups_busy(const struct mote_cgroups *cgroups);
/* And who polls waits for its end: none has ended just now. */
bool mote_cgroups_wait(const struct mote_cgroups *cgroups);

struct mote_cgroups_stats {
	struct mote_fill rows, nodes, events;
	uint64_t collections;
	uint64_t late;   /* ticks that did not wait for files */
	uint64_t errors; /* reads that failed though the cgroup was there */
};
void mote_cgroups_stats(const struct mote_cgroups *cgroups, struct mote_cgroups_stats *stats);

#endif
