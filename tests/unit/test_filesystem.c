// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The filesystem threads, with a mountinfo of ours and a statfs() of ours, which stands in for
 * libc's: values, mounts that come and go, calls that hang (one, two, and what is shared with
 * them) and return, and that nothing waits for them.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "filesystem.h"
#include "parse_check.h"
#include "thread.h"

#define INTERVAL_MS 50
#define SOON_NS     (10ull * 1000 * 1000 * 1000) /* a loaded machine's patience */

static char path[] = "/tmp/mote-mounts.XXXXXX";
static uint64_t sample;

/* Calls for paths that start with /hang wait here until `hanging` is 0. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hanging;
static unsigned int hung_calls, calls;
static uint64_t blocks = 1000;

int statfs(const char *file, struct statfs *st)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	calls++;
	if (!strncmp(file, "/hang", 5)) {
		hung_calls++;
		while (hanging)
			pthread_cond_wait(&changed, &lock);
	}
	*st = (struct statfs){ .f_blocks = blocks,
			       .f_bfree = 300,
			       .f_bavail = 200,
			       .f_bsize = 1,
			       .f_frsize = 4096,
			       .f_files = 50,
			       .f_ffree = 40,
			       .f_flags = ST_RDONLY };
	if (!strcmp(file, "/btrfs"))
		st->f_files = st->f_ffree = st->f_flags = 0;
	if (!strcmp(file, "/sizeless"))
		st->f_blocks = 0;
	if (!strcmp(file, "/denied")) {
		errno = EACCES;
		err = -1;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void set_hanging(bool on)
{
	pthread_mutex_lock(&lock);
	hanging = on;
	hung_calls = 0;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static unsigned int get(const unsigned int *of)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = *of;
	pthread_mutex_unlock(&lock);
	return n;
}

static void set_mounts(const char *text)
{
	FILE *file = fopen(path, "r+");

	/* shorter than before for a moment: a round may see no mounts, the next sees these */
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), 0), 0);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static struct mote_filesystems *run(unsigned int max)
{
	struct mote_filesystems *fs;

	assert_int_equal(mote_filesystems_open(path, max, INTERVAL_MS, &fs), 0);
	assert_int_equal(mote_filesystems_run(fs), 0);
	return fs;
}

static const struct mote_row *row_of(const struct mote_table *table, const char *key)
{
	const struct mote_row *row = check_find(table, key);

	assert_non_null(row);
	return row;
}

static bool has_size(const struct mote_table *table, const char *key)
{
	const struct mote_row *row = check_find(table, key);

	return row && mote_row_has(row, FILESYSTEM_SIZE);
}

/* Collects until `done(table)`; fails if that takes too long. */
static void collect_until(struct mote_filesystems *fs, struct mote_table *table,
			  bool (*done)(const struct mote_table *table))
{
	uint64_t until = mote_thread_now() + SOON_NS;

	while (mote_thread_now() < until) {
		mote_filesystems_collect(fs, table, ++sample);
		if (done(table))
			return;
		usleep(2000);
	}
	fail_msg("the rows did not come within 10 s");
}

static bool has_root(const struct mote_table *table)
{
	return has_size(table, "/");
}

static void values(void **state)
{
	struct mote_table *table = mote_table_new(MOTE_STREAM_FILESYSTEM, 8, 16);
	struct mote_filesystems *fs;
	const struct mote_row *row;

	set_mounts("1 0 8:1 / / rw - ext4 /dev/sda rw\n"
		   "2 1 8:2 / /btrfs rw - btrfs b rw\n"
		   "3 1 8:3 / /sizeless rw - fuse.x s rw\n"
		   "4 1 8:4 / /denied rw - xfs d rw\n"
		   "5 1 8:5 / /a-name-longer-than-the-text rw - xfs e rw\n");
	fs = run(8);
	collect_until(fs, table, has_root);
	row = row_of(table, "/");
	assert_string_equal(mote_row_get_str(table, row, FILESYSTEM_DEVICE), "/dev/sda");
	assert_string_equal(mote_row_get_str(table, row, FILESYSTEM_TYPE), "ext4");
	assert_true(mote_row_get(row, FILESYSTEM_SIZE) == 1000 * 4096);
	assert_true(mote_row_get(row, FILESYSTEM_FREE) == 300 * 4096);
	assert_true(mote_row_get(row, FILESYSTEM_AVAILABLE) == 200 * 4096);
	assert_true(mote_row_get(row, FILESYSTEM_INODES) == 50);
	assert_true(mote_row_get(row, FILESYSTEM_INODES_FREE) == 40);
	assert_true(mote_row_get(row, FILESYSTEM_READ_ONLY) == 1);
	row = row_of(table, "/btrfs");
	assert_true(mote_row_has(row, FILESYSTEM_SIZE));
	assert_false(mote_row_has(row, FILESYSTEM_INODES));
	assert_true(mote_row_has(row, FILESYSTEM_READ_ONLY));
	assert_true(mote_row_get(row, FILESYSTEM_READ_ONLY) == 0);
	assert_false(has_size(table, "/sizeless"));
	row = row_of(table, "/denied");
	assert_string_equal(mote_row_get_str(table, row, FILESYSTEM_TYPE), "xfs");
	assert_false(mote_row_has(row, FILESYSTEM_SIZE));
	assert_false(mote_row_has(row, FILESYSTEM_READ_ONLY));
	assert_true(has_size(table, "/a-name-longer-"));
	assert_int_equal(mote_filesystems_hung(fs), 0);
	mote_filesystems_stop(fs);
	mote_table_free(table);
}

static bool has_new(const struct mote_table *table)
{
	return has_size(table, "/new") && !check_find(table, "/old");
}

static void mounts_come_and_go(void **state)
{
	struct mote_table *table = mote_table_new(MOTE_STREAM_FILESYSTEM, 8, 64);
	struct mote_filesystems *fs;

	set_mounts("1 0 8:1 / / rw - ext4 r rw\n2 1 8:2 / /old rw - ext4 o rw\n");
	fs = run(8);
	collect_until(fs, table, has_root);
	assert_true(has_size(table, "/old"));
	set_mounts("1 0 8:1 / / rw - ext4 r rw\n3 1 8:2 / /new rw - ext4 o rw\n");
	collect_until(fs, table, has_new);
	mote_filesystems_stop(fs);
	mote_table_free(table);
}

/* Longer than the buffer in sum, with one line longer than it alone. */
static void long_mountinfo(void **state)
{
	struct mote_table *table = mote_table_new(MOTE_STREAM_FILESYSTEM, 512, 64);
	struct mote_filesystems *fs;
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fprintf(file, "500 0 9:1 / / rw - ext4 o rw\n");
	for (unsigned int i = 0; i < 400; i++)
		fprintf(file, "%u 500 8:%u / /%u rw - overlay o rw,lowerdir=%0*u\n", i, i, i,
			i == 200 || i == 398 ? 40000 : 100, 0);
	assert_int_equal(fclose(file), 0);
	fs = run(512);
	collect_until(fs, table, has_root);
	assert_true(has_size(table, "/0"));
	assert_true(has_size(table, "/199"));
	assert_true(has_size(table, "/200"));
	assert_true(has_size(table, "/201"));
	assert_true(has_size(table, "/399"));
	assert_int_equal(mote_filesystems_dropped(fs), 0);
	mote_filesystems_stop(fs);
	mote_table_free(table);
}

static void more_than_fit(void **state)
{
	struct mote_table *table = mote_table_new(MOTE_STREAM_FILESYSTEM, 8, 64);
	struct mote_filesystems *fs;

	set_mounts("1 0 8:1 / / rw - ext4 r rw\n2 1 8:2 / /b rw - ext4 b rw\n"
		   "3 1 8:3 / /c rw - ext4 c rw\n");
	fs = run(2);
	collect_until(fs, table, has_root);
	assert_true(has_size(table, "/b"));
	assert_null(check_find(table, "/c"));
	assert_true(mote_filesystems_dropped(fs) >= 1);
	mote_filesystems_stop(fs);
	mote_table_free(table);
}

static bool has_behind(const struct mote_table *table)
{
	return has_size(table, "/behind") &&
	       mote_row_get(check_find(table, "/behind"), FILESYSTEM_SIZE) == 7 * 4096;
}

static bool has_hang(const struct mote_table *table)
{
	return has_size(table, "/hang");
}

static void set_blocks(uint64_t n)
{
	pthread_mutex_lock(&lock);
	blocks = n;
	pthread_mutex_unlock(&lock);
}

static void one_hangs_and_returns(void **state)
{
	struct mote_table *table = mote_table_new(MOTE_STREAM_FILESYSTEM, 8, 64);
	struct mote_filesystems *fs;
	uint64_t began;

	set_mounts("1 0 8:1 / / rw - ext4 r rw\n2 1 0:9 / /hang rw - nfs4 s:/a rw\n"
		   "3 1 0:9 / /hang2 rw - nfs4 s:/a rw\n4 1 0:10 / /behind rw - nfs4 t:/b rw\n");
	set_hanging(true);
	fs = run(8);
	collect_until(fs, table, has_root);
	set_blocks(7);
	collect_until(fs, table, has_behind);
	assert_int_equal(mote_filesystems_hung(fs), 1);
	assert_string_equal(mote_row_get_str(table, row_of(table, "/hang"), FILESYSTEM_DEVICE),
			    "s:/a");
	assert_false(has_size(table, "/hang"));
	assert_false(has_size(table, "/hang2"));
	assert_int_equal(get(&hung_calls), 1); /* not again, nor its sibling */
	began = mote_thread_now();
	for (unsigned int i = 0; i < 1000; i++)
		mote_filesystems_collect(fs, table, ++sample);
	assert_true(mote_thread_now() - began < 1000000000ull);
	set_hanging(false);
	collect_until(fs, table, has_hang);
	assert_int_equal(mote_filesystems_hung(fs), 0);
	mote_filesystems_stop(fs);
	set_blocks(1000);
	mote_table_free(table);
}

static void two_hang(void **state)
{
	struct mote_table *table = mote_table_new(MOTE_STREAM_FILESYSTEM, 8, 64);
	struct mote_filesystems *fs;
	uint64_t until = mote_thread_now() + SOON_NS;

	set_mounts("2 1 0:9 / /hang rw - nfs4 s:/a rw\n3 1 0:10 / /hang2 rw - nfs4 t:/a rw\n"
		   "4 1 0:11 / /hang3 rw - nfs4 u:/b rw\n1 0 8:1 / / rw - ext4 r rw\n"
		   "5 1 8:2 / /behind rw - ext4 t:/b rw\n");
	set_hanging(true);
	fs = run(8);
	while (mote_filesystems_hung(fs) < 2 && mote_thread_now() < until)
		usleep(2000);
	assert_int_equal(mote_filesystems_hung(fs), 2);
	set_blocks(7);
	collect_until(fs, table, has_behind);
	/* the last thread does not risk itself */
	assert_int_equal(get(&hung_calls), 2);
	assert_non_null(check_find(table, "/hang3"));
	assert_false(has_size(table, "/hang3"));
	set_hanging(false);
	collect_until(fs, table, has_hang);
	mote_filesystems_stop(fs);
	set_blocks(1000);
	mote_table_free(table);
}

/* The last mount of the list hangs: the round must be handed over all the same. */
static void the_last_one_hangs(void **state)
{
	struct mote_table *table = mote_table_new(MOTE_STREAM_FILESYSTEM, 8, 64);
	struct mote_filesystems *fs;

	set_mounts("1 0 8:1 / / rw - ext4 r rw\n2 1 0:9 / /hang rw - ext4 s:/a rw\n");
	set_hanging(true);
	assert_int_equal(mote_filesystems_open(path, 8, 3600 * 1000, &fs), 0);
	assert_int_equal(mote_filesystems_run(fs), 0);
	collect_until(fs, table, has_root);
	assert_false(has_size(table, "/hang"));
	/* and the result that comes late is handed over before the next round */
	set_hanging(false);
	collect_until(fs, table, has_hang);
	mote_filesystems_stop(fs);
	mote_table_free(table);
}

static void stop_does_not_wait_for_a_hung_call(void **state)
{
	struct mote_filesystems *fs;
	uint64_t began = mote_thread_now();

	set_mounts("2 1 0:9 / /hang rw - ext4 s:/a rw\n");
	set_hanging(true);
	fs = run(8);
	mote_filesystems_stop(fs);
	assert_true(mote_thread_now() - began < SOON_NS);
	assert_int_equal(get(&hung_calls), 1);
	set_hanging(false);
	usleep(100000); /* the thread that was left behind ends */
}

static void bad_arguments(void **state)
{
	struct mote_filesystems *fs = NULL;

	assert_int_equal(mote_filesystems_open("/nonexistent", 8, 1000, &fs), -ENOENT);
	assert_int_equal(mote_filesystems_open(path, 0, 1000, &fs), -EINVAL);
	assert_int_equal(mote_filesystems_open(path, 8, 0, &fs), -EINVAL);
	assert_null(fs);
	mote_filesystems_stop(NULL);
}

static void this_machine(void **state)
{
	struct mote_table *table = mote_table_new(MOTE_STREAM_FILESYSTEM, 64, 128);
	struct mote_filesystems *fs;
	const struct mote_row *row = NULL;

	assert_int_equal(mote_filesystems_start(64, 1000, &fs), 0);
	collect_until(fs, table, has_root);
	while ((row = mote_table_next(table, row)))
		assert_string_not_equal(mote_row_get_str(table, row, FILESYSTEM_TYPE), "proc");
	mote_filesystems_stop(fs);
	mote_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(mounts_come_and_go),
		cmocka_unit_test(long_mountinfo),
		cmocka_unit_test(more_than_fit),
		cmocka_unit_test(one_hangs_and_returns),
		cmocka_unit_test(two_hang),
		cmocka_unit_test(the_last_one_hangs),
		cmocka_unit_test(stop_does_not_wait_for_a_hung_call),
		cmocka_unit_test(bad_arguments),
		cmocka_unit_test(this_machine),
	};
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
