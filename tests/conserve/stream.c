// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * TCP: every call in each direction, in threads, over IPv4, IPv6 and IPv4 in IPv6.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"

void end_open(struct end *end, int fd, struct account *account, enum ring_kind ring)
{
	struct io_uring_params params = { .flags = ring == RING_SQPOLL ? IORING_SETUP_SQPOLL : 0,
					  .sq_thread_idle = 1 };
	int rc;

	*end = (struct end){ .fd = fd, .account = account };
	end->buf =
		mmap(NULL, END_BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(end->buf != MAP_FAILED, "memory");
	memset(end->buf, 'm', END_BUFFER);
	end->file = memfd_create("conserve", MFD_CLOEXEC);
	need(end->file >= 0 && !ftruncate(end->file, 4 * END_BUFFER), "a file in memory");
	need(!pipe2(end->pipe, O_CLOEXEC), "a pipe");
	if (ring == NO_RING)
		return;
	rc = io_uring_queue_init_params(8, &end->ring, &params);
	if (rc == -EPERM || rc == -ENOSYS || rc == -EINVAL)
		skip("not on this kernel: io_uring%s: %s", ring == RING_SQPOLL ? " SQPOLL" : "",
		     strerror(-rc));
	need(!rc, "io_uring_queue_init");
	end->has_ring = true;
}

void end_close(struct end *end)
{
	if (end->has_ring)
		io_uring_queue_exit(&end->ring);
	if (end->aio)
		syscall(SYS_io_destroy, end->aio);
	if (end->map && end->map != MAP_FAILED)
		munmap(end->map, END_BUFFER);
	munmap(end->buf, END_BUFFER);
	close(end->file);
	close(end->pipe[0]);
	close(end->pipe[1]);
}

struct half {
	int fd;
	struct account *account;
	const struct call *calls;
	unsigned int ncalls, at;
	unsigned long rounds;
	bool sends;
};

unsigned int count_calls(const struct call *calls)
{
	unsigned int n = 0;

	while (calls[n].name)
		n++;
	return n;
}

/* Mostly small, some that do not fit into one segment or page. */
static size_t size_of_round(unsigned long i)
{
	return 1 + i * 7919 % (i % 16 ? 2000 : 30000);
}

static bool unsupported(ssize_t rc)
{
	return rc == -ENOSYS || rc == -EINVAL || rc == -EOPNOTSUPP || rc == -ENOPROTOOPT;
}

static ssize_t one_call(struct half *half, struct end *end, unsigned long i)
{
	const struct call *call = &half->calls[(half->at + i) % half->ncalls];
	ssize_t rc = call->call(end, half->sends ? size_of_round(i) : 1 + i * 104729 % 20000);

	if (unsupported(rc) && half->ncalls == 1)
		skip("not on this kernel: %s: %s", call->name, strerror((int)-rc));
	if (rc < 0 && !unsupported(rc)) {
		note("%s: %s", call->name, strerror((int)-rc));
		need(false, "a call failed");
	}
	return rc;
}

static void *run_half(void *arg)
{
	struct half *half = arg;
	struct end end;

	end_open(&end, half->fd, half->account, half->calls->ring);
	for (unsigned long i = 0; !half->sends || i < half->rounds; i++)
		if (!one_call(half, &end, i) && !half->sends)
			break;
	if (half->sends)
		shutdown(half->fd, SHUT_WR);
	end_close(&end);
	return NULL;
}

void stream_bytes(const struct call *sends, unsigned int nsends, const struct call *receives,
		  unsigned int nreceives, unsigned int threads, unsigned long rounds)
{
	struct half halves[32];
	struct pair pairs[16];
	struct sums sums = { 0, 0 };

	need(threads <= 16, "at most 16 connections");
	for (unsigned int i = 0; i < threads; i++) {
		pair_tcp(i % FAMILIES, &pairs[i]);
		halves[2 * i] =
			(struct half){ pairs[i].a, pairs[i].of_a, sends, nsends, i, rounds, true };
		halves[2 * i + 1] = (struct half){ pairs[i].b, pairs[i].of_b, receives, nreceives,
						   i,          rounds,        false };
	}
	in_threads(2 * threads, run_half, halves, sizeof(*halves));
	for (unsigned int i = 0; i < threads; i++) {
		sums.sent += pairs[i].of_a->sent;
		sums.received += pairs[i].of_b->received;
	}
	need(sums.sent == sums.received && sums.sent >= rounds, "the test's own two sides agree");
}

static unsigned long rounds(void)
{
	return plan.events / plan.threads / 2 + 1;
}

static void send_by(int i)
{
	stream_bytes(&send_calls[i], 1, recv_calls, 1, plan.threads, rounds());
}

static void receive_by(int i)
{
	stream_bytes(send_calls, 1, &recv_calls[i], 1, plan.threads, rounds());
}

static void by_all(int arg)
{
	stream_bytes(send_calls, count_calls(send_calls), recv_calls, count_calls(recv_calls), 8,
		     plan.events / 4 + 1);
}

const struct test_case tcp_cases[] = {
	BULK("TCP: send", send_by, 0),
	BULK("TCP: send MSG_MORE", send_by, 1),
	BULK("TCP: sendto", send_by, 2),
	BULK("TCP: write", send_by, 3),
	BULK("TCP: writev", send_by, 4),
	BULK("TCP: pwritev2", send_by, 5),
	BULK("TCP: sendmsg", send_by, 6),
	BULK("TCP: sendmmsg", send_by, 7),
	BULK("TCP: send MSG_ZEROCOPY", send_by, 8),
	BULK("TCP: sendfile", send_by, 9),
	BULK("TCP: splice from a pipe", send_by, 10),
	BULK("TCP: vmsplice and splice", send_by, 11),
	BULK("TCP: io_submit write", send_by, 12),
	BULK("TCP: recvfrom", receive_by, 1),
	BULK("TCP: read", receive_by, 2),
	BULK("TCP: readv", receive_by, 3),
	BULK("TCP: preadv2", receive_by, 4),
	BULK("TCP: recvmsg", receive_by, 5),
	BULK("TCP: recvmmsg", receive_by, 6),
	BULK("TCP: recv after three MSG_PEEK", receive_by, 7),
	BULK("TCP: recv MSG_WAITALL", receive_by, 8),
	BULK("TCP: recv MSG_TRUNC", receive_by, 9),
	BULK("TCP: recv MSG_DONTWAIT", receive_by, 10),
	BULK("TCP: splice to a pipe", receive_by, 11),
	BULK("TCP: io_submit read", receive_by, 12),
	BULK("TCP: TCP_ZEROCOPY_RECEIVE", receive_by, 13),
	BULK("TCP: all calls, both ways mixed, 16 threads", by_all, 0),
	{ .name = NULL },
};
