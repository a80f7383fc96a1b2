// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Writes to kprobe_events. It is never opened with O_TRUNC, which would remove the probes of
 * everybody. The kernel refuses to remove a probe that is in use (EBUSY), so a living mote's are
 * safe whatever is taken for a leftover.
 */
#include "probes_kretprobe.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes_attach.h"
#include "probes_mount.h"

#define GROUP  "mote"
#define PREFIX GROUP "/mote_"

static int say(const struct mote_kretprobes *probes, const char *line)
{
	size_t len = strlen(line);
	ssize_t n = write(probes->control, line, len);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

/* "r512:mote/mote_123_udp_sendmsg udp_sendmsg" */
int mote_kretprobes_owner(const char *line)
{
	const char *name = strchr(line, ':');
	char *end;
	long pid;

	if (*line != 'r' || !name || strncmp(name + 1, PREFIX, strlen(PREFIX)) != 0)
		return 0;
	name += 1 + strlen(PREFIX);
	pid = isdigit((unsigned char)*name) ? strtol(name, &end, 10) : 0;
	return pid > 0 && pid < 1 << 22 && *end == '_' ? (int)pid : 0;
}

static void remove_event(const struct mote_kretprobes *probes, const char *name, size_t len)
{
	char line[128];

	snprintf(line, sizeof(line), "-:" GROUP "/%.*s\n", (int)len, name);
	say(probes, line);
}

static void remove_leftovers(const struct mote_kretprobes *probes)
{
	int fd = openat(probes->dir, "kprobe_events", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	const char *name;
	char line[512];
	int pid;

	if (!file && fd >= 0)
		close(fd);
	while (file && fgets(line, sizeof(line), file)) {
		pid = mote_kretprobes_owner(line);
		name = strchr(line, '/');
		if (pid && (!kill(pid, 0) || errno != ESRCH))
			continue;
		if (pid && name)
			remove_event(probes, name + 1, strcspn(name + 1, " \n"));
	}
	if (file)
		fclose(file);
}

int mote_kretprobes_open(struct mote_kretprobes *probes, bool may_mount)
{
	int err;

	*probes = (struct mote_kretprobes){ .control = -1, .profile = -1 };
	probes->dir = mote_probes_tracefs(may_mount);
	if (probes->dir < 0)
		return probes->dir;
	probes->control = openat(probes->dir, "kprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	if (probes->control < 0) {
		err = -errno;
		close(probes->dir);
		return err;
	}
	probes->profile = openat(probes->dir, "kprobe_profile", O_RDONLY | O_CLOEXEC);
	remove_leftovers(probes);
	return 0;
}

static int read_id(const struct mote_kretprobes *probes, const char *name)
{
	char path[128], text[16] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "events/" GROUP "/%s/id", name);
	fd = openat(probes->dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && atoi(text) > 0 ? atoi(text) : -EIO;
}

int mote_kretprobes_attach(struct mote_kretprobes *probes, struct bpf_program *program,
			   const char *function, unsigned int held, struct bpf_link **link)
{
	char *name, line[192];
	int id, err;

	if (probes->n == MOTE_KRETPROBES_MAX)
		return -E2BIG;
	name = probes->name[probes->n];
	snprintf(name, sizeof(probes->name[0]), "mote_%d_%s", getpid(), function);
	/* One of this name is an earlier owner's of the same pid. */
	remove_event(probes, name, strlen(name));
	snprintf(line, sizeof(line), "r%u:" GROUP "/%s %s\n", held, name, function);
	err = say(probes, line);
	if (err)
		return err;
	probes->n++;
	id = read_id(probes, name);
	return id < 0 ? id : mote_probes_attach_id(program, id, link);
}

void mote_kretprobes_close(struct mote_kretprobes *probes)
{
	if (probes->control < 0)
		return;
	for (unsigned int i = 0; i < probes->n; i++)
		remove_event(probes, probes->name[i], strlen(probes->name[i]));
	if (probes->profile >= 0)
		close(probes->profile);
	close(probes->control);
	close(probes->dir);
	*probes = (struct mote_kretprobes){ .control = -1, .profile = -1 };
}
