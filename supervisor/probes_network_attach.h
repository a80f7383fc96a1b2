/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attaching the programs of a pick. 0, or a negative errno with `failure`; what was attached by
 * then is in load->links.
 */
#ifndef MOTE_PROBES_NETWORK_ATTACH_H
#define MOTE_PROBES_NETWORK_ATTACH_H

#include "probes_network_load.h"

struct bpf_program;

struct bpf_program *mote_net_program(const struct bpf_object *object, unsigned int program);

/* Whether this program is part of the event's hook. */
bool mote_net_counts_by(const struct mote_net_pick *pick, enum mote_net_event event,
			enum mote_net_program_id program);

/* Before anything is loaded: functions that kprobes are to be put on, where the kernel would take
   the wrong one. */
int mote_net_check_symbols(const struct mote_probes_network_config *cfg,
			   const struct mote_net_pick *pick, struct mote_net_failure *failure);

int mote_net_attach_hooks(struct mote_net_load *load, const struct mote_probes_network_config *cfg,
			  const struct mote_net_pick *pick, struct mote_net_failure *failure);

/* Attaches the iterators, and pins those that are run later. */
int mote_net_attach_iterators(struct mote_net_load *load,
			      const struct mote_probes_network_config *cfg, unsigned int programs,
			      struct mote_net_failure *failure);

#endif
