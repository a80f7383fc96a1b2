// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What cgroupfs says, see text.h. */
#include "text.h"

#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US    1000ull     /* ns */
#define TICK  10000000ull /* ns */
#define PAGES 0x7ffffffffffff000ull

static const struct field fields[] = {
	{ "cpu_usage", true, US },
	{ "cpu_user", true, US },
	{ "cpu_system", true, US },
	{ "cpu_periods", true, 1 },
	{ "cpu_throttled", true, 1 },
	{ "cpu_throttled_time", true, US },
	{ "cpu_weight", false, 1 },
	{ "cpu_quota", false, 1 },
	{ "cpu_period", false, 1 },
	{ "memory_current", false, 1 },
	{ "memory_peak", false, 1 },
	{ "memory_max", false, 1 },
	{ "memory_high", false, 1 },
	{ "swap_current", false, 1 },
	{ "swap_max", false, 1 },
	{ "anon", false, 1 },
	{ "file", false, 1 },
	{ "shmem", false, 1 },
	{ "kernel", false, 1 },
	{ "slab", false, 1 },
	{ "file_dirty", false, 1 },
	{ "file_writeback", false, 1 },
	{ "inactive_file", false, 1 },
	{ "pgfault", true, 1 },
	{ "pgmajfault", true, 1 },
	{ "workingset_refault_anon", true, 1 },
	{ "workingset_refault_file", true, 1 },
	{ "pgscan", true, 1 },
	{ "pgsteal", true, 1 },
	{ "memory_low", true, 1 },
	{ "memory_high_events", true, 1 },
	{ "memory_max_events", true, 1 },
	{ "oom", true, 1 },
	{ "oom_kill", true, 1 },
	{ "local_memory_low", true, 1 },
	{ "local_memory_high_events", true, 1 },
	{ "local_memory_max_events", true, 1 },
	{ "local_oom", true, 1 },
	{ "local_oom_kill", true, 1 },
	{ "pids_current", false, 1 },
	{ "pids_max", false, 1 },
	{ "threads", false, 1 },
	{ "descendants", false, 1 },
	{ "dying_descendants", false, 1 },
	{ "frozen", false, 1 },
	{ "processes", false, 1 },
	{ "io_read_bytes", true, 1 },
	{ "io_write_bytes", true, 1 },
	{ "io_reads", true, 1 },
	{ "io_writes", true, 1 },
	{ "cpu_pressure_some", true, 1 },
	{ "cpu_pressure_full", true, 1 },
	{ "memory_pressure_some", true, 1 },
	{ "memory_pressure_full", true, 1 },
	{ "io_pressure_some", true, 1 },
	{ "io_pressure_full", true, 1 },
};

/* What of a file is the value. */
enum how {
	NUMBER, /* the only one; `max` is none */
	LIMIT,  /* the same, and as large as can be is none */
	KEY,    /* of the line that begins with this word */
	FIRST,  /* of two numbers */
	SECOND,
	SUM,    /* of WORD=NUMBER in all lines */
	MIDDLE, /* of the third word of all lines whose second is WORD */
	TOTAL,  /* of the line that begins with WORD, behind total= */
	LINES,
	SHARES, /* 1024 is a weight of 100 */
	POSITIVE,
};

struct source {
	const char *field;
	int hierarchy;
	const char *file;
	enum how how;
	const char *word;
	uint64_t unit;
};

static const struct source version2[] = {
	{ "cpu_usage", UNIFIED, "cpu.stat", KEY, "usage_usec", US },
	{ "cpu_user", UNIFIED, "cpu.stat", KEY, "user_usec", US },
	{ "cpu_system", UNIFIED, "cpu.stat", KEY, "system_usec", US },
	{ "cpu_periods", UNIFIED, "cpu.stat", KEY, "nr_periods", 1 },
	{ "cpu_throttled", UNIFIED, "cpu.stat", KEY, "nr_throttled", 1 },
	{ "cpu_throttled_time", UNIFIED, "cpu.stat", KEY, "throttled_usec", US },
	{ "cpu_weight", UNIFIED, "cpu.weight", NUMBER, NULL, 1 },
	{ "cpu_quota", UNIFIED, "cpu.max", FIRST, NULL, US },
	{ "cpu_period", UNIFIED, "cpu.max", SECOND, NULL, US },
	{ "memory_current", UNIFIED, "memory.current", NUMBER, NULL, 1 },
	{ "memory_peak", UNIFIED, "memory.peak", NUMBER, NULL, 1 },
	{ "memory_max", UNIFIED, "memory.max", NUMBER, NULL, 1 },
	{ "memory_high", UNIFIED, "memory.high", NUMBER, NULL, 1 },
	{ "swap_current", UNIFIED, "memory.swap.current", NUMBER, NULL, 1 },
	{ "swap_max", UNIFIED, "memory.swap.max", NUMBER, NULL, 1 },
	{ "anon", UNIFIED, "memory.stat", KEY, "anon", 1 },
	{ "file", UNIFIED, "memory.stat", KEY, "file", 1 },
	{ "shmem", UNIFIED, "memory.stat", KEY, "shmem", 1 },
	{ "kernel", UNIFIED, "memory.stat", KEY, "kernel", 1 },
	{ "slab", UNIFIED, "memory.stat", KEY, "slab", 1 },
	{ "file_dirty", UNIFIED, "memory.stat", KEY, "file_dirty", 1 },
	{ "file_writeback", UNIFIED, "memory.stat", KEY, "file_writeback", 1 },
	{ "inactive_file", UNIFIED, "memory.stat", KEY, "inactive_file", 1 },
	{ "pgfault", UNIFIED, "memory.stat", KEY, "pgfault", 1 },
	{ "pgmajfault", UNIFIED, "memory.stat", KEY, "pgmajfault", 1 },
	{ "workingset_refault_anon", UNIFIED, "memory.stat", KEY, "workingset_refault_anon", 1 },
	{ "workingset_refault_file", UNIFIED, "memory.stat", KEY, "workingset_refault_file", 1 },
	{ "pgscan", UNIFIED, "memory.stat", KEY, "pgscan", 1 },
	{ "pgsteal", UNIFIED, "memory.stat", KEY, "pgsteal", 1 },
	{ "memory_low", UNIFIED, "memory.events", KEY, "low", 1 },
	{ "memory_high_events", UNIFIED, "memory.events", KEY, "high", 1 },
	{ "memory_max_events", UNIFIED, "memory.events", KEY, "max", 1 },
	{ "oom", UNIFIED, "memory.events", KEY, "oom", 1 },
	{ "oom_kill", UNIFIED, "memory.events", KEY, "oom_kill", 1 },
	{ "local_memory_low", UNIFIED, "memory.events.local", KEY, "low", 1 },
	{ "local_memory_high_events", UNIFIED, "memory.events.local", KEY, "high", 1 },
	{ "local_memory_max_events", UNIFIED, "memory.events.local", KEY, "max", 1 },
	{ "local_oom", UNIFIED, "memory.events.local", KEY, "oom", 1 },
	{ "local_oom_kill", UNIFIED, "memory.events.local", KEY, "oom_kill", 1 },
	{ "pids_current", UNIFIED, "pids.current", NUMBER, NULL, 1 },
	{ "pids_max", UNIFIED, "pids.max", NUMBER, NULL, 1 },
	{ "threads", UNIFIED, "cgroup.threads", LINES, NULL, 1 },
	{ "descendants", UNIFIED, "cgroup.stat", KEY, "nr_descendants", 1 },
	{ "dying_descendants", UNIFIED, "cgroup.stat", KEY, "nr_dying_descendants", 1 },
	{ "frozen", UNIFIED, "cgroup.freeze", NUMBER, NULL, 1 },
	{ "processes", UNIFIED, "cgroup.procs", LINES, NULL, 1 },
	{ "io_read_bytes", UNIFIED, "io.stat", SUM, "rbytes", 1 },
	{ "io_write_bytes", UNIFIED, "io.stat", SUM, "wbytes", 1 },
	{ "io_reads", UNIFIED, "io.stat", SUM, "rios", 1 },
	{ "io_writes", UNIFIED, "io.stat", SUM, "wios", 1 },
	{ "cpu_pressure_some", UNIFIED, "cpu.pressure", TOTAL, "some", 1 },
	{ "cpu_pressure_full", UNIFIED, "cpu.pressure", TOTAL, "full", 1 },
	{ "memory_pressure_some", UNIFIED, "memory.pressure", TOTAL, "some", 1 },
	{ "memory_pressure_full", UNIFIED, "memory.pressure", TOTAL, "full", 1 },
	{ "io_pressure_some", UNIFIED, "io.pressure", TOTAL, "some", 1 },
	{ "io_pressure_full", UNIFIED, "io.pressure", TOTAL, "full", 1 },
};

static const struct source version1[] = {
	{ "cpu_usage", CPUACCT, "cpuacct.usage", NUMBER, NULL, 1 },
	{ "cpu_user", CPUACCT, "cpuacct.stat", KEY, "user", TICK },
	{ "cpu_system", CPUACCT, "cpuacct.stat", KEY, "system", TICK },
	{ "cpu_periods", CPU, "cpu.stat", KEY, "nr_periods", 1 },
	{ "cpu_throttled", CPU, "cpu.stat", KEY, "nr_throttled", 1 },
	{ "cpu_throttled_time", CPU, "cpu.stat", KEY, "throttled_time", 1 },
	{ "cpu_weight", CPU, "cpu.shares", SHARES, NULL, 1 },
	{ "cpu_quota", CPU, "cpu.cfs_quota_us", POSITIVE, NULL, US },
	{ "cpu_period", CPU, "cpu.cfs_period_us", NUMBER, NULL, US },
	{ "memory_current", MEMORY, "memory.usage_in_bytes", NUMBER, NULL, 1 },
	{ "memory_peak", MEMORY, "memory.max_usage_in_bytes", NUMBER, NULL, 1 },
	{ "memory_max", MEMORY, "memory.limit_in_bytes", LIMIT, NULL, 1 },
	{ "anon", MEMORY, "memory.stat", KEY, "total_rss", 1 },
	{ "file", MEMORY, "memory.stat", KEY, "total_cache", 1 },
	{ "shmem", MEMORY, "memory.stat", KEY, "total_shmem", 1 },
	{ "kernel", MEMORY, "memory.kmem.usage_in_bytes", NUMBER, NULL, 1 },
	{ "file_dirty", MEMORY, "memory.stat", KEY, "total_dirty", 1 },
	{ "file_writeback", MEMORY, "memory.stat", KEY, "total_writeback", 1 },
	{ "inactive_file", MEMORY, "memory.stat", KEY, "total_inactive_file", 1 },
	{ "pgfault", MEMORY, "memory.stat", KEY, "total_pgfault", 1 },
	{ "pgmajfault", MEMORY, "memory.stat", KEY, "total_pgmajfault", 1 },
	{ "workingset_refault_anon", MEMORY, "memory.stat", KEY, "total_workingset_refault_anon",
	  1 },
	{ "workingset_refault_file", MEMORY, "memory.stat", KEY, "total_workingset_refault_file",
	  1 },
	{ "local_memory_max_events", MEMORY, "memory.failcnt", NUMBER, NULL, 1 },
	{ "local_oom_kill", MEMORY, "memory.oom_control", KEY, "oom_kill", 1 },
	{ "pids_current", PIDS, "pids.current", NUMBER, NULL, 1 },
	{ "pids_max", PIDS, "pids.max", NUMBER, NULL, 1 },
	{ "threads", MEMORY, "tasks", LINES, NULL, 1 },
	{ "processes", MEMORY, "cgroup.procs", LINES, NULL, 1 },
	{ "frozen", FREEZER, "freezer.self_freezing", NUMBER, NULL, 1 },
	{ "io_read_bytes", BLKIO, "blkio.throttle.io_service_bytes_recursive", MIDDLE, "Read", 1 },
	{ "io_write_bytes", BLKIO, "blkio.throttle.io_service_bytes_recursive", MIDDLE, "Write",
	  1 },
	{ "io_reads", BLKIO, "blkio.throttle.io_serviced_recursive", MIDDLE, "Read", 1 },
	{ "io_writes", BLKIO, "blkio.throttle.io_serviced_recursive", MIDDLE, "Write", 1 },
};

#define COUNT(array) (unsigned int)(sizeof(array) / sizeof((array)[0]))

const struct field *text_fields(unsigned int *n)
{
	*n = COUNT(fields);
	return fields;
}

unsigned int text_field(const char *name)
{
	for (unsigned int i = 0; i < COUNT(fields); i++) {
		if (!strcmp(fields[i].name, name))
			return i;
	}
	fprintf(stderr, "no field %s\n", name);
	abort();
}

void text_mounts(struct mounts *mounts, bool unified)
{
	static const char *const names[HIERARCHIES] = { NULL,   "cpu",   "cpuacct", "memory",
							"pids", "blkio", "freezer" };
	FILE *file = setmntent("/proc/self/mounts", "r");
	struct mntent *entry;

	*mounts = (struct mounts){ 0 };
	while (file && (entry = getmntent(file))) {
		if (!strcmp(entry->mnt_type, "cgroup2") && !mounts->point[UNIFIED][0])
			snprintf(mounts->point[UNIFIED], sizeof(mounts->point[0]), "%s",
				 entry->mnt_dir);
		for (int i = CPU; i < HIERARCHIES && !strcmp(entry->mnt_type, "cgroup"); i++) {
			if (hasmntopt(entry, names[i]) && !mounts->point[i][0] && !unified)
				snprintf(mounts->point[i], sizeof(mounts->point[0]), "%s",
					 entry->mnt_dir);
		}
	}
	if (file)
		endmntent(file);
	mounts->primary = mounts->point[MEMORY][0]    ? MEMORY
			  : mounts->point[CPUACCT][0] ? CPUACCT
			  : mounts->point[CPU][0]     ? CPU
						      : UNIFIED;
	mounts->version = mounts->primary != UNIFIED ? 1 : mounts->point[UNIFIED][0] ? 2 : 0;
}

/* One line; true if the value is complete and none that follows counts. */
static bool take_line(const struct source *source, const char *line, uint64_t *v, bool *found)
{
	char a[128] = "", b[128] = "", c[128] = "", *end;
	const char *at = line;
	int n = sscanf(line, "%127s %127s %127s", a, b, c);
	char key[64];

	switch (source->how) {
	case NUMBER:
	case FIRST:
	case LIMIT:
	case SHARES:
		*v = strtoull(a, &end, 10);
		*found = end != a && !*end && (source->how != LIMIT || *v < PAGES);
		if (source->how == SHARES)
			*v = (uint64_t)((double)*v / 10.24 + 0.5);
		return true;
	case POSITIVE:
		*v = (uint64_t)atoll(a);
		*found = a[0] != '-';
		return true;
	case SECOND:
		*v = strtoull(b, NULL, 10);
		return *found = n >= 2;
	case KEY:
		if (strcmp(a, source->word))
			return false;
		*v = strtoull(b, NULL, 10);
		return *found = true;
	case SUM:
		*found = true;
		snprintf(key, sizeof(key), " %s=", source->word);
		at = strstr(line, key);
		*v += at ? strtoull(at + strlen(key), NULL, 10) : 0;
		return false;
	case MIDDLE:
		*found = true;
		*v += n == 3 && !strcmp(b, source->word) ? strtoull(c, NULL, 10) : 0;
		return false;
	case TOTAL:
		if (strcmp(a, source->word) || !(at = strstr(line, "total=")))
			return false;
		*v = strtoull(at + 6, NULL, 10);
		return *found = true;
	case LINES:
		*found = true;
		++*v;
		return false;
	}
	return true;
}

/* A file without a line has no I/O, or no tasks; none of its other values. */
static void take_text(const struct source *source, char *text, struct values *values)
{
	bool found = source->how == SUM || source->how == MIDDLE || source->how == LINES;
	unsigned int field = text_field(source->field);
	uint64_t v = 0;

	for (char *line = text, *end; *line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		bool complete = take_line(source, line, &v, &found);

		if (end)
			*end++ = '\n';
		else
			end = line + strlen(line);
		if (complete)
			break;
	}
	if (!found)
		return;
	values->v[field] = v * source->unit;
	values->present |= 1ull << field;
}

static char *read_file(const char *path)
{
	static char text[1 << 18];
	FILE *file = fopen(path, "re");
	size_t len;

	if (!file)
		return NULL;
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	len = ferror(file) ? 0 : len + 1;
	fclose(file);
	return len ? text : NULL;
}

/* Sources of the same file are beside each other: it is read once for all of them. */
void text_read(const struct mounts *mounts, const char *path, struct values *values)
{
	const struct source *sources = mounts->version == 1 ? version1 : version2, *last = NULL;
	unsigned int n = mounts->version == 1 ? COUNT(version1) : COUNT(version2);
	char name[600], *text = NULL;

	*values = (struct values){ 0 };
	for (unsigned int i = 0; i < n; last = &sources[i++]) {
		if (!mounts->point[sources[i].hierarchy][0])
			continue;
		if (!last || strcmp(last->file, sources[i].file) ||
		    last->hierarchy != sources[i].hierarchy) {
			snprintf(name, sizeof(name), "%s/%s/%s",
				 mounts->point[sources[i].hierarchy], path, sources[i].file);
			text = read_file(name);
		}
		if (text)
			take_text(&sources[i], text, values);
	}
}
