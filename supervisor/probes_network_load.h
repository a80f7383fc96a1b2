/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One try: a set, and one hook (or none) for each event, loaded, attached and mapped. It works as a
 * whole or not at all; who is at fault is said, so that another hook can be tried.
 */
#ifndef MOTE_PROBES_NETWORK_LOAD_H
#define MOTE_PROBES_NETWORK_LOAD_H

#include "probes_kretprobe.h"
#include "probes_network.h"
#include "probes_network_choice.h"
#include "probes_network_failure.h"
#include "probes_network_maps.h"

struct bpf_link;
struct bpf_object;

struct mote_net_pick {
	enum mote_net_set set;
	const struct mote_net_hook *hook[MOTE_NET_EVENTS]; /* NULL: none */
	unsigned int without; /* bits: programs that this kernel has nothing for */
};

struct mote_net_load {
	struct bpf_object *object; /* NULL once it is settled */
	struct bpf_link *links[MOTE_NET_PROGRAMS];
	struct mote_kretprobes kretprobes;
	struct mote_net_memory memory;
	int dirfd; /* of the detached bpffs */
	struct mote_network_maps maps;
};

/*
 * 0, or a negative errno with `failure`; then nothing is left. Hooks count from here on; sockets
 * that were there before are seeded.
 */
int mote_net_load(struct mote_net_load *load, const struct mote_probes_network_config *cfg,
		  const struct mote_net_pick *pick, struct mote_net_failure *failure);
void mote_net_unload(struct mote_net_load *load);

/* bits: the programs of a pick, those that come with every pick included. */
unsigned int mote_net_pick_programs(const struct mote_net_pick *pick,
				    const struct mote_options *options);

#endif
