// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What of /proc/PID can be had here, see proc_files.h. All of it by trying. It owns nothing but
 * the answer, and fails only if there is no /proc/PID/stat.
 */
#include "proc_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "schema.h"

#define HAS(field) (1ull << PROCESS_##field)

/* Of the groups in status, this many fit at least; with more of them uid and gid are absent. */
#define STATUS_GROUPS 64

#define CAP_SYS_PTRACE_BIT 19

#define IO_FIELDS                                                                                 \
	(HAS(RCHAR) | HAS(WCHAR) | HAS(SYSCR) | HAS(SYSCW) | HAS(READ_BYTES) | HAS(WRITE_BYTES) | \
	 HAS(CANCELLED_WRITE_BYTES))

const char *const mote_proc_file_names[MOTE_PROC_FILES] = { "stat", "statm", "schedstat", "status",
							    "io" };

static ssize_t read_at(int proc, const char *path, char *buf, size_t size)
{
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -errno : pread(fd, buf, size, 0);

	if (fd >= 0) {
		len = len < 0 ? -errno : len;
		close(fd);
	}
	return len;
}

static ssize_t read_self(int proc, enum mote_proc_file file, char *buf, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "self/%s", mote_proc_file_names[file]);
	return read_at(proc, path, buf, size);
}

static bool has_ptrace_rights(const char *status)
{
	const char *line = strstr(status, "\nCapEff:");
	unsigned long long caps;

	return line && sscanf(line, "\nCapEff: %llx", &caps) == 1 && caps >> CAP_SYS_PTRACE_BIT & 1;
}

/* Where the kernel does not keep run times (no SCHEDSTATS, delayacct off), schedstat is zeros. */
static bool keeps_run_times(const char *schedstat)
{
	return strcmp(schedstat, "0 0 0\n") != 0;
}

int mote_proc_files_probe(struct mote_proc_files *files, int proc)
{
	struct mote_proc_files found = { .size = { 768, 192, 96, 0, 320 } };
	char buf[8192];

	for (unsigned int i = 0; i < MOTE_PROC_FILES; i++) {
		ssize_t len = read_self(proc, i, buf, sizeof(buf) - 1);

		if (i == MOTE_PROC_STAT && len <= 0)
			return len < 0 ? (int)len : -ENODATA;
		found.has[i] = len > 0;
		buf[len > 0 ? len : 0] = 0;
		if (i == MOTE_PROC_SCHEDSTAT && found.has[i])
			found.has[i] = keeps_run_times(buf);
		if (i == MOTE_PROC_STATUS) {
			found.io_foreign = has_ptrace_rights(buf);
			/* its length depends on the host's CPUs and nodes, and on its groups */
			found.size[i] = ((len > 0 ? len : 0) + 11 * STATUS_GROUPS + 511) & ~511u;
		}
	}
	/* A process that denies it nevertheless (another user namespace, an LSM) goes without. */
	if (!found.io_foreign)
		found.has[MOTE_PROC_IO] = false;
	for (unsigned int i = 0; i < MOTE_PROC_FILES; i++)
		found.count += found.has[i];
	*files = found;
	return 0;
}

struct absence {
	uint64_t fields;
	const char *why;
};

static const struct absence never[] = {
	{ HAS(RUN_TIME) | HAS(RUN_DELAY), "/proc/PID/schedstat has the first thread's alone" },
	{ HAS(NVCSW) | HAS(NIVCSW), "/proc/PID/status has the first thread's alone" },
	{ HAS(FDS), "/proc/PID/fd would have to be listed" },
	{ HAS(CGROUP_ID), "/proc/PID/cgroup has a path and no id" },
	{ HAS(OOM_SCORE_ADJ), "it would take one more file a process" },
	{ HAS(EXE), "/proc/PID/exe cannot be read without a system call and ptrace rights" },
};

static const struct absence by_file[MOTE_PROC_FILES] = {
	[MOTE_PROC_STATM] = { HAS(RSS) | HAS(SHARED), "this kernel has no /proc/PID/statm" },
	[MOTE_PROC_STATUS] = { HAS(UID) | HAS(GID), "/proc/PID/status cannot be read" },
	[MOTE_PROC_IO] = { IO_FIELDS,
			   "/proc/PID/io of other users' processes needs CAP_SYS_PTRACE" },
};

uint64_t mote_proc_files_absent(const struct mote_proc_files *files)
{
	uint64_t absent = 0;

	for (unsigned int i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		absent |= never[i].fields;
	for (unsigned int i = 0; i < MOTE_PROC_FILES; i++)
		absent |= files->has[i] ? 0 : by_file[i].fields;
	return absent;
}

const char *mote_proc_files_why(const struct mote_proc_files *files, unsigned int field)
{
	for (unsigned int i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		if (never[i].fields >> field & 1)
			return never[i].why;
	}
	for (unsigned int i = 0; i < MOTE_PROC_FILES; i++) {
		if (!files->has[i] && by_file[i].fields >> field & 1)
			return i == MOTE_PROC_IO && files->io_foreign
				       ? "this kernel has no /proc/PID/io (CONFIG_TASK_IO_ACCOUNTING)"
				       : by_file[i].why;
	}
	return NULL;
}

unsigned int mote_proc_files_limit(int proc, unsigned int count, unsigned int wanted)
{
	unsigned int limit = mote_descriptors_allow(count * wanted + MOTE_DESCRIPTORS_RESERVE);
	unsigned int spare =
		limit > 2 * MOTE_DESCRIPTORS_RESERVE ? limit - MOTE_DESCRIPTORS_RESERVE : limit / 2;

	if (spare / count < wanted)
		wanted = spare / count;
	mote_descriptors_grow(proc, count * wanted + MOTE_DESCRIPTORS_RESERVE / 2);
	return wanted;
}
