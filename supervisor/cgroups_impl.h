/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What cgroups.c, which makes it, and cgroups_sample.c, which collects, share. */
#ifndef MOTE_CGROUPS_IMPL_H
#define MOTE_CGROUPS_IMPL_H

#include "cgroup_budget.h"
#include "cgroup_files.h"
#include "cgroup_iter.h"
#include "cgroup_layout.h"
#include "cgroup_log.h"
#include "cgroup_set.h"
#include "cgroup_watch.h"
#include "cgroups.h"
#include "file.h"
#include "log.h"
#include "probes_cgroup.h"

enum mote_cgroups_step { IDLE, WALKING, READING };

struct mote_cgroups {
	const struct mote_options *options;
	struct mote_cgroup_layout layout;
	struct mote_probes_cgroup *probes;
	const struct mote_cgroup_walk *walk; /* NULL: none */
	char why[256];                       /* there is no walk, or no BPF for events */
	struct mote_cgroup_set set;
	struct mote_cgroup_log log;
	struct mote_cgroup_iter *iter;
	struct mote_cgroup_files *files;
	struct mote_cgroup_watch *watch;
	struct mote_file status; /* /proc/self/status, if the number of reads goes by CPUs */
	uint64_t own;            /* id of the cgroup that mote is in */
	uint64_t now;
	uint64_t collected; /* when a collection began last, ns; 0: never */
	uint64_t collections;
	unsigned int reads; /* at a time */
	enum mote_cgroups_step step;
	bool files_ahead; /* the files' first round is part of the tick's chain */
	struct mote_cgroup_budget budget;
	unsigned int apart; /* operations under way that no tick waits for */
	bool busy;          /* the sample goes on apart */
	uint64_t began;     /* this sample, ns; what a tick waits for counts from there */
	uint64_t ended;     /* when one that went on apart was complete, ns */
	uint64_t late;
	struct mote_limit slow_limit;
	bool names_only; /* this sample is the walk alone */
	bool listed;
	uint64_t left_out; /* of this listing: there was no room to know them */
	uint64_t renamed;  /* when those without a name were forgotten last, ns */
	uint64_t warned;   /* [tables] cgroups is too small for so many, as was said */
	struct mote_limit limit;
	bool crowded; /* there are too few descriptors */
};

#endif
