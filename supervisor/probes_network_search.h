/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The search within a set: for each event the first hook of its list that nothing speaks against.
 * It knows nothing of BPF: somebody tries a pick and says which program failed.
 */
#ifndef MOTE_PROBES_NETWORK_SEARCH_H
#define MOTE_PROBES_NETWORK_SEARCH_H

#include "probes_network_load.h"

struct mote_net_search {
	struct mote_net_pick pick; /* to be tried; what worked */
	const struct mote_net_hook *hooks[MOTE_NET_EVENTS][MOTE_NET_HOOKS_MAX];
	unsigned int n[MOTE_NET_EVENTS], at[MOTE_NET_EVENTS];
	char reason[MOTE_NET_EVENTS][160]; /* why not the first of the list; "" */
	char last[160];                    /* what was said last */
	bool dead;                         /* no pick of this set can work */
};

void mote_net_search_begin(struct mote_net_search *search, enum mote_net_set set,
			   const struct mote_options *options,
			   const struct mote_features *features);

/* How much a pick must count to be worth a try. */
enum mote_net_level {
	MOTE_NET_ALL,   /* every event that the set knows and the options want */
	MOTE_NET_BYTES, /* every one of these that counts bytes */
	MOTE_NET_SOME,  /* bytes of something */
	MOTE_NET_LEVELS,
};

bool mote_net_search_meets(const struct mote_net_search *search, enum mote_net_level level);

/* Takes the next hook of each event that used the failed program. False: no other pick helps. */
bool mote_net_search_failed(struct mote_net_search *search, const struct mote_features *features,
			    const struct mote_net_failure *failure);

#endif
