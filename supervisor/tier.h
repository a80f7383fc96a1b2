/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The choices mote made on this host, each with its reason: what --check prints, what the hello
 * frame's `tiers` says, and what `mote stats` shows.
 */
#ifndef MOTE_TIER_H
#define MOTE_TIER_H

#define MOTE_TIERS_MAX 24

struct mote_tier {
	char name[24];
	char choice[32];
	char reason[224];
};

struct mote_tiers {
	unsigned int n;
	struct mote_tier tier[MOTE_TIERS_MAX];
};

/* Text that does not fit is cut; a tier of a name that is there already takes its place. */
void mote_tiers_add(struct mote_tiers *tiers, const char *name, const char *choice, const char *fmt,
		    ...) __attribute__((format(printf, 4, 5)));

/* NULL if there is none. */
const struct mote_tier *mote_tiers_find(const struct mote_tiers *tiers, const char *name);

#endif
