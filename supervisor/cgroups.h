/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cgroups: which there are, what they use, and that they come and go. What the loop knows of all
 * that begins with cgroup_.
 */
#ifndef MOTE_CGROUPS_H
#define MOTE_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "cgroup_set.h"
#include "engine.h"
#include "options.h"
#include "tier.h"

struct mote_cgroups;

/* Adds the tier `cgroups`. 0 with *out NULL: there are none here, as the tier says. Or -ENOMEM. */
int mote_cgroups_open(const struct mote_options *options, struct mote_tiers *tiers,
		      struct mote_cgroups **out);
void mote_cgroups_close(struct mote_cgroups *cgroups);

/* Why this field is absent on this host, or NULL. */
const char *mote_cgroups_why(const struct mote_cgroups *cgroups, unsigned int field);
struct mote_cgroup_set *mote_cgroups_set(struct mote_cgroups *cgroups);

/* Takes notice of those that came and went. `now`: time of the sample, ns, which grows. */
void mote_cgroups_drain(struct mote_cgroups *cgroups, uint64_t now);

/* Whether what was collected last is too old for somebody who asks at `now`. */
bool mote_cgroups_stale(const struct mote_cgroups *cgroups, uint64_t now);
/* Begins to collect. Then push until that gives 0; all of a round must have completed before. */
void mote_cgroups_begin(struct mote_cgroups *cgroups, uint64_t now);
unsigned int mote_cgroups_push(struct mote_cgroups *cgroups, struct mote_engine *engine,
			       uint32_t index, unsigned int room);
void mote_cgroups_complete(struct mote_cgroups *cgroups, uint32_t step, int res);

struct mote_cgroups_stats {
	struct mote_fill rows, nodes, events;
	uint64_t errors; /* reads that failed though the cgroup was there */
};
void mote_cgroups_stats(const struct mote_cgroups *cgroups, struct mote_cgroups_stats *stats);

#endif
