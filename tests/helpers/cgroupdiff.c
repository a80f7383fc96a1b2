// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * cgroupdiff MOTED SOURCE VERSION CGROUPS: what moted says of cgroups, and what cgroupfs does. It
 * mounts version 2, 1 or both (`hybrid`) privately if nothing is mounted (`here`: takes what there
 * is), makes so many cgroups, some of them busy, and asks a moted with [cgroup] source = SOURCE for
 * all of them, between two readings of the files: what moves lies between these, what rests is
 * equal. Prints TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup_layout.h"
#include "libmote.h"
#include "parse_cgroup.h"
#include "schema.h"
#include "tap.h"

#define MAX    8192
#define ROUNDS 4
#define SOCKET "/tmp/cgroupdiff.sock"
#define CONFIG "/tmp/cgroupdiff.conf"
#define TOP    "mote-diff"
#define BUSY   4
#define MAPPED (512 * 1024)

struct group {
	char path[160]; /* after the root, without its first slash; "" is the root */
	uint64_t id;
	struct mote_cgroup_values before, row, after;
	bool given;
};

static struct group *groups;
static unsigned int ngroups;
static struct mote_cgroup_layout layout;
static const struct mote_cgroup_file *files;
static unsigned int nfiles;
static pid_t children[MAX];
static unsigned int nchildren;
static pid_t moted;
static bool by_iterator;

static void nap(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l }, NULL);
}

static void bail(const char *what)
{
	tap(false, "%s: %s", what, strerror(errno));
	printf("1..%u\n", tap_n);
	exit(1);
}

static bool put(const char *dir, const char *name, const char *text)
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
static void mount_all(const char *version)
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
static void each_root(void (*what)(const char *dir, const char *path), const char *path)
{
	char dir[512];

	for (unsigned int i = 0; i < MOTE_CGROUP_CONTROLLERS; i++) {
		if (layout.root[i] < 0 || (layout.version == 2) != (i == MOTE_CGROUP_UNIFIED))
			continue;
		snprintf(dir, sizeof(dir), "%s/%s", layout.mount[i], path);
		what(dir, path);
	}
}

static void make_dir(const char *dir, const char *path)
{
	if (mkdir(dir, 0755) && errno != EEXIST)
		bail(dir);
	if (layout.version != 2)
		return;
	put(dir, "cgroup.subtree_control", "+cpu");
	put(dir, "cgroup.subtree_control", "+memory");
	put(dir, "cgroup.subtree_control", "+pids");
	put(dir, "cgroup.subtree_control", "+io");
}

static void make_leaf(const char *dir, const char *path)
{
	if (mkdir(dir, 0755) && errno != EEXIST)
		bail(dir);
}

static void remove_dir(const char *dir, const char *path)
{
	rmdir(dir);
}

static void join(const char *dir, const char *path)
{
	put(dir, "cgroup.procs", "0");
}

static void add_group(const char *path)
{
	struct group *group = &groups[ngroups++];
	char dir[512];
	struct stat st;

	snprintf(group->path, sizeof(group->path), "%s", path);
	snprintf(dir, sizeof(dir), "%s/%s", layout.mount[layout.primary], path);
	if (stat(dir, &st))
		bail(dir);
	group->id = st.st_ino;
}

/* One has pages and rests; a busy one works on and off, and takes and gives memory. */
static void work(unsigned int i, const char *path)
{
	char *mapped;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	each_root(join, path);
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

static void limit(const char *dir, const char *path)
{
	put(dir, "memory.max", "67108864");
	put(dir, "memory.limit_in_bytes", "67108864");
	put(dir, "memory.high", "60000000");
	put(dir, "cpu.max", "5000 50000");
	put(dir, "cpu.cfs_period_us", "50000");
	put(dir, "cpu.cfs_quota_us", "5000");
	put(dir, "cpu.weight", "250");
	put(dir, "pids.max", "77");
}

static void make_groups(unsigned int n)
{
	char path[160];

	each_root(make_dir, "");
	each_root(make_dir, TOP);
	add_group("");
	add_group(TOP);
	for (unsigned int i = 0; i < n; i++) {
		if (i % 4 == 0) {
			snprintf(path, sizeof(path), TOP "/pod%u", i / 4);
			each_root(make_dir, path);
			add_group(path);
			continue;
		}
		snprintf(path, sizeof(path), TOP "/pod%u/container%u", i / 4, i);
		each_root(make_leaf, path);
		if (i % 8 == 1)
			each_root(limit, path);
		if (i % 2 == 1) {
			pid_t child = fork();

			if (!child)
				work(nchildren, path);
			children[nchildren++] = child;
		}
		add_group(path);
	}
}

static void read_group(struct group *group, struct mote_cgroup_values *values)
{
	static char text[1 << 18];
	char path[512];

	*values = (struct mote_cgroup_values){ 0 };
	for (unsigned int i = 0; i < nfiles; i++) {
		ssize_t len;
		int fd;

		if (layout.root[files[i].controller] < 0)
			continue;
		snprintf(path, sizeof(path), "%s%s%s", group->path, group->path[0] ? "/" : "",
			 files[i].name);
		fd = openat(layout.root[files[i].controller], path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		len = pread(fd, text, sizeof(text), 0);
		close(fd);
		if (len >= 0)
			mote_parse_cgroup(&files[i], (struct mote_text){ text, (size_t)len },
					  values);
	}
}

static void read_all(bool after)
{
	for (unsigned int i = 0; i < ngroups; i++)
		read_group(&groups[i], after ? &groups[i].after : &groups[i].before);
}

static void take_row(const struct mote_record *record)
{
	struct mote_value id = mote_value_named(record, "id");
	struct mote_value path = mote_value_named(record, "path");

	for (unsigned int i = 0; i < ngroups; i++) {
		struct group *group = &groups[i];

		if (group->id != id.u64)
			continue;
		group->row = (struct mote_cgroup_values){ 0 };
		group->given = path.type == MOTE_VALUE_STR && path.str.bytes[0] == '/' &&
			       path.str.size == strlen(group->path) + 1 &&
			       !memcmp(path.str.bytes + 1, group->path, path.str.size - 1);
		for (unsigned int k = 0; k < MOTE_CGROUP_VALUES; k++) {
			struct mote_value v = mote_value(record, CGROUP_CPU_USAGE + k);

			group->row.v[k] = v.u64;
			group->row.present |= (uint64_t)(v.type == MOTE_VALUE_U64) << k;
		}
	}
}

/* All rows of one keyframe. */
static bool poll_rows(struct mote_client *client)
{
	struct mote_message message;
	struct mote_record record;

	for (unsigned int i = 0; i < ngroups; i++)
		groups[i].given = false;
	if (mote_request(client, "poll cgroup"))
		return false;
	while (mote_next(client, &message, 60000) == 1) {
		if (message.type != MOTE_MESSAGE_DATA)
			continue;
		for (size_t i = 0; mote_row(&message, i, &record); i++)
			take_row(&record);
		if (!message.more)
			return true;
	}
	return false;
}

/* Which values are in steps that the text of this version has: us, or ticks. */
static uint64_t step_of(unsigned int value)
{
	if (value <= MOTE_CGROUP_CPU_SYSTEM || value == MOTE_CGROUP_CPU_THROTTLED_TIME)
		return 1000;
	return 1;
}

static bool between(uint64_t v, uint64_t a, uint64_t b, uint64_t step)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;

	return v + step > low && v < high + step;
}

/*
 * User and system time of one that moves. cputime_adjust() (kernel/sched/cputime.c) splits the
 * exact sum by how many ticks met each, and holds neither to be less than what it has shown before,
 * which it keeps in cgroup.prev_cputime. Reading the text writes this, the iterator cannot: as the
 * share of ticks changes, a later text may show less of one of them than the walk computed in
 * between, and more of the other. The sum is bounded all the same.
 */
static uint64_t both_of(const struct mote_cgroup_values *values)
{
	return values->v[MOTE_CGROUP_CPU_USER] + values->v[MOTE_CGROUP_CPU_SYSTEM];
}

/*
 * Whether the row is right. A gauge that goes up and down may have been elsewhere in between: of
 * the busy ones it is looked at only whether it is there.
 */
static bool is_right(const struct group *group, unsigned int k, bool moves)
{
	bool before = group->before.present >> k & 1, after = group->after.present >> k & 1;
	bool given = group->row.present >> k & 1;
	bool counter =
		mote_streams[MOTE_STREAM_CGROUP].fields[CGROUP_CPU_USAGE + k].kind == MOTE_COUNTER;

	if (before != after || given != before)
		return before != after;
	if (!given || (moves && !counter))
		return true;
	if (by_iterator && moves && (k == MOTE_CGROUP_CPU_USER || k == MOTE_CGROUP_CPU_SYSTEM))
		return between(both_of(&group->row), both_of(&group->before),
			       both_of(&group->after), 2 * step_of(k));
	return between(group->row.v[k], group->before.v[k], group->after.v[k], step_of(k));
}

static unsigned int compare(bool quiet)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < ngroups; i++) {
		struct group *group = &groups[i];
		bool moves =
			i < 2 ||
			group->before.v[MOTE_CGROUP_CPU_USAGE] !=
				group->after.v[MOTE_CGROUP_CPU_USAGE] ||
			group->before.v[MOTE_CGROUP_PGFAULT] != group->after.v[MOTE_CGROUP_PGFAULT];

		if (!group->given) {
			wrong++;
			if (!quiet)
				printf("# no row of /%s\n", group->path);
			continue;
		}
		for (unsigned int k = 0; k < MOTE_CGROUP_VALUES; k++) {
			if (is_right(group, k, moves))
				continue;
			if (++wrong <= 20 && !quiet)
				printf("# /%s %s: %s%" PRIu64 ", text %s%" PRIu64 " and %" PRIu64
				       "\n",
				       group->path,
				       mote_streams[MOTE_STREAM_CGROUP]
					       .fields[CGROUP_CPU_USAGE + k]
					       .name,
				       group->row.present >> k & 1 ? "" : "nil ", group->row.v[k],
				       group->before.present >> k & 1 ? "" : "nil ",
				       group->before.v[k], group->after.v[k]);
		}
	}
	return wrong;
}

/*
 * What of a controller is there in every kernel from 5.10 on, as the files of a cgroup show it with
 * a process and the limits of limit(). Of version 1 also whatever is in the hierarchy of memory.
 * Not io: a device has a line once it was used. From 6.11 on memory has no version 1 without
 * CONFIG_MEMCG_V1 (mount says EINVAL): the others' are due all the same.
 */
static unsigned int values_due(void)
{
	static const unsigned int version1[MOTE_CGROUP_CONTROLLERS] = {
		[MOTE_CGROUP_CPU] = 6, /* periods, throttled and its time, quota, period, shares */
		[MOTE_CGROUP_CPUACCT] = 3, /* usage, user, system */
		[MOTE_CGROUP_MEMORY] = 16, /* 3 of usage, 10 of stat, failcnt, processes, threads */
		[MOTE_CGROUP_PIDS] = 2,    /* current, limit */
		[MOTE_CGROUP_FREEZER] = 1,
	};
	unsigned int due = 0;
	char text[256] = "";
	int fd;

	for (unsigned int i = 0; layout.version == 1 && i < MOTE_CGROUP_CONTROLLERS; i++)
		due += layout.root[i] >= 0 ? version1[i] : 0;
	if (layout.version == 1)
		return due;
	fd = openat(layout.root[MOTE_CGROUP_UNIFIED], "cgroup.controllers", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		bail("cgroup.controllers");
	close(fd);
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

static void start_moted(const char *path, const char *source)
{
	FILE *file = fopen(CONFIG, "we");

	if (!file)
		bail(CONFIG);
	fprintf(file,
		"[tables]\ncgroups = %u\n[cgroup]\nsource = %s\nslow = 1s\nfreshness = 0ms\n"
		"[socket]\nqueue = 16MiB\narena = 64MiB\n",
		ngroups + 64, source);
	fclose(file);
	unlink(SOCKET);
	moted = fork();
	if (moted)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(path, path, "--socket", SOCKET, "--config", CONFIG, NULL);
	_exit(127);
}

static struct mote_client *connect_moted(void)
{
	struct mote_client *client = NULL;

	for (unsigned int i = 0; i < 600; i++) {
		if (!mote_open(SOCKET, &client))
			return client;
		nap(100);
	}
	bail("moted does not listen");
	return NULL;
}

static void show_tier(struct mote_client *client, const char *source)
{
	struct mote_message message;
	const struct mote_hello *hello;
	const char *choice = "";

	while (!(hello = mote_hello(client)) && mote_next(client, &message, 60000) == 1)
		;
	for (size_t i = 0; hello && i < hello->ntiers; i++) {
		if (!strncmp(hello->tiers[i].tier, "cgroup", 6))
			printf("# %s: %s %s\n", hello->tiers[i].tier, hello->tiers[i].choice,
			       hello->tiers[i].reason);
		if (!strcmp(hello->tiers[i].tier, "cgroups"))
			choice = hello->tiers[i].choice;
	}
	tap(!strcmp(choice, !strcmp(source, "iterator") ? "iter/cgroup"
			    : layout.version == 1       ? "files_v1"
							: "files"),
	    "source = %s is in use", source);
}

static uint64_t clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* What a poll does not show is that things stand still: the last round must be right as it is. */
static void run(struct mote_client *client)
{
	unsigned int wrong = 0;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t began, read, polled;

		nap(round ? 1300 : 300);
		began = clock_us();
		read_all(false);
		read = clock_us();
		if (!poll_rows(client))
			bail("poll cgroup");
		polled = clock_us();
		read_all(true);
		wrong = compare(round + 1 < ROUNDS);
		printf("# %u cgroups, %u wrong; files read in %" PRIu64 " us, polled in %" PRIu64
		       " us\n",
		       ngroups, wrong, read - began, polled - read);
		if (!wrong)
			break;
	}
	tap(!wrong, "%u cgroups: every value is that of the files", ngroups);
}

static void clean(void)
{
	char path[512];

	for (unsigned int i = 0; i < nchildren; i++)
		kill(children[i], SIGKILL);
	while (nchildren && waitpid(children[nchildren - 1], NULL, 0) >= 0)
		nchildren--;
	for (unsigned int tries = 0; tries < 20; tries++) {
		for (unsigned int i = ngroups; i-- > 1;)
			each_root(remove_dir, groups[i].path);
		snprintf(path, sizeof(path), "%s/" TOP, layout.mount[layout.primary]);
		if (access(path, F_OK))
			return;
		nap(50);
	}
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
	each_root(remove_dir, groups[last].path);
	snprintf(path, sizeof(path), TOP "/late");
	each_root(make_leaf, path);
	add_group(path);
	nap(200);
	tap(poll_rows(client) && groups[ngroups - 1].given && !groups[last].given,
	    "one that is new has a row, one that is gone has none");
}

int main(int argc, char **argv)
{
	struct mote_client *client;
	int status = 0;

	if (argc != 5) {
		fprintf(stderr, "usage: cgroupdiff MOTED SOURCE 1|2|hybrid|here CGROUPS\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(argv[3], "here"))
		mount_all(argv[3]);
	mote_cgroup_layout_open(&layout, NULL);
	if (!layout.version)
		bail("no cgroupfs");
	by_iterator = !strcmp(argv[2], "iterator");
	if (by_iterator)
		mote_cgroup_layout_unify(&layout);
	for (unsigned int i = 0; i < MOTE_CGROUP_CONTROLLERS; i++) {
		if (layout.mount[i][0])
			printf("# mounted: %s\n", layout.mount[i]);
	}
	files = mote_cgroup_files(layout.version, &nfiles);
	groups = calloc(MAX, sizeof(*groups));
	if (!groups)
		bail("memory");
	atexit(clean);
	make_groups((unsigned int)atoi(argv[4]));
	start_moted(argv[1], argv[2]);
	client = connect_moted();
	show_tier(client, argv[2]);
	run(client);
	tap(values_seen() >= values_due(), "%u values of %u are to be had, %u at least are due",
	    values_seen(), MOTE_CGROUP_VALUES, values_due());
	churn(client);
	mote_close(client);
	kill(moted, SIGTERM);
	tap(waitpid(moted, &status, 0) == moted && !status, "moted ends with 0");
	printf("1..%u\n", tap_n);
	return tap_failed ? 1 : 0;
}
