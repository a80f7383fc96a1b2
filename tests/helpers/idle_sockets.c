// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * idle_sockets [-f FEW] [-n MANY] [-c CHANGED] SOCKET: what a tick of a running moted costs while
 * the same sockets change, beside few and beside many sockets that do nothing. Many may cost at
 * most twice as much. Prints TAP. moted needs room for MANY + 3 * CHANGED sockets.
 */
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "libmote.h"

#ifndef IP_BIND_ADDRESS_NO_PORT
#	define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum { INTERVAL_MS = 50, WINDOWS = 5, WINDOW_MS = 1000, PORTS_EACH = 20000, CHANGED_MAX = 1000 };

static unsigned long few = 1000, many = 120000;
static unsigned int changed = 100;
static struct mote_client *client;
static pid_t moted;
static atomic_ulong shown; /* sockets, as the network stream has them */
static atomic_bool gone;
static struct {
	int from, to;
} active[CHANGED_MAX];

static void die(const char *what)
{
	printf("not ok 1 - %s: %s\n1..1\n", what, strerror(errno));
	exit(1);
}

static void nap(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l }, NULL);
}

static struct sockaddr_in address(unsigned int host, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host) };
}

/* CPU time of all threads, those of io_uring included, ns. */
static uint64_t cpu_time(void)
{
	char pattern[64];
	uint64_t sum = 0;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/schedstat", moted);
	if (glob(pattern, 0, NULL, &found))
		die("moted's threads");
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *file = fopen(found.gl_pathv[i], "re");
		uint64_t ns = 0;

		if (file && fscanf(file, "%" SCNu64, &ns) == 1)
			sum += ns;
		if (file)
			fclose(file);
	}
	globfree(&found);
	return sum;
}

/* Both ends of a connection stay open, and nobody touches them again. */
static void connect_idle(unsigned long i, int listener, const struct sockaddr_in *to)
{
	struct sockaddr_in from = address((unsigned int)(i / PORTS_EACH), 0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &(int){ 1 }, sizeof(int));
	if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof(from)) ||
	    connect(fd, (const struct sockaddr *)to, sizeof(*to)) ||
	    accept(listener, NULL, NULL) < 0)
		die("an idle connection");
}

/* In a process of its own, as one may have only so many descriptors. */
static void hold_idle(unsigned long first, unsigned long n, int ready)
{
	struct sockaddr_in to = address(0, 0);
	socklen_t len = sizeof(to);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (bind(listener, (struct sockaddr *)&to, len) || listen(listener, 100) ||
	    getsockname(listener, (struct sockaddr *)&to, &len))
		die("a listening socket");
	for (unsigned long i = 0; i < n; i += 2)
		connect_idle((first + i) / 2, listener, &to);
	close(listener);
	if (write(ready, "", 1) != 1)
		exit(1);
	for (;;)
		pause();
}

static unsigned long open_idle(unsigned long have, unsigned long want)
{
	struct rlimit files;
	unsigned long most;

	getrlimit(RLIMIT_NOFILE, &files);
	most = (files.rlim_cur - 2 * changed - 100) & ~1ul;
	while (have < want) {
		unsigned long n = want - have < most ? want - have : most;
		int ready[2];
		char byte;
		pid_t pid;

		if (pipe(ready))
			die("a pipe");
		fflush(stdout);
		pid = fork();
		if (!pid) {
			close(ready[0]);
			hold_idle(have, n, ready[1]);
		}
		close(ready[1]);
		if (pid < 0 || read(ready[0], &byte, 1) != 1)
			die("a process with idle sockets");
		close(ready[0]);
		have += n;
	}
	return have;
}

static void open_active(void)
{
	for (unsigned int i = 0; i < changed; i++) {
		struct sockaddr_in at = address(0, 0);
		socklen_t len = sizeof(at);

		active[i].from = socket(AF_INET, SOCK_DGRAM, 0);
		active[i].to = socket(AF_INET, SOCK_DGRAM, 0);
		if (bind(active[i].to, (struct sockaddr *)&at, len) ||
		    getsockname(active[i].to, (struct sockaddr *)&at, &len) ||
		    connect(active[i].from, (struct sockaddr *)&at, len))
			die("an active socket");
	}
}

static void *keep_active(void *arg)
{
	char byte = 0;

	for (;; nap(INTERVAL_MS))
		for (unsigned int i = 0; i < changed; i++)
			if (send(active[i].from, &byte, 1, 0) == 1)
				recv(active[i].to, &byte, 1, 0);
	return arg;
}

static void count_sockets(const struct mote_message *message)
{
	struct mote_record row;
	unsigned long sum = 0;

	for (size_t i = 0; mote_row(message, i, &row); i++)
		sum += mote_value_named(&row, "sockets").u64;
	if (message->nrows)
		shown = sum;
}

static void *subscribe(void *arg)
{
	struct mote_message message;
	char line[96];

	snprintf(line, sizeof(line), "subscribe socket,flow,process_network,network interval=%dms",
		 INTERVAL_MS);
	mote_request(client, line);
	for (;;) {
		int rc = mote_next(client, &message, 100);

		if (rc != 1 && rc != -EAGAIN && rc != -EINTR)
			break;
		if (rc == 1 && message.type == MOTE_MESSAGE_DATA && message.stream &&
		    !strcmp(message.stream->name, "network"))
			count_sockets(&message);
	}
	gone = true;
	return arg;
}

/* Microseconds a tick, of the best window; others work on this machine, too. */
static double measure(unsigned long idle)
{
	double best = 1e18, sum = 0;

	for (int i = 0; i < WINDOWS; i++) {
		uint64_t before = cpu_time();
		double us;

		nap(WINDOW_MS);
		us = (double)(cpu_time() - before) / 1e3 * INTERVAL_MS / WINDOW_MS;
		best = us < best ? us : best;
		sum += us;
	}
	printf("# %lu idle sockets, %u changed: %.1f us a tick at best, %.1f on average\n", idle,
	       2 * changed, best, sum / WINDOWS);
	fflush(stdout);
	return best;
}

/* Until moted has them all, and has told of them all. */
static void await(unsigned long sockets)
{
	for (int ms = 0; ms < 30000 && shown < sockets && !gone; ms += 50)
		nap(50);
	if (shown < sockets) {
		printf("not ok 1 - moted has %lu sockets: it has %lu\n1..1\n", sockets, shown);
		exit(1);
	}
	nap(2000);
}

static void prepare(const char *path)
{
	struct rlimit files;
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct mote_message message;
	int rc = mote_open(path, &client);

	if (rc || mote_next(client, &message, 10000) != 1) {
		errno = rc ? -rc : EPROTO;
		die(path);
	}
	if (getsockopt(mote_fd(client), SOL_SOCKET, SO_PEERCRED, &peer, &len))
		die("SO_PEERCRED");
	moted = peer.pid;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (!unshare(CLONE_NEWNET)) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		if (ioctl(fd, SIOCSIFFLAGS, &lo))
			die("lo");
		close(fd);
	}
}

static bool options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "f:n:c:")) != -1) {
		unsigned long n = optarg ? strtoul(optarg, NULL, 10) : 0;

		if (c == 'f')
			few = n;
		else if (c == 'n')
			many = n;
		else if (c == 'c' && n > 0 && n <= CHANGED_MAX)
			changed = (unsigned int)n;
		else
			return false;
	}
	return argc == optind + 1;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	double with_few, with_many;
	unsigned long have;

	if (!options(argc, argv)) {
		fprintf(stderr, "usage: idle_sockets [-f FEW] [-n MANY] [-c CHANGED] SOCKET\n");
		return 2;
	}
	prepare(argv[optind]);
	open_active();
	if (pthread_create(&thread, NULL, subscribe, NULL) ||
	    pthread_create(&thread, NULL, keep_active, NULL))
		die("threads");
	have = open_idle(0, few);
	await(few);
	with_few = measure(have);
	have = open_idle(have, many);
	await(many);
	with_many = measure(have);
	printf("%sok 1 - a tick beside %lu idle sockets costs %.2f times that beside %lu\n",
	       with_many <= 2 * with_few ? "" : "not ", many, with_many / with_few, few);
	printf("%sok 2 - moted stayed\n1..2\n", gone ? "not " : "");
	return with_many > 2 * with_few || gone;
}
