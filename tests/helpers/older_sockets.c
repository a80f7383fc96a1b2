// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * older_sockets MOTED [OPTIONS...]: starts moted when connections and UDP sockets are there
 * already, which have moved bytes, in its network namespace and in another. What they moved before
 * does not count; of those in another namespace the first call may be missed as well, for the walk
 * at start does not meet them. Prints TAP.
 */
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../conserve/cases.h"
#include "../conserve/watch.h"

enum { BEFORE = 1000000, AFTER = 1000, ROUNDS = 3 };

struct plan plan;
static unsigned int tap, failed;

void need(bool ok, const char *what)
{
	if (ok)
		return;
	printf("not ok %u - %s: %s\n", ++tap, what, strerror(errno));
	exit(1);
}

/* One side of the test: a process with its sockets, which does what it is told by bytes. */
struct side {
	const char *name;
	bool apart;
	pid_t pid;
	int order[2], done[2];
};

static void move(struct pair *pair, size_t n)
{
	char *buf = calloc(1, n);

	while (n) {
		size_t part = n < 30000 ? n : 30000;

		need(S(pair->of_a, send(pair->a, buf, part, 0)) == (ssize_t)part, "send");
		for (size_t got = 0; got < part;) {
			ssize_t k = R(pair->of_b, recv(pair->b, buf, part - got, 0));

			need(k > 0, "recv");
			got += (size_t)k;
		}
		n -= part;
	}
	free(buf);
}

static void serve(struct side *side)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct pair tcp, udp;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (side->apart) {
		need(!unshare(CLONE_NEWNET), "a network namespace");
		need(!ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo), "lo");
	}
	pair_tcp(V4, &tcp);
	pair_udp(V4, &udp);
	move(&tcp, BEFORE);
	move(&udp, BEFORE);
	while (write(side->done[1], "", 1) == 1 && read(side->order[0], &byte, 1) == 1) {
		move(&tcp, AFTER);
		move(&udp, AFTER);
	}
	_exit(0);
}

static void start_side(struct side *side)
{
	char byte;

	need(!pipe(side->order) && !pipe(side->done), "pipes");
	fflush(stdout);
	side->pid = fork();
	if (!side->pid)
		serve(side);
	need(read(side->done[0], &byte, 1) == 1, "a process with sockets");
}

static void tell(struct side *side)
{
	char byte;

	need(write(side->order[1], "", 1) == 1 && read(side->done[0], &byte, 1) == 1,
	     "a process with sockets");
}

static pid_t start_moted(char **argv, char *path, size_t size)
{
	char socket_option[] = "--socket", *args[32] = { argv[1], socket_option, path };
	int n = 3;
	pid_t pid;

	snprintf(path, size, "/tmp/older_sockets.%d", getpid());
	for (char **arg = argv + 2; *arg && n < 31; arg++)
		args[n++] = *arg;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[1], args);
		_exit(127);
	}
	for (int i = 0; i < 600 && access(path, F_OK); i++)
		usleep(100000);
	return pid;
}

struct sought {
	pid_t pid;
	uint64_t start;
	struct sums tcp, udp;
};

static bool look(const struct rows *rows, void *ctx)
{
	struct sought *sought = ctx;
	const uint64_t key[] = { (uint64_t)sought->pid, sought->start };
	const struct rows *process = &rows[WATCH_PROCESS];
	const struct row *row = rows_find(process, key);
	const uint64_t all = ROUNDS * AFTER;

	if (!row)
		return false;
	sought->tcp = (struct sums){ rows_value(process, row, "tcp_bytes_sent"),
				     rows_value(process, row, "tcp_bytes_received") };
	sought->udp = (struct sums){ rows_value(process, row, "udp_bytes_sent"),
				     rows_value(process, row, "udp_bytes_received") };
	return sought->tcp.sent == all && sought->tcp.received == all && sought->udp.sent == all &&
	       sought->udp.received == all;
}

static bool fits(uint64_t bytes, bool apart)
{
	return bytes == ROUNDS * AFTER || (apart && bytes == (ROUNDS - 1) * AFTER);
}

static void judge(struct watch *watch, const struct side *side)
{
	struct sought s = { .pid = side->pid, .start = process_start(side->pid) };
	bool ok;

	watch_until(watch, look, &s, 1500);
	ok = fits(s.tcp.sent, side->apart) && fits(s.tcp.received, side->apart) &&
	     fits(s.udp.sent, side->apart) && fits(s.udp.received, side->apart);
	printf("%sok %u - sockets older than moted, %s: TCP %llu, %llu, UDP %llu, %llu of %d\n",
	       ok ? "" : "not ", ++tap, side->name, (unsigned long long)s.tcp.sent,
	       (unsigned long long)s.tcp.received, (unsigned long long)s.udp.sent,
	       (unsigned long long)s.udp.received, ROUNDS * AFTER);
	failed += !ok;
}

int main(int argc, char **argv)
{
	struct side sides[] = { { .name = "in its namespace" },
				{ .name = "in another namespace", .apart = true } };
	struct watch *watch;
	char path[108];
	pid_t moted;

	if (argc < 2) {
		fprintf(stderr, "usage: older_sockets MOTED [OPTIONS...]\n");
		return 2;
	}
	need(!ledger_create(64), "memory");
	start_side(&sides[0]);
	start_side(&sides[1]);
	moted = start_moted(argv, path, sizeof(path));
	watch = watch_start(path, 50, 0);
	need(watch != NULL, "moted answers");
	for (int i = 0; i < ROUNDS; i++) {
		tell(&sides[0]);
		tell(&sides[1]);
	}
	judge(watch, &sides[0]);
	judge(watch, &sides[1]);
	printf("1..%u\n", tap);
	watch_stop(watch);
	kill(moted, SIGTERM);
	waitpid(moted, NULL, 0);
	return failed != 0;
}
