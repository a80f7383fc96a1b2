/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of the network probes share about the object. */
#ifndef MOTE_PROBES_NETWORK_IMPL_H
#define MOTE_PROBES_NETWORK_IMPL_H

#include "probes_network_load.h"

struct mote_probes_network {
	const struct mote_options *options;
	struct mote_net_load load;
	struct mote_net_pick pick; /* what is loaded */
	bool loaded;
	char why[MOTE_NET_EVENTS][160]; /* of events without a hook, and hooks that were left */
};

#endif
