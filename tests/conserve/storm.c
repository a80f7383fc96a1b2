// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Sockets that come and go by the thousand, each with a few bytes. They are too many to be looked
 * at one by one: their process's sums and the totals are.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

static char data[4096];

struct gale {
	enum family family;
	unsigned long rounds;
	struct account *tcp, *udp;
	int listener;
	union address at, nobody;
	socklen_t len;
};

static void refused(struct gale *gale)
{
	int fd = socket(gale->at.any.sa_family, SOCK_STREAM, 0);

	need(connect(fd, &gale->nobody.any, gale->len) == -1, "a connect that is refused");
	ledger_make(true, 1);
	close(fd);
}

/* One connection: bytes both ways, or one way and read or not, then closed in one of three ways. */
static void connection(struct gale *gale, unsigned long i)
{
	struct linger none = { .l_onoff = 1 };
	int fd = socket(gale->at.any.sa_family, SOCK_STREAM, 0), peer;
	size_t n = 1 + i % 700;

	need(fd >= 0 && !connect(fd, &gale->at.any, gale->len), "connect");
	S(gale->tcp, send(fd, data, n, 0));
	peer = accept(gale->listener, NULL, NULL);
	need(peer >= 0, "accept");
	ledger_make(true, 2);
	if (i % 5)
		R(gale->tcp, recv(peer, data, n, MSG_WAITALL));
	if (i % 2) {
		S(gale->tcp, send(peer, data, 2 * n, 0));
		R(gale->tcp, recv(fd, data, n, MSG_WAITALL));
	}
	if (i % 3)
		setsockopt(i % 3 == 1 ? fd : peer, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(i % 7 ? fd : peer);
	close(i % 7 ? peer : fd);
}

static void datagram(struct gale *gale, unsigned long i)
{
	union address at;
	socklen_t len = loopback(gale->family == MAPPED ? V4 : gale->family, 0, &at);
	int to = socket(at.any.sa_family, SOCK_DGRAM, 0);
	int from = socket(at.any.sa_family, SOCK_DGRAM, 0);
	size_t n = 1 + i % 1300;

	need(to >= 0 && from >= 0 && !bind(to, &at.any, len) && !getsockname(to, &at.any, &len),
	     "UDP sockets");
	S(gale->udp, sendto(from, data, n, 0, &at.any, len));
	ledger_make(false, i % 3 ? 2 : 1); /* who does not receive is not seen */
	if (i % 2)
		close(from);
	if (i % 3)
		R(gale->udp, recv(to, data, sizeof(data), 0));
	close(to);
	if (!(i % 2))
		close(from);
}

static void *blow(void *arg)
{
	struct gale *gale = arg;

	for (unsigned long i = 0; i < gale->rounds; i++) {
		connection(gale, i);
		if (i % 3 == 0)
			datagram(gale, i);
		if (i % 10 == 0)
			refused(gale);
	}
	return NULL;
}

static void storm(int threads)
{
	struct gale gales[16];

	for (int i = 0; i < threads; i++) {
		struct gale *gale = &gales[i];

		*gale = (struct gale){ .family = (enum family)(i % FAMILIES),
				       .rounds = plan.storm / (unsigned int)threads,
				       .tcp = ledger_rest(true),
				       .udp = ledger_rest(false) };
		gale->listener = listen_on(gale->family, &gale->at, &gale->len);
		nobody_on(gale->family, &gale->nobody, &gale->len);
		ledger_make(true, 2);
	}
	in_threads((unsigned int)threads, blow, gales, sizeof(*gales));
}

/* The same by processes that end as well, each after its last call. */
static void storm_of_processes(int processes)
{
	for (int i = 0; i < processes; i++) {
		pid_t child = fork();

		need(child >= 0, "fork");
		if (!child) {
			struct gale gale = { .family = (enum family)(i % FAMILIES),
					     .rounds = plan.storm / (unsigned int)processes / 2 + 1,
					     .tcp = ledger_rest(true),
					     .udp = ledger_rest(false) };

			gale.listener = listen_on(gale.family, &gale.at, &gale.len);
			nobody_on(gale.family, &gale.nobody, &gale.len);
			ledger_make(true, 2);
			blow(&gale);
			_exit(0);
		}
		need(waitpid(child, NULL, 0) == child, "waitpid");
	}
}

/* More sockets open at once than a small table has room for: each moves some bytes, twice. */
static void crowded(int n)
{
	struct pair *pairs = calloc((size_t)n, sizeof(*pairs));

	for (int i = 0; i < n; i++)
		if (i % 2)
			pair_tcp(i % FAMILIES, &pairs[i]);
		else
			pair_udp(i % FAMILIES, &pairs[i]);
	for (size_t round = 0; round < 2; round++)
		for (int i = 0; i < n; i++) {
			S(pairs[i].of_a, send(pairs[i].a, data, 10 + (size_t)i, 0));
			R(pairs[i].of_b, recv(pairs[i].b, data, sizeof(data), 0));
		}
	compare();
	for (int i = 0; i < n; i++)
		pair_close(&pairs[i]);
	free(pairs);
}

const struct test_case storm_cases[] = {
	{ .name = "storm of connections, refused ones, datagrams",
	  .run = storm,
	  .arg = 8,
	  .counts_sockets = true },
	{ .name = "storm of processes with connections",
	  .run = storm_of_processes,
	  .arg = 40,
	  .counts_sockets = true },
	CASE("500 pairs of sockets at once", crowded, 500),
	{ .name = NULL },
};
