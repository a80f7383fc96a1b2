// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Many threads, and many processes, on one socket or on many.
 */
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

static char data[65536];

/* A part of a socket's work, for a thread or a child. The last sender says that it was the last. */
struct part {
	int fd;
	struct account *account;
	unsigned long rounds;
	bool receives;        /* until the end */
	atomic_uint *senders; /* how many are not done, in memory that children share */
};

static atomic_uint *crew(unsigned int senders)
{
	atomic_uint *left = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	need(left != MAP_FAILED, "memory");
	*left = senders;
	return left;
}

static void *work(void *arg)
{
	struct part *part = arg;
	char buf[4096];

	memset(buf, 'm', sizeof(buf));
	for (unsigned long i = 0; part->receives || i < part->rounds; i++) {
		size_t n = 1 + i * 13 % 3000;

		if (!part->receives)
			need(S(part->account, send(part->fd, buf, n, 0)) > 0, "send");
		else if (R(part->account, recv(part->fd, buf, n, 0)) <= 0)
			break;
	}
	if (!part->receives && atomic_fetch_sub(part->senders, 1) == 1)
		shutdown(part->fd, SHUT_WR);
	return NULL;
}

static void work_of_child(void *arg)
{
	struct part *part = arg;

	part->account = ledger_open(part->fd);
	work(part);
}

/* What the kernel itself says, for which SYN and FIN are a byte each: all was acknowledged and
 * taken. */
static void agrees_with_kernel(const struct pair *pair)
{
	struct tcp_info a = { 0 }, b = { 0 };
	socklen_t len = sizeof(a);
	uint64_t sent = ledger_socket(pair->of_a->inode).sent;
	uint64_t received = ledger_socket(pair->of_b->inode).received;

	for (int i = 0; i < 100; i++) {
		need(!getsockopt(pair->a, IPPROTO_TCP, TCP_INFO, &a, &len), "TCP_INFO");
		if (a.tcpi_bytes_acked == sent + 2)
			break;
		usleep(1000);
	}
	len = sizeof(b);
	need(!getsockopt(pair->b, IPPROTO_TCP, TCP_INFO, &b, &len), "TCP_INFO");
	if (a.tcpi_bytes_acked != sent + 2 || b.tcpi_bytes_received != received + 1)
		note("ledger %llu, %llu; kernel %llu, %llu", (unsigned long long)sent,
		     (unsigned long long)received, (unsigned long long)a.tcpi_bytes_acked,
		     (unsigned long long)b.tcpi_bytes_received);
	need(a.tcpi_bytes_acked == sent + 2 && b.tcpi_bytes_received == received + 1,
	     "TCP_INFO's bytes are the ledger's");
}

/* `n` threads send on one socket; the other end is read by as many. */
static void threads_on_one(int n)
{
	struct part parts[32];
	struct pair pair;
	unsigned long rounds = plan.events / (unsigned int)n / 2 + 1;
	atomic_uint *senders = crew((unsigned int)n);

	pair_tcp(V4, &pair);
	for (int i = 0; i < n; i++) {
		parts[i] = (struct part){ pair.a, pair.of_a, rounds, false, senders };
		parts[n + i] = (struct part){ pair.b, pair.of_b, 0, true, NULL };
	}
	in_threads(2 * (unsigned int)n, work, parts, sizeof(*parts));
	agrees_with_kernel(&pair);
}

/* Both ways at once on both ends. */
static void both_ways(int family)
{
	struct part parts[4];
	struct pair pair;
	unsigned long rounds = plan.events / 4 + 1;

	pair_tcp((enum family)family, &pair);
	parts[0] = (struct part){ pair.a, pair.of_a, rounds, false, crew(1) };
	parts[1] = (struct part){ pair.b, pair.of_b, rounds, false, crew(1) };
	parts[2] = (struct part){ pair.a, pair.of_a, 0, true, NULL };
	parts[3] = (struct part){ pair.b, pair.of_b, 0, true, NULL };
	in_threads(4, work, parts, sizeof(*parts));
}

/* Processes that send and receive on one connection at once: each has its own bytes. */
static void shared_by_children(int n)
{
	struct part parts[16];
	struct pair pair;
	int child[16];
	unsigned long rounds = plan.events / (unsigned int)n + 1;
	atomic_uint *senders = crew((unsigned int)n / 2);

	pair_tcp(V4, &pair);
	for (int i = 0; i < n; i++) {
		bool receives = i % 2;

		parts[i] = (struct part){ receives ? pair.b : pair.a, NULL, rounds, receives,
					  senders };
		child[i] = begin_child(work_of_child, &parts[i]);
	}
	for (int i = 0; i < n; i++)
		await_child(child[i]);
	agrees_with_kernel(&pair);
	compare();
	S(pair.of_b, send(pair.b, data, 8, 0)); /* after the children, the parent's own */
	take_all(pair.a, pair.of_a, 8);
}

static void shared_udp(int n)
{
	struct part parts[16];
	struct pair pair;
	int child[16];
	atomic_uint *senders = crew((unsigned int)n + 1); /* UDP has no end to send */

	pair_udp(V4, &pair);
	for (int i = 0; i < n; i++) {
		parts[i] = (struct part){ pair.a, NULL, 40, false, senders };
		child[i] = begin_child(work_of_child, &parts[i]);
	}
	for (int i = 0; i < n; i++)
		await_child(child[i]);
	nonblocking(pair.b, true);
	for (int i = 0; i < n; i++) {
		parts[i] = (struct part){ pair.b, NULL, 0, true, NULL };
		child[i] = begin_child(work_of_child, &parts[i]);
	}
	for (int i = 0; i < n; i++)
		await_child(child[i]);
	take_all(pair.b, pair.of_b, SIZE_MAX);
}

/* A child made by vfork() runs in its parent's memory, and is a process. */
static void vforked(int arg)
{
	struct pair pair;
	pid_t child;

	pair_tcp(V4, &pair);
	S(pair.of_a, send(pair.a, data, 100, 0));
	child = vfork();
	if (!child) {
		/* The account must be the child's: getpid() is asked for there. */
		S(ledger_open(pair.a), send(pair.a, data, 23, 0));
		_exit(0);
	}
	need(waitpid(child, NULL, 0) == child, "waitpid");
	take_all(pair.b, pair.of_b, 123);
}

/* The process that sent has ended; the socket lives on. */
static void survivors(int arg)
{
	struct pair pair;

	pair_tcp(V4, &pair);
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child) {
			struct account *mine = ledger_open(pair.a);

			S(mine, send(pair.a, data, 1000 + (size_t)i, 0));
			_exit(0);
		}
		need(waitpid(child, NULL, 0) == child, "waitpid");
	}
	take_all(pair.b, pair.of_b, ledger_socket(pair.of_a->inode).sent);
}

static void receive_passed(void *arg)
{
	int *channel = arg, fd;
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &(char){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };

	need(recvmsg(channel[1], &msg, 0) == 1, "a descriptor");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	S(ledger_open(fd), send(fd, data, 4321, 0));
}

/* A descriptor that was passed to a process which has nothing to do with the one that made it. */
static void passed(int arg)
{
	struct pair pair;
	int channel[2], child;
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &(char){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel), "socketpair");
	child = begin_child(receive_passed, channel);
	pair_tcp(V4, &pair);
	*cmsg = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(cmsg), &pair.a, sizeof(int));
	need(sendmsg(channel[0], &msg, 0) == 1, "sendmsg");
	await_child(child);
	S(pair.of_a, send(pair.a, data, 99, 0));
	take_all(pair.b, pair.of_b, 4420);
}

struct server {
	int listener;
	unsigned int connections;
};

static void serve(void *arg)
{
	struct server *server = arg;
	char byte;

	for (unsigned int i = 0; i < server->connections; i++) {
		int fd = accept(server->listener, NULL, NULL);
		struct account *mine = ledger_open(fd);

		while (R(mine, recv(fd, &byte, 1, 0)) == 1 && byte != 'e')
			S(mine, send(fd, data, 100, 0));
	}
}

/* Several processes accept from one listener: what they do is theirs, not the listener's maker's.
 */
static void preforked(int n)
{
	union address at;
	socklen_t len;
	struct server server = { listen_on(V4, &at, &len), 5 };
	int child[8];

	for (int i = 0; i < n; i++)
		child[i] = begin_child(serve, &server);
	for (unsigned int i = 0; i < (unsigned int)n * server.connections; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		struct account *mine = ledger_open(fd);

		need(!connect(fd, &at.any, len), "connect");
		for (int j = 0; j < 10; j++) {
			S(mine, send(fd, "x", 1, 0));
			take_all(fd, mine, 100);
		}
		S(mine, send(fd, "e", 1, 0));
	}
	for (int i = 0; i < n; i++)
		await_child(child[i]);
}

static atomic_uint waiting;

static void *wait_in_recv(void *arg)
{
	struct part *part = arg;
	char byte[16];

	waiting++;
	R(part->account, recv(part->fd, byte, sizeof(byte), 0));
	return NULL;
}

static void *feed(void *arg)
{
	struct part *parts = arg;

	while (waiting < plan.blocked)
		usleep(1000);
	usleep(100000);
	for (unsigned int i = 0; i < plan.blocked; i++)
		S(parts[i + 1].account, send(parts[i + 1].fd, data, 1 + i % 16, 0));
	return NULL;
}

/* Threads that wait, and one that sends to them in turn. */
static void wait_and_feed(struct part *parts, struct part *feeds)
{
	pthread_t feeder;

	pthread_create(&feeder, NULL, feed, feeds);
	in_threads(plan.blocked, wait_in_recv, parts, sizeof(*parts));
	pthread_join(feeder, NULL);
}

/* Hundreds of threads wait in recv(), each on a socket of its own. */
static void blocked(int udp)
{
	struct part *parts = calloc(plan.blocked + 1, sizeof(*parts));
	struct part *feeds = calloc(plan.blocked + 2, sizeof(*feeds));

	for (unsigned int i = 0; i < plan.blocked; i++) {
		struct pair pair;

		if (udp)
			pair_udp(i % FAMILIES, &pair);
		else
			pair_tcp(i % FAMILIES, &pair);
		parts[i] = (struct part){ .fd = pair.b, .account = pair.of_b };
		feeds[i + 1] = (struct part){ .fd = pair.a, .account = pair.of_a };
	}
	wait_and_feed(parts, feeds);
	free(parts);
	free(feeds);
}

/* ... and all on one. */
static void blocked_on_one(int arg)
{
	struct part *parts = calloc(plan.blocked + 1, sizeof(*parts));
	struct part *feeds = calloc(plan.blocked + 2, sizeof(*feeds));
	struct pair pair;

	pair_udp(V4, &pair);
	for (unsigned int i = 0; i < plan.blocked; i++) {
		parts[i] = (struct part){ .fd = pair.b, .account = pair.of_b };
		feeds[i + 1] = (struct part){ .fd = pair.a, .account = pair.of_a };
	}
	wait_and_feed(parts, feeds);
	free(parts);
	free(feeds);
}

static void *read_bytes(void *arg)
{
	struct part *part = arg;
	char byte;

	for (unsigned long i = 0; i < part->rounds; i++)
		if (R(part->account, recv(part->fd, &byte, 1, 0)) != 1)
			break;
	return NULL;
}

static void *write_blocks(void *arg)
{
	struct part *part = arg;

	for (unsigned long left = part->rounds; left;) {
		size_t n = left < sizeof(data) ? left : sizeof(data);
		ssize_t k = S(part->account, send(part->fd, data, n, 0));

		need(k > 0, "send");
		left -= (unsigned long)k;
	}
	return NULL;
}

static void *read_or_write(void *arg)
{
	return ((struct part *)arg)->receives ? read_bytes(arg) : write_blocks(arg);
}

/* Millions of reads of one byte. */
static void single_bytes(int arg)
{
	struct part parts[4];
	struct pair pairs[2];

	for (unsigned int i = 0; i < 2; i++) {
		unsigned long n = i ? plan.reads / 2 : plan.reads - plan.reads / 2;

		pair_tcp(i ? V6 : V4, &pairs[i]);
		parts[2 * i] = (struct part){ pairs[i].a, pairs[i].of_a, n, false, NULL };
		parts[2 * i + 1] = (struct part){ pairs[i].b, pairs[i].of_b, n, true, NULL };
	}
	in_threads(4, read_or_write, parts, sizeof(*parts));
	need(pairs[0].of_b->received + pairs[1].of_b->received == plan.reads, "all bytes came");
}

const struct test_case many_cases[] = {
	BULK("TCP: 16 threads send on one socket, TCP_INFO too", threads_on_one, 16),
	BULK("TCP: two threads on one socket", threads_on_one, 2),
	BULK("TCP: both ways at once", both_ways, V4),
	BULK("TCP: both ways at once, v4-mapped", both_ways, MAPPED),
	BULK("TCP: 8 processes on one connection", shared_by_children, 8),
	BULK("TCP: 2 processes on one connection", shared_by_children, 2),
	CASE("UDP: 8 processes on one socket", shared_udp, 8),
	CASE("TCP: a child made by vfork", vforked, 0),
	CASE("TCP: a socket that survives who sent", survivors, 0),
	CASE("TCP: a descriptor passed to another process", passed, 0),
	CASE("TCP: four processes accept from one listener", preforked, 4),
	CASE("TCP: many threads blocked in recv", blocked, 0),
	CASE("UDP: many threads blocked in recv", blocked, 1),
	CASE("UDP: many threads blocked in recv on one socket", blocked_on_one, 0),
	CASE("TCP: reads of one byte", single_bytes, 0),
	{ .name = NULL },
};
