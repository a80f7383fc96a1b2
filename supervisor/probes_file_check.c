// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The self-check: a hook can be attached and see nothing, as where the compiler inlined the
 * function. A child, so that mote itself has no traffic to show, writes to a file without a name,
 * reads of it and ends; then its slot has exactly that, if entry and end are both seen.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes_file_load.h"

#define WRITTEN 1009 /* bytes, of no round number */
#define TAKEN   211

/* Not of memfd_create(): that is memory, and is not counted. */
static int nameless(void)
{
	static const char *const folders[] = { "/run", "/dev/shm", "/tmp", "/var/tmp" };
	int fd = -1;

	for (unsigned int i = 0; fd < 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
		fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd;
}

static void move(int fd)
{
	char bytes[WRITTEN];

	memset(bytes, 'm', sizeof(bytes));
	if (pwrite(fd, bytes, WRITTEN, 0) == WRITTEN && pread(fd, bytes, TAKEN, 0) == TAKEN)
		_exit(0);
	_exit(1);
}

/* What the slot has of this process and file, if there is one. */
static struct mote_moved seen(const struct mote_file_maps *maps, uint32_t pid, uint64_t ino)
{
	struct mote_moved none = { 0 };

	for (uint32_t i = 0; i < maps->size; i++) {
		const struct mote_access *a = &maps->accesses[i];

		if (a->slot.key && a->tgid == pid && a->ino == ino)
			return a->moved;
	}
	return none;
}

bool mote_file_check(const struct mote_file_maps *maps, const struct mote_options *options,
		     char *why, size_t size)
{
	uint64_t read = options->file_track_read ? TAKEN : 0;
	uint64_t written = options->file_track_write ? WRITTEN : 0;
	int fd = nameless(), status = -1;
	struct mote_moved got;
	struct stat st;
	pid_t pid;

	if (fd < 0 || fstat(fd, &st))
		return true;
	pid = fork();
	if (!pid)
		move(fd);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	close(fd);
	if (pid < 0 || status)
		return true; /* nothing was moved that could be missed */
	got = seen(maps, (uint32_t)pid, st.st_ino);
	if (got.read == read && got.written == written)
		return true;
	snprintf(
		why, size,
		"the self-check moved %llu bytes out of and %llu into a file; the hooks saw %llu and %llu",
		(unsigned long long)read, (unsigned long long)written, (unsigned long long)got.read,
		(unsigned long long)got.written);
	return false;
}
