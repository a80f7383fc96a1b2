// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * sleepers N [FORKS [AWAKE_MS]]: makes N processes that sleep, prints "ready", and until standard
 * input ends forks FORKS more a second, each of which ends at once. With AWAKE_MS the sleepers wake
 * up that often, so that a row of each changes. Prints how many it forked at the end. Its
 * children die with it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_util.h"

static void sleep_for_ever(pid_t parent, int awake_ms)
{
	int64_t at = bench_clock(CLOCK_MONOTONIC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (;;) {
		if (awake_ms)
			bench_sleep_until(at += awake_ms * NS_PER_MS);
		else
			pause();
	}
}

static void make(pid_t *pids, int n, int awake_ms)
{
	pid_t parent = getpid();

	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			bench_die("sleepers: cannot fork process %d: %s", i, strerror(errno));
		if (!pids[i])
			sleep_for_ever(parent, awake_ms);
		if (awake_ms) /* spread over the interval */
			usleep((useconds_t)(awake_ms * 1000 / n));
	}
}

static void fork_once(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* True until standard input ends, or `ns` later. */
static int input_open_until(int64_t ns)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int64_t left = ns - bench_clock(CLOCK_MONOTONIC);

	if (left > 0 && left < NS_PER_MS) {
		bench_sleep_until(ns);
		left = 0;
	}
	return poll(&input, 1, left > 0 ? (int)(left / NS_PER_MS) : 0) <= 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : -1, forks = argc > 2 ? atoi(argv[2]) : 0;
	pid_t *pids;
	int64_t at;
	long forked = 0;

	if (n < 0 || forks < 0)
		bench_die("usage: sleepers N [FORKS [AWAKE_MS]]");
	pids = calloc((size_t)n + 1, sizeof(*pids));
	make(pids, n, argc > 3 ? atoi(argv[3]) : 0);
	printf("ready\n");
	fflush(stdout);
	at = bench_clock(CLOCK_MONOTONIC);
	while (input_open_until(at += NS_PER_S / (forks ? forks : 1))) {
		if (forks)
			fork_once();
		forked += forks > 0;
	}
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	printf("%ld\n", forked);
	free(pids);
	return 0;
}
