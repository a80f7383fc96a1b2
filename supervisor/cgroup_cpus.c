// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Effective CPUs, see cgroup_cpus.h. Quotas are those of the rows, which are read again as the
 * others are; a cgroup that is not shown has no quota here.
 */
#include "cgroup_cpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "scan.h"

static unsigned int bits_of(char digit)
{
	unsigned int v =
		digit <= '9' ? (unsigned int)(digit - '0') : (unsigned int)(digit - 'a') + 10;

	return v < 16 ? (unsigned int)__builtin_popcount(v) : 0;
}

unsigned int mote_cgroup_parse_affinity(struct mote_text status)
{
	struct mote_scan scan = mote_scan_text(status), line;
	unsigned int cpus = 0;

	while (mote_scan_line(&scan, &line)) {
		struct mote_text word = mote_scan_word(&line);

		if (!mote_text_is(word, "Cpus_allowed:"))
			continue;
		word = mote_scan_word(&line);
		for (size_t i = 0; i < word.len; i++)
			cpus += word.data[i] == ',' ? 0 : bits_of(word.data[i]);
		return cpus;
	}
	return 0;
}

/* `4:memory:/user.slice` or `0::/user.slice` */
static bool is_line_of(const char *line, enum mote_cgroup_controller primary)
{
	static const char *const names[MOTE_CGROUP_CONTROLLERS] = {
		[MOTE_CGROUP_CPU] = "cpu",
		[MOTE_CGROUP_CPUACCT] = "cpuacct",
		[MOTE_CGROUP_MEMORY] = "memory",
	};
	const char *list = strchr(line, ':'), *path;
	size_t len;

	if (primary == MOTE_CGROUP_UNIFIED)
		return !strncmp(line, "0::", 3);
	path = list ? strchr(list + 1, ':') : NULL;
	len = names[primary] ? strlen(names[primary]) : 0;
	for (const char *at = list ? list + 1 : NULL; len && at && path && at < path;) {
		size_t word = strcspn(at, ",:");

		if (word == len && !memcmp(at, names[primary], len))
			return true;
		at += word + 1;
	}
	return false;
}

uint64_t mote_cgroup_own(const struct mote_cgroup_layout *layout)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char *line = NULL, path[4096];
	uint64_t id = 0;
	size_t size = 0;
	struct stat st;

	while (file && !id && getline(&line, &size, file) > 0) {
		const char *at = strchr(line, '/');

		if (!at || !is_line_of(line, layout->primary))
			continue;
		snprintf(path, sizeof(path), "%s%.*s", layout->mount[layout->primary],
			 (int)strcspn(at, "\n"), at);
		id = stat(path, &st) ? 0 : st.st_ino;
	}
	free(line);
	if (file)
		fclose(file);
	return id;
}

static const struct mote_cgroup_row *row_of(const struct mote_cgroup_set *set, uint32_t node)
{
	uint32_t row = set->nodes[node].row;

	return row < set->max ? &set->rows[row] : NULL;
}

#define HAS_QUOTA (1ull << MOTE_CGROUP_CPU_QUOTA | 1ull << MOTE_CGROUP_CPU_PERIOD)

unsigned int mote_cgroup_cpus(const struct mote_cgroup_set *set, uint64_t own,
			      unsigned int affinity)
{
	uint64_t cpus = affinity;

	for (uint64_t id = own; id;) {
		const struct mote_cgroup_slot *slot = mote_cgroup_set_find(set, id);
		const struct mote_cgroup_row *row;
		uint64_t allowed;

		if (!slot || slot->node == MOTE_CGROUP_NONE)
			break;
		row = row_of(set, slot->node);
		id = set->nodes[slot->node].parent_id;
		if (!row || (row->present & HAS_QUOTA) != HAS_QUOTA ||
		    !row->v[MOTE_CGROUP_CPU_PERIOD])
			continue;
		allowed = row->v[MOTE_CGROUP_CPU_QUOTA] / row->v[MOTE_CGROUP_CPU_PERIOD];
		if (allowed < cpus)
			cpus = allowed;
	}
	return cpus ? (unsigned int)cpus : 1;
}
