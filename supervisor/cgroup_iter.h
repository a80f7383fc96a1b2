/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All cgroups by the kernel's iterator: one open, read and close, whose program writes the rows.
 * What it finds that is not known yet is made known, and the walk repeated, for their rows.
 */
#ifndef MOTE_CGROUP_ITER_H
#define MOTE_CGROUP_ITER_H

#include <stdbool.h>
#include <stdint.h>

#include "cgroup_layout.h"
#include "cgroup_set.h"
#include "engine.h"
#include "probes_cgroup.h"

struct mote_cgroup_iter;

/* `set` has the walk's memory; `layout` may have no mount. 0 or -ENOMEM, or why it cannot be read.
 */
int mote_cgroup_iter_open(const struct mote_cgroup_walk *walk,
			  const struct mote_cgroup_layout *layout, struct mote_cgroup_set *set,
			  bool direct, struct mote_cgroup_iter **out);
void mote_cgroup_iter_close(struct mote_cgroup_iter *iter);

/* Values that the walk gives, bits. */
uint64_t mote_cgroup_iter_gives(const struct mote_cgroup_iter *iter);

#define MOTE_CGROUP_ITER_FILES 3
/* Begins a sample of time `now`. */
void mote_cgroup_iter_begin(struct mote_cgroup_iter *iter, uint64_t now);
/* Pushes a walk, with indices from `index` on, as a chain that is not ended. */
unsigned int mote_cgroup_iter_push(struct mote_cgroup_iter *iter, struct mote_engine *engine,
				   uint32_t index);
/*
 * Takes the walk that was read. `now`: the time of the sample as it turned out to be. True if there
 * is to be another: else the sample is complete.
 */
bool mote_cgroup_iter_take(struct mote_cgroup_iter *iter, uint64_t now);
void mote_cgroup_iter_complete(struct mote_cgroup_iter *iter, uint32_t file, uint32_t step,
			       int res);
/*
 * Whether the sample has another walk, after so many, the last of which found `unknown` new ones:
 * one for the rows of what came, and as many as it takes to know more than a walk can tell of. Who
 * makes cgroups all the time is not walked after. `calm`, 0 at first: walks since one found more.
 */
bool mote_cgroup_iter_goes_on(unsigned int walks, unsigned int *calm, uint32_t unknown);
/* Walks that could not be read to their end. */
uint64_t mote_cgroup_iter_errors(const struct mote_cgroup_iter *iter);

#endif
