// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Calls that fail, or do less than they were asked for: what counts is what they returned.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cases.h"

#define MIB (1 << 20)

static char big[4 * MIB];

/* The peer does not read: after some short sends nothing goes. */
static void stalled_peer(int family)
{
	struct pair pair;
	unsigned int refused = 0, shortened = 0;
	ssize_t k;

	pair_tcp((enum family)family, &pair);
	nonblocking(pair.a, true);
	for (unsigned int i = 0; i < 400 && refused < 50; i++) {
		size_t n = i % 3 ? 300000 + i : 2 * MIB;

		k = S(pair.of_a, send(pair.a, big, n, 0));
		refused += k < 0 && errno == EAGAIN;
		shortened += k > 0 && (size_t)k < n;
		if (k < 0 && refused == 20) /* some room again */
			take_all(pair.b, pair.of_b, MIB);
	}
	need(refused >= 20 && shortened > 0, "sends that did not go, or not as a whole");
	compare();
	shutdown(pair.a, SHUT_WR);
	take_all(pair.b, pair.of_b, SIZE_MAX);
	need(pair.of_a->sent == pair.of_b->received, "the test's own two sides agree");
}

/* What of a vector can be read is sent; at a page that is not there it ends. */
static void bad_addresses(int family)
{
	struct pair pair;
	char *hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[2] = { { big, 1000 }, { hole, 1000 } };
	ssize_t k;

	pair_tcp((enum family)family, &pair);
	need(S(pair.of_a, send(pair.a, hole, 1000, 0)) == -1 && errno == EFAULT, "EFAULT");
	k = S(pair.of_a, writev(pair.a, iov, 2));
	need(k == 1000 || (k == -1 && errno == EFAULT), "a vector half of which is there");
	need(S(pair.of_a, send(pair.a, big, 5000, 0)) == 5000, "send");
	need(R(pair.of_b, recv(pair.b, hole, 1000, 0)) == -1 && errno == EFAULT, "EFAULT");
	iov[0].iov_len = 300;
	k = R(pair.of_b, readv(pair.b, iov, 2));
	need(k == 300 || (k == -1 && errno == EFAULT), "a vector half of which is there");
	shutdown(pair.a, SHUT_WR);
	take_all(pair.b, pair.of_b, SIZE_MAX);
	need(R(pair.of_b, recv(pair.b, big, 10, 0)) == 0, "the end");
}

static void bad_addresses_udp(int family)
{
	struct pair pair;
	char *hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[2] = { { big, 700 }, { hole, 700 } };

	pair_udp((enum family)family, &pair);
	nonblocking(pair.b, true);
	need(S(pair.of_a, send(pair.a, hole, 700, 0)) == -1, "EFAULT");
	need(S(pair.of_a, writev(pair.a, iov, 2)) == -1, "EFAULT");
	need(S(pair.of_a, send(pair.a, big, 70000, 0)) == -1 && errno == EMSGSIZE, "EMSGSIZE");
	need(S(pair.of_a, send(pair.a, big, 100, 0)) == 100, "send");
	need(R(pair.of_b, recv(pair.b, hole, 700, 0)) == -1, "EFAULT");
	R(pair.of_b, recv(pair.b, big, 700, 0)); /* whether it is there still */
	need(R(pair.of_b, recv(pair.b, big, 700, 0)) == -1 && errno == EAGAIN, "EAGAIN");
	need(S(pair.of_a, send(pair.a, big, 200, 0)) == 200, "send");
	need(R(pair.of_b, recv(pair.b, big, 700, 0)) == 200, "recv");
}

/* To a port where nobody is: the next call hears of it. */
static void refused_udp(int family)
{
	struct pair pair;
	unsigned int refused = 0;

	pair_udp((enum family)family, &pair);
	ledger_close(pair.b);
	for (int i = 0; i < 50; i++)
		refused += S(pair.of_a, send(pair.a, big, 100 + (size_t)i, 0)) < 0 &&
			   errno == ECONNREFUSED;
	need(refused > 0, "ECONNREFUSED");
	need(recv(pair.a, big, 100, MSG_DONTWAIT) < 0, "recv of an error");
}

/* What the error queue gives back are bytes that were sent from here: nothing was received. */
static void error_queue(int family)
{
	struct pair pair;
	struct iovec iov = { big, 500 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t k;

	pair_udp((enum family)family, &pair);
	ledger_close(pair.b);
	setsockopt(pair.a, family == V6 ? IPPROTO_IPV6 : IPPROTO_IP,
		   family == V6 ? IPV6_RECVERR : IP_RECVERR, &(int){ 1 }, sizeof(int));
	need(S(pair.of_a, send(pair.a, big, 333, 0)) == 333, "send");
	usleep(20000);
	k = recvmsg(pair.a, &msg, MSG_ERRQUEUE | MSG_DONTWAIT);
	need(k > 0, "an error with the datagram's bytes");
}

static void refused_connects(int family)
{
	union address at;
	socklen_t len;

	nobody_on((enum family)family, &at, &len);
	for (int i = 0; i < 20; i++) {
		int fd = socket(at.any.sa_family, SOCK_STREAM, 0);

		ledger_open(fd);
		need(connect(fd, &at.any, len) == -1 && errno == ECONNREFUSED, "ECONNREFUSED");
		need(send(fd, big, 100, MSG_NOSIGNAL) == -1, "send without a connection");
	}
}

/* A slow sender: the call returns all, or, when its time is over, what there was. */
static void slow_waitall(int family)
{
	struct pair pair;
	pid_t child;
	ssize_t k;

	pair_tcp((enum family)family, &pair);
	child = fork();
	if (!child) {
		struct account *mine = ledger_open(pair.a);

		for (size_t n = 0; n < MIB; n += 32768) {
			usleep(1000);
			S(mine, send(pair.a, big, 32768, 0));
		}
		pause();
	}
	k = R(pair.of_b, recv(pair.b, big, MIB, MSG_WAITALL));
	need(k == MIB, "a MiB by one call");
	compare();
	kill(child, SIGKILL);
	setsockopt(pair.b, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_usec = 50000 },
		   sizeof(struct timeval));
	need(S(pair.of_a, send(pair.a, big, 777, 0)) == 777, "send");
	k = R(pair.of_b, recv(pair.b, big, MIB, MSG_WAITALL));
	need(k == 777, "what was there when the time was over");
}

static void on_alarm(int signal)
{
}

/* A signal ends a call that has done a part. */
static void interrupted(int family)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct pair pair;
	/* again and again, as the first may come between two calls */
	struct itimerval soon = { .it_value = { .tv_usec = 30000 },
				  .it_interval = { .tv_usec = 30000 } };
	struct itimerval never = { .it_value = { 0 } };
	ssize_t k;

	pair_tcp((enum family)family, &pair);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	k = S(pair.of_a, send(pair.a, big, sizeof(big), 0));
	for (int i = 0; k == (ssize_t)sizeof(big) && i < 10; i++)
		k = S(pair.of_a, send(pair.a, big, sizeof(big), 0));
	need(k < (ssize_t)sizeof(big), "a send that was interrupted");
	setitimer(ITIMER_REAL, &never, NULL);
	take_all(pair.b, pair.of_b, pair.of_a->sent);
	need(S(pair.of_a, send(pair.a, big, 555, 0)) == 555, "send");
	setitimer(ITIMER_REAL, &soon, NULL);
	k = R(pair.of_b, recv(pair.b, big, MIB, MSG_WAITALL));
	need(k == 555, "a receive that was interrupted");
	need(R(pair.of_b, recv(pair.b, big, MIB, 0)) == -1 && errno == EINTR, "EINTR");
	setitimer(ITIMER_REAL, &never, NULL);
}

/* Sent, peeked at three times, read once. */
static void peeked(int family)
{
	struct pair pair;

	pair_tcp((enum family)family, &pair);
	need(S(pair.of_a, send(pair.a, big, 100, 0)) == 100, "send");
	for (int i = 0; i < 3; i++)
		need(recv(pair.b, big, 1000, MSG_PEEK) == 100, "peek");
	setsockopt(pair.b, SOL_SOCKET, SO_PEEK_OFF, &(int){ 10 }, sizeof(int));
	recv(pair.b, big, 1000, MSG_PEEK);
	compare();
	need(R(pair.of_b, recv(pair.b, big, 1000, 0)) == 100, "recv");
}

static void peeked_udp(int family)
{
	struct pair pair;

	pair_udp((enum family)family, &pair);
	need(S(pair.of_a, send(pair.a, big, 100, 0)) == 100, "send");
	for (int i = 0; i < 3; i++)
		need(recv(pair.b, big, 1000, MSG_PEEK | (i == 2 ? MSG_TRUNC : 0)) == 100, "peek");
	compare();
	need(R(pair.of_b, recv(pair.b, big, 1000, 0)) == 100, "recv");
}

const struct test_case failing_cases[] = {
	CASE("TCP: sends into a stalled peer, v4", stalled_peer, V4),
	CASE("TCP: sends into a stalled peer, v6", stalled_peer, V6),
	CASE("TCP: EFAULT", bad_addresses, V4),
	CASE("TCP: EFAULT, v4-mapped", bad_addresses, MAPPED),
	CASE("UDP: EFAULT, EMSGSIZE", bad_addresses_udp, V4),
	CASE("UDP: EFAULT, EMSGSIZE, v6", bad_addresses_udp, V6),
	CASE("UDP: EFAULT, EMSGSIZE, v4-mapped", bad_addresses_udp, MAPPED),
	CASE("UDP: ECONNREFUSED", refused_udp, V4),
	CASE("UDP: ECONNREFUSED, v6", refused_udp, V6),
	CASE("UDP: ECONNREFUSED, v4-mapped", refused_udp, MAPPED),
	CASE("UDP: own bytes from the error queue", error_queue, V4),
	CASE("UDP: own bytes from the error queue, v6", error_queue, V6),
	CASE("TCP: refused connects", refused_connects, V4),
	CASE("TCP: MSG_WAITALL of a slow sender, and with a time limit", slow_waitall, V4),
	CASE("TCP: calls that a signal ends", interrupted, V4),
	CASE("TCP: a hundred bytes, peeked at three times", peeked, V4),
	CASE("UDP: a hundred bytes, peeked at three times", peeked_udp, V6),
	{ .name = NULL },
};
