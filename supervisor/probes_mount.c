// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Detached mounts by fsopen(2) and fsmount(2), Linux 5.2. A bpffs holds the pinned iterators,
 * which the unprivileged loop opens by name; a tracefs is only asked for the ids of tracepoints, so
 * that a machine without tracefs mounted needs no mount that others see.
 */
#include "probes_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

int mote_probes_mount(const char *type)
{
	int fs = fsopen(type, FSOPEN_CLOEXEC);
	int fd = -1, err;

	if (fs < 0)
		return -errno;
	if (!fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	err = errno;
	close(fs);
	return fd < 0 ? -err : fd;
}

static int read_id(int dir, const char *path)
{
	char text[16] = "";
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	int err, id;

	if (fd < 0)
		return -errno;
	err = read(fd, text, sizeof(text) - 1) < 0 ? -errno : 0;
	close(fd);
	id = atoi(text);
	if (err)
		return err;
	return id > 0 ? id : -EIO;
}

int mote_probes_tracefs(bool may_mount)
{
	static const char *const mounted[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[64];
	int fd;

	for (unsigned int i = 0; i < sizeof(mounted) / sizeof(mounted[0]); i++) {
		snprintf(path, sizeof(path), "%s/events", mounted[i]);
		if (access(path, F_OK))
			continue;
		fd = open(mounted[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (!may_mount)
		return -ENODEV;
	fd = mote_probes_mount("tracefs");
	return fd == -EPERM ? -ENODEV : fd;
}

int mote_probes_tracepoint(const char *category, const char *name, bool may_mount)
{
	int dir = mote_probes_tracefs(may_mount), id;
	char path[160];

	if (dir < 0)
		return dir;
	snprintf(path, sizeof(path), "events/%s/%s/id", category, name);
	id = read_id(dir, path);
	close(dir);
	return id;
}
