// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The proc connector: datagrams written by hand, whole, cut and wrong; and, where the kernel lets
 * us listen, real processes: every exec and every exit once, with its status.
 */
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <pthread.h>

#include <cmocka.h>

#include "connector.h"

struct datagram {
	struct nlmsghdr nl;
	struct cn_msg cn;
	struct proc_event event;
} __attribute__((packed));

static struct datagram datagram(uint32_t what)
{
	struct datagram d = {
		.nl = { .nlmsg_len = sizeof(d), .nlmsg_type = NLMSG_DONE },
		.cn = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .len = sizeof(d.event) },
	};

	d.event.what = what;
	d.event.timestamp_ns = 123456789012345ull;
	return d;
}

static struct datagram fork_of(int pid, int tgid)
{
	struct datagram d = datagram(PROC_EVENT_FORK);

	d.event.event_data.fork.parent_pid = 71;
	d.event.event_data.fork.parent_tgid = 70;
	d.event.event_data.fork.child_pid = pid;
	d.event.event_data.fork.child_tgid = tgid;
	return d;
}

static struct datagram exit_of(int pid, int tgid, uint32_t code)
{
	struct datagram d = datagram(PROC_EVENT_EXIT);

	d.event.event_data.exit.process_pid = pid;
	d.event.event_data.exit.process_tgid = tgid;
	d.event.event_data.exit.exit_code = code;
	d.event.event_data.exit.exit_signal = SIGCHLD;
	d.event.event_data.exit.parent_pid = 70;
	d.event.event_data.exit.parent_tgid = 70;
	return d;
}

static void reads_events_of_processes(void **state)
{
	struct datagram d = fork_of(100, 100);
	struct mote_event_exit e;

	memset(&e, 0xff, sizeof(e));
	assert_int_equal(mote_connector_parse(&d, sizeof(d), &e), 1);
	assert_int_equal(e.event.kind, MOTE_EVENT_FORK);
	assert_int_equal(e.event.pid, 100);
	assert_int_equal(e.event.ppid, 70);
	assert_int_equal(e.event.time, 123456789012345ull);
	assert_int_equal(e.event.start, 0);
	assert_int_equal(e.event.comm[0], 0);
	assert_int_equal(e.counts.utime, 0);

	d = datagram(PROC_EVENT_EXEC);
	d.event.event_data.exec.process_pid = d.event.event_data.exec.process_tgid = 100;
	assert_int_equal(mote_connector_parse(&d, sizeof(d), &e), 1);
	assert_int_equal(e.event.kind, MOTE_EVENT_EXEC);
	assert_int_equal(e.event.pid, 100);

	d = exit_of(100, 100, 0x0300);
	assert_int_equal(mote_connector_parse(&d, sizeof(d), &e), 1);
	assert_int_equal(e.event.kind, MOTE_EVENT_EXIT);
	assert_int_equal(e.event.pid, 100);
	assert_int_equal(e.event.ppid, 70);
	assert_int_equal(e.exit_code, 0x0300);
}

static void passes_over_threads_and_other_kinds(void **state)
{
	struct datagram fork = fork_of(101, 100), leave = exit_of(101, 100, 0);
	struct datagram comm = datagram(PROC_EVENT_COMM), none = datagram(PROC_EVENT_NONE);
	struct datagram other = fork_of(100, 100);
	struct mote_event_exit e = { .event.pid = 7 };

	other.cn.id.idx = CN_IDX_PROC + 1;
	assert_int_equal(mote_connector_parse(&fork, sizeof(fork), &e), 0);
	assert_int_equal(mote_connector_parse(&leave, sizeof(leave), &e), 0);
	assert_int_equal(mote_connector_parse(&comm, sizeof(comm), &e), 0);
	assert_int_equal(mote_connector_parse(&none, sizeof(none), &e), 0);
	assert_int_equal(mote_connector_parse(&other, sizeof(other), &e), 0);
	assert_int_equal(e.event.pid, 7);
}

/* As it comes from a kernel before 4.18, whose exit has no parent. */
static void takes_a_shorter_exit(void **state)
{
	struct datagram d = exit_of(100, 100, 9);
	struct mote_event_exit e;

	d.cn.len = offsetof(struct proc_event, event_data.exit.parent_pid);
	d.nl.nlmsg_len = offsetof(struct datagram, event) + d.cn.len;
	assert_int_equal(mote_connector_parse(&d, d.nl.nlmsg_len, &e), 1);
	assert_int_equal(e.exit_code, 9);
	assert_int_equal(e.event.ppid, 0);
}

static void refuses_what_is_cut(void **state)
{
	struct datagram whole[] = { fork_of(100, 100), exit_of(100, 100, 1) };

	for (unsigned int i = 0; i < 2; i++) {
		for (size_t len = 0; len < sizeof(struct datagram); len++) {
			struct mote_event_exit e = { .event.pid = 7 };
			char *copy = malloc(len + 1);

			assert_non_null(copy);
			memcpy(copy, &whole[i], len);
			assert_int_equal(mote_connector_parse(copy, len, &e), -EBADMSG);
			assert_int_equal(e.event.pid, 7);
			free(copy);
		}
	}
}

static void refuses_lengths_that_disagree(void **state)
{
	struct mote_event_exit e;
	struct datagram d = fork_of(100, 100);

	d.cn.len = sizeof(d.event) + 1;
	assert_int_equal(mote_connector_parse(&d, sizeof(d), &e), -EBADMSG);
	d.cn.len = 4;
	assert_int_equal(mote_connector_parse(&d, sizeof(d), &e), -EBADMSG);
	d = fork_of(100, 100);
	d.nl.nlmsg_len = 8;
	assert_int_equal(mote_connector_parse(&d, sizeof(d), &e), -EBADMSG);
	d.nl.nlmsg_len = UINT32_MAX;
	assert_int_equal(mote_connector_parse(&d, sizeof(d), &e), -EBADMSG);
}

/* Real processes. */

#define RUNS 1000

struct seen {
	pid_t pid;
	unsigned int fork, exec, exit, code;
};

struct watch {
	int fd;
	struct seen seen[RUNS + 1];
	unsigned int n;
	uint64_t first, last;
};

static int open_or_skip(void)
{
	int fd = mote_connector_open();

	if (fd == -EPERM || fd == -ENODATA || fd == -EPROTONOSUPPORT || fd == -ECONNREFUSED) {
		print_message("the proc connector: %s\n", strerror(-fd));
		skip();
	}
	assert_true(fd >= 0);
	return fd;
}

static void take(struct watch *w, const struct mote_event_exit *e)
{
	for (unsigned int i = 0; i < w->n; i++) {
		struct seen *seen = &w->seen[i];

		if ((uint32_t)seen->pid != e->event.pid)
			continue;
		seen->fork += e->event.kind == MOTE_EVENT_FORK && e->event.ppid == (u32)getpid();
		seen->exec += e->event.kind == MOTE_EVENT_EXEC;
		/* The kernel tells of it after the parent, and has no parent of what is reaped. */
		seen->exit += e->event.kind == MOTE_EVENT_EXIT &&
			      (e->event.ppid == (u32)getpid() || !e->event.ppid);
		if (e->event.kind == MOTE_EVENT_EXIT)
			seen->code = e->exit_code;
		if (!w->first)
			w->first = e->event.time;
		w->last = e->event.time;
	}
}

static void drain(struct watch *w)
{
	struct mote_event_exit e;
	char buf[256];
	ssize_t len;

	while ((len = recv(w->fd, buf, sizeof(buf), MSG_DONTWAIT)) >= 0) {
		int res = mote_connector_parse(buf, (size_t)len, &e);

		assert_true(res >= 0);
		if (res == 1)
			take(w, &e);
	}
	assert_int_equal(errno, EAGAIN); /* ENOBUFS: events were lost */
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The event of an exit may come after the parent was told. */
static void await_exits(struct watch *w)
{
	struct pollfd ready = { .fd = w->fd, .events = POLLIN };
	uint64_t until = now() + 5000000000;

	while (now() < until) { /* others' processes end, too: wake-ups say nothing */
		unsigned int missing = 0;

		drain(w);
		for (unsigned int i = 0; i < w->n; i++)
			missing += !w->seen[i].exit;
		if (!missing)
			return;
		poll(&ready, 1, 20);
	}
}

static void every_run_is_told_once(void **state)
{
	static char name[] = "false", *argv[] = { name, NULL }, *env[] = { NULL };
	static struct watch w;
	uint64_t began;
	int status;

	w.fd = open_or_skip();
	began = now();
	for (unsigned int i = 0; i < RUNS; i++) {
		struct seen *seen = &w.seen[w.n];

		assert_int_equal(posix_spawn(&seen->pid, "/bin/false", NULL, NULL, argv, env), 0);
		w.n++;
		assert_int_equal(waitpid(seen->pid, &status, 0), seen->pid);
		drain(&w);
	}
	await_exits(&w);
	for (unsigned int i = 0; i < RUNS; i++) {
		assert_int_equal(w.seen[i].fork, 1);
		assert_int_equal(w.seen[i].exec, 1);
		assert_int_equal(w.seen[i].exit, 1);
		assert_int_equal(w.seen[i].code, status);
		assert_int_equal(WEXITSTATUS(w.seen[i].code), 1);
	}
	assert_true(w.first >= began && w.last >= w.first && w.last <= now());
	mote_connector_close(w.fd);
}

static void *wait_a_little(void *arg)
{
	usleep(20000);
	return NULL;
}

static void threads_are_not_told(void **state)
{
	static struct watch w;
	int status;

	memset(&w, 0, sizeof(w));
	w.fd = open_or_skip();
	w.n = 1;
	w.seen[0].pid = fork();
	if (w.seen[0].pid == 0) {
		pthread_t threads[4];

		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, wait_a_little, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		kill(getpid(), SIGKILL);
		pause();
	}
	assert_true(w.seen[0].pid > 0);
	assert_int_equal(waitpid(w.seen[0].pid, &status, 0), w.seen[0].pid);
	await_exits(&w);
	assert_int_equal(w.seen[0].fork, 1);
	assert_int_equal(w.seen[0].exec, 0);
	assert_int_equal(w.seen[0].exit, 1);
	assert_int_equal(w.seen[0].code, status);
	assert_int_equal(WTERMSIG(w.seen[0].code), SIGKILL);
	mote_connector_close(w.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_events_of_processes),
		cmocka_unit_test(passes_over_threads_and_other_kinds),
		cmocka_unit_test(takes_a_shorter_exit),
		cmocka_unit_test(refuses_what_is_cut),
		cmocka_unit_test(refuses_lengths_that_disagree),
		cmocka_unit_test(every_run_is_told_once),
		cmocka_unit_test(threads_are_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
