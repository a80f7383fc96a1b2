// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The list of choices. It is bounded and filled at start; a tier too many is a fault in mote, and
 * is dropped.
 */
#include "tier.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct mote_tier *mote_tiers_find(const struct mote_tiers *tiers, const char *name)
{
	for (unsigned int i = 0; i < tiers->n; i++) {
		if (!strcmp(tiers->tier[i].name, name))
			return &tiers->tier[i];
	}
	return NULL;
}

void mote_tiers_add(struct mote_tiers *tiers, const char *name, const char *choice, const char *fmt,
		    ...)
{
	struct mote_tier *tier = (struct mote_tier *)mote_tiers_find(tiers, name);
	va_list args;

	if (!tier && tiers->n == MOTE_TIERS_MAX)
		return;
	if (!tier)
		tier = &tiers->tier[tiers->n++];
	snprintf(tier->name, sizeof(tier->name), "%s", name);
	snprintf(tier->choice, sizeof(tier->choice), "%s", choice);
	va_start(args, fmt);
	vsnprintf(tier->reason, sizeof(tier->reason), fmt, args);
	va_end(args);
}
