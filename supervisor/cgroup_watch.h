/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which cgroups there are, where BPF does not tell: a thread lists the tree, because the ring has
 * no opcode for that, and watches it by inotify, whose watches take a system call each. What it
 * finds are records in memory of the form of a BPF ring buffer; when that is full the thread waits,
 * so nothing is lost. What inotify's own queue lost is listed anew.
 */
#ifndef MOTE_CGROUP_WATCH_H
#define MOTE_CGROUP_WATCH_H

#include <stdbool.h>

#include "ringbuf.h"

struct mote_cgroup_watch;

struct mote_cgroup_watch_config {
	const char *root;         /* a mount of cgroupfs */
	bool events;              /* watch for new and removed ones, not just list */
	unsigned int directories; /* most that are watched */
	unsigned int interval_ms; /* between two listings */
	unsigned int bytes;       /* of the memory for records, a power of two */
};

/* Starts the thread, which lists at once. 0 or negative errno. */
int mote_cgroup_watch_start(const struct mote_cgroup_watch_config *config,
			    struct mote_cgroup_watch **out);
void mote_cgroup_watch_stop(struct mote_cgroup_watch *watch);

/* Its memory, to read struct mote_cgroup_event from. */
struct mote_ringbuf *mote_cgroup_watch_ring(struct mote_cgroup_watch *watch);
/* False: there is no inotify to be had here, and no event is told of, though asked for. */
bool mote_cgroup_watch_has_events(const struct mote_cgroup_watch *watch);
/*
 * How often inotify's queue was full, how many it lost then is not known; and how many directories
 * it would not watch.
 */
const uint64_t *mote_cgroup_watch_dropped(const struct mote_cgroup_watch *watch);

#endif
