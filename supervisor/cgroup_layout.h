/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where cgroupfs is mounted, and which version has the controllers. Opened at start; the
 * descriptors are of the roots, below which everything is named by its path.
 */
#ifndef MOTE_CGROUP_LAYOUT_H
#define MOTE_CGROUP_LAYOUT_H

#include <stdbool.h>

#include "parse_cgroup.h"

#define MOTE_CGROUP_MOUNT 256

struct mote_cgroup_layout {
	unsigned int version; /* 2; 1 where controllers are in hierarchies of version 1; 0: none */
	bool hybrid;          /* version 1, and version 2 beside it */
	int root[MOTE_CGROUP_CONTROLLERS];   /* -1: not mounted */
	int hierarchy;                       /* number of the primary one; 0: version 2 */
	enum mote_cgroup_controller primary; /* whose directories and ids are the cgroups' */
	char mount[MOTE_CGROUP_CONTROLLERS][MOTE_CGROUP_MOUNT];
};

/* Reads `mountinfo` (NULL: /proc/self/mountinfo). Always gives a layout. */
void mote_cgroup_layout_open(struct mote_cgroup_layout *layout, const char *mountinfo);
/* Version 2 alone, whatever is beside it. */
void mote_cgroup_layout_unify(struct mote_cgroup_layout *layout);
void mote_cgroup_layout_close(struct mote_cgroup_layout *layout);

#endif
