// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * See nursery.h. Words go through pipes, each in one write that a pipe does not split.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nursery.h"

static struct {
	const struct test_case *const *cases;
	int orders[2], words[2], go[2];
	pid_t pid;
} nursery;

static void say(int kind, const char *fmt, va_list args)
{
	struct word word = { .kind = kind };

	vsnprintf(word.text, sizeof(word.text), fmt, args);
	if (write(nursery.words[1], &word, sizeof(word)) != sizeof(word))
		_exit(3);
}

void note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(WORD_NOTE, fmt, args);
	va_end(args);
}

static void tell(int kind, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(kind, fmt, args);
	va_end(args);
}

void skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(WORD_SKIP, fmt, args);
	va_end(args);
	_exit(0);
}

void need(bool ok, const char *what)
{
	if (ok)
		return;
	tell(WORD_FAIL, "%s: %s", what, strerror(errno));
	_exit(3);
}

void compare(void)
{
	char byte;

	tell(WORD_COMPARE, "%s", "");
	if (read(nursery.go[0], &byte, 1) != 1)
		_exit(3);
}

static void raise_lo(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
}

/* IPv6 addresses of lo can be used a moment later than it is up. */
static void await_ipv6(void)
{
	union address at;
	socklen_t len = loopback(V6, 0, &at);

	for (int i = 0; i < 100; i++) {
		int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		bool ok = fd >= 0 && !bind(fd, &at.any, len);

		close(fd);
		if (ok)
			return;
		usleep(10000);
	}
}

static void run_case(unsigned int i)
{
	const struct test_case *one = nursery.cases[i];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setsid(); /* a group, to be killed as one */
	ledger_case(one->name);
	one->run(one->arg);
	compare();
	_exit(0);
}

/* Waits for the case's process and kills what it left. */
static void tend(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		;
	kill(-pid, SIGKILL);
	if (WIFSIGNALED(status))
		tell(WORD_END, "killed by signal %d", WTERMSIG(status));
	else
		tell(WORD_END, "%s", WEXITSTATUS(status) ? "ended early" : "");
}

static void run_nursery(bool isolate)
{
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	if (isolate && !unshare(CLONE_NEWNET))
		raise_lo();
	await_ipv6();
	while (read(nursery.orders[0], &i, sizeof(i)) == sizeof(i)) {
		pid_t pid = fork();

		if (!pid)
			run_case(i);
		if (pid > 0)
			tend(pid);
	}
	_exit(0);
}

bool nursery_start(const struct test_case *const *cases, unsigned int n, bool isolate)
{
	nursery.cases = cases;
	if (pipe2(nursery.orders, O_CLOEXEC) || pipe2(nursery.words, O_CLOEXEC) ||
	    pipe2(nursery.go, O_CLOEXEC))
		return false;
	fflush(NULL);
	nursery.pid = fork();
	if (!nursery.pid) {
		close(nursery.orders[1]);
		run_nursery(isolate);
	}
	close(nursery.orders[0]);
	return nursery.pid > 0;
}

void nursery_begin(unsigned int i)
{
	if (write(nursery.orders[1], &i, sizeof(i)) != sizeof(i))
		exit(3);
}

struct word nursery_listen(unsigned int seconds)
{
	struct pollfd fd = { .fd = nursery.words[0], .events = POLLIN };
	struct word word = { .kind = WORD_LATE };
	int rc;

	do
		rc = poll(&fd, 1, (int)seconds * 1000);
	while (rc < 0 && errno == EINTR);
	if (rc == 1 && read(fd.fd, &word, sizeof(word)) != sizeof(word))
		word.kind = WORD_LATE;
	return word;
}

void nursery_go(void)
{
	if (write(nursery.go[1], "", 1) != 1)
		exit(3);
}

void nursery_stop(void)
{
	close(nursery.orders[1]);
	kill(nursery.pid, SIGKILL);
	waitpid(nursery.pid, NULL, 0);
}
