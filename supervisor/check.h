/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * `moted --check`: what this host allows, tier by tier, the choice made and the reason.
 */
#ifndef MOTE_CHECK_H
#define MOTE_CHECK_H

#include <stdbool.h>
#include <stdio.h>

struct mote_features;
struct mote_tiers;

/* As text for a person, or as one JSON object. 0, or -EIO if `out` took an error. */
int mote_check_print(const struct mote_features *features, const struct mote_tiers *tiers,
		     bool json, FILE *out);

#endif
