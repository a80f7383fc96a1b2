// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The loop with an engine that is a script: each wait is a step of it, on the real clock and with
 * the loop's own timer. Processes and their events are made here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "loop.h"

#include "fake_engine.h"
#include "fake_ring.h"

struct fixture {
	struct fake_engine engine; /* first: the engine's operations find the rest by it */
	struct mote_tasks tasks;
	struct mote_task halves[2][1];
	unsigned int waits, samples, asked;
	struct mote_options options;
	struct mote_source sources[MOTE_STREAMS];
	struct fake_ring ring;
	struct mote_events events;
	struct mote_loop_stats stats;
	int pair[2];
	char hello[64];
};

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A sample: one operation. */
static struct fixture *of_tasks(struct mote_tasks *tasks)
{
	return (struct fixture *)((char *)tasks - offsetof(struct fixture, tasks));
}

static unsigned int push(struct mote_tasks *tasks, struct mote_engine *engine, unsigned int half,
			 uint32_t index, unsigned int room)
{
	struct fixture *f = of_tasks(tasks);
	struct mote_sqe sqe = { .tag = mote_tag(MOTE_TAG_FILE, index, 0), .op = MOTE_OP_READ };

	if (f->asked++ % 2)
		return 0;
	mote_engine_push(engine, &sqe);
	return 1;
}

static void complete(struct mote_tasks *tasks, uint32_t step, int res)
{
}

static int finish(struct mote_tasks *tasks, unsigned int half)
{
	of_tasks(tasks)->samples++;
	return 0;
}

static void fill(const struct mote_tasks *tasks, struct mote_fill *processes,
		 struct mote_fill *threads)
{
	*processes = *threads = (struct mote_fill){ 0 };
}

static const struct mote_tasks_ops tasks_ops = {
	.name = "iterator", .push = push, .complete = complete, .finish = finish, .fill = fill
};

static unsigned int find_kind(struct fixture *f, enum mote_tag_kind kind)
{
	for (unsigned int i = 0; i < f->engine.n; i++) {
		if (mote_tag_kind(f->engine.pushed[i].tag) == kind)
			return i;
	}
	fail_msg("operation %d was not pushed", (int)kind);
	return 0;
}

static struct mote_cqe ended(struct fixture *f, enum mote_tag_kind kind, int res)
{
	struct mote_sqe sqe = fake_take(&f->engine, find_kind(f, kind));

	return (struct mote_cqe){ .tag = sqe.tag, .res = res };
}

static int request(struct fixture *f, struct mote_cqe *cqes)
{
	static const char line[] = "subscribe process interval=1h\n";
	const struct mote_sqe *send = &f->engine.pushed[find_kind(f, MOTE_TAG_SEND)];
	const struct mote_sqe *recv = &f->engine.pushed[find_kind(f, MOTE_TAG_RECV)];
	int bytes = 0;

	for (size_t i = 0; i < send->msg->msg_iovlen; i++)
		bytes += (int)send->msg->msg_iov[i].iov_len;
	memcpy(recv->buf, line, sizeof(line) - 1);
	cqes[0] = ended(f, MOTE_TAG_SEND, bytes);
	cqes[1] = ended(f, MOTE_TAG_RECV, sizeof(line) - 1);
	return 2;
}

static void put_event(struct fixture *f)
{
	struct mote_event_exit event = {
		.event = { .kind = MOTE_EVENT_EXIT, .pid = 7, .start = 1, .time = monotonic() },
	};

	assert_non_null(fake_ring_put(&f->ring, &event, sizeof(event), 0));
}

/* The chain that was hastened: the timer, then the sample; then somebody ends, and time passes. */
static int chain(struct fixture *f, struct mote_cqe *cqes)
{
	const struct mote_sqe *timer = &f->engine.pushed[find_kind(f, MOTE_TAG_TIMER)];
	uint64_t before = monotonic();

	assert_int_equal(read(timer->fd, timer->buf, timer->len), sizeof(uint64_t));
	assert_true(monotonic() - before < 500000000);
	cqes[0] = ended(f, MOTE_TAG_TIMER, sizeof(uint64_t));
	cqes[1] = ended(f, MOTE_TAG_FILE, 0);
	usleep(1000);
	put_event(f);
	usleep(1000);
	cqes[2] = ended(f, MOTE_TAG_SIGNAL, sizeof(struct signalfd_siginfo));
	return 3;
}

static int script(struct mote_engine *engine, unsigned int want, struct mote_cqe *cqes,
		  unsigned int max)
{
	struct fixture *f = (struct fixture *)engine;

	switch (f->waits++) {
	case 0:
		cqes[0] = ended(f, MOTE_TAG_ACCEPT, f->pair[0]);
		return 1;
	case 1:
		return request(f, cqes);
	default:
		return chain(f, cqes);
	}
}

static const struct mote_engine_ops script_ops = {
	.name = "script",
	.push = fake_push,
	.end_chain = fake_end_chain,
	.wait = script,
	.room = fake_room,
};

static struct fixture *fixture_new(struct mote_loop_parts *parts)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	mote_options_default(&f->options);
	fake_engine_init(&f->engine, true);
	f->engine.base.ops = &script_ops;
	f->tasks = (struct mote_tasks){ .ops = &tasks_ops,
					.half = { f->halves[0], f->halves[1] },
					.max = 1 };
	assert_int_equal(fake_ring_open(&f->ring, 65536, 0), 0);
	mote_events_open_ring(&f->events, &f->ring.ring, NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, f->pair), 0);
	*parts = (struct mote_loop_parts){
		.options = &f->options,
		.engine = &f->engine.base,
		.tasks = &f->tasks,
		.events = &f->events,
		.process = mote_process_new(&f->options, &f->tasks, &f->events),
		.stats = &f->stats,
	};
	assert_non_null(parts->process);
	f->sources[MOTE_STREAM_PROCESS] =
		(struct mote_source){ &mote_process_source, parts->process };
	parts->server = mote_server_new(&f->options, &f->engine.base, -1, f->sources);
	assert_non_null(parts->server);
	mote_frame_header(f->hello, sizeof(f->hello), MOTE_FRAME_HELLO, 0, 0, 0, 0);
	mote_server_set_hello(parts->server, f->hello, sizeof(f->hello));
	return f;
}

/*
 * Between the reads of a hastened chain and the look at the clock a process ends. The sample has it
 * still: its end belongs to the next.
 */
static void an_event_after_a_hastened_sample_waits(void **state)
{
	struct mote_loop_parts parts;
	struct fixture *f = fixture_new(&parts);
	struct mote_loop *loop;

	assert_int_equal(mote_loop_open(&parts, &loop), 0);
	assert_int_equal(mote_loop_run(loop), 0);
	assert_int_equal(f->samples, 1);
	assert_true(mote_events_pending(&f->events));
	mote_loop_close(loop);
	mote_server_free(parts.server);
	mote_process_free(parts.process);
	fake_ring_close(&f->ring);
	close(f->pair[1]);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_after_a_hastened_sample_waits),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
