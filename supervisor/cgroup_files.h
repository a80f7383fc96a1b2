/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads the files of cgroupfs into rows, in rounds of operations on the ring: some are kept open,
 * others opened, read and closed. At most so many are read at a time as there are chains in a
 * round. The first round may hang on the tick's timer; it is the only one unless the queue or the
 * memory for texts is too small for it. Nothing is allocated after the start.
 */
#ifndef MOTE_CGROUP_FILES_H
#define MOTE_CGROUP_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "cgroup_layout.h"
#include "cgroup_set.h"
#include "engine.h"

struct mote_cgroup_files;

struct mote_cgroup_files_config {
	const struct mote_options *options;
	const struct mote_cgroup_layout *layout;
	struct mote_cgroup_set *set;
	uint64_t given;    /* values that a walk gives: no file is read for these alone */
	unsigned int held; /* descriptors that others may come to hold */
	bool direct;       /* mote_engine_direct() */
};

struct mote_cgroup_files_stats {
	uint64_t reads, errors, gone, cut;
	unsigned int pooled;           /* files that are kept open */
	unsigned int pool_max, wanted; /* how many may be, and would be with a higher limit */
};

int mote_cgroup_files_open(const struct mote_cgroup_files_config *config,
			   struct mote_cgroup_files **out); /* 0 or -ENOMEM */
/* After the engine is gone. */
void mote_cgroup_files_close(struct mote_cgroup_files *files);
/* When all cgroups of the start are known: touches what the loop will use of its memory. */
void mote_cgroup_files_settle(struct mote_cgroup_files *files);

/*
 * Begins a sample. `now`: its time, ns, which grows; `at_a_time` chains. `ahead`: its first round
 * is pushed in advance; what is read now and then may be put off to the samples after it.
 */
void mote_cgroup_files_begin(struct mote_cgroup_files *files, uint64_t now, unsigned int at_a_time,
			     bool ahead);
/* The round that is part of a chain of the caller's, at most `room` operations; not to be ended. */
unsigned int mote_cgroup_files_push_ahead(struct mote_cgroup_files *files,
					  struct mote_engine *engine, uint32_t index,
					  unsigned int room);
/* That round is over. `now`: the time of the sample as it turned out to be. */
void mote_cgroup_files_arrive(struct mote_cgroup_files *files, uint64_t now);
/*
 * Pushes the next round, at most `room` operations tagged MOTE_TAG_FILE with `index`, in chains
 * that have ended; 0: the sample is complete. All of a round must have completed before. `apart`:
 * they are tagged MOTE_TAG_CGROUP, and may take as long as they like.
 */
unsigned int mote_cgroup_files_push(struct mote_cgroup_files *files, struct mote_engine *engine,
				    uint32_t index, unsigned int room, bool apart);
/* What the rounds bring from now on is of this time. */
void mote_cgroup_files_move(struct mote_cgroup_files *files, uint64_t now);
void mote_cgroup_files_complete(struct mote_cgroup_files *files, uint32_t step, int res);

void mote_cgroup_files_stats(const struct mote_cgroup_files *files,
			     struct mote_cgroup_files_stats *stats);

#endif
