// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Datagrams: the empty, the looked at and the cut ones, too. */
#include "exchange.h"

#include <arpa/inet.h>
#include <unistd.h>

static void udp_exchange(const char *what, int family, bool mapped)
{
	struct sockaddr_storage to;
	struct mote_socket *s;
	socklen_t len;
	int server = listen_on(SOCK_DGRAM, mapped ? AF_INET : family, false, &to, &len);
	int client = socket(family, SOCK_DGRAM, 0);
	u16 port = ((struct sockaddr_in *)&to)->sin_port;
	u64 key;

	if (mapped) {
		address(&to, &len, AF_INET6, true);
		((struct sockaddr_in6 *)&to)->sin6_port = port;
	}
	if (sendto(client, data, 500, 0, (struct sockaddr *)&to, len) != 500 ||
	    connect(client, (struct sockaddr *)&to, len) || send(client, data, 0, 0) != 0 ||
	    send(client, data, 40, 0) != 40 || send(client, data, sizeof(data), 0) != -1)
		die("sendto");
	for (int i = 0; i < 2; i++)
		if (recv(server, data, 1000, MSG_PEEK) != 500)
			die("peek");
	if (recv(server, data, 1000, 0) != 500 || recv(server, data, 1000, 0) != 0 ||
	    recv(server, data, 10, MSG_TRUNC) != 40)
		die("recv");
	check_moved(what, client, getpid(), 540, 0);
	check_moved(what, server, getpid(), 0, 540);
	s = of(client);
	check(s && s->protocol == MOTE_UDP && s->tgid == (u32)getpid() && s->state == 1 &&
		      s->remote_port == ntohs(port) && moved_by(s, getpid()).sent_calls == 3,
	      "%s: owner, address, and three calls", what);
	s = of(server);
	check(s && s->state == 7 && s->local_port == ntohs(port) &&
		      moved_by(s, getpid()).received_calls == 3,
	      "%s: the receiver's address, and three calls", what);
	key = s ? s->slot.key : 0;
	close(client);
	close(server);
	check_closed(s, key, what);
}

void cases_of_udp(void)
{
	udp_exchange("UDP, IPv4", AF_INET, false);
	udp_exchange("UDP, IPv6", AF_INET6, false);
	udp_exchange("UDP, IPv4 by an IPv6 socket", AF_INET6, true);
}
