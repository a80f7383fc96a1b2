// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Both engines by the same tests: every operation, chains, a failure inside a chain, what blocks
 * and holds up nothing, and waits that return early.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine.h"

#define ENTRIES 64
#define ALL     256

struct results {
	struct mote_cqe cqes[ALL];
	unsigned int n;
};

static struct mote_engine *ring, *sync_engine;

static int open_engines(void **state)
{
	const struct mote_engine_config config = { ENTRIES, 3 };
	struct mote_engine_features features;
	int err = mote_engine_open_ring(&config, &ring);

	mote_engine_probe_ring(&features);
	assert_int_equal(features.error != 0, err != 0);
	if (err)
		ring = NULL;
	else
		assert_int_equal(mote_engine_direct(ring), features.direct);
	return mote_engine_open_sync(&config, &sync_engine);
}

static int close_engines(void **state)
{
	mote_engine_close(ring);
	mote_engine_close(sync_engine);
	mote_engine_close(NULL);
	return 0;
}

static void push(struct mote_engine *engine, struct mote_sqe sqe)
{
	if (sqe.op != MOTE_OP_OPEN)
		sqe.slot = -1;
	assert_int_equal(mote_engine_push(engine, &sqe), 0);
}

/* Waits until there are `until` completions or more, however early each wait returns. */
static void collect_until(struct mote_engine *engine, struct results *all, unsigned int until)
{
	while (all->n < until) {
		int got =
			mote_engine_wait(engine, until - all->n, all->cqes + all->n, ALL - all->n);

		assert_true(got >= 0);
		all->n += (unsigned int)got;
	}
}

/* Waits for `n` more; there are no others under way that could complete. */
static void collect(struct mote_engine *engine, struct results *all, unsigned int n)
{
	unsigned int until = all->n + n;

	collect_until(engine, all, until);
	assert_int_equal(all->n, until);
}

/* The result of `tag`, which must be there once; its place goes to *at. */
static int result_of(const struct results *all, uint64_t tag, unsigned int *at)
{
	int res = INT32_MIN;

	for (unsigned int i = 0; i < all->n; i++) {
		if (all->cqes[i].tag != tag)
			continue;
		assert_int_equal(res, INT32_MIN);
		res = all->cqes[i].res;
		if (at)
			*at = i;
	}
	assert_int_not_equal(res, INT32_MIN);
	return res;
}

static int temporary(const char *text)
{
	char path[] = "/tmp/mote-engine.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void check_name(struct mote_engine *engine)
{
	assert_string_equal(mote_engine_name(engine), engine == ring ? "uring" : "sync");
	assert_true(mote_engine_blocking_max(engine) >= 1);
	assert_true(mote_engine_room(engine) >= ENTRIES);
}

static void check_reads(struct mote_engine *engine)
{
	struct results all = { 0 };
	int fd = temporary("0123456789");
	char a[4], b[4], c[20];

	lseek(fd, 2, SEEK_SET);
	push(engine,
	     (struct mote_sqe){ .tag = 1, .op = MOTE_OP_READ, .fd = fd, .buf = a, .len = 4 });
	push(engine,
	     (struct mote_sqe){
		     .tag = 2, .op = MOTE_OP_READ, .fd = fd, .buf = b, .len = 4, .offset = 5 });
	push(engine, (struct mote_sqe){ .tag = 3,
					.op = MOTE_OP_READ,
					.fd = fd,
					.buf = c,
					.len = 20,
					.offset = MOTE_OFFSET_CURRENT });
	push(engine,
	     (struct mote_sqe){ .tag = 4, .op = MOTE_OP_READ, .fd = -1, .buf = c, .len = 20 });
	collect(engine, &all, 4);
	assert_int_equal(result_of(&all, 1, NULL), 4);
	assert_memory_equal(a, "0123", 4);
	assert_int_equal(result_of(&all, 2, NULL), 4);
	assert_memory_equal(b, "5678", 4);
	assert_int_equal(result_of(&all, 3, NULL), 8);
	assert_memory_equal(c, "23456789", 8);
	assert_int_equal(result_of(&all, 4, NULL), -EBADF);
	close(fd);
}

static void check_open_close(struct mote_engine *engine)
{
	struct results all = { 0 };
	int fd;

	push(engine, (struct mote_sqe){ .tag = 1,
					.op = MOTE_OP_OPEN,
					.fd = AT_FDCWD,
					.path = "/proc/self/stat",
					.slot = -1 });
	push(engine, (struct mote_sqe){ .tag = 2,
					.op = MOTE_OP_OPEN,
					.fd = AT_FDCWD,
					.path = "/proc/self/no such file",
					.slot = -1 });
	collect(engine, &all, 2);
	assert_int_equal(result_of(&all, 2, NULL), -ENOENT);
	fd = result_of(&all, 1, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	push(engine, (struct mote_sqe){ .tag = 3, .op = MOTE_OP_CLOSE, .fd = fd });
	collect(engine, &all, 1);
	assert_int_equal(result_of(&all, 3, NULL), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	push(engine, (struct mote_sqe){ .tag = 4, .op = MOTE_OP_CLOSE, .fd = fd });
	collect(engine, &all, 1);
	assert_int_equal(result_of(&all, 4, NULL), -EBADF);
}

static void push_direct(struct mote_engine *engine, const char *path, int slot, char *buf,
			uint32_t len, uint64_t tag, unsigned int flags)
{
	push(engine, (struct mote_sqe){ .tag = tag,
					.op = MOTE_OP_OPEN,
					.flags = flags | MOTE_SQE_LINK,
					.fd = AT_FDCWD,
					.path = path,
					.slot = slot });
	push(engine, (struct mote_sqe){ .tag = tag + 1,
					.op = MOTE_OP_READ,
					.flags = flags | MOTE_SQE_LINK | MOTE_SQE_SLOT,
					.fd = slot,
					.buf = buf,
					.len = len,
					.offset = MOTE_OFFSET_CURRENT });
	push(engine, (struct mote_sqe){ .tag = tag + 2,
					.op = MOTE_OP_CLOSE,
					.flags = flags | MOTE_SQE_LINK | MOTE_SQE_SLOT,
					.fd = slot });
}

/* open, read, close of direct descriptors, three times, one in the middle of what is not there. */
static void check_direct_chain(struct mote_engine *engine)
{
	struct results all = { 0 };
	char a[64] = "", b[64] = "", c[64] = "";
	unsigned int at[9];

	if (!mote_engine_direct(engine))
		return;
	for (int round = 0; round < 3; round++) {
		all.n = 0;
		push_direct(engine, "/proc/self/comm", 3, a, sizeof(a), 10, MOTE_SQE_ASYNC);
		push_direct(engine, "/proc/self/none", 4, b, sizeof(b), 20, MOTE_SQE_ASYNC);
		push_direct(engine, "/proc/self/comm", 63, c, sizeof(c), 30, 0);
		mote_engine_end_chain(engine);
		collect(engine, &all, 9);
		for (unsigned int i = 0; i < 9; i++)
			result_of(&all, 10 + 10 * (i / 3) + i % 3, &at[i]);
		for (unsigned int i = 1; i < 9; i++)
			assert_true(at[i] > at[i - 1]); /* one after the other */
		assert_int_equal(result_of(&all, 10, NULL), 0);
		assert_true(result_of(&all, 11, NULL) > 0);
		assert_int_equal(result_of(&all, 12, NULL), 0);
		assert_int_equal(result_of(&all, 20, NULL), -ENOENT);
		assert_int_equal(result_of(&all, 21, NULL), -EBADF);
		assert_int_equal(result_of(&all, 22, NULL), -EBADF);
		assert_int_equal(result_of(&all, 31, NULL), result_of(&all, 11, NULL));
		assert_string_equal(a, c);
		assert_string_equal(b, "");
	}
}

static void check_sockets(struct mote_engine *engine)
{
	struct results all = { 0 };
	char hel[] = "hel", lo[] = "lo";
	struct iovec iov[2] = { { hel, 3 }, { lo, 2 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	char buf[16];
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	push(engine, (struct mote_sqe){ .tag = 1,
					.op = MOTE_OP_RECV,
					.flags = MOTE_SQE_NOWAIT,
					.fd = pair[1],
					.buf = buf,
					.len = sizeof(buf) });
	collect(engine, &all, 1);
	assert_int_equal(result_of(&all, 1, NULL), -EAGAIN);
	push(engine,
	     (struct mote_sqe){
		     .tag = 2, .op = MOTE_OP_RECV, .fd = pair[1], .buf = buf, .len = sizeof(buf) });
	push(engine, (struct mote_sqe){ .tag = 3, .op = MOTE_OP_SEND, .fd = pair[0], .msg = &msg });
	collect(engine, &all, 2);
	assert_int_equal(result_of(&all, 3, NULL), 5);
	assert_int_equal(result_of(&all, 2, NULL), 5);
	assert_memory_equal(buf, "hello", 5);
	/* The end, then no more: no signal. */
	close(pair[1]);
	push(engine, (struct mote_sqe){
			     .tag = 4, .op = MOTE_OP_RECV, .fd = pair[0], .buf = buf, .len = 4 });
	push(engine, (struct mote_sqe){ .tag = 5, .op = MOTE_OP_SEND, .fd = pair[0], .msg = &msg });
	collect(engine, &all, 2);
	assert_int_equal(result_of(&all, 4, NULL), 0);
	assert_int_equal(result_of(&all, 5, NULL), -EPIPE);
	close(pair[0]);
}

/* A peer that half-closed is told from one that is gone, both at once. */
static void check_hangup(struct mote_engine *engine)
{
	struct results all = { 0 };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	shutdown(pair[1], SHUT_WR);
	push(engine, (struct mote_sqe){ .tag = 1, .op = MOTE_OP_HANGUP, .fd = pair[0] });
	collect(engine, &all, 1);
	assert_true(result_of(&all, 1, NULL) >= 0);
	assert_false(result_of(&all, 1, NULL) & POLLHUP);
	close(pair[1]);
	push(engine, (struct mote_sqe){ .tag = 2, .op = MOTE_OP_HANGUP, .fd = pair[0] });
	collect(engine, &all, 1);
	assert_true(result_of(&all, 2, NULL) & POLLHUP);
	close(pair[0]);
}

/* A full socket gives EAGAIN at once, and is writable when the reader has read. */
static void check_writable(struct mote_engine *engine)
{
	static char block[65536];
	struct results all = { 0 };
	struct iovec iov = { block, sizeof(block) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int pair[2], res, fd = temporary("x");
	uint64_t tag = 1;
	char c;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	do {
		all.n = 0;
		push(engine,
		     (struct mote_sqe){
			     .tag = ++tag, .op = MOTE_OP_SEND, .fd = pair[0], .msg = &msg });
		collect(engine, &all, 1);
		res = result_of(&all, tag, NULL);
	} while (res > 0);
	assert_int_equal(res, -EAGAIN);
	all.n = 0;
	push(engine, (struct mote_sqe){ .tag = 1, .op = MOTE_OP_WRITABLE, .fd = pair[0] });
	push(engine,
	     (struct mote_sqe){ .tag = 2, .op = MOTE_OP_READ, .fd = fd, .buf = &c, .len = 1 });
	collect(engine, &all, 1);
	assert_int_equal(all.cqes[0].tag, 2); /* not held up by what is not ready */
	while (recv(pair[1], block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	collect(engine, &all, 1);
	assert_true(result_of(&all, 1, NULL) & POLLOUT);
	close(pair[0]);
	close(pair[1]);
	close(fd);
}

static void check_accept(struct mote_engine *engine)
{
	struct sockaddr_un_like {
		sa_family_t family;
		char path[32];
	} address = { AF_UNIX, "" };
	struct results all = { 0 };
	int listener = socket(AF_UNIX, SOCK_STREAM | (engine == ring ? 0 : SOCK_NONBLOCK), 0),
	    client, fd;
	int len = snprintf(address.path + 1, 30, "mote-engine-%d", getpid());

	assert_int_equal(bind(listener, (struct sockaddr *)&address, (socklen_t)(3 + len)), 0);
	assert_int_equal(listen(listener, 5), 0);
	push(engine, (struct mote_sqe){ .tag = 1, .op = MOTE_OP_ACCEPT, .fd = listener });
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, (socklen_t)(3 + len)), 0);
	collect(engine, &all, 1);
	fd = result_of(&all, 1, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	close(client);
	close(listener);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* A chain that hangs on a timer: nothing of it before, all of it with one wait. */
static void check_timer_chain(struct mote_engine *engine)
{
	struct results all = { 0 };
	struct itimerspec its = { .it_value = { 0, 60000000 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), fd = temporary("abc");
	uint64_t ticks = 0, before = now_ms();
	char buf[8];

	timerfd_settime(timer, 0, &its, NULL);
	push(engine, (struct mote_sqe){ .tag = 1,
					.op = MOTE_OP_READ,
					.flags = MOTE_SQE_WAIT | MOTE_SQE_LINK,
					.fd = timer,
					.buf = &ticks,
					.len = 8 });
	push(engine, (struct mote_sqe){ .tag = 2,
					.op = MOTE_OP_READ,
					.flags = MOTE_SQE_LINK,
					.fd = -1,
					.buf = buf,
					.len = 8 });
	push(engine, (struct mote_sqe){ .tag = 3,
					.op = MOTE_OP_READ,
					.flags = MOTE_SQE_LINK,
					.fd = fd,
					.buf = buf,
					.len = 8 });
	mote_engine_end_chain(engine);
	push(engine,
	     (struct mote_sqe){ .tag = 4, .op = MOTE_OP_READ, .fd = fd, .buf = buf, .len = 8 });
	collect(engine, &all, 1);
	assert_int_equal(all.cqes[0].tag, 4); /* the next is of no chain */
	collect(engine, &all, 3);
	assert_true(now_ms() - before >= 55);
	assert_int_equal(ticks, 1);
	assert_int_equal(result_of(&all, 1, NULL), 8);
	assert_int_equal(result_of(&all, 2, NULL), -EBADF);
	assert_int_equal(result_of(&all, 3, NULL), 3); /* a failure does not end the chain */
	close(timer);
	close(fd);
}

/* What may block on another process holds up nothing else, not even another that may block. */
static void check_may_block(struct mote_engine *engine)
{
	struct results all = { 0 };
	int hang[2], fd = temporary("abc");
	char a[4], b[4], c[4];

	assert_int_equal(pipe(hang), 0);
	push(engine, (struct mote_sqe){ .tag = 1,
					.op = MOTE_OP_READ,
					.flags = MOTE_SQE_ASYNC | MOTE_SQE_MAY_BLOCK,
					.fd = hang[0],
					.buf = a,
					.len = 4,
					.offset = MOTE_OFFSET_CURRENT });
	for (int i = 0; i < 5; i++) {
		push(engine, (struct mote_sqe){ .tag = 10 + (uint64_t)i,
						.op = MOTE_OP_READ,
						.flags = MOTE_SQE_ASYNC,
						.fd = fd,
						.buf = b,
						.len = 4 });
		collect(engine, &all, 1);
		assert_int_equal(result_of(&all, 10 + (uint64_t)i, NULL), 3);
	}
	push(engine,
	     (struct mote_sqe){ .tag = 2,
				.op = MOTE_OP_READ,
				.flags = MOTE_SQE_ASYNC | MOTE_SQE_MAY_BLOCK | MOTE_SQE_LINK,
				.fd = fd,
				.buf = c,
				.len = 4 });
	push(engine, (struct mote_sqe){ .tag = 3,
					.op = MOTE_OP_READ,
					.flags = MOTE_SQE_ASYNC | MOTE_SQE_MAY_BLOCK,
					.fd = -1,
					.buf = c,
					.len = 4 });
	push(engine,
	     (struct mote_sqe){ .tag = 4, .op = MOTE_OP_READ, .fd = fd, .buf = b, .len = 4 });
	collect_until(engine, &all, 6);
	assert_int_equal(write(hang[1], "xy", 2), 2);
	collect_until(engine, &all, 9);
	assert_int_equal(result_of(&all, 1, NULL), 2);
	assert_memory_equal(a, "xy", 2);
	assert_int_equal(result_of(&all, 2, NULL), 3);
	assert_int_equal(result_of(&all, 3, NULL), -EBADF);
	assert_int_equal(result_of(&all, 4, NULL), 3);
	close(hang[0]);
	close(hang[1]);
	close(fd);
}

/* As many as there is room for, and not one more; then all of them, a few at a time. */
static void check_full(struct mote_engine *engine)
{
	static struct mote_cqe few[7];
	struct mote_sqe sqe = { .op = MOTE_OP_READ, .slot = -1 };
	unsigned int room = mote_engine_room(engine), n = 0;
	bool seen[4096] = { false };
	int fd = temporary("a");
	char buf[1];

	sqe.fd = fd;
	sqe.buf = buf;
	sqe.len = 1;
	for (int round = 0; round < 3; round++) {
		unsigned int left;

		assert_true(room <= 4096 && mote_engine_room(engine) == room);
		for (sqe.tag = 0; sqe.tag < room; sqe.tag++)
			assert_int_equal(mote_engine_push(engine, &sqe), 0);
		assert_int_equal(mote_engine_room(engine), 0);
		assert_int_equal(mote_engine_push(engine, &sqe), -EBUSY);
		memset(seen, 0, sizeof(seen));
		for (left = room; left;) {
			int got = mote_engine_wait(engine, 1, few, 7);

			assert_true(got >= 0 && (unsigned int)got <= left);
			for (int i = 0; i < got; i++, n++) {
				assert_false(seen[few[i].tag]);
				assert_int_equal(few[i].res, 1);
				seen[few[i].tag] = true;
			}
			left -= (unsigned int)got;
		}
	}
	assert_int_equal(n, 3 * room);
	close(fd);
}

static void on_alarm(int signal)
{
}

/* A signal ends a wait early, without an error and without losing anything. */
static void check_signal(struct mote_engine *engine)
{
	struct sigaction action = { .sa_handler = on_alarm }, old;
	struct itimerval alarm = { .it_value = { 0, 30000 } };
	struct results all = { 0 };
	int hang[2];
	char buf[4];

	assert_int_equal(pipe(hang), 0);
	sigaction(SIGALRM, &action, &old);
	push(engine, (struct mote_sqe){ .tag = 1,
					.op = MOTE_OP_READ,
					.flags = MOTE_SQE_WAIT,
					.fd = hang[0],
					.buf = buf,
					.len = 4 });
	setitimer(ITIMER_REAL, &alarm, NULL);
	assert_int_equal(mote_engine_wait(engine, 1, all.cqes, ALL), 0);
	assert_int_equal(write(hang[1], "z", 1), 1);
	collect(engine, &all, 1);
	assert_int_equal(result_of(&all, 1, NULL), 1);
	sigaction(SIGALRM, &old, NULL);
	close(hang[0]);
	close(hang[1]);
}

/* The same random chains to both: the results are equal. */
static void push_random(struct mote_engine *engine, unsigned int seed, int fd, char (*bufs)[16],
			unsigned int n)
{
	srand(seed);
	for (unsigned int i = 0; i < n; i++)
		push(engine, (struct mote_sqe){ .tag = i,
						.op = MOTE_OP_READ,
						.flags = rand() % 2 ? MOTE_SQE_LINK : 0,
						.fd = rand() % 4 ? fd : -1,
						.buf = bufs[i],
						.len = (uint32_t)rand() % 16,
						.offset = (uint64_t)rand() % 12 });
	mote_engine_end_chain(engine);
}

static void test_equal(void **state)
{
	int fd = temporary("0123456789");

	if (!ring)
		skip();
	for (unsigned int seed = 0; seed < 100; seed++) {
		char a[32][16] = { 0 }, b[32][16] = { 0 };
		struct results from_ring = { 0 }, from_sync = { 0 };

		push_random(ring, seed, fd, a, 32);
		push_random(sync_engine, seed, fd, b, 32);
		collect(ring, &from_ring, 32);
		collect(sync_engine, &from_sync, 32);
		for (uint64_t i = 0; i < 32; i++)
			assert_int_equal(result_of(&from_ring, i, NULL),
					 result_of(&from_sync, i, NULL));
		assert_memory_equal(a, b, sizeof(a));
	}
	close(fd);
}

#define ON_BOTH(name)                                \
	static void test_##name##_ring(void **state) \
	{                                            \
		if (!ring)                           \
			skip();                      \
		check_##name(ring);                  \
	}                                            \
	static void test_##name##_sync(void **state) \
	{                                            \
		check_##name(sync_engine);           \
	}

ON_BOTH(name)
ON_BOTH(reads)
ON_BOTH(open_close)
ON_BOTH(direct_chain)
ON_BOTH(sockets)
ON_BOTH(writable)
ON_BOTH(hangup)
ON_BOTH(accept)
ON_BOTH(timer_chain)
ON_BOTH(may_block)
ON_BOTH(full)
ON_BOTH(signal)

#define BOTH(name) cmocka_unit_test(test_##name##_ring), cmocka_unit_test(test_##name##_sync)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(name),
		BOTH(reads),
		BOTH(open_close),
		BOTH(direct_chain),
		BOTH(sockets),
		BOTH(writable),
		BOTH(accept),
		BOTH(timer_chain),
		BOTH(may_block),
		BOTH(full),
		BOTH(signal),
		BOTH(hangup),
		cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests(tests, open_engines, close_engines);
}
