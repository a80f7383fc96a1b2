// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Connections that begin, change and end in unusual ways, and sockets that only look like TCP or
 * UDP.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "cases.h"

static char data[65536];

static void get(int fd, struct account *account, size_t n)
{
	need(take_all(fd, account, n) == n, "all bytes came");
}

static void give(int fd, struct account *account, size_t n)
{
	need(S(account, send(fd, data, n, MSG_NOSIGNAL)) == (ssize_t)n, "send");
}

/* One side is done, the other goes on. */
static void half_close(int family)
{
	struct pair p;

	pair_tcp((enum family)family, &p);
	give(p.a, p.of_a, 1000);
	shutdown(p.a, SHUT_WR);
	give(p.b, p.of_b, 500);
	get(p.a, p.of_a, 500);
	get(p.b, p.of_b, 1000);
	need(R(p.of_b, recv(p.b, data, 10, 0)) == 0, "the end");
	compare();
	give(p.b, p.of_b, 77); /* in CLOSE_WAIT */
	shutdown(p.b, SHUT_WR);
	get(p.a, p.of_a, 77);
	need(R(p.of_a, recv(p.a, data, 10, 0)) == 0, "the end");
}

/* The sender closes before the other has read. */
static void read_after_close(int family)
{
	struct pair p;

	pair_tcp((enum family)family, &p);
	give(p.a, p.of_a, 30000);
	ledger_close(p.a);
	get(p.b, p.of_b, 30000);
	need(R(p.of_b, recv(p.b, data, 10, 0)) == 0, "the end");
}

/* Both sides close at once, with data in the air. */
static void close_at_once(int family)
{
	for (int i = 0; i < 20; i++) {
		struct pair p;

		pair_tcp((enum family)family, &p);
		give(p.a, p.of_a, 100 + (size_t)i);
		give(p.b, p.of_b, 200 + (size_t)i);
		if (i % 2) {
			get(p.a, p.of_a, 200 + (size_t)i);
			get(p.b, p.of_b, 100 + (size_t)i);
		}
		pair_close(&p);
	}
}

/* Data that was not read makes the close a reset; nobody received it. */
static void close_unread(int family)
{
	struct pair p;

	pair_tcp((enum family)family, &p);
	give(p.b, p.of_b, 1000);
	give(p.a, p.of_a, 2000);
	usleep(2000);
	ledger_close(p.a);
	R(p.of_b, recv(p.b, data, 1500, 0)); /* what it returns counts */
	R(p.of_b, recv(p.b, data, 1500, 0));
	S(p.of_b, send(p.b, data, 10, MSG_NOSIGNAL)); /* fails, unless the reset is late */
}

static void reset(int family)
{
	struct pair p;
	struct linger none = { .l_onoff = 1 };

	pair_tcp((enum family)family, &p);
	give(p.a, p.of_a, 5000);
	get(p.b, p.of_b, 3000);
	setsockopt(p.a, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	ledger_close(p.a);
	for (int i = 0; i < 3; i++)
		R(p.of_b, recv(p.b, data, 3000, 0));
}

/* A connection is dropped and the socket used for another one: what it moved adds up. */
static void connect_again(int family)
{
	union address at;
	socklen_t len;
	int listener = listen_on((enum family)family, &at, &len);
	int fd = socket(at.any.sa_family, SOCK_STREAM, 0);
	struct account *mine = ledger_open(fd), *other;
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	for (size_t i = 0; i < 5; i++) {
		int peer;

		need(!connect(fd, &at.any, len), "connect");
		peer = accept(listener, NULL, NULL);
		other = ledger_open(peer);
		give(fd, mine, 600 + i);
		give(peer, other, 60000);
		get(fd, mine, 100 * i);
		if (i % 2)
			get(peer, other, 600 + i);
		need(!connect(fd, &none, sizeof(none)), "disconnect");
		need(S(mine, send(fd, data, 10, MSG_NOSIGNAL)) == -1, "send when disconnected");
		if (i == 2)
			compare();
		ledger_close(peer);
	}
	close(listener);
}

/* A socket that does not wait for the connection. */
static void nonblocking_connect(int family)
{
	union address at;
	socklen_t len;
	int listener = listen_on((enum family)family, &at, &len);
	int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0), peer;
	struct account *mine = ledger_open(fd), *other;

	need(!connect(fd, &at.any, len) || errno == EINPROGRESS, "connect");
	S(mine, send(fd, data, 10, MSG_NOSIGNAL));
	peer = accept(listener, NULL, NULL);
	other = ledger_open(peer);
	poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 1000);
	give(fd, mine, 1000);
	get(peer, other, mine->sent);
	close(listener);
}

/* A socket that is connected to itself. */
static void self_connected(int family)
{
	union address at;
	socklen_t len = loopback((enum family)family, 0, &at);
	int fd = socket(at.any.sa_family, SOCK_STREAM, 0);
	struct account *mine = ledger_open(fd);

	need(!bind(fd, &at.any, len) && !getsockname(fd, &at.any, &len), "bind");
	need(!connect(fd, &at.any, len), "a connection with itself");
	for (int i = 0; i < 5; i++) {
		give(fd, mine, 1234);
		get(fd, mine, 1234);
	}
	shutdown(fd, SHUT_WR);
	need(R(mine, recv(fd, data, 10, 0)) == 0, "the end");
}

/* Data goes with the SYN; the first connection only fetches the cookie. */
static void fast_open(int lazily)
{
	union address at;
	socklen_t len;
	int listener = listen_on(V4, &at, &len);

	if (!put("/proc/sys/net/ipv4/tcp_fastopen", "3"))
		skip("not on this machine: tcp_fastopen cannot be set");
	need(!setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &(int){ 16 }, sizeof(int)),
	     "TCP_FASTOPEN");
	for (int i = 0; i < 4; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0), peer;
		struct account *mine = ledger_open(fd), *other;

		if (lazily) {
			setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &(int){ 1 }, sizeof(int));
			need(!connect(fd, &at.any, len), "connect");
			give(fd, mine, 333);
		} else {
			need(S(mine, sendto(fd, data, 333, MSG_FASTOPEN, &at.any, len)) == 333,
			     "MSG_FASTOPEN");
		}
		peer = accept(listener, NULL, NULL);
		other = ledger_open(peer);
		get(peer, other, 333);
		give(peer, other, 44);
		get(fd, mine, 44);
		shutdown(fd, SHUT_WR);
	}
	close(listener);
}

/* Sent before accept(); and one that nobody accepts. */
static void before_accept(int family)
{
	union address at;
	socklen_t len;
	int listener = listen_on((enum family)family, &at, &len), fds[4], peer;
	struct account *accounts[4], *other;

	setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){ 1 }, sizeof(int));
	for (size_t i = 0; i < 4; i++) {
		fds[i] = socket(at.any.sa_family, SOCK_STREAM, 0);
		accounts[i] = ledger_open(fds[i]);
		need(!connect(fds[i], &at.any, len), "connect");
		give(fds[i], accounts[i], 1000 + i);
	}
	peer = accept(listener, NULL, NULL);
	other = ledger_open(peer);
	get(peer, other, 1000);
	ledger_open(listener);
	ledger_close(listener);
}

/* A byte out of band, in its own way and in line: it is one of the bytes. */
static void out_of_band(int inlined)
{
	struct pair p;

	pair_tcp(V4, &p);
	setsockopt(p.b, SOL_SOCKET, SO_OOBINLINE, &inlined, sizeof(inlined));
	give(p.a, p.of_a, 100);
	need(S(p.of_a, send(p.a, data, 1, MSG_OOB)) == 1, "MSG_OOB");
	give(p.a, p.of_a, 100);
	usleep(2000);
	if (!inlined)
		need(R(p.of_b, recv(p.b, data, 1, MSG_OOB)) == 1, "recv MSG_OOB");
	get(p.b, p.of_b, inlined ? 201 : 200);
}

/* An IPv6 socket with an IPv4 peer is made one of IPv4. */
static void address_form(int tcp)
{
	struct pair p;

	if (tcp)
		pair_tcp(MAPPED, &p);
	else
		pair_udp(MAPPED, &p);
	give(p.a, p.of_a, 1000);
	need(!setsockopt(p.a, IPPROTO_IPV6, IPV6_ADDRFORM, &(int){ AF_INET }, sizeof(int)),
	     "IPV6_ADDRFORM");
	give(p.a, p.of_a, 500);
	if (tcp) {
		get(p.b, p.of_b, 1500);
		return;
	}
	need(R(p.of_b, recv(p.b, data, 2000, 0)) == 1000, "recv");
	need(R(p.of_b, recv(p.b, data, 2000, 0)) == 500, "recv");
}

/* UDP: connected, disconnected, connected elsewhere, then to any. */
static void udp_turns(int family)
{
	struct pair p, q;
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	union address at;
	socklen_t len = sizeof(at);

	pair_udp((enum family)family, &p);
	pair_udp((enum family)family, &q);
	give(p.a, p.of_a, 100);
	need(!getpeername(q.a, &at.any, &len), "getpeername");
	need(!connect(p.a, &at.any, len), "connect");
	give(p.a, p.of_a, 200);
	need(!connect(p.a, &none, sizeof(none)), "disconnect");
	need(S(p.of_a, send(p.a, data, 10, 0)) == -1, "send to nobody");
	need(S(p.of_a, sendto(p.a, data, 300, 0, &at.any, len)) == 300, "sendto");
	need(R(p.of_b, recv(p.b, data, 1000, 0)) == 100, "recv");
	need(R(q.of_b, recv(q.b, data, 1000, 0)) == 200, "recv");
	need(R(q.of_b, recv(q.b, data, 1000, 0)) == 300, "recv");
}

/* Datagrams without bytes. */
static void empty_datagrams(int family)
{
	struct pair p;

	pair_udp((enum family)family, &p);
	for (int i = 0; i < 10; i++)
		need(send(p.a, data, 0, 0) == 0, "send of nothing");
	give(p.a, p.of_a, 5);
	for (int i = 0; i < 10; i++)
		need(recv(p.b, data, 100, 0) == 0, "recv of nothing");
	need(R(p.of_b, recv(p.b, data, 100, 0)) == 5, "recv");
}

/*
 * Bytes of other protocols whose sockets have the number of TCP or UDP: raw sockets, and netlink's
 * NETLINK_XFRM, which is 6 as well. Nothing of it may show; what is real stands beside it.
 */
static void lookalikes(int arg)
{
	struct pair tcp, udp;
	union address at;
	socklen_t len = loopback(V4, 9, &at);
	int raw_udp = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
	int raw_tcp = socket(AF_INET, SOCK_RAW, IPPROTO_TCP);
	int xfrm = socket(AF_NETLINK, SOCK_RAW, NETLINK_XFRM);
	struct nlmsghdr message = { .nlmsg_len = sizeof(message),
				    .nlmsg_type = NLMSG_NOOP,
				    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK };
	int local[2];

	pair_tcp(V4, &tcp);
	pair_udp(V4, &udp);
	give(tcp.a, tcp.of_a, 10);
	give(udp.a, udp.of_a, 20);
	for (int i = 0; raw_udp >= 0 && i < 5; i++) {
		need(sendto(raw_udp, data, 100, 0, &at.any, len) == 100, "a raw socket");
		setsockopt(raw_udp, SOL_SOCKET, SO_RCVBUF, &(int){ 65536 + i }, sizeof(int));
		recv(raw_udp, data, sizeof(data), MSG_DONTWAIT);
	}
	for (int i = 0; raw_tcp >= 0 && i < 5; i++) {
		sendto(raw_tcp, data, 100, 0, &at.any, len);
		setsockopt(raw_tcp, IPPROTO_IP, IP_TTL, &(int){ 9 + i }, sizeof(int));
		recv(raw_tcp, data, sizeof(data), MSG_DONTWAIT);
	}
	if (raw_udp < 0 || raw_tcp < 0)
		note("no raw sockets: %s", strerror(errno));
	if (xfrm >= 0) {
		send(xfrm, &message, sizeof(message), 0);
		recv(xfrm, data, sizeof(data), MSG_DONTWAIT);
	}
	need(!socketpair(AF_UNIX, SOCK_DGRAM, 0, local), "socketpair");
	need(send(local[0], data, 500, 0) == 500, "send");
	need(recv(local[1], data, 500, 0) == 500, "recv");
	get(tcp.b, tcp.of_b, 10);
	need(R(udp.of_b, recv(udp.b, data, 100, 0)) == 20, "recv");
}

/* UDP-Lite goes through UDP's functions, and is another protocol. */
static void udp_lite(int arg)
{
	union address at;
	socklen_t len = loopback(V4, 0, &at);
	int a = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE), b;
	struct pair udp;

	if (a < 0)
		skip("not on this kernel: UDP-Lite: %s", strerror(errno));
	b = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE);
	need(!bind(b, &at.any, len) && !getsockname(b, &at.any, &len), "bind");
	need(sendto(a, data, 100, 0, &at.any, len) == 100, "sendto");
	need(recv(b, data, 1000, 0) == 100, "recv");
	pair_udp(V4, &udp);
	give(udp.a, udp.of_a, 7);
	need(R(udp.of_b, recv(udp.b, data, 100, 0)) == 7, "recv");
}

/* A socket is restored with sequence numbers of its own, as checkpoints do: the jump is not
 * traffic. */
static void repaired(int arg)
{
	struct pair p;
	int on = 1, off = -1, queue = TCP_SEND_QUEUE;

	pair_tcp(V4, &p);
	give(p.a, p.of_a, 100);
	get(p.b, p.of_b, 100);
	if (setsockopt(p.a, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)))
		skip("not on this machine: TCP_REPAIR: %s", strerror(errno));
	setsockopt(p.a, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue));
	need(!setsockopt(p.a, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)), "TCP_REPAIR off");
	give(p.a, p.of_a, 200);
	get(p.b, p.of_b, 200);
}

const struct test_case lives_cases[] = {
	CASE("TCP: half close", half_close, V4),
	CASE("TCP: half close, v6", half_close, V6),
	CASE("TCP: read after the sender's close", read_after_close, V4),
	CASE("TCP: both close at once", close_at_once, V4),
	CASE("TCP: both close at once, v4-mapped", close_at_once, MAPPED),
	CASE("TCP: close with unread data", close_unread, V4),
	CASE("TCP: close with unread data, v6", close_unread, V6),
	CASE("TCP: reset", reset, V4),
	CASE("TCP: disconnect and connect again", connect_again, V4),
	CASE("TCP: disconnect and connect again, v6", connect_again, V6),
	CASE("TCP: connect without waiting", nonblocking_connect, V4),
	CASE("TCP: connected to itself", self_connected, V4),
	CASE("TCP: connected to itself, v6", self_connected, V6),
	CASE("TCP: fast open", fast_open, 0),
	CASE("TCP: fast open with the first write", fast_open, 1),
	CASE("TCP: sent before accept, and never accepted", before_accept, V4),
	CASE("TCP: out of band", out_of_band, 0),
	CASE("TCP: out of band, in line", out_of_band, 1),
	CASE("TCP: IPV6_ADDRFORM", address_form, 1),
	CASE("UDP: IPV6_ADDRFORM", address_form, 0),
	CASE("UDP: connected, elsewhere, not at all", udp_turns, V4),
	CASE("UDP: connected, elsewhere, not at all, v6", udp_turns, V6),
	CASE("UDP: connected, elsewhere, not at all, v4-mapped", udp_turns, MAPPED),
	CASE("UDP: empty datagrams", empty_datagrams, V4),
	CASE("raw, netlink and unix sockets do not count", lookalikes, 0),
	CASE("UDP-Lite does not count", udp_lite, 0),
	CASE("TCP: repair mode", repaired, 0),
	{ .name = NULL },
};
