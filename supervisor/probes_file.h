/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file probes: the hooks of bpf/file.bpf.c and the memory that they write to, as
 * probes_network.h has it for sockets. Opened once at start, while mote is privileged; what could
 * not be had is absent, and its tier says why.
 */
#ifndef MOTE_PROBES_FILE_H
#define MOTE_PROBES_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi_file.h"
#include "host_features.h"
#include "options.h"
#include "tier.h"

struct mote_probes_file;

struct mote_probes_file_config {
	const struct mote_options *options;   /* probes, [file], [filters], [tables] files... */
	const struct mote_features *features; /* the kernel, its preemption model */
	uid_t uid; /* owner of the pinned iterators; (uid_t)-1: as we are */
	gid_t gid;
};

/* How bytes move, each seen by hooks of its own or not at all. */
enum mote_file_event {
	MOTE_FILE_CALLS,    /* read, write and their kin, sendfile, copy_file_range */
	MOTE_FILE_SPLICE,   /* splice(2) */
	MOTE_FILE_URING,    /* io_uring */
	MOTE_FILE_SENDFILE, /* what sendfile() reads of, for edges */
	MOTE_FILE_AIO,      /* io_submit(2) */
	MOTE_FILE_EVENTS,
};

/* Mapped memory and pinned iterators, for as long as the object lives. */
struct mote_file_maps {
	int dirfd;        /* of a detached bpffs */
	const char *reap; /* names under dirfd: one open, read to the end, close is one pass */
	const char *walk;
	struct mote_access *accesses;
	struct mote_path *paths; /* of the slot with the same number */
	uint32_t size;
	struct mote_slot_marks *marks;
	struct mote_reap *reaps;
	struct mote_slot_cpu *cpus;
	unsigned int ncpus;
	struct mote_file_ctl *ctl;
	uint32_t nthreads; /* most that ctl->threads can be */
	struct mote_file_verdicts *verdicts;
	/* Edges between files and sockets; NULL: nobody looks for any. */
	struct mote_edge *edges;
	struct mote_slot_marks *edge_marks;
	uint32_t nedges;
	bool has[MOTE_FILE_EVENTS];
};

/*
 * Always gives an object unless there is no memory (-ENOMEM). Adds the tier `file` (fentry, kprobe
 * or none) with the reason for the choice, and unless that is none file_splice and its kin. Call
 * before threads exist.
 */
int mote_probes_file_open(const struct mote_probes_file_config *cfg, struct mote_tiers *tiers,
			  struct mote_probes_file **out);
void mote_probes_file_close(struct mote_probes_file *file);

/* NULL if nothing counts here. */
const struct mote_file_maps *mote_probes_file_maps(const struct mote_probes_file *file);

/*
 * Whether the network's programs are to look for edges: they then use these maps, too, by name.
 * Their descriptors are closed with the object.
 */
struct mote_file_shared {
	const char *name;
	int fd; /* -1: there is none, and nothing may be looked for */
};
#define MOTE_FILE_SHARED 9
void mote_probes_file_share(const struct mote_probes_file *file,
			    struct mote_file_shared shared[MOTE_FILE_SHARED]);
/* They have been taken. */
void mote_probes_file_shared(struct mote_probes_file *file);

/*
 * Lets a child write and read a known number of bytes, and compares. What does not see exactly
 * these is taken away again, and the tier says so.
 */
void mote_probes_file_check(struct mote_probes_file *file, struct mote_tiers *tiers);

#endif
