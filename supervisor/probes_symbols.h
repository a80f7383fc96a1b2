/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether a kprobe on a function would be on all of it. /proc/kallsyms shows names to everybody,
 * whatever kernel.kptr_restrict says; no address is needed.
 */
#ifndef MOTE_PROBES_SYMBOLS_H
#define MOTE_PROBES_SYMBOLS_H

#include <stdio.h>

struct mote_symbol {
	const char *name;
	unsigned int exact;  /* functions of this name */
	unsigned int cloned; /* of the name with a compiler's suffix: .isra.0, .constprop.0, ... */
};

/* Counts in text as of /proc/kallsyms. */
void mote_symbols_count(FILE *file, struct mote_symbol *symbols, unsigned int n);

/* Why a kprobe on it would not be right; NULL: nothing is known against it. */
const char *mote_symbols_fault(const struct mote_symbol *symbol);

#endif
