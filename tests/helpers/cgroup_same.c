// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * cgroup_same MOTED SOURCE VERSION: what moted says of a cgroup that has done a certain work, a
 * line `NAME VALUE` each, nil for what is absent: the same whatever the version of cgroups. It
 * mounts VERSION (2, 1 or hybrid) privately. vmtests/cgroup_versions compares.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../cgroupdiff/groups.h"
#include "libmote.h"

#define WORKERS 3
#define ANON    (8 << 20)
#define SHARED  (4 << 20)
#define CPU_MS  300

static const char *const names[] = {
	"cpu_usage", "cpu_periods", "cpu_throttled", "cpu_weight", "cpu_quota",  "cpu_period",
	"anon",      "shmem",       "file",          "pgfault",    "memory_max", "pids_current",
	"pids_max",  "processes",   "threads",       "frozen",
};

struct group *groups;
unsigned int ngroups;
struct mounts mounts;

void nap(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l }, NULL);
}

void bail(const char *what)
{
	fprintf(stderr, "cgroup_same: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *rest(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static char *touch(size_t bytes, int flags)
{
	char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	if (mapped == MAP_FAILED)
		bail("mmap");
	madvise(mapped, bytes, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < bytes; at += 4096)
		mapped[at] = 1;
	return mapped;
}

static void burn(unsigned int ms)
{
	struct timespec ts = { 0 };

	while (ts.tv_sec * 1000 + ts.tv_nsec / 1000000 < ms)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
}

/* Each has a thread that rests; the first does the rest of the work. */
static void work(unsigned int i, const char *path, int ready)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	groups_each(groups_join, path);
	if (pthread_create(&thread, NULL, rest, NULL))
		bail("pthread_create");
	if (!i) {
		touch(ANON, MAP_PRIVATE);
		touch(SHARED, MAP_SHARED);
		burn(CPU_MS);
	}
	if (write(ready, "", 1) != 1)
		bail("write");
	rest(NULL);
}

static void do_work(const char *path)
{
	char byte;
	int ready[2];

	if (pipe(ready))
		bail("pipe");
	for (unsigned int i = 0; i < WORKERS; i++) {
		pid_t child = fork();

		if (!child)
			work(i, path, ready[1]);
		groups_keep(child);
	}
	for (unsigned int i = 0; i < WORKERS; i++) {
		if (read(ready[0], &byte, 1) != 1)
			bail("read");
	}
}

static void freeze(const char *dir, const char *path)
{
	groups_put(dir, "cgroup.freeze", "1");
	groups_put(dir, "freezer.state", "FROZEN");
}

static void thaw(const char *dir, const char *path)
{
	groups_put(dir, "cgroup.freeze", "0");
	groups_put(dir, "freezer.state", "THAWED");
}

static void show(const struct group *group)
{
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsigned int k = text_field(names[i]);

		if (group->row.present >> k & 1)
			printf("%s %" PRIu64 "\n", names[i], group->row.v[k]);
		else
			printf("%s nil\n", names[i]);
	}
}

int main(int argc, char **argv)
{
	struct mote_client *client;
	pid_t moted;

	if (argc != 4) {
		fprintf(stderr, "usage: cgroup_same MOTED SOURCE 1|2|hybrid\n");
		return 2;
	}
	groups_mount(argv[3]);
	text_mounts(&mounts, !strcmp(argv[2], "iterator"));
	groups = calloc(8, sizeof(*groups));
	if (!groups || !mounts.version)
		bail("no cgroupfs");
	atexit(groups_clean);
	groups_each(groups_make_dir, "");
	groups_add("");
	groups_each(groups_make_dir, TOP);
	groups_add(TOP);
	groups_each(groups_make_leaf, TOP "/same");
	groups_each(groups_limit, TOP "/same");
	groups_add(TOP "/same");
	do_work(TOP "/same");
	groups_each(freeze, TOP "/same");
	moted = moted_start(argv[1], argv[2], "500ms");
	client = moted_connect();
	moted_tier(client);
	if (!moted_poll(client) || !groups[2].given)
		bail("poll cgroup");
	show(&groups[2]);
	mote_close(client);
	kill(moted, SIGTERM);
	waitpid(moted, NULL, 0);
	groups_each(thaw, TOP "/same");
	return 0;
}
