// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The mounts of cgroupfs, see cgroup_layout.h. On a hybrid host each controller is in one hierarchy
 * only: version 1 is taken if the memory or CPU controller is there, as containers are, too.
 */
#include "cgroup_layout.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[MOTE_CGROUP_CONTROLLERS] = {
	[MOTE_CGROUP_CPU] = "cpu",       [MOTE_CGROUP_CPUACCT] = "cpuacct",
	[MOTE_CGROUP_MEMORY] = "memory", [MOTE_CGROUP_PIDS] = "pids",
	[MOTE_CGROUP_BLKIO] = "blkio",   [MOTE_CGROUP_FREEZER] = "freezer",
};

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len) {
		if ((at == list || at[-1] == ',') && (!at[len] || strchr(",\n ", at[len])))
			return true;
	}
	return false;
}

/* The first mount of a hierarchy that can be opened. */
static void take(struct mote_cgroup_layout *layout, enum mote_cgroup_controller controller,
		 const char *point)
{
	if (layout->root[controller] >= 0 || strlen(point) >= MOTE_CGROUP_MOUNT)
		return;
	layout->root[controller] = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (layout->root[controller] >= 0)
		strcpy(layout->mount[controller], point);
}

/* `36 25 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate` */
static void take_line(struct mote_cgroup_layout *layout, char *line)
{
	char point[MOTE_CGROUP_MOUNT], type[16], options[512];
	const char *rest = strstr(line, " - ");

	if (!rest || sscanf(line, "%*s %*s %*s %*s %255s", point) != 1 ||
	    sscanf(rest, " - %15s %*s %511s", type, options) != 2)
		return;
	if (!strcmp(type, "cgroup2"))
		take(layout, MOTE_CGROUP_UNIFIED, point);
	for (unsigned int i = 0; !strcmp(type, "cgroup") && i < MOTE_CGROUP_CONTROLLERS; i++) {
		if (names[i] && has_word(options, names[i]))
			take(layout, i, point);
	}
}

static void choose(struct mote_cgroup_layout *layout)
{
	static const enum mote_cgroup_controller order[] = { MOTE_CGROUP_MEMORY,
							     MOTE_CGROUP_CPUACCT, MOTE_CGROUP_CPU };
	bool unified = layout->root[MOTE_CGROUP_UNIFIED] >= 0;

	layout->version = unified ? 2 : 0;
	layout->primary = MOTE_CGROUP_UNIFIED;
	for (unsigned int i = 0; i < 3; i++) {
		if (layout->root[order[i]] < 0)
			continue;
		layout->version = 1;
		layout->hybrid = unified;
		layout->primary = order[i];
		return;
	}
}

/* `4:memory:/` in /proc/self/cgroup */
static int number_of(const char *controller)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[512], list[128];
	int number, found = 0;

	while (file && !found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%d:%127[^:]", &number, list) == 2 && has_word(list, controller))
			found = number;
	}
	if (file)
		fclose(file);
	return found;
}

void mote_cgroup_layout_open(struct mote_cgroup_layout *layout, const char *mountinfo)
{
	FILE *file = fopen(mountinfo ?: "/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;

	*layout = (struct mote_cgroup_layout){ 0 };
	for (unsigned int i = 0; i < MOTE_CGROUP_CONTROLLERS; i++)
		layout->root[i] = -1;
	while (file && getline(&line, &size, file) > 0)
		take_line(layout, line);
	free(line);
	if (file)
		fclose(file);
	choose(layout);
	if (layout->version == 1)
		layout->hierarchy = number_of(names[layout->primary]);
}

void mote_cgroup_layout_unify(struct mote_cgroup_layout *layout)
{
	layout->version = layout->root[MOTE_CGROUP_UNIFIED] >= 0 ? 2 : 0;
	layout->primary = MOTE_CGROUP_UNIFIED;
	layout->hierarchy = 0;
}

void mote_cgroup_layout_close(struct mote_cgroup_layout *layout)
{
	for (unsigned int i = 0; i < MOTE_CGROUP_CONTROLLERS; i++) {
		if (layout->root[i] >= 0)
			close(layout->root[i]);
		layout->root[i] = -1;
	}
}
