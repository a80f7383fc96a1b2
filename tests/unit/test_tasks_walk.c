// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The list walk's side in user space, with the program of bpf/walk.bpf.c played here: processes
 * are born, change, end and have their pids given again, walks are lost or done by others, and the
 * rows must be what the world is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "parse.h"
#include "process.h"
#include "tasks_walk.h"

#include "fake_engine.h"

#define MAX  64
#define PIDS 100

/* A process of the world, in the order of the list, and what the program keeps of it. */
struct proc {
	uint32_t pid, pair;
	uint64_t start, work, written;
	bool known, changed;
};

struct bed {
	struct mote_options options;
	struct fake_engine engine;
	struct mote_task recs[2][MAX];
	struct mote_ref refs[MAX];
	struct mote_pair pairs[MAX];
	struct mote_walk_ctl ctl;
	struct mote_probes_iterator iterator;
	struct mote_tasks *tasks;
	struct mote_process *process;
	struct proc list[MAX];
	unsigned int n;
	uint64_t now, born;
};

static struct bed *bed_new(void)
{
	struct bed *bed = calloc(1, sizeof(*bed));

	assert_non_null(bed);
	mote_options_default(&bed->options);
	fake_engine_init(&bed->engine, true);
	bed->iterator = (struct mote_probes_iterator){ .tasks = "walk",
						       .idents = "idents",
						       .half = { bed->recs[0], bed->recs[1] },
						       .walk_ctl = &bed->ctl,
						       .refs = bed->refs,
						       .pairs = bed->pairs,
						       .processes = MAX };
	assert_int_equal(mote_tasks_walk_open(&bed->iterator, true, &bed->tasks), 0);
	bed->process = mote_process_new(&bed->options, bed->tasks, NULL);
	assert_non_null(bed->process);
	bed->now = 1000000;
	return bed;
}

static void bed_free(struct bed *bed)
{
	mote_process_free(bed->process);
	bed->tasks->ops->close(bed->tasks);
	free(bed);
}

static struct proc *find_proc(struct bed *bed, uint32_t pid)
{
	for (unsigned int i = 0; i < bed->n; i++)
		if (bed->list[i].pid == pid)
			return &bed->list[i];
	return NULL;
}

static void bear(struct bed *bed, uint32_t pid)
{
	assert_null(find_proc(bed, pid));
	bed->list[bed->n++] =
		(struct proc){ .pid = pid, .start = ++bed->born * 100000000, .changed = true };
}

static void die(struct bed *bed, unsigned int at)
{
	memmove(&bed->list[at], &bed->list[at + 1], (--bed->n - at) * sizeof(bed->list[0]));
}

static void write_one(struct bed *bed, struct proc *proc)
{
	unsigned int side = !(bed->pairs[proc->pair].side & 1);
	struct mote_task *r = &bed->recs[side][proc->pair];

	memset(r, 0, offsetof(struct mote_task, shown_utime));
	r->pid = proc->pid;
	r->start = proc->start;
	r->counts.minflt = proc->work;
	r->state = 'S';
	r->exec_id = 1;
	r->flags = MOTE_TASK_HAS_MM;
	proc->written = bed->ctl.begun;
	proc->changed = false;
}

/* What the program does. */
static void play_walk(struct bed *bed)
{
	unsigned int known = bed->ctl.tasks;

	bed->ctl.begun++;
	bed->ctl.tasks = bed->ctl.tasks_lost = 0;
	for (unsigned int i = 0; i < bed->n; i++) {
		struct proc *proc = &bed->list[i];

		if (!proc->known && !bed->ctl.free) {
			bed->ctl.tasks_lost++;
			continue;
		}
		if (!proc->known) {
			bed->ctl.moved = bed->ctl.begun;
			proc->pair = bed->pairs[--bed->ctl.free].free;
		}
		proc->known = true;
		if (proc->changed)
			write_one(bed, proc);
		bed->refs[bed->ctl.tasks++] = (struct mote_ref){
			proc->pid,
			proc->pair | (proc->written > bed->ctl.taken ? MOTE_REF_WRITTEN : 0)
		};
	}
	if (bed->ctl.tasks != known)
		bed->ctl.moved = bed->ctl.begun;
	bed->ctl.done = bed->ctl.begun;
}

/* A sample; `res` is what the read gives, and the program runs if it is not an error. */
static int sample(struct bed *bed, int res)
{
	const struct mote_tasks_ops *ops = bed->tasks->ops;
	int n;

	assert_int_equal(ops->push(bed->tasks, &bed->engine.base, 0, 7, 100), 3);
	if (res >= 0)
		play_walk(bed);
	while (bed->engine.n) {
		struct mote_sqe sqe = fake_take(&bed->engine, 0);

		ops->complete(bed->tasks, mote_tag_generation(sqe.tag),
			      sqe.op == MOTE_OP_READ ? res : 0);
	}
	assert_int_equal(ops->push(bed->tasks, &bed->engine.base, 0, 7, 100), 0);
	n = ops->finish(bed->tasks, 0);
	bed->now += 1000;
	if (n >= 0)
		mote_process_sampled(bed->process, (unsigned int)n, bed->now, bed->now);
	return n;
}

/* Rows that changed after `since`: how many, each as the world is. */
static unsigned int rows(struct bed *bed, uint64_t since)
{
	static char buf[8192];
	uint64_t cursor = 0;
	uint32_t last = 0;
	unsigned int n = 0;

	for (;; n++) {
		struct mote_writer writer;
		msgpack_packer pk;
		msgpack_unpacked out;
		const msgpack_object *row;
		struct proc *proc;

		mote_writer_init(&writer, &pk, buf, sizeof(buf));
		if (!mote_process_source.row(bed->process, since, &cursor, &pk))
			return n;
		msgpack_unpacked_init(&out);
		assert_int_equal(msgpack_unpack_next(&out, buf, writer.len, NULL),
				 MSGPACK_UNPACK_SUCCESS);
		row = out.data.via.array.ptr;
		proc = find_proc(bed, (uint32_t)row[PROCESS_PID].via.u64);
		assert_non_null(proc);
		assert_true(proc->pid > last);
		last = proc->pid;
		assert_int_equal(row[PROCESS_START].via.u64, proc->start / MOTE_NS_PER_TICK);
		assert_int_equal(row[PROCESS_MINFLT].via.u64, proc->work);
		msgpack_unpacked_destroy(&out);
	}
}

/* Pairs are those of living processes and the free ones, each once. */
static void assert_pairs(const struct bed *bed)
{
	bool seen[MAX] = { false };
	unsigned int used = 0;

	for (unsigned int i = 0; i < bed->ctl.free; i++) {
		assert_false(seen[bed->pairs[i].free]);
		seen[bed->pairs[i].free] = true;
	}
	for (unsigned int i = 0; i < bed->n; i++) {
		if (!bed->list[i].known)
			continue;
		assert_false(seen[bed->list[i].pair]);
		seen[bed->list[i].pair] = true;
		used++;
	}
	assert_int_equal(used + bed->ctl.free, MAX);
}

static void only_what_was_written(void **state)
{
	struct bed *bed = bed_new();
	uint64_t before;

	bear(bed, 30);
	bear(bed, 10); /* pids have wrapped */
	bear(bed, 20);
	assert_int_equal(sample(bed, 0), 3);
	assert_int_equal(rows(bed, 0), 3);
	before = bed->now;
	/* Nobody looks at records that were not written: this one is not what the world is. */
	bed->recs[!bed->pairs[bed->list[0].pair].side][bed->list[0].pair].counts.minflt = 77;
	assert_int_equal(sample(bed, 0), 3);
	assert_int_equal(rows(bed, before), 0);
	bed->list[2].work++;
	bed->list[2].changed = true;
	before = bed->now;
	assert_int_equal(sample(bed, 0), 3);
	assert_int_equal(rows(bed, before), 1);
	assert_int_equal(rows(bed, 0), 3);
	bed_free(bed);
}

static void pid_given_again(void **state)
{
	struct bed *bed = bed_new();
	uint64_t before;

	bear(bed, 10);
	bear(bed, 20);
	sample(bed, 0);
	die(bed, 0);
	bear(bed, 10);
	before = bed->now;
	assert_int_equal(sample(bed, 0), 2);
	assert_int_equal(rows(bed, before), 1);
	assert_pairs(bed);
	bed_free(bed);
}

/* The walk finds a process, that one ends, and at the list's end there is another with its pid. */
static void pid_given_again_meanwhile(void **state)
{
	struct bed *bed = bed_new();
	struct proc old;

	bear(bed, 10);
	bear(bed, 20);
	sample(bed, 0);
	for (int i = 0; i < 3; i++) {
		old = bed->list[0];
		die(bed, 0);
		bear(bed, old.pid);
		memmove(&bed->list[1], &bed->list[0], bed->n++ * sizeof(bed->list[0]));
		bed->list[0] = old;
		if (i == 1) { /* born since the sample before, too */
			bed->list[0].known = false;
			bed->list[0].changed = true;
		}
		assert_int_equal(sample(bed, 0), 3);
		die(bed, 0);
		assert_int_equal(rows(bed, 0), 2);
		for (int j = 0; j < 3; j++)
			assert_int_equal(sample(bed, 0), 2);
		assert_int_equal(rows(bed, 0), 2);
		assert_pairs(bed);
	}
	bed_free(bed);
}

/* One that fails leaves all as it was; what another walk wrote is not lost, nor are its pairs. */
static void lost_walks(void **state)
{
	struct bed *bed = bed_new();
	uint64_t before;

	bear(bed, 10);
	sample(bed, 0);
	before = bed->now;
	bed->list[0].work = 5;
	bed->list[0].changed = true;
	assert_int_equal(sample(bed, -EINTR), -EINTR);
	assert_int_equal(sample(bed, 0), 1);
	assert_int_equal(rows(bed, before), 1);
	before = bed->now;
	bed->list[0].work = 6;
	bed->list[0].changed = true;
	bear(bed, 11);
	play_walk(bed); /* somebody else's */
	die(bed, 1);
	assert_int_equal(sample(bed, 0), 1);
	assert_int_equal(rows(bed, before), 1);
	sample(bed, 0);
	sample(bed, 0);
	assert_pairs(bed);
	bed_free(bed);
}

static void full_table(void **state)
{
	struct bed *bed = bed_new();
	struct mote_fill fill, threads;

	for (uint32_t pid = 1; pid < MAX; pid++)
		bear(bed, pid);
	sample(bed, 0);
	bear(bed, 90);
	sample(bed, 0);
	die(bed, 0);
	bear(bed, 91); /* its room is free only with the next sample */
	assert_int_equal(sample(bed, 0), MAX - 1);
	assert_int_equal(sample(bed, 0), MAX);
	bed->tasks->ops->fill(bed->tasks, &fill, &threads);
	assert_int_equal(fill.size, MAX);
	assert_int_equal(fill.fill, MAX);
	assert_int_equal(fill.dropped, 1);
	assert_pairs(bed);
	bed_free(bed);
}

static void act(struct bed *bed)
{
	unsigned int at = bed->n ? (unsigned int)rand() % bed->n : 0;
	uint32_t pid = 1 + (uint32_t)rand() % PIDS;

	switch (rand() % 4) {
	case 0:
		if (bed->n < MAX / 2 && !find_proc(bed, pid))
			bear(bed, pid);
		break;
	case 1:
		if (bed->n > MAX / 4)
			die(bed, at);
		break;
	default:
		if (!bed->n)
			break;
		bed->list[at].work++;
		bed->list[at].changed = true;
	}
}

static void anything(void **state)
{
	srand(1);
	for (int round = 0; round < 50; round++) {
		struct bed *bed = bed_new();

		for (int i = 0; i < 200; i++) {
			for (int j = rand() % 20; j > 0; j--)
				act(bed);
			if (rand() % 20 == 0)
				play_walk(bed);
			if (sample(bed, rand() % 20 ? 0 : -EIO) < 0) {
				if (rand() % 2)
					play_walk(bed); /* may pass for the one that failed */
				continue;
			}
			assert_int_equal(rows(bed, 0), bed->n);
		}
		for (int i = 0; i < 3; i++)
			sample(bed, 0);
		assert_int_equal(rows(bed, 0), bed->n);
		assert_pairs(bed);
		bed_free(bed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_was_written),
		cmocka_unit_test(pid_given_again),
		cmocka_unit_test(pid_given_again_meanwhile),
		cmocka_unit_test(lost_walks),
		cmocka_unit_test(full_table),
		cmocka_unit_test(anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
