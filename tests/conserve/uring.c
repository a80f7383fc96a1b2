// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The same bytes by io_uring, issued by the thread itself, by a worker (IOSQE_ASYNC), or by the
 * kernel's polling thread (SQPOLL): they belong to the process whose ring it is.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"

static struct io_uring_sqe *get(struct end *e)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&e->ring);

	need(sqe != NULL, "room in the ring");
	return sqe;
}

/* The result of the request; its last completion, if there are several. */
static ssize_t wait_one(struct end *e)
{
	struct io_uring_cqe *cqe;
	ssize_t res = 0;
	bool more;
	int rc = io_uring_submit(&e->ring);

	need(rc >= 0, "io_uring_submit");
	do {
		do
			rc = io_uring_wait_cqe(&e->ring, &cqe);
		while (rc == -EINTR);
		need(!rc, "io_uring_wait_cqe");
		more = cqe->flags & IORING_CQE_F_MORE;
		if (!(cqe->flags & IORING_CQE_F_NOTIF))
			res = cqe->res;
		io_uring_cqe_seen(&e->ring, cqe);
	} while (more);
	return res;
}

static ssize_t ring_send(struct end *e, size_t n)
{
	io_uring_prep_send(get(e), e->fd, e->buf, n, 0);
	return S(e->account, wait_one(e));
}

static ssize_t ring_send_async(struct end *e, size_t n)
{
	struct io_uring_sqe *sqe = get(e);

	io_uring_prep_send(sqe, e->fd, e->buf, n, 0);
	sqe->flags |= IOSQE_ASYNC;
	return S(e->account, wait_one(e));
}

static ssize_t ring_write(struct end *e, size_t n)
{
	io_uring_prep_write(get(e), e->fd, e->buf, (unsigned int)n, 0);
	return S(e->account, wait_one(e));
}

static ssize_t ring_writev(struct end *e, size_t n)
{
	struct iovec iov[2] = { { e->buf, n / 2 }, { e->buf, n - n / 2 } };

	io_uring_prep_writev(get(e), e->fd, iov, 2, 0);
	return S(e->account, wait_one(e));
}

static ssize_t ring_sendmsg(struct end *e, size_t n)
{
	struct iovec iov = { e->buf, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	io_uring_prep_sendmsg(get(e), e->fd, &msg, 0);
	return S(e->account, wait_one(e));
}

/* From 6.0 on. */
static ssize_t ring_send_zc(struct end *e, size_t n)
{
	io_uring_prep_send_zc(get(e), e->fd, e->buf, n, 0, 0);
	return S(e->account, wait_one(e));
}

static ssize_t ring_splice(struct end *e, size_t n)
{
	ssize_t k = write(e->pipe[1], e->buf, n < 4096 ? n : 4096);
	ssize_t done = 0;

	while (done < k) {
		ssize_t moved;

		io_uring_prep_splice(get(e), e->pipe[0], -1, e->fd, -1, (unsigned int)(k - done),
				     0);
		moved = S(e->account, wait_one(e));
		if (moved <= 0)
			return moved;
		done += moved;
	}
	return k;
}

/* Four sends of one chain, the first with room for all to be in flight at once. */
static ssize_t ring_chain(struct end *e, size_t n)
{
	ssize_t sum = 0;

	n = n < 2000 ? n : 2000;
	for (int i = 0; i < 4; i++) {
		struct io_uring_sqe *sqe = get(e);

		io_uring_prep_send(sqe, e->fd, e->buf, n, MSG_WAITALL);
		sqe->flags |= i < 3 ? IOSQE_IO_LINK : 0;
	}
	sum += S(e->account, wait_one(e));
	for (int i = 0; i < 3; i++) {
		struct io_uring_cqe *cqe;

		need(!io_uring_wait_cqe(&e->ring, &cqe), "io_uring_wait_cqe");
		need(cqe->res > 0, "a send of a chain");
		sum += S(e->account, cqe->res);
		io_uring_cqe_seen(&e->ring, cqe);
	}
	return sum;
}

const struct call ring_send_calls[] = {
	{ "send", ring_send, RING },
	{ "send IOSQE_ASYNC", ring_send_async, RING },
	{ "write", ring_write, RING },
	{ "writev", ring_writev, RING },
	{ "sendmsg", ring_sendmsg, RING },
	{ "splice", ring_splice, RING },
	{ "send in a chain", ring_chain, RING },
	{ "send_zc", ring_send_zc, RING },
	{ NULL, NULL, NO_RING },
};

static ssize_t ring_recv(struct end *e, size_t n)
{
	io_uring_prep_recv(get(e), e->fd, e->buf, n, 0);
	return R(e->account, wait_one(e));
}

static ssize_t ring_recv_async(struct end *e, size_t n)
{
	struct io_uring_sqe *sqe = get(e);

	io_uring_prep_recv(sqe, e->fd, e->buf, n, 0);
	sqe->flags |= IOSQE_ASYNC;
	return R(e->account, wait_one(e));
}

static ssize_t ring_read(struct end *e, size_t n)
{
	io_uring_prep_read(get(e), e->fd, e->buf, (unsigned int)n, 0);
	return R(e->account, wait_one(e));
}

static ssize_t ring_read_async(struct end *e, size_t n)
{
	struct io_uring_sqe *sqe = get(e);

	io_uring_prep_read(sqe, e->fd, e->buf, (unsigned int)n, 0);
	sqe->flags |= IOSQE_ASYNC;
	return R(e->account, wait_one(e));
}

static ssize_t ring_recvmsg(struct end *e, size_t n)
{
	struct iovec iov = { e->buf, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	io_uring_prep_recvmsg(get(e), e->fd, &msg, 0);
	return R(e->account, wait_one(e));
}

static ssize_t ring_waitall(struct end *e, size_t n)
{
	io_uring_prep_recv(get(e), e->fd, e->buf, n, MSG_WAITALL);
	return R(e->account, wait_one(e));
}

static ssize_t ring_peek(struct end *e, size_t n)
{
	ssize_t k;

	io_uring_prep_recv(get(e), e->fd, e->buf, n, MSG_PEEK);
	k = wait_one(e);
	return k < 0 ? k : ring_recv(e, n);
}

static ssize_t ring_splice_out(struct end *e, size_t n)
{
	ssize_t k;

	io_uring_prep_splice(get(e), e->fd, -1, e->pipe[1], -1,
			     (unsigned int)(n < 16384 ? n : 16384), 0);
	k = ledger_received_unseen(e->account, wait_one(e));
	for (ssize_t left = k; left > 0;)
		left -= read(e->pipe[0], e->buf, (size_t)left);
	return k;
}

const struct call ring_recv_calls[] = {
	{ "recv", ring_recv, RING },
	{ "recv IOSQE_ASYNC", ring_recv_async, RING },
	{ "read", ring_read, RING },
	{ "read IOSQE_ASYNC", ring_read_async, RING },
	{ "recvmsg", ring_recvmsg, RING },
	{ "recv MSG_WAITALL", ring_waitall, RING },
	{ "recv after MSG_PEEK", ring_peek, RING },
	{ "splice", ring_splice_out, RING },
	{ NULL, NULL, NO_RING },
};

static unsigned long rounds(void)
{
	return plan.events / plan.threads / 3 + 1;
}

static void send_by(int i)
{
	stream_bytes(&ring_send_calls[i], 1, &ring_recv_calls[0], 1, plan.threads, rounds());
}

static void receive_by(int i)
{
	stream_bytes(&ring_send_calls[0], 1, &ring_recv_calls[i], 1, plan.threads, rounds());
}

/* Each thread has a ring whose submissions a thread of the kernel takes. */
static void polled(int arg)
{
	struct call sends[16], receives[16];
	unsigned int nsends = count_calls(ring_send_calls) - 1; /* send_zc has its own case */
	unsigned int nreceives = count_calls(ring_recv_calls);

	memcpy(sends, ring_send_calls, nsends * sizeof(*sends));
	memcpy(receives, ring_recv_calls, nreceives * sizeof(*receives));
	sends[0].ring = receives[0].ring = RING_SQPOLL;
	stream_bytes(sends, arg ? nsends : 1, receives, arg ? nreceives : 1, 4,
		     plan.events / 24 + 1);
}

static void by_all(int arg)
{
	stream_bytes(ring_send_calls, count_calls(ring_send_calls) - 1, ring_recv_calls,
		     count_calls(ring_recv_calls), 8, plan.events / 24 + 1);
}

/* One receive that goes on, into buffers that the kernel picks; from 6.0 on. */
static void multishot(int arg)
{
	enum { BUFFERS = 8, SIZE = 4096 };
	struct pair pair;
	struct end end;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	size_t got = 0;

	pair_tcp(V4, &pair);
	end_open(&end, pair.b, pair.of_b, RING);
	io_uring_prep_provide_buffers(get(&end), end.buf, SIZE, BUFFERS, 1, 0);
	need(wait_one(&end) >= 0, "buffers for the ring");
	for (int i = 0; i < 6; i++)
		S(pair.of_a, send(pair.a, end.buf, SIZE, 0));
	shutdown(pair.a, SHUT_WR);
	sqe = get(&end);
	io_uring_prep_recv_multishot(sqe, pair.b, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = 1;
	io_uring_submit(&end.ring);
	do {
		need(!io_uring_wait_cqe(&end.ring, &cqe), "io_uring_wait_cqe");
		if (cqe->res == -EINVAL)
			skip("not on this kernel: io_uring's receive that goes on");
		got += (size_t)(R(pair.of_b, cqe->res) > 0 ? cqe->res : 0);
		arg = cqe->flags & IORING_CQE_F_MORE;
		io_uring_cqe_seen(&end.ring, cqe);
	} while (arg);
	need(got + take_all(pair.b, pair.of_b, 6 * SIZE) == 6 * SIZE, "all bytes came");
	compare();
	end_close(&end);
}

struct request {
	struct end *end;
	ssize_t (*call)(struct end *end, size_t n);
};

static void request_of_child(void *arg)
{
	struct request *request = arg;

	request->end->account = ledger_open(request->end->fd);
	for (int i = 0; i < 5; i++)
		need(request->call(request->end, 1000) > 0, "a request of a child");
}

/* A child submits to the ring that it has from its parent: by its own system call they are its own.
 */
static void inherited(int arg)
{
	struct pair pair;
	struct end end;
	struct account *mine;

	pair_tcp(V4, &pair);
	end_open(&end, pair.a, pair.of_a, RING);
	ring_send(&end, 77);
	mine = end.account;
	in_child(request_of_child, &(struct request){ &end, ring_send });
	end.account = mine;
	take_all(pair.b, pair.of_b, 5077);
	compare();
	end_close(&end);
}

const struct test_case uring_cases[] = {
	BULK("io_uring: send, recv", send_by, 0),
	BULK("io_uring: send by a worker", send_by, 1),
	BULK("io_uring: write", send_by, 2),
	BULK("io_uring: writev", send_by, 3),
	BULK("io_uring: sendmsg", send_by, 4),
	BULK("io_uring: splice from a pipe", send_by, 5),
	BULK("io_uring: a chain of sends", send_by, 6),
	BULK("io_uring: send without a copy", send_by, 7),
	BULK("io_uring: recv by a worker", receive_by, 1),
	BULK("io_uring: read", receive_by, 2),
	BULK("io_uring: read by a worker", receive_by, 3),
	BULK("io_uring: recvmsg", receive_by, 4),
	BULK("io_uring: recv MSG_WAITALL", receive_by, 5),
	BULK("io_uring: recv after MSG_PEEK", receive_by, 6),
	BULK("io_uring: splice to a pipe", receive_by, 7),
	CASE("io_uring: a receive that goes on", multishot, 0),
	CASE("io_uring: a ring that a child has from its parent", inherited, 0),
	BULK("io_uring SQPOLL: send, recv", polled, 0),
	BULK("io_uring SQPOLL: all calls", polled, 1),
	BULK("io_uring: all calls, both ways mixed, 16 threads", by_all, 0),
	{ .name = NULL },
};
