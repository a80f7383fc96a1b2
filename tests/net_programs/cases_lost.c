// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Changes of state that no program is run for. A socket ends so, and the next one that the kernel
 * puts at its address, of each kind, must not go on in its slot.
 */
#include "exchange.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#define MOST  32 /* sockets that are made until one comes to the address */
#define TRIES 8

/* What the kernel frees it gives away again on the same CPU. */
static void stay_on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("sched_setaffinity");
}

struct ended {
	struct mote_socket *s;
	u64 key, sent;
};

/* All that a connection takes while nobody reads. */
static u64 fill(int fd)
{
	u64 sent = 0;
	ssize_t n;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	do {
		while ((n = send(fd, data, sizeof(data), MSG_NOSIGNAL)) > 0)
			sent += (u64)n;
	} while (poll(&(struct pollfd){ fd, POLLOUT, 0 }, 1, 100) > 0);
	return sent;
}

/*
 * Closed while its bytes wait, and then all is read: it comes from FIN_WAIT1 to its end in softirqs
 * of this process's calls, with no call of its own.
 */
static struct ended end_unheard(void)
{
	struct ended ended;
	struct pair p;

	open_pair(&p, AF_INET, false);
	ended.sent = fill(p.client);
	ended.s = of(p.client);
	ended.key = ended.s ? ended.s->slot.key : 0;
	close(p.client);
	hear_states(false);
	while (recv(p.server, data, sizeof(data), 0) > 0)
		;
	close(p.server);
	close(p.listener);
	check(ended.s && !ended.s->closed && in_index(ended.key), "an end that no program heard");
	return ended;
}

/* A listener, whose slot has no hash. Its memory is given back after a grace period of RCU. */
static struct ended end_listener_unheard(void)
{
	struct sockaddr_storage to;
	socklen_t len;
	int fd = listen_on(SOCK_STREAM, AF_INET, false, &to, &len);
	struct ended ended = { .s = of(fd) };

	ended.key = ended.s ? ended.s->slot.key : 0;
	hear_states(false);
	close(fd);
	usleep(100000);
	check(ended.s, "the end of a listener that no program heard");
	return ended;
}

static bool is_taken(const struct ended *ended)
{
	struct mote_socket *s = by_key(ended->key);

	return s && s != ended->s;
}

static void check_ended(const struct ended *ended, const char *what)
{
	struct mote_traffic t = moved_by(ended->s, getpid());

	check(ended->s->closed && t.sent == ended->sent && !t.received &&
		      (!(ended->s->flags & MOTE_SOCKET_TRUTH) || ended->s->accepted == ended->sent),
	      "%s: the one before has ended, with its own %llu (%llu, accepted %llu)", what,
	      (unsigned long long)ended->sent, (unsigned long long)t.sent,
	      (unsigned long long)ended->s->accepted);
}

static bool check_taken(const struct ended *ended, const char *what)
{
	bool taken = is_taken(ended);

	if (taken)
		check_ended(ended, what);
	return taken;
}

static void close_all(const int *fd, int n)
{
	for (int i = 0; i < n; i++)
		close(fd[i]);
}

/* A pair, by a listener and of a client that are there already, moves bytes both ways. */
static void check_pair(const char *what, int listener, int client, const struct sockaddr *to,
		       socklen_t len, int *server)
{
	if (connect(client, to, len))
		die("connect");
	*server = accept(listener, NULL, NULL);
	put(client, 1000);
	get(*server, 1000);
	put(*server, 60);
	get(client, 60);
	check_moved(what, client, getpid(), 1000, 60);
	check_moved(what, *server, getpid(), 60, 1000);
	check_truth(what, client, 1000, 60);
	check_truth(what, *server, 60, 1000);
}

enum role { CLIENT, SERVER };

/* What is to come to the address of one that ended. */
struct next {
	const char *what;
	enum role role;
	bool heard; /* its beginning is */
	struct ended (*end)(void);
};

/* False: none came to the address. */
static bool try_at_address(const struct next *next)
{
	int client[MOST] = { 0 }, server[MOST] = { 0 }, listener, n = 0;
	struct sockaddr_storage to;
	struct ended ended;
	socklen_t len;
	bool taken;

	listener = listen_on(SOCK_STREAM, AF_INET, false, &to, &len);
	for (int i = 0; i < MOST && next->role == SERVER; i++)
		client[i] = socket(AF_INET, SOCK_STREAM, 0);
	ended = next->end();
	if (!ended.s)
		return false;
	hear_states(next->heard);
	for (; n < MOST && (!n || !is_taken(&ended)); n++) {
		if (next->role == CLIENT)
			client[n] = socket(AF_INET, SOCK_STREAM, 0);
		check_pair(next->what, listener, client[n], (struct sockaddr *)&to, len,
			   &server[n]);
	}
	hear_states(true);
	taken = check_taken(&ended, next->what);
	close_all(client, next->role == SERVER ? MOST : n);
	close_all(server, n);
	close(listener);
	return taken;
}

/* Another process, or the kernel's mood, may take the address first. */
static void next_at_address(bool (*try)(const struct next *), const struct next *next)
{
	bool taken = false;

	for (int i = 0; i < TRIES && !taken; i++)
		taken = try(next);
	check(taken, "%s: another is at the address, and has a slot of its own", next->what);
}

/* Its first event is that it has its peer's FIN: its bytes and that are there before accept(). */
static bool try_half_closed(const struct next *next)
{
	int client[MOST] = { 0 }, server[MOST] = { 0 }, listener, n = 0;
	struct sockaddr_storage to;
	struct ended ended;
	socklen_t len;
	bool taken;

	listener = listen_on(SOCK_STREAM, AF_INET, false, &to, &len);
	for (int i = 0; i < MOST; i++)
		client[i] = socket(AF_INET, SOCK_STREAM, 0);
	ended = next->end();
	if (!ended.s)
		return false;
	for (; n < MOST && (!n || !is_taken(&ended)); n++) {
		if (connect(client[n], (struct sockaddr *)&to, len))
			die("connect");
		put(client[n], 500);
		shutdown(client[n], SHUT_WR);
		server[n] = accept(listener, NULL, NULL);
		get(server[n], 500);
		end_of(server[n]);
		put(server[n], 70);
		check_moved(next->what, server[n], getpid(), 70, 500);
		check_truth(next->what, server[n], 70, 500);
	}
	hear_states(true);
	taken = check_taken(&ended, next->what);
	close_all(client, MOST);
	close_all(server, n);
	close(listener);
	return taken;
}

/* A listener is not counted, but must not be taken for the connection before. */
static bool try_listens(const struct next *next)
{
	struct ended ended = next->end();
	struct sockaddr_storage to;
	int fd[MOST] = { 0 }, n = 0;
	socklen_t len;
	bool taken;

	if (!ended.s)
		return false;
	hear_states(true);
	for (; n < MOST && (!n || !is_taken(&ended)); n++)
		fd[n] = listen_on(SOCK_STREAM, AF_INET, false, &to, &len);
	taken = check_taken(&ended, next->what);
	close_all(fd, n);
	return taken;
}

/* A walk sweeps a part of the slots. */
static void check_swept(const struct mote_socket *s, u64 key, const char *what)
{
	bool closed = false;

	for (int i = 0; s && !closed && i < 100; i++) {
		usleep(10000);
		walk("net_tcp");
		closed = s->closed && !in_index(key);
	}
	check(closed, "%s: found by a walk", what);
}

/* Nobody comes to the address: the walk finds that it is gone, and what the kernel counted. */
static void swept(void)
{
	struct ended ended = end_unheard();

	hear_states(true);
	if (!ended.s)
		return;
	check_swept(ended.s, ended.key, "the end that no program heard");
	check_ended(&ended, "the walk");
}

/* From beginning to end nothing is heard; the ends are found by a walk. */
static void all_unheard(void)
{
	struct mote_socket *s[2];
	struct pair p;
	u64 key[2];

	hear_states(false);
	tcp_exchange("states unheard, IPv4", AF_INET, false);
	tcp_exchange("states unheard, IPv6", AF_INET6, false);
	tcp_ends();
	tcp_late_look();
	open_pair(&p, AF_INET, false);
	put(p.client, 3);
	get(p.server, 3);
	put(p.server, 4);
	s[0] = of(p.client);
	s[1] = of(p.server);
	for (int i = 0; i < 2; i++)
		key[i] = s[i] ? s[i]->slot.key : 0;
	get(p.client, 4);
	check(set == TP || (of(p.listener) && of(p.listener)->state == 10 &&
			    of(p.listener)->tgid == (u32)getpid()),
	      "states unheard: the listener and its owner");
	close_pair(&p);
	check_swept(s[0], key[0], "states unheard, the client");
	check_swept(s[1], key[1], "states unheard, the server");
	for (int i = 0; i < 2 && s[i]; i++)
		check(moved_by(s[i], getpid()).sent == 3u + (u64)i &&
			      (!(s[i]->flags & MOTE_SOCKET_TRUTH) || s[i]->accepted == 3u + (u64)i),
		      "states unheard: its FIN is no byte");
	hear_states(true);
}

/* tcp_disconnect() takes the kernel's counts away: they are absent then, and not less than was
 * seen. */
static void reset_unheard(void)
{
	struct linger none = { .l_onoff = 1 };
	struct mote_socket *s;
	struct pair p;
	u64 key;

	open_pair(&p, AF_INET, false);
	put(p.client, 900);
	s = of(p.client);
	key = s ? s->slot.key : 0;
	setsockopt(p.client, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	hear_states(false);
	close(p.client);
	check_swept(s, key, "a reset that no program heard");
	check(s && moved_by(s, getpid()).sent == 900 &&
		      (!(s->flags & MOTE_SOCKET_TRUTH) || s->accepted == 900),
	      "a reset that no program heard: its bytes");
	hear_states(true);
	close(p.server);
	close(p.listener);
}

static const struct next connections[] = {
	{ "accepted, unheard", SERVER, false, end_unheard },
	{ "accepted", SERVER, true, end_unheard },
	{ "connected, unheard", CLIENT, false, end_unheard },
	{ "connected", CLIENT, true, end_unheard },
	{ "accepted after a listener, unheard", SERVER, false, end_listener_unheard },
	{ "connected after a listener, unheard", CLIENT, false, end_listener_unheard },
};
static const struct next half_closed = { "half closed before it was seen", .end = end_unheard };
static const struct next listens = { "a listener", .end = end_unheard };

void cases_of_lost(void)
{
	cpu_set_t before;

	if (sched_getaffinity(0, sizeof(before), &before))
		die("sched_getaffinity");
	stay_on_one_cpu();
	for (size_t i = 0; i < sizeof(connections) / sizeof(*connections); i++)
		next_at_address(try_at_address, &connections[i]);
	next_at_address(try_half_closed, &half_closed);
	next_at_address(try_listens, &listens);
	swept();
	all_unheard();
	reset_unheard();
	sched_setaffinity(0, sizeof(before), &before);
}
