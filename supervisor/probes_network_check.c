// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The self-check. A hook can be attached and see nothing, or not everything: the compiler inlined
 * the function, another kernel calls it otherwise. A child, whose process id BPF is told, moves
 * bytes by all there is to compare: both ways over TCP, a look by MSG_PEEK that must not count, and
 * a datagram, in each family. It is a child so that mote itself has no traffic to show.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes_network.h"
#include "probes_network_impl.h"

#define REQUEST  1009 /* bytes, of no round number */
#define ANSWER   211
#define DATAGRAM 509
#define FAMILIES 2
#define SECONDS  2 /* a child that is stuck is killed */

struct exchange {
	bool ran; /* the sockets could be had, and the bytes went over */
	uint64_t sent, received, seen_sent, seen_received;
};

struct outcome {
	struct exchange exchange[MOTE_PROTOCOLS][FAMILIES];
};

static const char *const family_names[FAMILIES] = { "IPv4", "IPv6" };

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* A socket bound to a free port of the loopback; nothing waits longer than 100 ms. */
static int bound(int family, int type, union address *address)
{
	const struct timeval limit = { .tv_usec = 100000 };
	socklen_t len = sizeof(*address);
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	memset(address, 0, sizeof(*address));
	address->any.sa_family = (sa_family_t)family;
	if (family == AF_INET6)
		address->in6.sin6_addr = in6addr_loopback;
	else
		address->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (fd < 0 || bind(fd, &address->any, len) || getsockname(fd, &address->any, &len)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* `n` bytes from one to the other, looked at once before they are taken. */
static bool hand_over(int from, int to, size_t n, struct exchange *x)
{
	char bytes[REQUEST];
	size_t taken = 0;
	ssize_t m;

	memset(bytes, 'm', sizeof(bytes));
	if (send(from, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		return false;
	x->sent += n;
	if (recv(to, bytes, sizeof(bytes), MSG_PEEK) <= 0)
		return false;
	while (taken < n) {
		m = recv(to, bytes, n - taken, 0);
		if (m <= 0)
			return false;
		taken += (size_t)m;
	}
	x->received += n;
	return true;
}

static bool over_tcp(int family, struct exchange *x)
{
	union address at, from;
	int listener = bound(family, SOCK_STREAM, &at), client = bound(family, SOCK_STREAM, &from);
	int server = -1;
	bool done = false;

	if (listener >= 0 && client >= 0 && !listen(listener, 1) &&
	    !connect(client, &at.any, sizeof(at)))
		server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (server >= 0)
		done = hand_over(client, server, REQUEST, x) &&
		       hand_over(server, client, ANSWER, x);
	close(server);
	close(client);
	close(listener);
	return done;
}

static bool over_udp(int family, struct exchange *x)
{
	union address at, from;
	int to = bound(family, SOCK_DGRAM, &at), client = bound(family, SOCK_DGRAM, &from);
	bool done = false;

	if (to >= 0 && client >= 0 && !connect(client, &at.any, sizeof(at)))
		done = hand_over(client, to, DATAGRAM, x);
	close(client);
	close(to);
	return done;
}

static void move(const volatile struct mote_net_ctl *ctl, unsigned int protocol, unsigned int i,
		 struct exchange *x)
{
	int family = i ? AF_INET6 : AF_INET;
	uint64_t sent = ctl->check_sent[protocol], received = ctl->check_received[protocol];

	x->ran = protocol == MOTE_TCP ? over_tcp(family, x) : over_udp(family, x);
	x->seen_sent = ctl->check_sent[protocol] - sent;
	x->seen_received = ctl->check_received[protocol] - received;
}

static void move_all(const struct mote_options *o, volatile struct mote_net_ctl *ctl,
		     struct outcome *outcome)
{
	const bool protocols[MOTE_PROTOCOLS] = { o->network_tcp, o->network_udp };
	const bool families[FAMILIES] = { o->network_ipv4, o->network_ipv6 };

	alarm(SECONDS);
	ctl->check_tgid = (uint32_t)getpid();
	for (unsigned int p = 0; p < MOTE_PROTOCOLS; p++) {
		for (unsigned int f = 0; f < FAMILIES; f++) {
			if (protocols[p] && families[f])
				move(ctl, p, f, &outcome->exchange[p][f]);
		}
	}
}

/* What the child found, in memory of both; NULL if it could not be tried. */
static struct outcome *try_it(const struct mote_options *options, struct mote_net_ctl *ctl)
{
	struct outcome *outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int status;

	if (outcome == MAP_FAILED)
		return NULL;
	pid = fork();
	if (!pid) {
		move_all(options, ctl, outcome);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ctl->check_tgid = 0;
	return outcome;
}

/* What was not seen of one event; "" if all was. */
static void compare(const struct exchange *exchange, bool sent, bool received, char *why,
		    size_t size)
{
	for (unsigned int f = 0; f < FAMILIES; f++) {
		const struct exchange *x = &exchange[f];

		if (!x->ran || ((!sent || x->seen_sent == x->sent) &&
				(!received || x->seen_received == x->received)))
			continue;
		snprintf(
			why, size,
			"self-check: of %llu bytes sent over %s %llu were seen, of %llu received %llu",
			(unsigned long long)x->sent, family_names[f],
			(unsigned long long)x->seen_sent, (unsigned long long)x->received,
			(unsigned long long)x->seen_received);
	}
}

static bool judge(struct mote_probes_network *network, struct mote_tiers *tiers,
		  const struct outcome *outcome)
{
	static const struct {
		enum mote_net_event event;
		enum mote_protocol protocol;
		bool sent, received;
	} events[] = {
		{ MOTE_NET_TCP, MOTE_TCP, true, true },
		{ MOTE_NET_UDP_SEND, MOTE_UDP, true, false },
		{ MOTE_NET_UDP_RECV, MOTE_UDP, false, true },
	};
	struct mote_network_maps *maps = &network->load.maps;
	bool good = true;

	for (unsigned int i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		enum mote_net_event event = events[i].event;
		char why[160] = "";

		if (!maps->has[event])
			continue;
		compare(outcome->exchange[events[i].protocol], events[i].sent, events[i].received,
			why, sizeof(why));
		if (!why[0])
			continue;
		good = false;
		snprintf(network->why[event], sizeof(network->why[event]), "%s", why);
		mote_tiers_add(tiers, mote_net_tier(event), "none", "%s: %s", maps->why[event],
			       why);
		maps->has[event] = false;
		maps->why[event] = network->why[event];
	}
	return good;
}

static unsigned int count(const struct outcome *outcome)
{
	unsigned int n = 0;

	for (unsigned int p = 0; p < MOTE_PROTOCOLS; p++) {
		for (unsigned int f = 0; f < FAMILIES; f++)
			n += outcome->exchange[p][f].ran;
	}
	return n;
}

void mote_probes_network_check(struct mote_probes_network *network, struct mote_tiers *tiers)
{
	struct outcome *outcome;

	if (!network->loaded || !network->options->network_self_check)
		return;
	outcome = try_it(network->options, network->load.maps.ctl);
	if (!outcome || !count(outcome))
		mote_tiers_add(
			tiers, "network_check", "skipped",
			"no bytes can be moved over loopback here: is lo up in this network namespace?");
	else if (judge(network, tiers, outcome))
		mote_tiers_add(tiers, "network_check", "passed", "%s", "");
	else
		mote_tiers_add(tiers, "network_check", "failed",
			       "what did not see the bytes is absent, not 0");
	if (outcome)
		munmap(outcome, sizeof(*outcome));
}
