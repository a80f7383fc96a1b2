/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The maps of the network programs: their sizes before they are made, their memory and the free
 * slots after.
 */
#ifndef MOTE_PROBES_NETWORK_MAPS_H
#define MOTE_PROBES_NETWORK_MAPS_H

#include <stddef.h>

#include "probes_network.h"

struct bpf_object;

#define MOTE_NET_MAPS 8

struct mote_net_memory {
	void *map[MOTE_NET_MAPS];
	size_t len[MOTE_NET_MAPS];
	unsigned int n;
};

/* Before the object is loaded. 0 or a negative errno, as the next. */
int mote_net_maps_size(struct bpf_object *object, const struct mote_options *options,
		       unsigned int ncpus);

/* Maps all of it, every page touched, and makes every slot free, of generation 1. */
int mote_net_maps_open(struct mote_net_memory *memory, struct bpf_object *object,
		       const struct mote_options *options, unsigned int ncpus,
		       struct mote_network_maps *maps);
void mote_net_maps_close(struct mote_net_memory *memory);

#endif
