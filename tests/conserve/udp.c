// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * UDP: every call, a datagram at a time or several. Each thread has a pair of sockets of its own
 * and sends and receives in turn, so that none is lost for want of room.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "calls.h"

#define LARGEST  1400
#define SEVERAL  4
#define SEGMENT  500
#define SEGMENTS 5

/* Sends n bytes a datagram; returns how many datagrams there are now to take, or -errno. */
typedef int udp_send(struct end *e, size_t n);
/* Takes at most `want` datagrams; returns how many it took, or -errno. */
typedef int udp_receive(struct end *e, int want);

static int datagrams(ssize_t rc)
{
	return rc < 0 ? -errno : 1;
}

static int by_send(struct end *e, size_t n)
{
	return datagrams(S(e->account, send(e->fd, e->buf, n, 0)));
}

static int by_write(struct end *e, size_t n)
{
	return datagrams(S(e->account, write(e->fd, e->buf, n)));
}

static int by_writev(struct end *e, size_t n)
{
	struct iovec iov[2] = { { e->buf, n / 2 }, { e->buf, n - n / 2 } };

	return datagrams(S(e->account, writev(e->fd, iov, 2)));
}

/* By a socket that is not connected, to where the other is. */
static int by_sendto(struct end *e, size_t n)
{
	union address at = { .any = { .sa_family = AF_UNSPEC } };
	socklen_t len = sizeof(at);
	struct account *account;
	int fd, rc;

	need(!getpeername(e->fd, &at.any, &len), "getpeername");
	fd = socket(at.any.sa_family, SOCK_DGRAM, 0);
	account = ledger_rest(false);
	rc = datagrams(S(account, sendto(fd, e->buf, n, 0, &at.any, len)));
	close(fd);
	return rc;
}

static int by_sendmsg(struct end *e, size_t n)
{
	struct iovec iov = { e->buf, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return datagrams(S(e->account, sendmsg(e->fd, &msg, 0)));
}

static int by_sendmmsg(struct end *e, size_t n)
{
	struct iovec iov = { e->buf, n };
	struct mmsghdr msgs[SEVERAL] = { 0 };
	int k;

	for (int i = 0; i < SEVERAL; i++) {
		msgs[i].msg_hdr.msg_iov = &iov;
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	k = sendmmsg(e->fd, msgs, SEVERAL, 0);
	for (int i = 0; i < k; i++)
		S(e->account, msgs[i].msg_len);
	return k < 0 ? -errno : k;
}

/* One datagram of two calls. */
static int by_more(struct end *e, size_t n)
{
	if (S(e->account, send(e->fd, e->buf, n / 2, MSG_MORE)) < 0)
		return -errno;
	return datagrams(S(e->account, send(e->fd, e->buf, n - n / 2, 0)));
}

/* The calls are over when the cork is drawn, and draw nothing more. */
static int by_cork(struct end *e, size_t n)
{
	int rc;

	setsockopt(e->fd, IPPROTO_UDP, UDP_CORK, &(int){ 1 }, sizeof(int));
	rc = by_more(e, n);
	setsockopt(e->fd, IPPROTO_UDP, UDP_CORK, &(int){ 0 }, sizeof(int));
	return rc;
}

/* One call of several datagrams' bytes. */
static int by_segments(struct end *e, size_t n)
{
	ssize_t k;

	if (setsockopt(e->fd, IPPROTO_UDP, UDP_SEGMENT, &(int){ SEGMENT }, sizeof(int)))
		return -errno;
	k = S(e->account, send(e->fd, e->buf, SEGMENT * (SEGMENTS - 1) + 1 + n % SEGMENT, 0));
	n = (size_t)(k < 0 ? errno : 0);
	setsockopt(e->fd, IPPROTO_UDP, UDP_SEGMENT, &(int){ 0 }, sizeof(int));
	return n ? -(int)n : SEGMENTS;
}

static int by_zerocopy(struct end *e, size_t n)
{
	char control[128];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	int rc;

	if (setsockopt(e->fd, SOL_SOCKET, SO_ZEROCOPY, &(int){ 1 }, sizeof(int)))
		return -errno;
	rc = datagrams(S(e->account, send(e->fd, e->buf, n, MSG_ZEROCOPY)));
	while (recvmsg(e->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
		msg.msg_controllen = sizeof(control);
	return rc;
}

static int by_sendfile(struct end *e, size_t n)
{
	off_t offset = 0;

	return datagrams(S(e->account, sendfile(e->fd, e->file, &offset, n)));
}

static ssize_t in_ring(struct end *e)
{
	struct io_uring_cqe *cqe;
	ssize_t res;

	io_uring_submit(&e->ring);
	need(!io_uring_wait_cqe(&e->ring, &cqe), "io_uring_wait_cqe");
	res = cqe->res;
	io_uring_cqe_seen(&e->ring, cqe);
	if (res < 0)
		errno = (int)-res;
	return res;
}

static int by_ring_send(struct end *e, size_t n)
{
	io_uring_prep_send(io_uring_get_sqe(&e->ring), e->fd, e->buf, n, 0);
	return datagrams(S(e->account, in_ring(e)));
}

static int by_ring_sendmsg(struct end *e, size_t n)
{
	struct iovec iov = { e->buf, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	io_uring_prep_sendmsg(io_uring_get_sqe(&e->ring), e->fd, &msg, 0);
	return datagrams(S(e->account, in_ring(e)));
}

static int by_recv(struct end *e, int want)
{
	return datagrams(R(e->account, recv(e->fd, e->buf, LARGEST, 0)));
}

static int by_recvfrom(struct end *e, int want)
{
	union address from;
	socklen_t len = sizeof(from);

	return datagrams(R(e->account, recvfrom(e->fd, e->buf, LARGEST, 0, &from.any, &len)));
}

static int by_read(struct end *e, int want)
{
	return datagrams(R(e->account, read(e->fd, e->buf, LARGEST)));
}

static int by_readv(struct end *e, int want)
{
	struct iovec iov[2] = { { e->buf, 10 }, { e->buf + 10, LARGEST } };

	return datagrams(R(e->account, readv(e->fd, iov, 2)));
}

static int by_recvmsg(struct end *e, int want)
{
	struct iovec iov = { e->buf, LARGEST };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return datagrams(R(e->account, recvmsg(e->fd, &msg, 0)));
}

static int by_recvmmsg(struct end *e, int want)
{
	struct iovec iov = { e->buf, LARGEST };
	struct mmsghdr msgs[SEVERAL] = { 0 };
	int k;

	for (int i = 0; i < SEVERAL; i++) {
		msgs[i].msg_hdr.msg_iov = &iov;
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	k = recvmmsg(e->fd, msgs, want < SEVERAL ? (unsigned int)want : SEVERAL, MSG_WAITFORONE,
		     NULL);
	for (int i = 0; i < k; i++)
		R(e->account, msgs[i].msg_len);
	return k < 0 ? -errno : k;
}

static int by_peek(struct end *e, int want)
{
	for (int i = 0; i < 3; i++)
		if (recv(e->fd, e->buf, LARGEST, MSG_PEEK) < 0)
			return -errno;
	return by_recv(e, want);
}

/* The rest of the datagram is lost: 10 bytes were received. */
static int by_short(struct end *e, int want)
{
	return datagrams(R(e->account, recv(e->fd, e->buf, 10, 0)));
}

/* The call returns the datagram's whole length. */
static int by_trunc(struct end *e, int want)
{
	return datagrams(R(e->account, recv(e->fd, e->buf, 10, MSG_TRUNC)));
}

static int by_waitall(struct end *e, int want)
{
	return datagrams(R(e->account, recv(e->fd, e->buf, LARGEST, MSG_WAITALL)));
}

static int by_splice(struct end *e, int want)
{
	ssize_t k = R(e->account, splice(e->fd, NULL, e->pipe[1], NULL, 4096, 0));
	int rc = datagrams(k);

	if (k > 0 && read(e->pipe[0], e->buf, (size_t)k) != k)
		return -EIO;
	return rc;
}

static int by_ring_recv(struct end *e, int want)
{
	io_uring_prep_recv(io_uring_get_sqe(&e->ring), e->fd, e->buf, LARGEST, 0);
	return datagrams(R(e->account, in_ring(e)));
}

static int by_ring_recvmsg(struct end *e, int want)
{
	struct iovec iov = { e->buf, LARGEST };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	io_uring_prep_recvmsg(io_uring_get_sqe(&e->ring), e->fd, &msg, 0);
	return datagrams(R(e->account, in_ring(e)));
}

enum { FIRST_RING_SEND = 11, FIRST_RING_RECEIVE = 11 };

static udp_send *const sends[] = {
	by_send,     by_write,    by_writev,   by_sendto, by_sendmsg,   by_sendmmsg,     by_more,
	by_segments, by_zerocopy, by_sendfile, by_cork,   by_ring_send, by_ring_sendmsg,
};
static udp_receive *const receives[] = {
	by_recv,  by_recvfrom, by_read,    by_readv,  by_recvmsg,   by_recvmmsg,     by_peek,
	by_short, by_trunc,    by_waitall, by_splice, by_ring_recv, by_ring_recvmsg,
};

enum { SENDS = sizeof(sends) / sizeof(*sends), RECEIVES = sizeof(receives) / sizeof(*receives) };

/* Which calls a thread makes: one of each, or all in turn (-1). */
struct talk {
	struct pair pair;
	int send, receive;
	bool polled;
	unsigned long rounds;
};

static bool unsupported(int rc)
{
	return rc == -ENOSYS || rc == -EINVAL || rc == -EOPNOTSUPP || rc == -ENOPROTOOPT;
}

static void exchange(struct talk *talk, struct end *a, struct end *b, unsigned long i)
{
	int how = talk->send < 0 ? (int)(i % SENDS) : talk->send;
	int left = sends[how](a, 2 + i * 7919 % (LARGEST - 2));

	if (unsupported(left) && talk->send >= 0)
		skip("not on this kernel: %s", strerror(-left));
	if (left < 0 && !unsupported(left))
		note("UDP send %d: %s", how, strerror(-left));
	need(left > 0 || unsupported(left), "a UDP call failed");
	for (unsigned long turn = i; left > 0; turn += 5) {
		how = talk->receive < 0 ? (int)(turn % RECEIVES) : talk->receive;
		int got = receives[how](b, left);

		if (unsupported(got) && talk->receive >= 0)
			skip("not on this kernel: %s", strerror(-got));
		if (got < 0 && !unsupported(got))
			note("UDP receive %d: %s", how, strerror(-got));
		need(got > 0 || unsupported(got), "a UDP call failed");
		left -= got > 0 ? got : 0;
	}
}

static void *run_talk(void *arg)
{
	struct talk *talk = arg;
	bool ring = talk->send < 0 || talk->send >= FIRST_RING_SEND ||
		    talk->receive >= FIRST_RING_RECEIVE;
	enum ring_kind kind = !ring ? NO_RING : talk->polled ? RING_SQPOLL : RING;
	struct end a, b;

	setsockopt(talk->pair.b, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 5 },
		   sizeof(struct timeval));
	end_open(&a, talk->pair.a, talk->pair.of_a, kind);
	end_open(&b, talk->pair.b, talk->pair.of_b, kind);
	for (unsigned long i = 0; i < talk->rounds; i++)
		exchange(talk, &a, &b, i);
	end_close(&a);
	end_close(&b);
	return NULL;
}

static void talks(int send, int receive, unsigned int threads, unsigned long rounds, bool polled)
{
	struct talk talk[16];

	need(threads <= 16, "at most 16 pairs");
	for (unsigned int i = 0; i < threads; i++) {
		talk[i] = (struct talk){
			.send = send, .receive = receive, .polled = polled, .rounds = rounds
		};
		pair_udp(i % FAMILIES, &talk[i].pair);
	}
	in_threads(threads, run_talk, talk, sizeof(*talk));
}

static void send_by(int i)
{
	talks(i, i < FIRST_RING_SEND ? 0 : FIRST_RING_RECEIVE, plan.threads,
	      plan.events / plan.threads / 2 + 1, false);
}

static void receive_by(int i)
{
	talks(i < FIRST_RING_RECEIVE ? 0 : FIRST_RING_SEND, i, plan.threads,
	      plan.events / plan.threads / 2 + 1, false);
}

static void by_all(int arg)
{
	talks(-1, -1, 16, plan.events / 16 + 1, false);
}

static void polled(int arg)
{
	talks(FIRST_RING_SEND, FIRST_RING_RECEIVE, 4, plan.events / 12 + 1, true);
}

const struct test_case udp_cases[] = {
	BULK("UDP: send, recv", send_by, 0),
	BULK("UDP: write", send_by, 1),
	BULK("UDP: writev", send_by, 2),
	BULK("UDP: sendto of a new socket each time", send_by, 3),
	BULK("UDP: sendmsg", send_by, 4),
	BULK("UDP: sendmmsg", send_by, 5),
	BULK("UDP: send MSG_MORE", send_by, 6),
	BULK("UDP: UDP_SEGMENT", send_by, 7),
	BULK("UDP: send MSG_ZEROCOPY", send_by, 8),
	BULK("UDP: sendfile", send_by, 9),
	BULK("UDP: UDP_CORK", send_by, 10),
	BULK("UDP: io_uring send, recv", send_by, 11),
	BULK("UDP: io_uring sendmsg", send_by, 12),
	BULK("UDP: recvfrom", receive_by, 1),
	BULK("UDP: read", receive_by, 2),
	BULK("UDP: readv", receive_by, 3),
	BULK("UDP: recvmsg", receive_by, 4),
	BULK("UDP: recvmmsg", receive_by, 5),
	BULK("UDP: recv after three MSG_PEEK", receive_by, 6),
	BULK("UDP: recv of less than there is", receive_by, 7),
	BULK("UDP: recv MSG_TRUNC", receive_by, 8),
	BULK("UDP: recv MSG_WAITALL", receive_by, 9),
	BULK("UDP: splice to a pipe", receive_by, 10),
	BULK("UDP: io_uring recvmsg", receive_by, 12),
	BULK("UDP: io_uring SQPOLL", polled, 0),
	BULK("UDP: all calls mixed, 16 threads", by_all, 0),
	{ .name = NULL },
};
