/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The network probes: which hooks count bytes on this kernel, and the memory that they write to.
 * For each event there is an ordered list of hooks; the first that loads, attaches and is exact on
 * this kernel is taken (docs/HOOKS.md). Opened once at start, while mote is privileged; nothing
 * here is called on a tick. What could not be had is absent, and its tier says why.
 */
#ifndef MOTE_PROBES_NETWORK_H
#define MOTE_PROBES_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi.h"
#include "host_features.h"
#include "options.h"
#include "probes_file.h"
#include "tier.h"

struct mote_probes_network;

struct mote_probes_network_config {
	const struct mote_options *options;   /* probes, [network], [tables] sockets and flows */
	const struct mote_features *features; /* the kernel, its preemption model */
	uid_t uid; /* owner of the pinned iterators; (uid_t)-1: as we are */
	gid_t gid;
	int events; /* descriptor of the ring buffer for records of sockets; -1: there is none */
	/* Maps of the file programs for the edges between files and sockets; NULL: no edges. */
	const struct mote_file_shared *shared; /* [MOTE_FILE_SHARED] */
};

/* What happens, each by one hook or not at all. */
enum mote_net_event {
	MOTE_NET_TCP, /* bytes both ways */
	MOTE_NET_UDP_SEND,
	MOTE_NET_UDP_RECV,
	MOTE_NET_STATE,   /* TCP states, and so opened and closed */
	MOTE_NET_DESTROY, /* a UDP socket ends; without it the tick's iterator finds out */
	MOTE_NET_EVENTS,
};

/* Mapped memory and pinned iterators, for as long as the object lives. */
struct mote_network_maps {
	int dirfd;        /* of a detached bpffs */
	const char *reap; /* name under dirfd: one open, read to the end, close is one pass */
	const char *tcp;  /* refreshes state, srtt, truth of known TCP sockets, marks what changed;
			     NULL if it could not be had */
	const char *
		udp; /* marks (by `opened` and `closed`) UDP sockets that are gone; NULL likewise */
	struct mote_socket *sockets;
	struct mote_flow *flows;
	uint32_t nsockets, nflows;
	struct mote_slot_marks *socket_marks, *flow_marks;
	struct mote_reap *reaps; /* [MOTE_SLOT_TABLES] */
	struct mote_slot_cpu *cpus;
	unsigned int ncpus;
	struct mote_net_ctl *ctl;
	bool events; /* records of sockets are written, while ctl->events is set */
	bool has[MOTE_NET_EVENTS];
	const char *why[MOTE_NET_EVENTS]; /* the hook that was taken; or why there is none */
	/* /proc/self/fdinfo/FD of these has a line `recursion_misses:` (5.17; from 5.12 on they
	   happen): runs that the kernel left out. To be read by pooled reads. */
	int programs[16];
	unsigned int nprograms;
	/* Of return probes: a file of lines `NAME HITS MISSES`, among them one for each of these
	   names; -1: there are none. */
	int profile;
	const char *kretprobes[4];
	unsigned int nkretprobes;
};

/*
 * Always gives an object unless there is no memory (-ENOMEM). Adds the tier `network` (fentry,
 * kprobe, tracepoint or none) with the reason for the choice, and, unless that is none, one for
 * each event with its hook. Existing sockets are seeded when it returns. Call before
 * threads exist.
 */
int mote_probes_network_open(const struct mote_probes_network_config *cfg, struct mote_tiers *tiers,
			     struct mote_probes_network **out);
void mote_probes_network_close(struct mote_probes_network *network);

/* NULL if nothing counts here. */
const struct mote_network_maps *mote_probes_network_maps(const struct mote_probes_network *network);

/*
 * Moves known bytes over TCP and UDP on loopback sockets and compares with what the hooks saw. An
 * event that did not see exactly them loses its `has`, and its tier says so. Does nothing if
 * `[network] self_check` is off, and where there is no loopback.
 */
void mote_probes_network_check(struct mote_probes_network *network, struct mote_tiers *tiers);

#endif
