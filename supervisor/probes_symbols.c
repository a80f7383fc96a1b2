// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Until 6.7 (b022f0c7e404) the kernel puts a kprobe on the first of several functions of one name
 * without a word. A part of a function that the compiler took out has the function's name and a
 * suffix, and is not what the probe is on.
 */
#include "probes_symbols.h"

#include <stdlib.h>
#include <string.h>

/* "ffffffff81234560 T release_sock" or "ffffffffc0123450 t f.isra.0	[module]" */
static void count(const char *line, struct mote_symbol *symbols, unsigned int n)
{
	const char *type = strchr(line, ' ');
	size_t len;

	if (!type || !strchr("tTwW", type[1]) || type[2] != ' ')
		return;
	for (unsigned int i = 0; i < n; i++) {
		len = strlen(symbols[i].name);
		if (strncmp(type + 3, symbols[i].name, len) != 0)
			continue;
		if (strchr("\t\n", type[3 + len])) /* a NUL, too */
			symbols[i].exact++;
		else if (type[3 + len] == '.' && strncmp(type + 3 + len, ".cold", 5) != 0)
			symbols[i].cloned++;
	}
}

void mote_symbols_count(FILE *file, struct mote_symbol *symbols, unsigned int n)
{
	char line[512];

	while (fgets(line, sizeof(line), file))
		count(line, symbols, n);
}

static struct mote_address *find(const char *line, struct mote_address *addresses, unsigned int n)
{
	const char *type = strchr(line, ' ');
	size_t len;

	if (!type || !type[1] || type[2] != ' ')
		return NULL;
	for (unsigned int i = 0; i < n; i++) {
		len = strlen(addresses[i].name);
		if (!strncmp(type + 3, addresses[i].name, len) && strchr("\n", type[3 + len]))
			return &addresses[i];
	}
	return NULL;
}

void mote_symbols_find(FILE *file, struct mote_address *addresses, unsigned int n)
{
	unsigned int found = 0;
	struct mote_address *a;
	char line[512];

	for (unsigned int i = 0; i < n; i++)
		addresses[i].address = 0;
	while (found < n && fgets(line, sizeof(line), file)) {
		a = find(line, addresses, n);
		if (!a || a->address)
			continue;
		a->address = strtoull(line, NULL, 16);
		found++;
	}
}

const char *mote_symbols_fault(const struct mote_symbol *symbol)
{
	if (symbol->exact > 1)
		return "the kernel has several functions of that name";
	if (symbol->cloned)
		return "the compiler has made a variant of that function (.isra, .constprop or .part)";
	return NULL;
}
