// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The thread that lists and watches, on folders of any file system: their inodes stand for ids. And
 * the log of what it tells, the tree it keeps, where cgroupfs is mounted, and how many CPUs there
 * are.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi.h"
#include "cgroup_cpus.h"
#include "cgroup_layout.h"
#include "cgroup_log.h"
#include "cgroup_tree.h"
#include "cgroup_watch.h"

static char root[64];
static struct mote_cgroup_watch *watch;
static unsigned int counts[5];
static char last[5][64];
static uint64_t last_id[5], last_parent[5];

static void folder(const char *name, bool make)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(make ? mkdir(path, 0755) : rmdir(path), 0);
}

static void count(void *ctx, const void *record, uint32_t len)
{
	const struct mote_cgroup_event *event = record;

	assert_in_range(event->kind, 1, 4);
	counts[event->kind]++;
	last_id[event->kind] = event->id;
	last_parent[event->kind] = event->parent;
	snprintf(last[event->kind], sizeof(last[0]), "%.*s", (int)event->name_len, event->name);
}

/* Takes records until `kind` was told so often, at least. */
static void wait_for_more(unsigned int kind, unsigned int n)
{
	for (unsigned int i = 0; i < 500 && counts[kind] < n; i++) {
		mote_ringbuf_drain(mote_cgroup_watch_ring(watch), 100, count, NULL);
		if (counts[kind] < n)
			usleep(10000);
	}
}

static void wait_for(unsigned int kind, unsigned int n)
{
	wait_for_more(kind, n);
	assert_int_equal(counts[kind], n);
}

static void start(bool events, unsigned int bytes, unsigned int interval_ms)
{
	struct mote_cgroup_watch_config config = { root, events, 256, interval_ms, bytes };

	memset(counts, 0, sizeof(counts));
	assert_int_equal(mote_cgroup_watch_start(&config, &watch), 0);
}

/*
 * These take the place of libc's: the kernel's answer where the limits of fs.inotify are reached,
 * which are the whole user's. Without a limit they make the call.
 */
static unsigned int watches_left, instances_left;

int inotify_init1(int flags)
{
	if (instances_left)
		return instances_left--, (int)syscall(SYS_inotify_init1, flags);
	errno = EMFILE;
	return -1;
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	if (watches_left)
		return watches_left--, (int)syscall(SYS_inotify_add_watch, fd, path, mask);
	errno = ENOSPC;
	return -1;
}

static int begin(void **state)
{
	watches_left = instances_left = 1000000;
	strcpy(root, "/tmp/mote-watch.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
	mote_cgroup_watch_stop(watch);
	watch = NULL;
	return rmdir(root);
}

static void lists_and_watches(void **state)
{
	folder("a", true);
	folder("a/b", true);
	start(true, 65536, 60000);
	wait_for(MOTE_CGROUP_LIST_END, 1);
	assert_int_equal(counts[MOTE_CGROUP_LISTED], 3);
	folder("a/b/c", true);
	wait_for(MOTE_CGROUP_MKDIR, 1);
	assert_string_equal(last[MOTE_CGROUP_MKDIR], "c");
	folder("a/b/c", false);
	wait_for(MOTE_CGROUP_RMDIR, 1);
	assert_int_equal(last_id[MOTE_CGROUP_RMDIR], last_id[MOTE_CGROUP_MKDIR]);
	folder("a/b", false);
	folder("a", false);
	wait_for(MOTE_CGROUP_RMDIR, 3);
	assert_string_equal(last[MOTE_CGROUP_RMDIR], "a");
}

/* Without a reader the thread waits, and nothing is lost. */
static void waits_for_room(void **state)
{
	char name[32];

	start(true, 4096, 60000);
	wait_for(MOTE_CGROUP_LIST_END, 1);
	for (unsigned int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "short-lived-%u", i);
		folder(name, true);
		folder(name, false);
	}
	wait_for(MOTE_CGROUP_RMDIR, 500);
	assert_int_equal(counts[MOTE_CGROUP_MKDIR], 500);
	assert_int_equal(*mote_cgroup_watch_dropped(watch), 0);
}

/* What nobody tells is found by the next listing. */
static void lists_again(void **state)
{
	folder("gone", true);
	start(false, 16384, 50);
	wait_for(MOTE_CGROUP_LIST_END, 1);
	folder("gone", false);
	folder("new", true);
	wait_for(MOTE_CGROUP_RMDIR, 1);
	assert_string_equal(last[MOTE_CGROUP_RMDIR], "gone");
	assert_string_equal(last[MOTE_CGROUP_LISTED], "new");
	assert_int_equal(counts[MOTE_CGROUP_MKDIR], 0);
	folder("new", false);
}

/* A listing that is before inotify's word: it was made all the same. */
static void listed_before_told(void **state)
{
	char name[32];

	start(true, 4096, 20);
	wait_for_more(MOTE_CGROUP_LIST_END, 1);
	usleep(300000); /* it lists, and then waits for room, where it sees what was made meanwhile
			 */
	for (unsigned int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "made-while-listing-%u", i);
		folder(name, true);
	}
	wait_for(MOTE_CGROUP_MKDIR, 200);
	for (unsigned int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "made-while-listing-%u", i);
		folder(name, false);
	}
	wait_for(MOTE_CGROUP_RMDIR, 200);
	assert_int_equal(counts[MOTE_CGROUP_MKDIR], 200);
}

static void many(bool make)
{
	char name[32];

	for (unsigned int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "a/many-%u", i);
		folder(name, make);
	}
}

/* More than the tree has room for: counted, and events of those in a watched one are told. */
static void tree_is_full(void **state)
{
	folder("a", true);
	many(true);
	start(true, 65536, 60000);
	wait_for(MOTE_CGROUP_LIST_END, 1);
	assert_int_equal(counts[MOTE_CGROUP_LISTED], 256);
	assert_int_equal(last_parent[MOTE_CGROUP_LIST_END], 302 - 256);
	folder("a/late", true);
	wait_for(MOTE_CGROUP_MKDIR, 1);
	assert_string_equal(last[MOTE_CGROUP_MKDIR], "late");
	folder("a/late", false);
	many(false);
	wait_for(MOTE_CGROUP_RMDIR, 301);
	folder("a", false);
}

static void few_watches(void **state)
{
	watches_left = 2;
	folder("a", true);
	folder("a/b", true);
	folder("a/b/c", true);
	start(true, 65536, 50);
	wait_for_more(MOTE_CGROUP_LIST_END, 2);
	assert_int_equal(*mote_cgroup_watch_dropped(watch), 2);
	folder("a/b/c", false);
	folder("a/b", false);
	folder("a", false);
	wait_for(MOTE_CGROUP_RMDIR, 3);
}

static void no_inotify(void **state)
{
	instances_left = 0;
	folder("a", true);
	start(true, 65536, 50);
	assert_false(mote_cgroup_watch_has_events(watch));
	wait_for_more(MOTE_CGROUP_LIST_END, 2);
	folder("a", false);
	wait_for(MOTE_CGROUP_RMDIR, 1);
}

static void no_folder(void **state)
{
	struct mote_cgroup_watch_config config = { "/nonexistent", true, 16, 1000, 4096 };

	assert_int_equal(mote_cgroup_watch_start(&config, &watch), -ENOENT);
}

static void tree(void **state)
{
	struct mote_cgroup_tree t;
	char path[64];
	uint32_t a, b;

	assert_int_equal(mote_cgroup_tree_open(&t, 4), 0);
	assert_int_equal(mote_cgroup_tree_add(&t, MOTE_CGROUP_NO_DIR, "", 1), 0);
	a = mote_cgroup_tree_add(&t, 0, "a", 2);
	b = mote_cgroup_tree_add(&t, a, "b", 3);
	mote_cgroup_tree_set_wd(&t, b, 77);
	assert_int_equal(mote_cgroup_tree_find(&t, a, "b"), b);
	assert_int_equal(mote_cgroup_tree_find(&t, 0, "b"), MOTE_CGROUP_NO_DIR);
	assert_int_equal(mote_cgroup_tree_find_wd(&t, 77), b);
	assert_int_equal(mote_cgroup_tree_path(&t, b, "/r", path, sizeof(path)), 0);
	assert_string_equal(path, "/r/a/b");
	assert_int_equal(mote_cgroup_tree_path(&t, b, "/r", path, 6), -ENAMETOOLONG);
	assert_int_not_equal(mote_cgroup_tree_add(&t, 0, "c", 4), MOTE_CGROUP_NO_DIR);
	assert_int_equal(mote_cgroup_tree_add(&t, 0, "d", 5), MOTE_CGROUP_NO_DIR);
	mote_cgroup_tree_remove(&t, b);
	assert_int_equal(mote_cgroup_tree_find_wd(&t, 77), MOTE_CGROUP_NO_DIR);
	assert_int_equal(mote_cgroup_tree_add(&t, 0, "d", 5), b);
	mote_cgroup_tree_close(&t);
}

static void layouts(void **state)
{
	static const struct {
		const char *mounts;
		unsigned int version;
		bool hybrid;
		enum mote_cgroup_controller primary;
	} rows[] = {
		{ "1 1 0:1 / /proc rw - proc proc rw\n", 0, false, MOTE_CGROUP_UNIFIED },
		{ "1 1 0:1 / /tmp rw - cgroup2 cgroup2 rw\n", 2, false, MOTE_CGROUP_UNIFIED },
		{ "1 1 0:1 / /tmp rw - cgroup cgroup rw,cpu,cpuacct\n"
		  "1 1 0:1 / /tmp rw - cgroup cgroup rw,memory\n",
		  1, false, MOTE_CGROUP_MEMORY },
		{ "1 1 0:1 / /tmp rw - cgroup cgroup rw,cpuacct,cpu\n"
		  "1 1 0:1 / /tmp rw - cgroup2 cgroup2 rw\n",
		  1, true, MOTE_CGROUP_CPUACCT },
		{ "1 1 0:1 / /tmp rw - cgroup cgroup rw,name=systemd\n"
		  "1 1 0:1 / /tmp rw - cgroup2 cgroup2 rw\n",
		  2, false, MOTE_CGROUP_UNIFIED },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mote_cgroup_layout layout;
		char path[128];
		FILE *file;

		snprintf(path, sizeof(path), "%s/mountinfo", root);
		file = fopen(path, "w");
		assert_non_null(file);
		fputs(rows[i].mounts, file);
		fclose(file);
		mote_cgroup_layout_open(&layout, path);
		assert_int_equal(layout.version, rows[i].version);
		assert_int_equal(layout.hybrid, rows[i].hybrid);
		assert_int_equal(layout.primary, rows[i].primary);
		mote_cgroup_layout_close(&layout);
		unlink(path);
	}
}

static unsigned int affinity(const char *text)
{
	return mote_cgroup_parse_affinity((struct mote_text){ text, strlen(text) });
}

static void cpus(void **state)
{
	struct mote_options options;
	struct mote_cgroup_set set;
	struct mote_cgroup_values quota = { .present = 1ull << MOTE_CGROUP_CPU_QUOTA |
						       1ull << MOTE_CGROUP_CPU_PERIOD };

	assert_int_equal(affinity("Name:\tx\nCpus_allowed:\tff,0000000f\nMems:\t1\n"), 12);
	assert_int_equal(affinity("Cpus_allowed:\t1\n"), 1);
	assert_int_equal(affinity("Cpus_allowed_list:\t0-3\n"), 0);
	mote_options_default(&options);
	assert_int_equal(mote_cgroup_set_open(&set, &options, NULL, NULL), 0);
	mote_cgroup_set_add(&set, 1, 0, (struct mote_text){ "", 0 }, 1, 1);
	mote_cgroup_set_add(&set, 2, 1, (struct mote_text){ "a", 1 }, 1, 1);
	mote_cgroup_set_add(&set, 3, 2, (struct mote_text){ "b", 1 }, 1, 1);
	assert_int_equal(mote_cgroup_cpus(&set, 3, 8), 8);
	assert_int_equal(mote_cgroup_cpus(&set, 99, 8), 8);
	quota.v[MOTE_CGROUP_CPU_QUOTA] = 250000000;
	quota.v[MOTE_CGROUP_CPU_PERIOD] = 100000000;
	mote_cgroup_row_take(&set.rows[mote_cgroup_set_find(&set, 2)->row], quota.present, &quota,
			     2);
	assert_int_equal(mote_cgroup_cpus(&set, 3, 8), 2);
	assert_int_equal(mote_cgroup_cpus(&set, 1, 8), 8);
	quota.v[MOTE_CGROUP_CPU_QUOTA] = 50000000;
	mote_cgroup_row_take(&set.rows[mote_cgroup_set_find(&set, 3)->row], quota.present, &quota,
			     2);
	assert_int_equal(mote_cgroup_cpus(&set, 3, 8), 1);
	mote_cgroup_set_close(&set);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(lists_and_watches),
		TEST(waits_for_room),
		TEST(lists_again),
		TEST(no_folder),
		TEST(tree),
		TEST(layouts),
		TEST(cpus),
		TEST(listed_before_told),
		TEST(tree_is_full),
		TEST(few_watches),
		TEST(no_inotify),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
