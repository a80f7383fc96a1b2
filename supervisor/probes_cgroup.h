/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The BPF programs of cgroups: the walk over all of them, and those that tell of new and removed
 * ones. Each degrades by itself, as those of probes.h do.
 */
#ifndef MOTE_PROBES_CGROUP_H
#define MOTE_PROBES_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "abi.h"
#include "ringbuf.h"

struct mote_probes_cgroup;

struct mote_probes_cgroup_config {
	bool walk, events;        /* which are to be tried */
	unsigned int rows;        /* without that of `other` */
	unsigned int slots;       /* of the index; a power of two */
	unsigned int event_bytes; /* of the ring buffer; a power of two, a page at least */
	int hierarchy;            /* whose events: 0 is that of version 2 */
	int root; /* a directory of version 2, where the walk begins; -1: the root of mote's
		     cgroup namespace */
	unsigned int kernel; /* major << 8 | minor */
	const char *btf;     /* as in probes.h */
	uid_t uid;
	gid_t gid;
};

/* All of it is mapped until mote_probes_cgroup_close(). */
struct mote_cgroup_walk {
	int dirfd; /* of a detached bpffs; openat(dirfd, name), one read() to its end */
	const char *name;
	struct mote_cgroup_ctl *ctl;
	struct mote_cgroup_row *rows;
	struct mote_cgroup_slot *index;
	bool flushes_all; /* false (6.16): memory.stat of the root is to be read before */
};

struct mote_cgroup_ring {
	struct mote_ringbuf ring; /* of struct mote_cgroup_event */
	const u64 *dropped;
};

/*
 * Always gives an object, unless there is no memory (-ENOMEM). `why` is why there is no walk, or if
 * that is not wanted no events, or "".
 */
int mote_probes_cgroup_open(const struct mote_probes_cgroup_config *config, char *why, size_t size,
			    struct mote_probes_cgroup **out);
void mote_probes_cgroup_close(struct mote_probes_cgroup *probes);

/* NULL if it could not be had. */
const struct mote_cgroup_walk *mote_probes_cgroup_walk(const struct mote_probes_cgroup *probes);
struct mote_cgroup_ring *mote_probes_cgroup_ring(struct mote_probes_cgroup *probes);

#endif
