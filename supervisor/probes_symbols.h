/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * /proc/kallsyms: whether a kprobe on a function would be on all of it, and where data is. It shows
 * names to everybody, addresses as kernel.kptr_restrict says.
 */
#ifndef MOTE_PROBES_SYMBOLS_H
#define MOTE_PROBES_SYMBOLS_H

#include <stdint.h>
#include <stdio.h>

struct mote_symbol {
	const char *name;
	unsigned int exact;  /* functions of this name */
	unsigned int cloned; /* of the name with a compiler's suffix: .isra.0, .constprop.0, ... */
};

/* Counts in text as of /proc/kallsyms. */
void mote_symbols_count(FILE *file, struct mote_symbol *symbols, unsigned int n);

struct mote_address {
	const char *name;
	uint64_t address; /* 0: it is not there, or must not be seen */
};

/* The first of each name, in text as of /proc/kallsyms. */
void mote_symbols_find(FILE *file, struct mote_address *addresses, unsigned int n);

/* Why a kprobe on it would not be right; NULL: nothing is known against it. */
const char *mote_symbols_fault(const struct mote_symbol *symbol);

#endif
