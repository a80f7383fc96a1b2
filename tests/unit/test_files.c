// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * files*.c on memory of the test's own: slots are claimed and written here as the programs do it;
 * what rows and totals come to is asked of the table and of the slots' own half.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "files_impl.h"

#define SLOTS 64
#define S     1000000000ull

static struct {
	struct mote_options options;
	struct mote_file_maps maps;
	struct mote_access accesses[SLOTS];
	struct mote_path paths[SLOTS];
	struct mote_slot_marks marks;
	struct mote_reap reaps[MOTE_FILE_TABLES];
	struct mote_slot_cpu cpus[1];
	struct mote_file_ctl ctl;
	struct mote_file_verdicts verdicts;
	struct mote_files *files;
	uint64_t now;
	uint32_t alive; /* the pid that lives */
} t;

bool mote_process_whole(const struct mote_process *process)
{
	return true;
}

bool mote_process_lives(struct mote_process *process, uint32_t pid, uint64_t start)
{
	return pid == t.alive;
}

uint32_t mote_process_exe(struct mote_process *process, uint32_t pid, uint64_t start,
			  char exe[MOTE_EXE_MAX])
{
	static const char path[] = "/bin/backup";

	memcpy(exe, path, sizeof(path));
	return pid == 7 ? sizeof(path) - 1 : 0;
}

static void open_with(void (*configure)(struct mote_options *options))
{
	char dir[] = "/tmp/mote-test-files.XXXXXX";
	struct mote_files_config config = { .options = &t.options, .maps = &t.maps };
	int dirfd;

	memset(&t, 0, sizeof(t));
	mote_options_default(&t.options);
	t.options.tables_ended_files = 64;
	if (configure)
		configure(&t.options);
	assert_non_null(mkdtemp(dir));
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(openat(dirfd, "reap", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(openat(dirfd, "walk", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	t.maps = (struct mote_file_maps){ .dirfd = dirfd,
					  .reap = "reap",
					  .walk = "walk",
					  .accesses = t.accesses,
					  .paths = t.paths,
					  .size = SLOTS,
					  .marks = &t.marks,
					  .reaps = t.reaps,
					  .cpus = t.cpus,
					  .ncpus = 1,
					  .ctl = &t.ctl,
					  .verdicts = &t.verdicts };
	for (int i = 0; i < SLOTS; i++)
		t.accesses[i].slot.gen = 1;
	config.process = (struct mote_process *)&t; /* never looked into */
	t.alive = 7;
	t.now = 100 * S;
	assert_int_equal(mote_files_open(&config, &t.files), 0);
	unlinkat(dirfd, "reap", 0);
	unlinkat(dirfd, "walk", 0);
	rmdir(dir);
	close(dirfd);
}

static void done(void)
{
	mote_files_close(t.files);
}

/* As the programs claim one: names from the file up. */
static struct mote_access *claim(uint32_t slot, uint32_t pid, uint64_t ino, const char *names,
				 uint32_t len)
{
	struct mote_access *a = &t.accesses[slot];

	a->slot.key = mote_access_key(mote_process_key(pid, 5), 8, ino, 0);
	a->tgid = pid;
	a->start = 5;
	a->dev = 8 << 20 | 1;
	a->ino = ino;
	memcpy(a->comm, "backup", 7);
	memcpy(t.paths[slot].names, names, len);
	t.paths[slot].len = len;
	t.marks.mark[slot] = 1;
	return a;
}

/* A tick: what `reap` is asked for is done at once. */
static void sample(uint64_t tasks)
{
	struct mote_reap *r = &t.reaps[0];

	t.now += S;
	mote_files_sample(t.files, tasks, t.now);
	for (uint32_t i = 0; i < r->deletes; i++)
		r->del[i].status = MOTE_REAP_DONE;
	for (uint32_t i = 0; i < r->pushes; i++)
		r->push[i].status = MOTE_REAP_DONE;
	r->deletes = r->pushes = 0;
	r->passes++;
	t.files->pushed[FILE_REAP] = true;
}

static uint64_t total(unsigned int field)
{
	struct mote_table *table = mote_files_table(t.files);

	return mote_row_get(mote_table_next(table, NULL), field);
}

static void test_sums(void **state)
{
	struct mote_access *a;

	open_with(NULL);
	a = claim(2, 7, 11, "a\0tmp", 6);
	a->moved = (struct mote_moved){ 100, 10, 3, 1 };
	sample(0);
	assert_int_equal(a->seen.read, 100);
	a->moved.read += 50;
	t.marks.mark[2] = 1;
	sample(0);
	assert_int_equal(total(FILE_TOTAL_BYTES_READ), 150);
	assert_int_equal(total(FILE_TOTAL_BYTES_WRITTEN), 10);
	assert_int_equal(total(FILE_TOTAL_FILES), 1);
	done();
}

/* Neither number is above the truth, and what was shown stays shown. */
static void test_walk(void **state)
{
	struct mote_access *a;

	open_with(NULL);
	a = claim(2, 7, 11, "a\0tmp", 6);
	a->moved.read = 100;
	a->settled.read = 100;
	a->pending.read = 30;
	a->walk = 1;
	sample(0);
	assert_int_equal(a->seen.read, 130);
	a->moved.read = 120; /* one of two threads has settled its 20 */
	t.marks.mark[2] = 1;
	sample(0);
	assert_int_equal(a->seen.read, 130);
	a->moved.read = 150;
	t.marks.mark[2] = 1;
	sample(0);
	assert_int_equal(a->seen.read, 150);
	assert_int_equal(total(FILE_TOTAL_BYTES_READ), 150);
	done();
}

static void test_ends_with_its_process(void **state)
{
	struct mote_access *a;

	open_with(NULL);
	a = claim(2, 8, 11, "a\0tmp", 6);
	a->moved.read = 100;
	sample(0);
	for (int i = 0; i < 12; i++)
		sample(t.now);
	assert_int_equal(a->slot.key, 0);
	assert_int_equal(a->seen.read, 0);
	assert_int_equal(t.files->totals.read, 100);
	assert_int_equal(total(FILE_TOTAL_BYTES_READ), 100);
	assert_int_equal(total(FILE_TOTAL_FILES), 0);
	done();
}

static void test_idle_ones_make_room(void **state)
{
	open_with(NULL);
	for (uint32_t i = 2; i < SLOTS - 4; i++)
		claim(i, 7, i, "a\0tmp", 6)->moved.read = i;
	sample(0);
	assert_true(mote_files_crowded(t.files));
	for (int i = 0; i < 20; i++) {
		t.marks.mark[2] = 1; /* a thread is at this one */
		t.files->pushed[FILE_WALK] = true;
		sample(0);
	}
	assert_false(mote_files_crowded(t.files));
	assert_int_not_equal(t.accesses[2].slot.key, 0);
	assert_int_equal(total(FILE_TOTAL_BYTES_READ), (SLOTS - 6) * (SLOTS - 3) / 2);
	done();
}

static void out_path(struct mote_options *o)
{
	strcpy(o->filters_exclude_paths, "/var/ /tmp/out/");
}

static void out_process(struct mote_options *o)
{
	strcpy(o->filters_exclude_processes, "cat backup");
}

static void out_executable(struct mote_options *o)
{
	strcpy(o->filters_exclude_processes, "/bin/backup");
}

static void in_path(struct mote_options *o)
{
	strcpy(o->filters_include_paths, "/srv/");
}

static void excluded(void (*configure)(struct mote_options *options), uint64_t verdict)
{
	struct mote_access *a;

	open_with(configure);
	a = claim(2, 7, 11, "a\0out\0tmp", 10);
	a->moved.read = 100;
	sample(0);
	assert_int_equal(t.verdicts.key[MOTE_VERDICT_AT(verdict)], verdict);
	a->moved.read = 120;
	for (int i = 0; i < 4; i++)
		sample(0);
	assert_int_equal(a->slot.key, 0);
	assert_int_equal(total(FILE_TOTAL_BYTES_READ), 120);
	assert_int_equal(total(FILE_TOTAL_OTHER_READ), 120);
	assert_int_equal(total(FILE_TOTAL_FILES), 0);
	assert_int_equal(t.files->ended.n, 0);
	done();
}

static void test_filters(void **state)
{
	uint64_t file = mote_access_key(0, 8 << 20 | 1, 11, 0);

	excluded(out_path, file);
	excluded(in_path, file);
	excluded(out_process, mote_process_key(7, 5));
	excluded(out_executable, mote_process_key(7, 5));
}

static void test_paths(void **state)
{
	struct mote_path path = { .len = 10 };
	char text[2 * MOTE_PATH_MAX];

	memcpy(path.names, "a\0out\0tmp", 10);
	mote_files_path(&path, text, sizeof(text));
	assert_string_equal(text, "/tmp/out/a");
	path.flags = MOTE_PATH_CUT;
	mote_files_path(&path, text, sizeof(text));
	assert_string_equal(text, ".../tmp/out/a");
	path.len = 0;
	assert_int_equal(mote_files_path(&path, text, sizeof(text)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_ends_with_its_process),
		cmocka_unit_test(test_idle_ones_make_room),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
