/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What cgroupfs says, read for the test and in no way as moted does: by getmntent(), stdio and
 * sscanf(), from a table of its own. Fields go by their names in the schema.
 */
#ifndef CGROUPDIFF_TEXT_H
#define CGROUPDIFF_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#define FIELDS_MAX 64

struct values {
	uint64_t present; /* bit per field */
	uint64_t v[FIELDS_MAX];
};

struct field {
	const char *name;
	bool counter;  /* never falls */
	uint64_t step; /* what the text rounds to */
};

/* Hierarchies: 0 is that of version 2. */
enum { UNIFIED, CPU, CPUACCT, MEMORY, PIDS, BLKIO, FREEZER, HIERARCHIES };

struct mounts {
	char point[HIERARCHIES][256]; /* "": not mounted */
	int version;                  /* 0: nothing is mounted */
	int primary;                  /* whose directories are the cgroups */
};

/* `unified`: version 2's are looked at even if version 1 has the controllers. */
void text_mounts(struct mounts *mounts, bool unified);
/* The fields of that version, and how many; those of version 1 and 2 have the same numbers. */
const struct field *text_fields(unsigned int *n);
unsigned int text_field(const char *name);
/* All of the cgroup at `path`, below the mount points, without a slash before it. */
void text_read(const struct mounts *mounts, const char *path, struct values *values);

#endif
