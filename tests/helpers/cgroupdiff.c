// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * cgroupdiff MOTED SOURCE VERSION CGROUPS [BUDGET]: what moted says of cgroups, and what cgroupfs
 * does. It mounts version 2, 1 or both (`hybrid`) privately if nothing is mounted (`here`: takes
 * what there is), makes so many cgroups, some of them busy, and asks a moted with [cgroup] source =
 * SOURCE (and budget = BUDGET, or as by default) for all of them, between two readings of the
 * files: what moves lies between these, what rests is equal. Prints TAP. Its parts are in
 * tests/cgroupdiff/; nothing of them is moted's but libmote.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../cgroupdiff/groups.h"
#include "libmote.h"
#include "tap.h"

#define MAX    8192
#define ROUNDS 4

struct group *groups;
unsigned int ngroups;
struct mounts mounts;

void nap(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l }, NULL);
}

void bail(const char *what)
{
	tap(false, "%s: %s", what, strerror(errno));
	printf("1..%u\n", tap_n);
	exit(1);
}

static void read_all(bool after)
{
	for (unsigned int i = 0; i < ngroups; i++)
		text_read(&mounts, groups[i].path, after ? &groups[i].after : &groups[i].before);
}

/*
 * What of a controller is there in every kernel from 5.10 on, as the files of a cgroup show it with
 * a process and the limits of limit(). Of version 1 also whatever is in the hierarchy of memory.
 * Not io: a device has a line once it was used. From 6.11 on memory has no version 1 without
 * CONFIG_MEMCG_V1 (mount says EINVAL): the others' are due all the same.
 */
static unsigned int values_due(void)
{
	static const unsigned int version1[HIERARCHIES] = {
		[CPU] = 6,     /* periods, throttled and its time, quota, period, shares */
		[CPUACCT] = 3, /* usage, user, system */
		[MEMORY] = 16, /* 3 of usage, 10 of stat, failcnt, processes, threads */
		[PIDS] = 2,    /* current, limit */
		[FREEZER] = 1,
	};
	char text[256] = "", path[300];
	unsigned int due = 0;
	FILE *file;

	for (unsigned int i = 0; mounts.version == 1 && i < HIERARCHIES; i++)
		due += mounts.point[i][0] ? version1[i] : 0;
	if (mounts.version == 1)
		return due;
	snprintf(path, sizeof(path), "%s/cgroup.controllers", mounts.point[UNIFIED]);
	file = fopen(path, "re");
	if (!file)
		bail(path);
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	due = 8; /* usage, user, system, processes, threads, 2 of cgroup.stat, frozen */
	due += strstr(text, "cpu ") || strstr(text, "cpu\n") ? 6 : 0;
	due += strstr(text, "memory") ? 3 + 10 + 10 : 0; /* usage and limits, stat, events */
	return due + (strstr(text, "pids") ? 2 : 0);
}

/* How many of the values there are anywhere, of all that this source may give. */
static unsigned int values_seen(void)
{
	uint64_t seen = 0;

	for (unsigned int i = 0; i < ngroups; i++)
		seen |= groups[i].row.present;
	return (unsigned int)__builtin_popcountll(seen);
}

static uint64_t clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* What a poll does not show is that things stand still: the last round must be right as it is. */
static void run(struct mote_client *client, bool by_iterator)
{
	unsigned int wrong = 0;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t began, read, polled;

		nap(round ? 1300 : 300);
		began = clock_us();
		read_all(false);
		read = clock_us();
		if (!moted_poll(client))
			bail("poll cgroup");
		polled = clock_us();
		read_all(true);
		wrong = compare(by_iterator, round + 1 < ROUNDS);
		printf("# %u cgroups, %u wrong; files read in %" PRIu64 " us, polled in %" PRIu64
		       " us\n",
		       ngroups, wrong, read - began, polled - read);
		if (!wrong)
			break;
	}
	tap(!wrong, "%u cgroups: every value is that of the files", ngroups);
}

/* Containers with even numbers have no process. */
static bool is_empty(const char *path)
{
	const char *container = strstr(path, "container");

	return container && atoi(container + strlen("container")) % 2 == 0;
}

/* Some go, some come: rows follow. */
static void churn(struct mote_client *client)
{
	unsigned int last = ngroups - 1;
	char path[160];

	while (last && !is_empty(groups[last].path))
		last--;
	groups_each(groups_remove_dir, groups[last].path);
	snprintf(path, sizeof(path), TOP "/late");
	groups_each(groups_make_leaf, path);
	groups_add(path);
	nap(200);
	tap(moted_poll(client) && groups[ngroups - 1].given && !groups[last].given,
	    "one that is new has a row, one that is gone has none");
}

static void check_tier(struct mote_client *client, const char *source, bool by_iterator)
{
	const char *due = by_iterator ? "iter/cgroup" : mounts.version == 1 ? "files_v1" : "files";

	tap(!strcmp(moted_tier(client), due), "source = %s is in use", source);
}

int main(int argc, char **argv)
{
	bool by_iterator = argc >= 5 && !strcmp(argv[2], "iterator");
	struct mote_client *client;
	unsigned int n;
	int status = 0;
	pid_t moted;

	if (argc != 5 && argc != 6) {
		fprintf(stderr,
			"usage: cgroupdiff MOTED SOURCE 1|2|hybrid|here CGROUPS [BUDGET]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(argv[3], "here"))
		groups_mount(argv[3]);
	text_mounts(&mounts, by_iterator);
	if (!mounts.version)
		bail("no cgroupfs");
	groups = calloc(MAX, sizeof(*groups));
	if (!groups)
		bail("memory");
	atexit(groups_clean);
	groups_make((unsigned int)atoi(argv[4]));
	moted = moted_start(argv[1], argv[2], argc == 6 ? argv[5] : "500ms");
	client = moted_connect();
	check_tier(client, argv[2], by_iterator);
	run(client, by_iterator);
	text_fields(&n);
	tap(values_seen() >= values_due(), "%u values of %u are to be had, %u at least are due",
	    values_seen(), n, values_due());
	churn(client);
	mote_close(client);
	kill(moted, SIGTERM);
	tap(waitpid(moted, &status, 0) == moted && !status, "moted ends with 0");
	printf("1..%u\n", tap_n);
	return tap_failed ? 1 : 0;
}
