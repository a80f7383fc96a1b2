// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* One process, one connection: each way that bytes go, begin and end. */
#include "exchange.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void tcp_exchange(const char *what, int family, bool mapped)
{
	pid_t me = getpid();
	struct mote_socket *s;
	struct pair p;

	open_pair(&p, family, mapped);
	put(p.client, 1000);
	put(p.client, 1);
	get(p.server, 1001);
	put(p.server, 60000);
	get(p.client, 60000);
	check_moved(what, p.client, me, 1001, 60000);
	check_moved(what, p.server, me, 60000, 1001);
	check_truth(what, p.client, 1001, 60000);
	check_truth(what, p.server, 60000, 1001);
	s = of(p.server);
	check(s && s->family == family && s->state == 1 && s->tgid == (u32)me && s->start &&
		      s->netns && s->cgroup_id && s->remote_port && s->local_port != s->remote_port,
	      "%s: the accepted socket's owner and addresses", what);
	s = of(p.client);
	check(s && s->tgid == (u32)me && s->flags & MOTE_SOCKET_ACTIVE && s->srtt_us &&
		      s->remote_port == ntohs(((struct sockaddr_in *)&p.to)->sin_port) &&
		      (family != AF_INET || !memcmp(s->remote, "\x7f\0\0\1", 4)),
	      "%s: the connected socket's owner and addresses", what);
	close_pair(&p);
}

static void tcp_peek_and_drop(void)
{
	struct pair p;

	open_pair(&p, AF_INET, false);
	put(p.client, 100);
	for (int i = 0; i < 3; i++)
		if (recv(p.server, data, 100, MSG_PEEK) != 100)
			die("peek");
	get(p.server, 100);
	check_moved("peeked three times, read once", p.server, getpid(), 0, 100);
	put(p.client, 300);
	if (recv(p.server, NULL, 300, MSG_TRUNC | MSG_WAITALL) != 300)
		die("MSG_TRUNC");
	check_moved("and 300 dropped by MSG_TRUNC", p.server, getpid(), 0, 400);
	if (recv(p.server, data, 1, MSG_DONTWAIT) != -1)
		die("recv of nothing");
	check_moved("and nothing by a call that failed", p.server, getpid(), 0, 400);
	close_pair(&p);
}

/* FIN is a sequence number and no byte, each way and in each order. */
void tcp_ends(void)
{
	struct pair p;

	open_pair(&p, AF_INET, false);
	put(p.client, 10);
	shutdown(p.client, SHUT_WR);
	get(p.server, 10);
	end_of(p.server);
	put(p.server, 20);
	get(p.client, 20);
	put(p.server, 5);
	check_moved("half closed, the one that did", p.client, getpid(), 10, 20);
	check_moved("half closed, the other", p.server, getpid(), 25, 10);
	check_truth("half closed, the other", p.server, 25, 10);
	shutdown(p.server, SHUT_WR);
	get(p.client, 5);
	end_of(p.client);
	check_moved("both closed, the first", p.client, getpid(), 10, 25);
	check_moved("both closed, the last", p.server, getpid(), 25, 10);
	close_pair(&p);
}

/* The peer's bytes and FIN are all there before the first call after connect(). */
void tcp_late_look(void)
{
	struct sockaddr_storage to;
	socklen_t len;
	int listener = listen_on(SOCK_STREAM, AF_INET, false, &to, &len), server;
	int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (connect(client, (struct sockaddr *)&to, len) && errno != EINPROGRESS)
		die("connect");
	server = accept(listener, NULL, NULL);
	put(server, 700);
	close(server);
	usleep(20000);
	fcntl(client, F_SETFL, 0);
	get(client, 700);
	end_of(client);
	check_moved("all came before the first look", client, getpid(), 0, 700);
	check_truth("all came before the first look", client, 0, 700);
	close(client);
	close(listener);
}

static void tcp_closes(void)
{
	static const char *const names[] = { "client", "server", "listener" };
	struct mote_socket *s[3];
	u64 key[3];
	struct pair p;

	open_pair(&p, AF_INET, false);
	put(p.client, 3);
	get(p.server, 3);
	s[0] = of(p.client);
	s[1] = of(p.server);
	s[2] = of(p.listener);
	check(s[0] && s[1] && s[2] && s[2]->state == 10 && s[2]->tgid == (u32)getpid(),
	      "client, server and listener are known");
	if (!s[0] || !s[1] || !s[2])
		return;
	for (int i = 0; i < 3; i++)
		key[i] = s[i]->slot.key;
	close_pair(&p);
	for (int i = 0; i < 3; i++)
		check_closed(s[i], key[i], names[i]);
	check(s[0]->accepted == 3 && s[1]->taken == 3, "the kernel's counts are kept at the end");
}

static void tcp_not_accepted(void)
{
	struct sockaddr_storage to;
	struct mote_socket *s = NULL;
	socklen_t len;
	int listener = listen_on(SOCK_STREAM, AF_INET, false, &to, &len);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	u16 port = ntohs(((struct sockaddr_in *)&to)->sin_port);

	if (connect(client, (struct sockaddr *)&to, len))
		die("connect");
	for (unsigned int i = 0; i < SLOTS; i++)
		if (sockets[i].slot.key && !sockets[i].closed && sockets[i].local_port == port &&
		    sockets[i].remote_port)
			s = &sockets[i];
	check(s && !s->tgid, "a connection that nobody accepted has no owner");
	close(listener);
	check_closed(s, s ? s->slot.key : 0, "it ends with its listener");
	close(client);
}

static void tcp_refused(void)
{
	struct sockaddr_storage to;
	socklen_t len;
	int fd = listen_on(SOCK_STREAM, AF_INET, false, &to, &len);
	struct mote_socket *s, *again;

	close(fd);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (!connect(fd, (struct sockaddr *)&to, len))
		die("connect to nobody");
	s = of(fd);
	check(s && s->state == 7 && s->remote_port == ntohs(((struct sockaddr_in *)&to)->sin_port),
	      "a refused connection");
	check_moved("refused", fd, getpid(), 0, 0);
	if (!connect(fd, (struct sockaddr *)&to, len))
		die("connect to nobody");
	again = of(fd);
	check(s && s->closed && again && again != s, "another try is another connection");
	close(fd);
	check_closed(again, again ? again->slot.key : 0, "refused");
}

static void tcp_again(void)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct mote_socket *first;
	struct pair p;

	open_pair(&p, AF_INET, false);
	put(p.client, 50);
	get(p.server, 50);
	first = of(p.client);
	close(p.server);
	if (connect(p.client, &none, sizeof(none)) ||
	    connect(p.client, (struct sockaddr *)&p.to, p.len))
		die("connect again");
	p.server = accept(p.listener, NULL, NULL);
	put(p.client, 7);
	put(p.server, 9);
	get(p.client, 9);
	check_moved("connected again", p.client, getpid(), 7, 9);
	check_truth("connected again", p.client, 7, 9);
	check(first && first->closed && first->accepted == 50 &&
		      moved_by(first, getpid()).sent == 50,
	      "the first connection has ended, with its bytes");
	close_pair(&p);
}

void cases_of_tcp(void)
{
	tcp_exchange("IPv4", AF_INET, false);
	tcp_exchange("IPv6", AF_INET6, false);
	tcp_exchange("IPv4 by an IPv6 socket", AF_INET6, true);
	tcp_peek_and_drop();
	tcp_ends();
	tcp_late_look();
	tcp_closes();
	tcp_not_accepted();
	tcp_refused();
	tcp_again();
}
