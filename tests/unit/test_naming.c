// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Command lines by an engine whose completions are made here, with direct descriptors and
 * without: who is asked, in which order, and what failures, exits, execs and hangs lead to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "naming.h"

#include "fake_engine.h"

#define MAX 64

struct fixture {
	struct mote_options options;
	struct fake_engine engine;
	struct mote_tasks tasks;
	struct mote_task halves[2][MAX];
	struct mote_process *process;
	struct mote_naming *naming;
	unsigned int n;
	uint64_t now;
};

static const struct mote_tasks_ops fake_tasks = { .name = "iterator" };

static struct fixture *fixture_with(bool direct, unsigned int workers)
{
	struct fixture *f = calloc(1, sizeof(*f));

	mote_options_default(&f->options);
	f->options.loop_workers = workers;
	f->options.process_argv_reads = 4;
	fake_engine_init(&f->engine, direct);
	f->tasks = (struct mote_tasks){ .ops = &fake_tasks,
					.half = { f->halves[0], f->halves[1] },
					.max = MAX };
	f->process = mote_process_new(&f->options, &f->tasks, NULL);
	assert_int_equal(mote_naming_open(&f->options, &f->engine.base, NULL, f->process,
					  &f->naming),
			 0);
	f->now = 1000;
	return f;
}

static struct fixture *fixture_new(bool direct)
{
	return fixture_with(direct, 3);
}

static void fixture_free(struct fixture *f)
{
	mote_naming_close(f->naming);
	mote_process_free(f->process);
	free(f);
}

static struct mote_task *add_task(struct fixture *f, uint32_t pid)
{
	struct mote_task *task = &f->halves[mote_process_half(f->process)][f->n++];

	memset(task, 0, offsetof(struct mote_task, shown_utime));
	task->pid = pid;
	task->start = 100000000ull * pid;
	task->exec_id = 1;
	task->flags = MOTE_TASK_HAS_MM;
	return task;
}

static void sampled(struct fixture *f)
{
	f->now += 1000;
	mote_process_sampled(f->process, f->n, f->now, f->now);
	f->n = 0;
}

static void sample_some(struct fixture *f, unsigned int n)
{
	for (uint32_t pid = 1; pid <= n; pid++)
		add_task(f, pid);
	sampled(f);
}

static unsigned int nameless(struct fixture *f)
{
	unsigned int n = 0;
	uint32_t from = 0;

	while (mote_process_wants_argv(f->process, &from))
		n++;
	return n;
}

static void complete(struct fixture *f, const struct mote_sqe *sqe, int res)
{
	struct mote_cqe cqe = { .tag = sqe->tag, .res = res };

	assert_int_equal(mote_tag_kind(sqe->tag), MOTE_TAG_ARGV);
	assert_true(sqe->flags & MOTE_SQE_MAY_BLOCK);
	mote_naming_argv(f->naming, &cqe, ++f->now);
}

/* Does the next operation as the kernel would; returns what it was. `fail`: a negative errno. */
static enum mote_op step_at(struct fixture *f, unsigned int at, int fail)
{
	struct mote_sqe sqe = fake_take(&f->engine, at);
	int res = fail;

	if (sqe.op == MOTE_OP_OPEN && !fail) {
		assert_int_equal(strncmp(sqe.path, "/proc/", 6), 0);
		res = sqe.slot >= 0 ? 0 : 50;
	} else if (sqe.op == MOTE_OP_READ && !fail) {
		assert_true(sqe.len >= 5 && sqe.offset != MOTE_OFFSET_CURRENT);
		memcpy(sqe.buf, "a\0b\0c", 5);
		res = 5;
	}
	complete(f, &sqe, res);
	return sqe.op;
}

static enum mote_op step(struct fixture *f, int fail)
{
	return step_at(f, 0, fail);
}

static void check_all_named(bool direct)
{
	struct fixture *f = fixture_new(direct);
	unsigned int opens = 0, reads = 0, closes = 0;

	sample_some(f, 10);
	assert_int_equal(nameless(f), 10);
	mote_naming_ask(f->naming);
	assert_true(f->engine.n > 0 && f->engine.n <= 12);
	assert_int_equal(mote_naming_soon(f->naming), f->engine.n);
	while (f->engine.n) {
		enum mote_op op = step(f, 0);

		opens += op == MOTE_OP_OPEN;
		reads += op == MOTE_OP_READ;
		closes += op == MOTE_OP_CLOSE;
	}
	assert_int_equal(opens, 10);
	assert_int_equal(reads, 10);
	assert_int_equal(closes, 10);
	assert_int_equal(nameless(f), 0);
	assert_int_equal(mote_naming_soon(f->naming), 0);
	mote_naming_ask(f->naming);
	assert_int_equal(f->engine.n, 0);
	fixture_free(f);
}

static void test_all_named(void **state)
{
	check_all_named(true);
	check_all_named(false);
}

/* A batch is one chain, from the first open to the last close. */
static void test_one_chain(void **state)
{
	struct fixture *f = fixture_new(true);

	sample_some(f, 3);
	mote_naming_ask(f->naming);
	assert_int_equal(f->engine.n, 9);
	for (unsigned int i = 0; i < 9; i++) {
		const struct mote_sqe *sqe = &f->engine.pushed[i];

		assert_int_equal((sqe->flags & MOTE_SQE_LINK) != 0, i < 8);
		assert_int_equal(sqe->op, i % 3 == 0   ? MOTE_OP_OPEN
					  : i % 3 == 1 ? MOTE_OP_READ
						       : MOTE_OP_CLOSE);
		if (i % 3)
			assert_int_equal(sqe->fd, f->engine.pushed[i - i % 3].slot);
	}
	fixture_free(f);
}

/* Gone before it was opened: no error, and it is not asked for again and again. */
static void check_failures(bool direct)
{
	struct fixture *f = fixture_new(direct);
	unsigned int steps = 0;

	sample_some(f, 5);
	mote_naming_ask(f->naming);
	while (f->engine.n) {
		step(f, f->engine.pushed[0].op == MOTE_OP_CLOSE ? 0 : -ESRCH);
		assert_true(++steps < 100);
	}
	assert_int_equal(nameless(f), 0);
	fixture_free(f);
}

static void test_failures(void **state)
{
	check_failures(true);
	check_failures(false);
}

/* The answer comes when the process is another, or another image. */
static void test_late_answers(void **state)
{
	struct fixture *f = fixture_new(true);

	sample_some(f, 3);
	mote_naming_ask(f->naming);
	add_task(f, 1)->start = 5; /* the pid was given again */
	add_task(f, 2)->exec_id = 9;
	sampled(f);
	f->engine.limit = f->engine.n; /* no new batch */
	while (f->engine.n)
		step(f, 0), f->engine.limit = f->engine.n;
	assert_int_equal(nameless(f), 2);
	fixture_free(f);
}

/* A read hangs for ticks: nothing is waited for; with no worker to spare nothing else is pushed. */
static void test_hang(void **state)
{
	struct fixture *f = fixture_with(true, 2);

	sample_some(f, 6);
	mote_naming_ask(f->naming);
	assert_int_equal(f->engine.n, 12);
	step(f, 0);
	for (int i = 0; i < 5; i++) {
		sample_some(f, 6);
		mote_naming_ask(f->naming);
		assert_int_equal(f->engine.n, 11);
		assert_int_equal(mote_naming_soon(f->naming), 0);
	}
	while (f->engine.n)
		step(f, 0);
	assert_int_equal(nameless(f), 0);
	fixture_free(f);
}

/* With one to spare the others are named meanwhile. */
static void test_hang_second(void **state)
{
	struct fixture *f = fixture_new(true);

	sample_some(f, 6);
	mote_naming_ask(f->naming);
	step(f, 0);
	mote_naming_ask(f->naming);
	assert_int_equal(f->engine.n, 11);
	mote_naming_ask(f->naming);
	assert_int_equal(f->engine.n, 11 + 12);
	assert_int_equal(mote_naming_soon(f->naming), 12);
	while (f->engine.n > 11)
		step_at(f, 11, 0);
	assert_int_equal(nameless(f), 1);
	mote_naming_ask(f->naming);
	assert_int_equal(f->engine.n, 11); /* the one that hangs is not asked for again */
	while (f->engine.n)
		step(f, 0);
	assert_int_equal(nameless(f), 0);
	fixture_free(f);
}

/* Both hang: nothing more is pushed, and both come back. */
static void test_hang_both(void **state)
{
	struct fixture *f = fixture_new(true);

	sample_some(f, 20);
	for (int i = 0; i < 6; i++)
		mote_naming_ask(f->naming);
	assert_int_equal(f->engine.n, 24);
	assert_int_equal(mote_naming_soon(f->naming), 0);
	while (f->engine.n > 12)
		step_at(f, 12, 0);
	while (f->engine.n)
		step(f, 0);
	assert_int_equal(nameless(f), 0);
	fixture_free(f);
}

/* A queue that is almost full takes what fits; the rest comes with later ticks. */
static void test_little_room(void **state)
{
	struct fixture *f = fixture_new(true);

	sample_some(f, 8);
	f->engine.limit = 7;
	for (int i = 0; i < 8; i++) {
		mote_naming_ask(f->naming);
		assert_true(f->engine.n <= 7);
		while (f->engine.n)
			step(f, 0);
	}
	assert_int_equal(nameless(f), 0);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_named), cmocka_unit_test(test_one_chain),
		cmocka_unit_test(test_failures),  cmocka_unit_test(test_late_answers),
		cmocka_unit_test(test_hang),      cmocka_unit_test(test_hang_second),
		cmocka_unit_test(test_hang_both), cmocka_unit_test(test_little_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
