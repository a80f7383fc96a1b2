// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The process table with samples and events made here. One test lets a model of processes be born,
 * work, exec, die, be waited for and have their pid given again in any order, tells of it as the
 * kernel does, late and twice too, and demands that nothing is counted twice or lost, and that what
 * a client adds up never decreases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "parse.h"
#include "process.h"

#include "fake_ring.h"

#define MAX  256
#define RING (1u << 20)
#define MS   1000000ull

struct fixture {
	struct mote_options options;
	struct mote_tasks tasks;
	struct mote_task halves[2][MAX];
	struct fake_ring ring;
	struct mote_events events;
	struct mote_process *process;
	unsigned int n; /* of the half being filled */
	uint64_t now;
};

static const struct mote_tasks_ops fake_ops = { .name = "iterator" }, proc_ops = { .name = "proc" };

static struct fixture *fixture_new(bool with_events, const struct mote_tasks_ops *ops)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	mote_options_default(&f->options);
	f->options.tables_ended = 256;
	f->tasks = (struct mote_tasks){ .ops = ops,
					.half = { f->halves[0], f->halves[1] },
					.max = MAX };
	assert_int_equal(fake_ring_open(&f->ring, RING, 0), 0);
	mote_events_open_ring(&f->events, &f->ring.ring, NULL);
	f->process = mote_process_new(&f->options, &f->tasks, with_events ? &f->events : NULL);
	assert_non_null(f->process);
	f->now = 1000 * MS;
	return f;
}

static void fixture_free(struct fixture *f)
{
	mote_process_free(f->process);
	fake_ring_close(&f->ring);
	free(f);
}

static struct mote_thread_counts counts(uint64_t n)
{
	return (struct mote_thread_counts){ .utime = 2 * n,
					    .stime = n,
					    .run_time = 3 * n,
					    .run_delay = n,
					    .minflt = n,
					    .rchar = 7 * n,
					    .write_bytes = 4096 * n };
}

static struct mote_task *add_task(struct fixture *f, uint32_t pid, uint64_t start, uint64_t n)
{
	struct mote_task *task = &f->halves[mote_process_half(f->process)][f->n++];

	/* As BPF leaves it: its own part is written, ours is what was there two samples ago. */
	memset(task, 0, offsetof(struct mote_task, shown_utime));
	task->pid = pid;
	task->start = start;
	task->counts = counts(n);
	task->exec_id = 1;
	task->flags = MOTE_TASK_HAS_MM | MOTE_TASK_HAS_RSS | MOTE_TASK_HAS_FDS;
	task->state = 'S';
	strcpy(task->comm, "name");
	return task;
}

static void sampled(struct fixture *f, uint64_t began)
{
	f->now += MS;
	mote_process_sampled(f->process, f->n, began, f->now);
	mote_events_release(&f->events, f->events.seen);
	f->n = 0;
}

static void put_exit(struct fixture *f, enum mote_event_kind kind, uint32_t pid, uint64_t start,
		     uint64_t time, uint64_t n)
{
	struct mote_event_exit event = {
		.event = { .kind = kind, .pid = pid, .start = start, .time = time },
		.counts = counts(n),
	};

	if (kind == MOTE_EVENT_FINAL)
		event.counts.run_delay = 0;
	assert_non_null(fake_ring_put(&f->ring, &event, sizeof(event), 0));
}

/* What a client knows: rows by pid, and totals. */
struct view {
	uint64_t start[MAX];
	uint64_t value[MAX][PROCESS__FIELDS];
	uint64_t totals[PROCESS__FIELDS];
	unsigned int rows;
};

static void take_row(struct view *view, const msgpack_object *row)
{
	uint64_t pid = row->via.array.ptr[PROCESS_PID].via.u64;

	assert_int_equal(row->via.array.size, PROCESS__FIELDS);
	assert_true(pid < MAX);
	view->start[pid] = row->via.array.ptr[PROCESS_START].via.u64;
	for (unsigned int i = 0; i < PROCESS__FIELDS; i++) {
		const msgpack_object *value = &row->via.array.ptr[i];

		view->value[pid][i] =
			value->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? value->via.u64 : 0;
	}
	view->rows++;
}

static void unpack(const char *buf, size_t len, msgpack_unpacked *out)
{
	msgpack_unpacked_init(out);
	assert_int_equal(msgpack_unpack_next(out, buf, len, NULL), MSGPACK_UNPACK_SUCCESS);
}

/* What changed after `since`, as the frame encoder asks for it; with 0 a keyframe. */
static void refresh(struct fixture *f, struct view *view, uint64_t since)
{
	const struct mote_source_ops *ops = &mote_process_source;
	char buf[8192];
	struct mote_writer writer;
	msgpack_packer pk;
	msgpack_unpacked out;
	uint64_t cursor = 0;

	if (since && ops->forgot(f->process, since))
		since = 0;
	if (!since)
		memset(view, 0, sizeof(*view));
	view->rows = 0;
	for (;;) {
		mote_writer_init(&writer, &pk, buf, sizeof(buf));
		if (!ops->row(f->process, since, &cursor, &pk))
			break;
		unpack(buf, writer.len, &out);
		take_row(view, &out.data);
		msgpack_unpacked_destroy(&out);
	}
	cursor = 0;
	while (since) {
		uint64_t pid;

		mote_writer_init(&writer, &pk, buf, sizeof(buf));
		if (!ops->ended(f->process, since, &cursor, &pk))
			break;
		unpack(buf, writer.len, &out);
		pid = out.data.via.array.ptr[0].via.u64;
		if (view->start[pid] == out.data.via.array.ptr[1].via.u64)
			memset(view->value[pid], view->start[pid] = 0, sizeof(view->value[pid]));
		msgpack_unpacked_destroy(&out);
	}
	mote_writer_init(&writer, &pk, buf, sizeof(buf));
	ops->totals(f->process, &pk);
	unpack(buf, writer.len, &out);
	for (unsigned int i = 0; i < PROCESS__FIELDS; i++)
		view->totals[i] = out.data.via.array.ptr[i].type == MSGPACK_OBJECT_NIL
					  ? 0
					  : out.data.via.array.ptr[i].via.u64;
	msgpack_unpacked_destroy(&out);
}

static uint64_t total(struct fixture *f, unsigned int field)
{
	static struct view view;

	refresh(f, &view, 0);
	return view.totals[field];
}

static void test_born_and_died(void **state)
{
	struct fixture *f = fixture_new(false, &fake_ops);
	static struct view view;

	add_task(f, 10, 5 * MS, 1);
	add_task(f, 20, 6 * MS, 2);
	sampled(f, f->now);
	refresh(f, &view, 0);
	assert_int_equal(view.rows, 2);
	assert_int_equal(view.value[10][PROCESS_MINFLT], 1);
	assert_int_equal(view.value[20][PROCESS_UTIME], 4);
	add_task(f, 20, 6 * MS, 2);
	sampled(f, f->now);
	refresh(f, &view, f->now - MS);
	assert_int_equal(view.rows, 0); /* 20 did not change */
	assert_int_equal(view.start[10], 0);
	assert_int_equal(view.totals[PROCESS_MINFLT], 1);
	assert_int_equal(view.totals[PROCESS_RUN_TIME], 3);
	add_task(f, 20, 6 * MS, 3);
	sampled(f, f->now);
	refresh(f, &view, f->now - MS);
	assert_int_equal(view.rows, 1);
	fixture_free(f);
}

static void test_pid_reuse(void **state)
{
	struct fixture *f = fixture_new(false, &fake_ops);
	static struct view view;

	add_task(f, 10, 10 * MS, 5);
	sampled(f, f->now);
	refresh(f, &view, 0);
	add_task(f, 10, 50 * MS, 1);
	sampled(f, f->now);
	refresh(f, &view, f->now - MS);
	assert_int_equal(view.start[10], 50 * MS / MOTE_NS_PER_TICK);
	assert_int_equal(view.value[10][PROCESS_MINFLT], 1);
	assert_int_equal(view.totals[PROCESS_MINFLT], 5);
	assert_int_equal(view.totals[PROCESS_UTIME], 10);
	fixture_free(f);
}

/* Exit before the sample that has it as a zombie; then gone; the final word last. */
static void test_zombie(void **state)
{
	struct fixture *f = fixture_new(true, &fake_ops);
	static struct view view;

	add_task(f, 10, MS, 5);
	sampled(f, f->now);
	put_exit(f, MOTE_EVENT_EXIT, 10, MS, f->now, 6);
	add_task(f, 10, MS, 6);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 0);
	refresh(f, &view, 0);
	assert_int_equal(view.value[10][PROCESS_MINFLT], 6);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 6);
	put_exit(f, MOTE_EVENT_FINAL, 10, MS, f->now, 9);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 9);
	assert_int_equal(total(f, PROCESS_RUN_DELAY), 6);
	fixture_free(f);
}

/* An exit raises a zombie's row above the sample's: it does not fall back with the next. */
static void test_zombie_stays_raised(void **state)
{
	struct fixture *f = fixture_new(true, &fake_ops);
	static struct view view;

	add_task(f, 10, MS, 5);
	put_exit(f, MOTE_EVENT_EXIT, 10, MS, f->now, 6);
	sampled(f, f->now);
	for (int i = 0; i < 3; i++) {
		refresh(f, &view, 0);
		assert_int_equal(view.value[10][PROCESS_MINFLT], 6);
		assert_int_equal(view.value[10][PROCESS_UTIME], 12);
		add_task(f, 10, MS, 5);
		sampled(f, f->now);
	}
	fixture_free(f);
}

static void test_never_sampled(void **state)
{
	struct fixture *f = fixture_new(true, &fake_ops);

	put_exit(f, MOTE_EVENT_EXIT, 10, MS, f->now, 6);
	put_exit(f, MOTE_EVENT_EXIT, 10, MS, f->now, 7); /* told twice */
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 7);
	put_exit(f, MOTE_EVENT_FINAL, 10, MS, f->now, 8);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 8);
	assert_int_equal(total(f, PROCESS_RUN_TIME), 24);
	/* FINAL without EXIT, which was lost. */
	put_exit(f, MOTE_EVENT_FINAL, 11, MS, f->now, 1);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 9);
	fixture_free(f);
}

/* Events after the sample began wait: their process may be in the next. */
static void test_late_events_wait(void **state)
{
	struct fixture *f = fixture_new(true, &fake_ops);
	uint64_t began = f->now;

	put_exit(f, MOTE_EVENT_EXIT, 10, MS, began + 1, 6);
	sampled(f, began);
	assert_int_equal(total(f, PROCESS_MINFLT), 0);
	add_task(f, 10, MS, 6); /* a zombie now */
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 0);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 6);
	fixture_free(f);
}

/* Its exit was counted before a sample had it (the table was full): once is enough. */
static void test_counted_before_sampled(void **state)
{
	struct fixture *f = fixture_new(true, &fake_ops);

	put_exit(f, MOTE_EVENT_EXIT, 10, MS, f->now, 6);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 6);
	add_task(f, 10, MS, 6);
	sampled(f, f->now);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 6);
	put_exit(f, MOTE_EVENT_FINAL, 10, MS, f->now, 7);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 7);
	fixture_free(f);
}

/* More are gone than there are accounts: their last words are not counted a second time. */
static void test_accounts_full(void **state)
{
	struct fixture *f = fixture_new(true, &fake_ops);
	struct mote_process_stats stats;

	for (uint32_t pid = 1; pid <= 100; pid++)
		add_task(f, pid, MS * pid, 3);
	sampled(f, f->now);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 300);
	for (uint32_t pid = 1; pid <= 100; pid++)
		put_exit(f, MOTE_EVENT_FINAL, pid, MS * pid, f->now, 3);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 300);
	mote_process_stats(f->process, &stats);
	assert_int_equal(stats.accounts.size, 64);
	assert_int_equal(stats.accounts.dropped, 100 - 64);
	fixture_free(f);
}

/* A walk that has a thread twice is not believed: its process keeps the counts that it had. */
static void test_thread_twice(void **state)
{
	struct fixture *f = fixture_new(false, &fake_ops);

	add_task(f, 10, MS, 5);
	sampled(f, f->now);
	add_task(f, 10, MS, 9)->flags |= MOTE_TASK_TWICE;
	sampled(f, f->now);
	add_task(f, 10, MS, 6);
	sampled(f, f->now);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 6);
	assert_int_equal(total(f, PROCESS_RUN_TIME), 18);
	fixture_free(f);
}

/* A living process that a full table leaves out now and then adds to the totals once. */
static void test_comes_and_goes(void **state)
{
	struct fixture *f = fixture_new(false, &fake_ops);

	for (uint64_t i = 1; i <= 10; i++) {
		add_task(f, 10, MS, i);
		sampled(f, f->now);
		sampled(f, f->now);
	}
	assert_int_equal(total(f, PROCESS_MINFLT), 10);
	fixture_free(f);
}

/* Nor does its row fall when it is back, though the split of its CPU time is another then. */
static void test_comes_back(void **state)
{
	struct fixture *f = fixture_new(false, &fake_ops);
	static struct view view;

	add_task(f, 10, MS, 0)->counts = (struct mote_thread_counts){ .utime = 10, .run_time = 10 };
	sampled(f, f->now);
	sampled(f, f->now);
	add_task(f, 10, MS, 0)->counts =
		(struct mote_thread_counts){ .utime = 10, .stime = 30, .run_time = 12 };
	sampled(f, f->now);
	refresh(f, &view, 0);
	assert_int_equal(view.value[10][PROCESS_UTIME], 10);
	assert_int_equal(view.value[10][PROCESS_STIME], 2);
	fixture_free(f);
}

/* The final word splits CPU time otherwise than what was shown: the sum is still exact. */
static void test_cpu_split(void **state)
{
	struct fixture *f = fixture_new(true, &fake_ops);
	struct mote_event_exit event = {
		.event = { .kind = MOTE_EVENT_FINAL, .pid = 10, .start = MS },
		.counts = { .utime = 10 * MS, .stime = 90 * MS, .run_time = 110 * MS },
	};
	struct mote_task *task = add_task(f, 10, MS, 0);

	task->counts = (struct mote_thread_counts){ .utime = 90 * MS,
						    .stime = 10 * MS,
						    .run_time = 100 * MS };
	sampled(f, f->now);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_UTIME), 90 * MS);
	event.event.time = f->now;
	assert_non_null(fake_ring_put(&f->ring, &event, sizeof(event), 0));
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_RUN_TIME), 110 * MS);
	assert_int_equal(total(f, PROCESS_UTIME) + total(f, PROCESS_STIME), 110 * MS);
	fixture_free(f);
}

/* Records from /proc know the start in ticks, events in ns. */
static void test_proc_ticks(void **state)
{
	struct fixture *f = fixture_new(true, &proc_ops);
	static struct view view;

	add_task(f, 10, 30 * MS, 5);
	put_exit(f, MOTE_EVENT_EXIT, 10, 34567890, f->now, 6);
	sampled(f, f->now);
	refresh(f, &view, 0);
	assert_int_equal(view.value[10][PROCESS_MINFLT], 6);
	assert_int_equal(view.totals[PROCESS_MINFLT], 0);
	sampled(f, f->now);
	put_exit(f, MOTE_EVENT_FINAL, 10, 34567890, f->now, 7);
	sampled(f, f->now);
	assert_int_equal(total(f, PROCESS_MINFLT), 7);
	fixture_free(f);
}

static void test_ended_and_forgot(void **state)
{
	struct fixture *f = fixture_new(false, &fake_ops);
	const struct mote_source_ops *ops = &mote_process_source;
	struct mote_process_stats stats;
	uint64_t before;

	for (uint32_t i = 1; i <= 200; i++)
		add_task(f, i, MS, 1);
	sampled(f, f->now);
	before = f->now;
	sampled(f, f->now);
	assert_false(ops->forgot(f->process, before));
	mote_process_stats(f->process, &stats);
	assert_int_equal(stats.ended.fill, 200);
	for (uint32_t i = 1; i <= 100; i++)
		add_task(f, i, 2 * MS, 1);
	sampled(f, f->now);
	sampled(f, f->now);
	assert_true(ops->forgot(f->process, before));
	assert_false(ops->forgot(f->process, before + MS));
	assert_int_equal(total(f, PROCESS_MINFLT), 300);
	fixture_free(f);
}

/* More end between two frames of one update: each key that was to come still comes. */
static void test_ended_while_an_update_is_open(void **state)
{
	struct fixture *f = fixture_new(false, &fake_ops);
	bool told[MAX] = { false };
	uint64_t cursor = 0, since;

	for (uint32_t pid = 1; pid < 100; pid++)
		add_task(f, pid, MS, 1);
	sampled(f, f->now);
	since = f->now;
	for (uint32_t round = 0; round < 4; round++) {
		for (uint32_t pid = 1 + 25 * (round + 1); pid < 100; pid++)
			add_task(f, pid, MS, 1);
		sampled(f, f->now);
		for (int i = 0; i < (round < 3 ? 7 : 1000); i++) {
			char buf[64];
			struct mote_writer writer;
			msgpack_packer pk;
			msgpack_unpacked out;

			mote_writer_init(&writer, &pk, buf, sizeof(buf));
			if (!mote_process_source.ended(f->process, since, &cursor, &pk))
				break;
			unpack(buf, writer.len, &out);
			told[out.data.via.array.ptr[0].via.u64] = true;
			msgpack_unpacked_destroy(&out);
		}
	}
	/* Of the first round all; later ones are in the next update too. */
	for (uint32_t pid = 1; pid <= 25; pid++)
		assert_true(told[pid]);
	fixture_free(f);
}

/* Names: of this very image, kept while it lives, void after an exec, freed at its end. */
static void test_names(void **state)
{
	struct fixture *f = fixture_new(false, &fake_ops);
	struct mote_process_stats stats;
	struct mote_task *task;
	uint32_t from = 0;

	add_task(f, 10, MS, 1);
	add_task(f, 11, MS, 1)->flags = MOTE_TASK_KTHREAD;
	sampled(f, f->now);
	task = mote_process_wants_argv(f->process, &from);
	assert_int_equal(task->pid, 10);
	assert_null(mote_process_wants_argv(f->process, &from));
	mote_process_give_argv(f->process, 10, MS + MOTE_NS_PER_TICK, 1, "x", 1,
			       f->now);                                /* another's */
	mote_process_give_argv(f->process, 10, MS, 2, "x", 1, f->now); /* another image's */
	from = 0;
	assert_non_null(mote_process_wants_argv(f->process, &from));
	mote_process_give_argv(f->process, 10, MS, 1, "a\0b", 3, f->now);
	from = 0;
	assert_null(mote_process_wants_argv(f->process, &from));
	from = 0;
	assert_non_null(mote_process_wants_exe(f->process, &from));
	mote_process_give_exe(f->process, 10, MS, 1, "/bin/a", 6, f->now);
	add_task(f, 10, MS, 1);
	sampled(f, f->now);
	from = 0;
	assert_null(mote_process_wants_exe(f->process, &from));
	add_task(f, 10, MS, 1)->exec_id = 2;
	sampled(f, f->now);
	from = 0;
	assert_non_null(mote_process_wants_argv(f->process, &from));
	mote_process_stats(f->process, &stats);
	assert_true(stats.texts.fill > 0);
	sampled(f, f->now);
	mote_process_stats(f->process, &stats);
	assert_int_equal(stats.texts.fill, 0);
	fixture_free(f);
}

/* A child that made no exec is called what its parent is, unless an exec may have gone unseen. */
static void test_inherits(void **state)
{
	struct fixture *f = fixture_new(true, &fake_ops);
	struct mote_task *task;

	for (int sample = 0; sample < 2; sample++) {
		uint32_t from = 0;

		add_task(f, 10, MS, 1);
		add_task(f, 11, 2 * MS, 1)->ppid = 10; /* as old as we know: both may have execed */
		if (sample) {
			add_task(f, 12, 3 * MS, 1)->ppid = 10;
			task = add_task(f, 13, 3 * MS, 1); /* its own exec is still to be told */
			task->ppid = 10;
			task->exec_id = 2;
		}
		sampled(f, f->now);
		if (!sample)
			mote_process_give_argv(f->process, 10, MS, 1, "a", 1, f->now);
		assert_int_equal(mote_process_wants_argv(f->process, &from)->pid, 11);
		if (sample)
			assert_int_equal(mote_process_wants_argv(f->process, &from)->pid, 13);
		assert_null(mote_process_wants_argv(f->process, &from));
	}
	fixture_free(f);
}

/* No room for more text: those without a name are not asked for at every tick, but when there is.
 */
static void test_texts_full(void **state)
{
	struct fixture *f = fixture_new(false, &fake_ops);
	struct mote_process_stats stats;
	struct mote_task *task;
	char argv[500];
	unsigned int asked = 0;

	memset(argv, 'x', sizeof(argv));
	mote_process_free(f->process);
	f->options.tables_text = 16384;
	f->process = mote_process_new(&f->options, &f->tasks, NULL);
	for (int tick = 0; tick < 8; tick++) {
		uint32_t from = 0;

		/* From the sixth on those that had a name are gone. */
		for (uint32_t i = tick < 5 ? 1 : 50; i <= 100; i++)
			add_task(f, i, MS, 1);
		sampled(f, f->now);
		for (asked = 0; (task = mote_process_wants_argv(f->process, &from)); asked++)
			mote_process_give_argv(f->process, task->pid, task->start, task->exec_id,
					       argv, sizeof(argv), f->now);
		if (tick == 5)
			assert_in_range(asked, 20, 30);
		else
			assert_int_equal(asked, tick ? 0 : 100);
	}
	mote_process_stats(f->process, &stats);
	assert_true(stats.texts.dropped > 50 && stats.texts.dropped < 100);
	assert_in_range(stats.texts.fill, stats.texts.size * 3 / 4, stats.texts.size);
	fixture_free(f);
}

/*
 * The model. Work is a number that grows; a process is in one of these states, and the kernel
 * tells EXIT when it dies and FINAL some time after it was waited for.
 */
enum life { NOT, LIVES, ZOMBIE, REAPED };

struct proc {
	enum life life;
	uint64_t start, work;
};

#define PIDS 40

struct world {
	struct fixture *f;
	struct proc procs[PIDS];    /* by pid */
	struct proc gone[PIDS * 4]; /* reaped, FINAL not told */
	uint32_t gone_pid[PIDS * 4];
	unsigned int ngone;
	uint64_t clock, done; /* work of all whose FINAL was told */
};

static void tell_final(struct world *w, unsigned int at)
{
	struct proc *proc = &w->gone[at];

	proc->work += (uint64_t)rand() % 3; /* its memory was freed */
	put_exit(w->f, MOTE_EVENT_FINAL, w->gone_pid[at], proc->start, w->clock, proc->work);
	w->done += proc->work;
	*proc = w->gone[--w->ngone];
	w->gone_pid[at] = w->gone_pid[w->ngone];
}

static void act(struct world *w)
{
	uint32_t pid = 1 + (uint32_t)rand() % (PIDS - 1);
	struct proc *proc = &w->procs[pid];

	w->clock += 1 + (uint64_t)rand() % 1000;
	if (w->ngone && (rand() % 3 == 0 || w->ngone == PIDS * 4)) {
		tell_final(w, (unsigned int)rand() % w->ngone);
		return;
	}
	switch (proc->life) {
	case NOT:
		*proc = (struct proc){ LIVES, w->clock * MOTE_NS_PER_TICK, (uint64_t)rand() % 3 };
		break;
	case LIVES:
		proc->work += (uint64_t)rand() % 50;
		if (rand() % 2)
			break;
		put_exit(w->f, MOTE_EVENT_EXIT, pid, proc->start, w->clock, proc->work);
		if (rand() % 4 == 0)
			put_exit(w->f, MOTE_EVENT_EXIT, pid, proc->start, w->clock, proc->work);
		proc->work += (uint64_t)rand() % 2;
		proc->life = ZOMBIE;
		break;
	case ZOMBIE:
		if (rand() % 3 == 0)
			break;
		w->gone[w->ngone] = *proc;
		w->gone_pid[w->ngone++] = pid;
		proc->life = NOT;
		break;
	case REAPED:
		break;
	}
}

static void some(struct world *w, int most)
{
	for (int i = rand() % (most + 1); i > 0; i--)
		act(w);
}

static uint64_t sum_of(const struct view *view, unsigned int field)
{
	uint64_t sum = view->totals[field];

	for (unsigned int i = 0; i < MAX; i++)
		sum += view->value[i][field];
	return sum;
}

/* A walk that takes its time: things happen between its beginning, its records and its end. */
static void walk(struct world *w, int pace)
{
	uint64_t began = ++w->clock;

	some(w, pace);
	for (uint32_t pid = 1; pid < PIDS; pid++) {
		const struct proc *proc = &w->procs[pid];

		if (proc->life != NOT)
			add_task(w->f, pid, proc->start, proc->work);
		if (rand() % 8 == 0)
			some(w, pace / 4);
	}
	some(w, pace);
	w->f->now = ++w->clock - MS;
	sampled(w->f, began);
}

static void check_view(struct world *w, struct view *view, const struct view *before, bool exact)
{
	static struct view all;

	refresh(w->f, &all, 0);
	assert_memory_equal(all.value, view->value, sizeof(all.value));
	assert_memory_equal(all.start, view->start, sizeof(all.start));
	assert_memory_equal(all.totals, view->totals, sizeof(all.totals));
	for (unsigned int i = PROCESS_UTIME; i <= PROCESS_RUN_DELAY; i++) {
		bool gauge = i == PROCESS_VSIZE || i == PROCESS_RSS || i == PROCESS_SHARED;

		assert_true(gauge || sum_of(view, i) >= sum_of(before, i));
	}
	assert_int_equal(sum_of(view, PROCESS_RUN_TIME),
			 sum_of(view, PROCESS_UTIME) + sum_of(view, PROCESS_STIME));
}

static void test_model(void **state)
{
	static struct view view, before;

	for (unsigned int seed = 0; seed < 40; seed++) {
		struct world w = { .f = fixture_new(true, &fake_ops), .clock = 1000 * MS };
		uint64_t last = 0;

		srand(seed);
		memset(&view, 0, sizeof(view));
		for (int step = 0; step < 60; step++) {
			some(&w, 60);
			walk(&w, (int)seed);
			before = view;
			refresh(w.f, &view, last);
			last = w.f->now;
			check_view(&w, &view, &before, false);
			if (seed % 2)
				w.clock += 1000 * MS;
		}
		/* All die, all is told: the totals are the sum of all work, exactly. */
		for (uint32_t pid = 1; pid < PIDS; pid++) {
			if (w.procs[pid].life == NOT)
				continue;
			put_exit(w.f, MOTE_EVENT_EXIT, pid, w.procs[pid].start, w.clock,
				 w.procs[pid].work);
			w.gone[w.ngone] = w.procs[pid];
			w.gone_pid[w.ngone++] = pid;
			w.procs[pid].life = NOT;
			if (w.ngone == PIDS * 4)
				tell_final(&w, 0);
		}
		walk(&w, 0);
		while (w.ngone)
			tell_final(&w, 0);
		walk(&w, 0);
		while (w.ngone) /* the walks' own */
			tell_final(&w, 0);
		for (uint32_t pid = 1; pid < PIDS; pid++)
			assert_int_equal(w.procs[pid].life, NOT);
		refresh(w.f, &view, 0);
		assert_int_equal(view.rows, 0);
		assert_int_equal(view.totals[PROCESS_MINFLT], w.done);
		assert_int_equal(view.totals[PROCESS_RCHAR], 7 * w.done);
		assert_int_equal(view.totals[PROCESS_RUN_TIME], 3 * w.done);
		assert_int_equal(view.totals[PROCESS_UTIME] + view.totals[PROCESS_STIME],
				 3 * w.done);
		fixture_free(w.f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_born_and_died),
		cmocka_unit_test(test_pid_reuse),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_zombie_stays_raised),
		cmocka_unit_test(test_never_sampled),
		cmocka_unit_test(test_late_events_wait),
		cmocka_unit_test(test_counted_before_sampled),
		cmocka_unit_test(test_comes_and_goes),
		cmocka_unit_test(test_comes_back),
		cmocka_unit_test(test_accounts_full),
		cmocka_unit_test(test_thread_twice),
		cmocka_unit_test(test_cpu_split),
		cmocka_unit_test(test_proc_ticks),
		cmocka_unit_test(test_ended_and_forgot),
		cmocka_unit_test(test_ended_while_an_update_is_open),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_inherits),
		cmocka_unit_test(test_texts_full),
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
