/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A part of probes.c: the object of the list walk. What it maps stays until it is closed.
 */
#ifndef MOTE_PROBES_WALK_H
#define MOTE_PROBES_WALK_H

#include "probes.h"

struct mote_probes_walk;

/* Loads, attaches and maps it. Negative errno: `what` is what was attempted. */
int mote_probes_walk_open(const struct mote_probes_config *cfg, bool probe_read,
			  struct mote_probes_walk **out, const char **what);
/* The link has been pinned; gives what the walk fills. */
void mote_probes_walk_give(struct mote_probes_walk *walk, struct mote_probes_iterator *iterator);
void mote_probes_walk_close(struct mote_probes_walk *walk);

struct bpf_link;
struct bpf_link *mote_probes_walk_link(const struct mote_probes_walk *walk);

/* Frees what was needed for loading only. */
void mote_probes_walk_settle(struct mote_probes_walk *walk);

#endif
