/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether ticks wait for files of cgroupfs. A read may take seconds, where the kernel sums up
 * thousands of removed cgroups; nothing interrupts it, and which one it is shows only afterwards.
 * So after a sample that took too long the files are read beside the ticks for a while, and then
 * it is tried anew: one tick is late, and the while is twice as long if it is no better.
 */
#ifndef MOTE_CGROUP_BUDGET_H
#define MOTE_CGROUP_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct mote_cgroup_budget {
	uint64_t limit;       /* ns, of a sample */
	uint64_t since, span; /* of the last while; span 0: there was none */
};

/* Whether ticks do not wait at `now`. */
bool mote_cgroup_budget_is_apart(const struct mote_cgroup_budget *budget, uint64_t now);
/*
 * A sample that began at `began` is not over at `now`. True if it may take no longer: the ticks do
 * not wait from then on.
 */
bool mote_cgroup_budget_exceeds(struct mote_cgroup_budget *budget, uint64_t began, uint64_t now);

#endif
