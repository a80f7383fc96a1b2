// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Files read by chains: with both engines and with one whose completions are made here. The real
 * files are /proc/self/timers, a seq_file that grows by a record for each timer that is made, and
 * files that come, change and vanish.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "file.h"

#include "fake_engine.h"

#define TIMERS 300
#define SLOT   5

static struct mote_engine *engines[2];
static char dir[] = "/tmp/mote-file.XXXXXX", path[64];

static int open_engines(void **state)
{
	const struct mote_engine_config config = { 128, 2 };

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	if (mote_engine_open_ring(&config, &engines[1]))
		engines[1] = NULL;
	return mote_engine_open_sync(&config, &engines[0]);
}

static int close_engines(void **state)
{
	mote_engine_close(engines[0]);
	mote_engine_close(engines[1]);
	unlink(path);
	return rmdir(dir);
}

static void write_file(const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

/* One sample, as the loop takes it. */
static struct mote_text sample(struct mote_file *file, struct mote_engine *engine)
{
	unsigned int n = mote_file_push(file, engine, 7), got = 0;

	if (n)
		mote_engine_end_chain(engine);
	while (got < n) {
		struct mote_cqe cqes[64];
		int some = mote_engine_wait(engine, n - got, cqes, 64);

		assert_true(some >= 0);
		for (int i = 0; i < some; i++) {
			assert_int_equal(mote_tag_kind(cqes[i].tag), MOTE_TAG_FILE);
			assert_int_equal(mote_tag_index(cqes[i].tag), 7);
			mote_file_complete(file, mote_tag_generation(cqes[i].tag), cqes[i].res);
		}
		got += (unsigned int)some;
	}
	assert_int_equal(got, n);
	return mote_file_text(file);
}

/* What reading it to the end gives. */
static char whole[1 << 20];
static size_t read_whole(const char *name)
{
	int fd = open(name, O_RDONLY);
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, whole + len, sizeof(whole) - len)) > 0)
		len += (size_t)n;
	close(fd);
	return len;
}

static void same(struct mote_text text, const char *name)
{
	size_t len = read_whole(name);

	assert_int_equal(text.len, len);
	assert_memory_equal(text.data, whole, len);
}

/* Each engine, with direct descriptors and without. */
static void each(void (*check)(struct mote_engine *engine, bool direct))
{
	for (int i = 0; i < 2; i++) {
		if (!engines[i])
			continue;
		check(engines[i], false);
		if (mote_engine_direct(engines[i]))
			check(engines[i], true);
	}
}

static void check_small(struct mote_engine *engine, bool direct)
{
	struct mote_file file;

	write_file("one\n", 4);
	assert_int_equal(mote_file_open(&file, path, SLOT, direct), 0);
	assert_false(file.reopen);
	assert_int_equal(mote_file_ops(&file), 1);
	same(sample(&file, engine), path);
	write_file("another text\n", 13);
	same(sample(&file, engine), path);
	write_file("", 0);
	assert_int_equal(sample(&file, engine).len, 0);
	assert_int_equal(file.error, 0);
	unlink(path); /* the descriptor is kept */
	assert_int_equal(sample(&file, engine).len, 0);
	assert_int_equal(file.peak, 13);
	mote_file_close(&file);
	mote_file_close(&file);
}

static void test_small(void **state)
{
	each(check_small);
}

static timer_t timers[TIMERS];
static unsigned int ntimers;

static void set_timers(unsigned int n)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };

	for (; ntimers < n; ntimers++)
		assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timers[ntimers]), 0);
	for (; ntimers > n; ntimers--)
		timer_delete(timers[ntimers - 1]);
}

/* Several pages from the start; more and fewer of them later. */
static void check_many_pages(struct mote_engine *engine, bool direct)
{
	struct mote_file file;

	set_timers(TIMERS);
	assert_int_equal(mote_file_open(&file, "/proc/self/timers", SLOT, direct), 0);
	assert_true(file.reopen);
	for (int i = 0; i < 4; i++) {
		set_timers(TIMERS - 30 * (unsigned int)i);
		same(sample(&file, engine), "/proc/self/timers");
		assert_int_equal(file.error, 0);
		assert_false(file.cut);
	}
	mote_file_close(&file);
	set_timers(0);
}

static void test_many_pages(void **state)
{
	each(check_many_pages);
}

/* Held: strides instead of opening, and no more of them than the text needs. */
static void check_strides(struct mote_engine *engine, bool direct)
{
	struct mote_file file;

	if (!mote_engine_ready(engine))
		return;
	set_timers(TIMERS);
	assert_int_equal(mote_file_open(&file, "/proc/self/timers", SLOT, direct), 0);
	assert_true(file.reopen);
	mote_file_hold(&file, engine);
	assert_true(file.held && file.paged && !file.reopen);
	for (unsigned int n = TIMERS; n; n -= 20) {
		set_timers(n);
		same(sample(&file, engine), "/proc/self/timers");
		assert_int_equal(file.error, 0);
		assert_false(file.cut);
		assert_true(mote_file_ops(&file) <= file.len / 3500 + 2);
	}
	set_timers(TIMERS);
	sample(&file, engine);
	assert_true(file.cut);
	same(sample(&file, engine), "/proc/self/timers");
	assert_false(file.cut);
	mote_file_close(&file);
	set_timers(0);
}

static void check_strides_growth(struct mote_engine *engine, bool direct)
{
	struct mote_file file;

	if (!mote_engine_ready(engine))
		return;
	set_timers(10);
	assert_int_equal(mote_file_open(&file, "/proc/self/timers", SLOT, direct), 0);
	assert_int_equal(mote_file_reserve(&file, 20000), 0);
	mote_file_hold(&file, engine);
	assert_true(file.held);
	same(sample(&file, engine), "/proc/self/timers");
	assert_int_equal(mote_file_ops(&file), 1);
	set_timers(TIMERS);
	sample(&file, engine);
	assert_true(file.cut);
	for (int i = 0; i < 3; i++) {
		same(sample(&file, engine), "/proc/self/timers");
		assert_true(file.paged && !file.cut);
	}
	mote_file_close(&file);
	set_timers(0);
}

static void test_strides(void **state)
{
	each(check_strides);
	each(check_strides_growth);
}

/*
 * Small at the start, then of several pages. A seq_file gives one page to a read, whole lines: the
 * sample in which it grew must not pass for the whole, the next one is.
 */
static void check_growth(struct mote_engine *engine, bool direct)
{
	struct mote_file file;
	struct mote_text text;

	set_timers(10);
	assert_int_equal(mote_file_open(&file, "/proc/self/timers", SLOT, direct), 0);
	assert_false(file.reopen);
	assert_int_equal(mote_file_reserve(&file, 20000), 0);
	same(sample(&file, engine), "/proc/self/timers");
	set_timers(TIMERS);
	text = sample(&file, engine);
	assert_true(file.cut);
	assert_true(text.len > 0 && text.data[text.len - 1] != '\n');
	for (int i = 0; i < 3; i++) {
		same(sample(&file, engine), "/proc/self/timers");
		assert_false(file.cut);
		assert_int_equal(file.error, 0);
	}
	set_timers(3);
	same(sample(&file, engine), "/proc/self/timers");
	mote_file_close(&file);
	set_timers(0);
}

static void test_growth(void **state)
{
	each(check_growth);
}

/* More than the reads take: cut, within a line, and said so. */
static void check_cut(struct mote_engine *engine, bool direct)
{
	struct mote_file file;
	struct mote_text text;

	set_timers(TIMERS);
	assert_int_equal(mote_file_open(&file, "/proc/self/timers", SLOT, direct), 0);
	assert_true(file.reopen);
	file.reads = 2;
	text = sample(&file, engine);
	assert_true(file.cut);
	assert_true(text.len > 3000 && text.data[text.len - 1] != '\n');
	mote_file_close(&file);
	set_timers(0);
}

static void test_cut(void **state)
{
	each(check_cut);
}

/* A file that is opened anew each time vanishes and comes back. */
static void check_vanishes(struct mote_engine *engine, bool direct)
{
	char text[9000];
	struct mote_file file;

	memset(text, 'x', sizeof(text));
	write_file(text, 3900); /* close to a page: opened anew */
	assert_int_equal(mote_file_open(&file, path, SLOT, direct), 0);
	assert_true(file.reopen);
	same(sample(&file, engine), path);
	unlink(path);
	sample(&file, engine); /* without direct descriptors the old one is still read */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sample(&file, engine).len, 0);
		assert_true(file.error < 0);
	}
	write_file(text, sizeof(text));
	sample(&file, engine); /* opens it */
	for (int i = 0; i < 3; i++) {
		same(sample(&file, engine), path);
		assert_int_equal(file.error, 0);
	}
	mote_file_close(&file);
	unlink(path);
}

static void test_vanishes(void **state)
{
	each(check_vanishes);
}

/* No descriptor is left behind, whatever happened. */
static void test_descriptors(void **state)
{
	int before = dup(0), after;

	close(before);
	each(check_vanishes);
	each(check_growth);
	each(check_small);
	each(check_strides);
	each(check_strides_growth);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

static void check_missing(struct mote_engine *engine, bool direct)
{
	struct mote_file file;

	assert_int_equal(mote_file_open(&file, "/proc/self/no such file", SLOT, direct), -ENOENT);
	assert_int_equal(mote_file_reserve(&file, 10000), 0);
	assert_int_equal(mote_file_ops(&file), 0);
	assert_int_equal(mote_file_push(&file, engine, 7), 0);
	assert_int_equal(mote_file_text(&file).len, 0);
	assert_int_equal(file.error, 0);
	mote_file_close(&file);
	assert_true(mote_file_open(&file, "/proc/self", SLOT, direct) < 0); /* a directory */
	mote_file_close(&file);
}

static void test_missing(void **state)
{
	each(check_missing);
}

static void check_iterator(struct mote_engine *engine, bool direct)
{
	struct mote_file file;
	int dirfd = open("/proc/self", O_RDONLY | O_DIRECTORY);

	assert_int_equal(mote_file_open_iterator(&file, dirfd, "comm", SLOT, direct), 0);
	assert_int_equal(mote_file_ops(&file), 3);
	for (int i = 0; i < 3; i++)
		same(sample(&file, engine), "/proc/self/comm");
	mote_file_close(&file);
	close(dirfd);
}

static void test_iterator(void **state)
{
	each(check_iterator);
}

static unsigned int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned int n = 0;

	while (readdir(tasks))
		n++;
	closedir(tasks);
	return n;
}

static void check_held(struct mote_engine *engine, bool direct)
{
	struct mote_file file;
	unsigned int before = threads();

	assert_int_equal(mote_file_open(&file, "/proc/version", SLOT, direct), 0);
	mote_file_hold(&file, engine);
	assert_int_equal(file.held, mote_engine_ready(engine));
	for (int i = 0; i < 3; i++)
		same(sample(&file, engine), "/proc/version");
	/* Workers are threads of the process. */
	if (file.held)
		assert_int_equal(threads(), before);
	mote_file_close(&file);
}

/* The first test: the ring has no workers yet. */
static void test_held(void **state)
{
	each(check_held);
}

/* Not /proc's: it may block. */
static void test_not_held(void **state)
{
	struct mote_file file;

	write_file("one\n", 4);
	for (int i = 0; i < 2; i++) {
		if (!engines[i])
			continue;
		assert_int_equal(mote_file_open(&file, path, SLOT, true), 0);
		mote_file_hold(&file, engines[i]);
		assert_false(file.held);
		same(sample(&file, engines[i]), path);
		mote_file_close(&file);
	}
	unlink(path);
}

/* By hand: `results` of the reads, and what the text is then. */
static struct mote_text by_hand(struct mote_file *file, struct fake_engine *fake,
				const int *results)
{
	unsigned int n = mote_file_push(file, &fake->base, 7), read = 0;

	assert_int_equal(fake->n, n);
	while (fake->n) {
		struct mote_sqe sqe = fake_take(fake, 0);
		int res = 0;

		assert_true(sqe.flags & MOTE_SQE_LINK);
		if (sqe.op == MOTE_OP_READ) {
			res = results[read];
			assert_true(res <= (int)sqe.len);
			if (res > 0)
				memset(sqe.buf, 'a' + (int)read, (size_t)res);
			read++;
		}
		mote_file_complete(file, mote_tag_generation(sqe.tag), res);
	}
	return mote_file_text(file);
}

/* Short reads join; an error makes the text empty; what comes after an end does not count. */
static void test_short_reads(void **state)
{
	static struct fake_engine fake;
	struct mote_file file;
	struct mote_text text;
	char big[20000];

	fake_engine_init(&fake, true);
	memset(big, 'x', sizeof(big));
	write_file(big, 3900);
	assert_int_equal(mote_file_open(&file, path, SLOT, true), 0);
	assert_int_equal(file.reads, 4);
	text = by_hand(&file, &fake, (const int[]){ 3, 1, 2, 0 });
	assert_int_equal(text.len, 6);
	assert_memory_equal(text.data, "aaabcc", 6);
	assert_false(file.cut);
	text = by_hand(&file, &fake, (const int[]){ 3, 0, 2, 0 });
	assert_int_equal(text.len, 3);
	text = by_hand(&file, &fake, (const int[]){ 8192, 8192, 8192, 0 });
	assert_int_equal(text.len, 3 * 8192);
	assert_false(file.cut);
	text = by_hand(&file, &fake, (const int[]){ 8192, 8192, 8192, 1 });
	assert_int_equal(text.len, 3 * 8192 + 1);
	assert_true(file.cut);
	text = by_hand(&file, &fake, (const int[]){ 5, -EINTR, 5, 0 });
	assert_int_equal(text.len, 0);
	assert_int_equal(file.error, -EINTR);
	assert_false(file.cut);
	text = by_hand(&file, &fake, (const int[]){ 0, 0, 0, 0 });
	assert_int_equal(text.len, 0);
	assert_int_equal(file.error, 0);
	mote_file_close(&file);
	unlink(path);
}

/* A kernel that takes a file for one that may block after all. */
static void test_refused(void **state)
{
	static struct fake_engine fake;
	struct mote_file file;

	fake_engine_init(&fake, true);
	fake.base.ready = true;
	assert_int_equal(mote_file_open_iterator(&file, AT_FDCWD, path, SLOT, true), 0);
	assert_int_equal(mote_file_push(&file, &fake.base, 7), 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_false(fake.pushed[i].flags & MOTE_SQE_ASYNC);
	assert_true(fake.pushed[0].flags & MOTE_SQE_READY);
	fake.n = 0;
	assert_int_equal(by_hand(&file, &fake, (const int[]){ -EAGAIN, 0, 0, 0 }).len, 0);
	assert_int_equal(file.error, -EAGAIN);
	assert_int_equal(mote_file_push(&file, &fake.base, 7), 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_true(fake.pushed[i].flags & MOTE_SQE_ASYNC);
	assert_false(fake.pushed[0].flags & MOTE_SQE_READY);
	mote_file_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held),        cmocka_unit_test(test_small),
		cmocka_unit_test(test_many_pages),  cmocka_unit_test(test_growth),
		cmocka_unit_test(test_cut),         cmocka_unit_test(test_vanishes),
		cmocka_unit_test(test_descriptors), cmocka_unit_test(test_missing),
		cmocka_unit_test(test_iterator),    cmocka_unit_test(test_short_reads),
		cmocka_unit_test(test_not_held),    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_strides),
	};

	return cmocka_run_group_tests(tests, open_engines, close_engines);
}
