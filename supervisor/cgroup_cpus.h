/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How many CPUs mote itself may use: by its affinity, and by the quotas of the cgroups it is in.
 * Never the number that the host has.
 */
#ifndef MOTE_CGROUP_CPUS_H
#define MOTE_CGROUP_CPUS_H

#include "cgroup_layout.h"
#include "cgroup_set.h"
#include "parse.h"

/* The CPUs in the line `Cpus_allowed:` of /proc/PID/status; 0: it is not there. */
unsigned int mote_cgroup_parse_affinity(struct mote_text status);
/* The id of the cgroup that mote is in, 0 if that is not found. For the start only. */
uint64_t mote_cgroup_own(const struct mote_cgroup_layout *layout);
/* `affinity` CPUs, or what the quotas of `own` and those above it leave of them; at least 1. */
unsigned int mote_cgroup_cpus(const struct mote_cgroup_set *set, uint64_t own,
			      unsigned int affinity);

#endif
