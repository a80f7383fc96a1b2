// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What the cases share: sockets in pairs, threads, children. Runs in the case's process.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cases.h"

socklen_t loopback(enum family family, uint16_t port, union address *out)
{
	memset(out, 0, sizeof(*out));
	if (family == V4) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(port);
		out->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(out->v4);
	}
	out->v6.sin6_family = AF_INET6;
	out->v6.sin6_port = htons(port);
	if (family == V6)
		out->v6.sin6_addr = in6addr_loopback;
	else
		inet_pton(AF_INET6, "::ffff:127.0.0.1", &out->v6.sin6_addr);
	return sizeof(out->v6);
}

static int domain(enum family family)
{
	return family == V4 ? AF_INET : AF_INET6;
}

int listen_on(enum family family, union address *at, socklen_t *len)
{
	int fd = socket(domain(family), SOCK_STREAM | SOCK_CLOEXEC, 0);

	*len = loopback(family, 0, at);
	need(fd >= 0 && !bind(fd, &at->any, *len) && !listen(fd, 1024), "a listening socket");
	need(!getsockname(fd, &at->any, len), "getsockname");
	return fd;
}

int nobody_on(enum family family, union address *at, socklen_t *len)
{
	int fd = listen_on(family, at, len), on = 1;

	close(fd);
	fd = socket(domain(family), SOCK_STREAM | SOCK_CLOEXEC, 0);
	need(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
		     !bind(fd, &at->any, *len),
	     "a port of nobody's");
	return fd;
}

void pair_tcp(enum family family, struct pair *pair)
{
	union address at;
	socklen_t len;
	int listener = listen_on(family, &at, &len);

	pair->a = socket(domain(family), SOCK_STREAM | SOCK_CLOEXEC, 0);
	need(pair->a >= 0 && !connect(pair->a, &at.any, len), "connect");
	pair->b = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	need(pair->b >= 0, "accept");
	close(listener);
	pair->of_a = ledger_open(pair->a);
	pair->of_b = ledger_open(pair->b);
}

/* v4-mapped: an IPv6 socket that sends to an IPv4 one. */
void pair_udp(enum family family, struct pair *pair)
{
	union address at;
	socklen_t len = loopback(family == MAPPED ? V4 : family, 0, &at);
	enum family to = family;

	pair->b = socket(family == V6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	need(pair->b >= 0 && !bind(pair->b, &at.any, len), "a bound UDP socket");
	need(!getsockname(pair->b, &at.any, &len), "getsockname");
	setsockopt(pair->b, SOL_SOCKET, SO_RCVBUF, &(int){ 1 << 20 }, sizeof(int));
	len = loopback(to, ntohs(family == V6 ? at.v6.sin6_port : at.v4.sin_port), &at);
	pair->a = socket(domain(family), SOCK_DGRAM | SOCK_CLOEXEC, 0);
	need(pair->a >= 0 && !connect(pair->a, &at.any, len), "connect of a UDP socket");
	pair->of_a = ledger_open(pair->a);
	pair->of_b = ledger_open(pair->b);
}

void pair_close(struct pair *pair)
{
	ledger_close(pair->a);
	ledger_close(pair->b);
}

size_t take_all(int fd, struct account *account, size_t n)
{
	char buf[16384];
	size_t got = 0;
	ssize_t k;

	while (got < n) {
		k = R(account, recv(fd, buf, n - got < sizeof(buf) ? n - got : sizeof(buf), 0));
		if (k <= 0)
			break;
		got += (size_t)k;
	}
	return got;
}

void nonblocking(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

void in_threads(unsigned int n, void *(*run)(void *), void *args, size_t stride)
{
	pthread_t *threads = calloc(n, sizeof(*threads));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	for (unsigned int i = 0; i < n; i++)
		need(!pthread_create(&threads[i], &attr, run, (char *)args + i * stride),
		     "a thread");
	for (unsigned int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

int begin_child(void (*run)(void *), void *arg)
{
	int done[2];
	pid_t pid;

	need(!pipe2(done, O_CLOEXEC), "a pipe");
	pid = fork();
	need(pid >= 0, "fork");
	if (pid) {
		close(done[1]);
		return done[0];
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run(arg);
	if (write(done[1], "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

void await_child(int child)
{
	char byte;

	need(read(child, &byte, 1) == 1, "a child of the case ended early");
	close(child);
}

void in_child(void (*run)(void *), void *arg)
{
	await_child(begin_child(run, arg));
}
