// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The cgroups of tests/helpers/cgroupdiff.c: mounts, makes and removes them, and lets them work. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "groups.h"

#define MAX    8192
#define BUSY   4
#define MAPPED (512 * 1024)

static pid_t children[MAX];
static unsigned int nchildren;

void groups_keep(pid_t child)
{
	children[nchildren++] = child;
}

bool groups_put(const char *dir, const char *name, const char *text)
{
	char path[512];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* A controller that another version had is free some time after its last cgroup is gone. */
static void mount_one(const char *point, const char *type, const char *options)
{
	struct statfs fs;
	int err = -1;

	mkdir(point, 0755);
	if (!options && !statfs(point, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
		return; /* the VM's own */
	for (unsigned int tries = 0; err && tries < 100; tries++) {
		err = mount(type, point, type, 0, options);
		if (err && errno != EBUSY)
			break;
		if (err)
			nap(100);
	}
	if (err)
		printf("# %s %s at %s: %s\n", type, options ?: "", point, strerror(errno));
}

/* Of the VM, where nothing is mounted. */
void groups_mount(const char *version)
{
	static const char *const controllers[] = { "cpu",  "cpuacct", "memory",
						   "pids", "blkio",   "freezer" };

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		bail("a mount namespace");
	mkdir("/sys/fs/cgroup", 0755);
	if (!strcmp(version, "2")) {
		mount_one("/sys/fs/cgroup", "cgroup2", NULL);
		return;
	}
	mount("tmpfs", "/sys/fs/cgroup", "tmpfs", 0, NULL);
	for (unsigned int i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		char point[64];

		snprintf(point, sizeof(point), "/sys/fs/cgroup/%s", controllers[i]);
		mount_one(point, "cgroup", controllers[i]);
	}
	if (!strcmp(version, "hybrid"))
		mount_one("/sys/fs/cgroup/unified", "cgroup2", NULL);
}

/* In each hierarchy that is in use. */
void groups_each(void (*what)(const char *dir, const char *path), const char *path)
{
	char dir[512];

	for (unsigned int i = 0; i < HIERARCHIES; i++) {
		if (!mounts.point[i][0] || (mounts.version == 2) != (i == UNIFIED))
			continue;
		snprintf(dir, sizeof(dir), "%s/%s", mounts.point[i], path);
		what(dir, path);
	}
}

void groups_make_dir(const char *dir, const char *path)
{
	if (mkdir(dir, 0755) && errno != EEXIST)
		bail(dir);
	if (mounts.version != 2)
		return;
	groups_put(dir, "cgroup.subtree_control", "+cpu");
	groups_put(dir, "cgroup.subtree_control", "+memory");
	groups_put(dir, "cgroup.subtree_control", "+pids");
	groups_put(dir, "cgroup.subtree_control", "+io");
}

void groups_make_leaf(const char *dir, const char *path)
{
	if (mkdir(dir, 0755) && errno != EEXIST)
		bail(dir);
}

void groups_remove_dir(const char *dir, const char *path)
{
	rmdir(dir);
}

void groups_join(const char *dir, const char *path)
{
	groups_put(dir, "cgroup.procs", "0");
}

void groups_add(const char *path)
{
	struct group *group = &groups[ngroups++];
	char dir[512];
	struct stat st;

	snprintf(group->path, sizeof(group->path), "%s", path);
	snprintf(dir, sizeof(dir), "%s/%s", mounts.point[mounts.primary], path);
	if (stat(dir, &st))
		bail(dir);
	group->id = st.st_ino;
}

/* One has pages and rests; a busy one works on and off, and takes and gives memory. */
static void work(unsigned int i, const char *path)
{
	char *mapped;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	groups_each(groups_join, path);
	mapped = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned int at = 0; at < MAPPED / 8 * (1 + i % 4); at += 4096)
		mapped[at] = 1;
	for (;;) {
		if (i >= BUSY) {
			pause();
			continue;
		}
		for (volatile unsigned int spin = 0; spin < 3000000; spin++)
			;
		madvise(mapped, MAPPED, MADV_DONTNEED);
		for (unsigned int at = 0; at < MAPPED; at += 4096)
			mapped[at] = 1;
		nap(10);
	}
}

void groups_limit(const char *dir, const char *path)
{
	groups_put(dir, "memory.max", "67108864");
	groups_put(dir, "memory.limit_in_bytes", "67108864");
	groups_put(dir, "memory.high", "60000000");
	groups_put(dir, "cpu.max", "5000 50000");
	groups_put(dir, "cpu.cfs_period_us", "50000");
	groups_put(dir, "cpu.cfs_quota_us", "5000");
	groups_put(dir, "cpu.weight", "250");
	groups_put(dir, "cpu.shares", "2560");
	groups_put(dir, "pids.max", "77");
}

void groups_make(unsigned int n)
{
	char path[160];

	groups_each(groups_make_dir, "");
	groups_each(groups_make_dir, TOP);
	groups_add("");
	groups_add(TOP);
	for (unsigned int i = 0; i < n; i++) {
		if (i % 4 == 0) {
			snprintf(path, sizeof(path), TOP "/pod%u", i / 4);
			groups_each(groups_make_dir, path);
			groups_add(path);
			continue;
		}
		snprintf(path, sizeof(path), TOP "/pod%u/container%u", i / 4, i);
		groups_each(groups_make_leaf, path);
		if (i % 8 == 1)
			groups_each(groups_limit, path);
		if (i % 2 == 1) {
			pid_t child = fork();

			if (!child)
				work(nchildren, path);
			groups_keep(child);
		}
		groups_add(path);
	}
}

void groups_clean(void)
{
	char path[512];

	for (unsigned int i = 0; i < nchildren; i++)
		kill(children[i], SIGKILL);
	while (nchildren && waitpid(children[nchildren - 1], NULL, 0) >= 0)
		nchildren--;
	for (unsigned int tries = 0; tries < 20; tries++) {
		for (unsigned int i = ngroups; i-- > 1;)
			groups_each(groups_remove_dir, groups[i].path);
		snprintf(path, sizeof(path), "%s/" TOP, mounts.point[mounts.primary]);
		if (access(path, F_OK))
			return;
		nap(50);
	}
}
