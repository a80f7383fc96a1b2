// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Pairs of connected sockets, and calls that must succeed. */
#include "exchange.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

void address(struct sockaddr_storage *to, socklen_t *len, int family, bool mapped)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = (sa_family_t)family;
	if (family == AF_INET) {
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		*len = sizeof(*in);
		return;
	}
	inet_pton(AF_INET6, mapped ? "::ffff:127.0.0.1" : "::1", &in6->sin6_addr);
	*len = sizeof(*in6);
}

int listen_on(int type, int family, bool mapped, struct sockaddr_storage *to, socklen_t *len)
{
	int fd = socket(family, type, 0);

	address(to, len, family, mapped);
	if (bind(fd, (struct sockaddr *)to, *len) || (type == SOCK_STREAM && listen(fd, 8)) ||
	    getsockname(fd, (struct sockaddr *)to, len))
		die("listening");
	return fd;
}

void open_pair(struct pair *p, int family, bool mapped)
{
	p->listener = listen_on(SOCK_STREAM, family, mapped, &p->to, &p->len);
	p->client = socket(family, SOCK_STREAM, 0);
	if (connect(p->client, (struct sockaddr *)&p->to, p->len))
		die("connect");
	p->server = accept(p->listener, NULL, NULL);
	if (p->server < 0)
		die("accept");
}

void close_pair(struct pair *p)
{
	close(p->client);
	close(p->server);
	close(p->listener);
}

char data[1 << 16];

void put(int fd, size_t n)
{
	if (send(fd, data, n, MSG_NOSIGNAL) != (ssize_t)n)
		die("send");
}

void get(int fd, size_t n)
{
	if (recv(fd, data, n, MSG_WAITALL) != (ssize_t)n)
		die("recv");
}

void end_of(int fd)
{
	if (recv(fd, data, 1, 0) != 0)
		die("recv at the end");
}
