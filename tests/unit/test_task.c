// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Sums over task records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "task.h"
#include "tasks.h"

static void fill_pids(struct mote_task *tasks, const uint32_t *pids, unsigned int n)
{
	memset(tasks, 0, n * sizeof(*tasks));
	for (unsigned int i = 0; i < n; i++) {
		tasks[i].pid = pids[i];
		tasks[i].start = 1000 + pids[i];
		tasks[i].threads = 1;
	}
}

static void sorts_by_pid(void **state)
{
	struct mote_task tasks[257];
	uint32_t x = 1, pids[257];

	/* all of 1..256 in a scrambled order: multiplication by 3 is a permutation modulo 257 */
	for (unsigned int i = 0; i < 256; i++) {
		x = x * 3 % 257;
		pids[i] = x;
	}
	for (unsigned int n = 0; n <= 256; n += 64) {
		fill_pids(tasks, pids, n);
		mote_task_sort(tasks, n);
		for (unsigned int i = 0; i < n; i++) {
			assert_int_equal(tasks[i].start, 1000 + tasks[i].pid);
			assert_true(!i || tasks[i - 1].pid < tasks[i].pid);
		}
	}
	assert_int_equal(tasks[0].pid, 1);
	assert_int_equal(tasks[255].pid, 256);
}

static void finds(void **state)
{
	const uint32_t pids[] = { 1, 5, 9, 4000000 };
	struct mote_task tasks[4];

	fill_pids(tasks, pids, 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_ptr_equal(mote_task_find(tasks, 4, pids[i]), &tasks[i]);
	assert_null(mote_task_find(tasks, 4, 0));
	assert_null(mote_task_find(tasks, 4, 6));
	assert_null(mote_task_find(tasks, 4, 4000001));
	assert_null(mote_task_find(tasks, 0, 1));
}

/* Every count of the struct, whatever their number. */
static void adds_every_count(void **state)
{
	struct mote_thread_counts sum, one;
	uint64_t *s = (uint64_t *)&sum, *o = (uint64_t *)&one;
	unsigned int n = sizeof(sum) / sizeof(uint64_t);

	for (unsigned int i = 0; i < n; i++) {
		s[i] = 1000 + i;
		o[i] = 10 * i + 1;
	}
	mote_task_add_counts(&sum, &one);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(s[i], 1001 + 11 * i);
}

static void adds_threads(void **state)
{
	const uint32_t pids[] = { 10, 20, 30 };
	struct mote_thread threads[] = {
		{ .pid = 11, .tgid = 10, .counts = { .minflt = 1 } },
		{ .pid = 12, .tgid = 30, .counts = { .minflt = 2 } },
		{ .pid = 13, .tgid = 10, .counts = { .minflt = 4 } },
		{ .pid = 25, .tgid = 21, .counts = { .minflt = 8 } },
		{ .pid = 31, .tgid = 30, .counts = { .minflt = 16 } },
	};
	struct mote_task tasks[3];

	fill_pids(tasks, pids, 3);
	tasks[0].threads = 3;
	tasks[1].flags = MOTE_TASK_TORN; /* of the walk before */
	tasks[2].threads = 2;            /* one more was seen */
	assert_int_equal(mote_task_add_threads(tasks, 3, threads, 5), 1);
	assert_int_equal(tasks[0].counts.minflt, 5);
	assert_int_equal(tasks[1].counts.minflt, 0);
	assert_int_equal(tasks[2].counts.minflt, 18);
	assert_int_equal(tasks[0].seen, 3);
	assert_false(tasks[0].flags & MOTE_TASK_TORN);
	assert_false(tasks[1].flags & MOTE_TASK_TORN);
	assert_true(tasks[2].flags & MOTE_TASK_TORN);
	assert_int_equal(mote_task_add_threads(tasks, 0, threads, 5), 5);
}

/* Threads 5 and 7 of process 30 come before it: its sums are those of when 5 came. */
static void takes_sums_of_first_thread(void **state)
{
	const uint32_t pids[] = { 10, 30 };
	struct mote_thread threads[] = {
		{ .tgid = 30, .counts = { .minflt = 100 } },
		{ .pid = 5, .tgid = 30, .counts = { .minflt = 1 } },
		{ .tgid = 30, .counts = { .minflt = 101 } }, /* another process's came between */
		{ .pid = 7, .tgid = 30, .counts = { .minflt = 2 } },
		{ .pid = 10, .tgid = 10, .counts = { .minflt = 50 } }, /* it had none before it */
		{ .pid = 30, .tgid = 30, .counts = { .minflt = 103 } },
		{ .pid = 31, .tgid = 30, .counts = { .minflt = 4 } },
	};
	struct mote_task tasks[2];

	fill_pids(tasks, pids, 2);
	tasks[0].counts.minflt = 60;
	tasks[0].threads = 1;
	tasks[1].counts.minflt = 103 + 8; /* and its own */
	tasks[1].threads = 4;
	assert_int_equal(mote_task_add_threads(tasks, 2, threads, 7), 0);
	assert_int_equal(tasks[0].counts.minflt, 60);
	assert_int_equal(tasks[1].counts.minflt, 100 + 8 + 1 + 2 + 4);
	assert_int_equal(tasks[1].seen, 4);
	assert_int_equal((tasks[0].flags | tasks[1].flags) & (MOTE_TASK_TORN | MOTE_TASK_TWICE), 0);

	/* No room for the leader's: nothing tells how much is there twice. */
	mote_task_add_threads(tasks, 2, threads, 4);
	assert_true(tasks[1].flags & MOTE_TASK_TWICE);
	assert_false(tasks[0].flags & MOTE_TASK_TWICE);
}

struct times {
	uint64_t utime, stime, run_time, prev_utime, prev_stime, want_utime, want_stime;
};

/* Worked by hand from cputime_adjust(); the large ones overflow 64 bits in between. */
static void cputime(void **state)
{
	static const struct times t[] = {
		{ 30, 10, 100, 0, 0, 75, 25 },
		{ 30, 0, 100, 0, 0, 100, 0 }, /* no system time: all is user time */
		{ 0, 30, 100, 0, 0, 0, 100 },
		{ 0, 0, 100, 0, 0, 100, 0 },
		{ 0, 0, 0, 0, 0, 0, 0 },
		{ 30, 10, 100, 80, 20, 80, 20 }, /* nothing ran since */
		{ 30, 10, 100, 90, 20, 90, 20 }, /* nor backwards */
		{ 30, 10, 100, 50, 40, 60, 40 }, /* system time does not fall */
		{ 10, 30, 100, 60, 10, 60, 40 }, /* user time does not fall */
		{ 1ull << 62, 1ull << 62, 1ull << 62, 0, 0, 1ull << 61, 1ull << 61 },
		{ 3000000000000000000, 1000000000000000000, 4000000000000000004, 0, 0,
		  3000000000000000003, 1000000000000000001 },
	};

	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct mote_thread_counts c = { .utime = t[i].utime,
						.stime = t[i].stime,
						.run_time = t[i].run_time };
		uint64_t utime = t[i].prev_utime, stime = t[i].prev_stime;

		mote_task_cputime(&c, &utime, &stime);
		assert_int_equal(utime, t[i].want_utime);
		assert_int_equal(stime, t[i].want_stime);
	}
}

/*
 * Our pair and the kernel's: the one that covers more time is gone on from; neither falls, and the
 * sum is what the scheduler counted.
 */
static void adjusts_on_the_later_pair(void **state)
{
	struct mote_task task = { .counts = { .utime = 30, .stime = 10, .run_time = 100 } };

	mote_task_adjust(&task);
	assert_int_equal(task.shown_utime, 75);
	assert_int_equal(task.shown_stime, 25);

	task.prev_utime = 10;
	task.prev_stime = 40; /* older: sums up to 50 */
	mote_task_adjust(&task);
	assert_int_equal(task.shown_utime, 75);
	assert_int_equal(task.shown_stime, 25);

	task.counts.run_time = 120;
	task.prev_utime = 60;
	task.prev_stime = 60; /* somebody read /proc meanwhile */
	mote_task_adjust(&task);
	assert_int_equal(task.shown_utime, 75);
	assert_int_equal(task.shown_stime, 45);

	task.counts.run_time = 140;
	task.prev_utime = 110;
	task.prev_stime = 30;
	mote_task_adjust(&task);
	assert_int_equal(task.shown_utime, 95);
	assert_int_equal(task.shown_stime, 45);

	/* a torn sample: less run time than before */
	task.counts.run_time = 80;
	mote_task_adjust(&task);
	assert_int_equal(task.shown_utime, 95);
	assert_int_equal(task.shown_stime, 45);
}

static struct mote_ident ident(const char *names, unsigned int len, uint32_t flags)
{
	struct mote_ident id = { .exe_len = len, .exe_flags = flags };

	memcpy(id.exe, names, len);
	return id;
}

static unsigned int exe_of(const struct mote_ident *id, char *path, unsigned int size)
{
	return mote_task_exe(id->exe, id->exe_len, id->exe_flags, path, size);
}

static void makes_paths(void **state)
{
	struct mote_ident id = ident("bash\0bin\0usr", 13, 0);
	char path[32];

	assert_int_equal(exe_of(&id, path, sizeof(path)), 13);
	assert_string_equal(path, "/usr/bin/bash");
	id = ident("init", 5, 0);
	exe_of(&id, path, sizeof(path));
	assert_string_equal(path, "/init");
	id = ident("a\0b", 4, MOTE_EXE_DELETED);
	exe_of(&id, path, sizeof(path));
	assert_string_equal(path, "/b/a (deleted)");
	id = ident("a\0b", 4, MOTE_EXE_CUT);
	exe_of(&id, path, sizeof(path));
	assert_string_equal(path, ".../b/a");
	id = ident("memfd:x", 8, MOTE_EXE_DETACHED | MOTE_EXE_DELETED);
	exe_of(&id, path, sizeof(path));
	assert_string_equal(path, "/memfd:x (deleted)");
	assert_int_equal(exe_of(&id, path, 4), 3);
	assert_string_equal(path, "/me");
	id.exe_len = 0;
	assert_int_equal(exe_of(&id, path, sizeof(path)), 0);
	id.exe_len = MOTE_EXE_MAX + 1;
	assert_int_equal(exe_of(&id, path, sizeof(path)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_by_pid),
		cmocka_unit_test(finds),
		cmocka_unit_test(adds_every_count),
		cmocka_unit_test(adds_threads),
		cmocka_unit_test(takes_sums_of_first_thread),
		cmocka_unit_test(cputime),
		cmocka_unit_test(adjusts_on_the_later_pair),
		cmocka_unit_test(makes_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
