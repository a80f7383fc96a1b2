// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Calls on a stream socket that are not io_uring's. See calls.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "calls.h"

#define VECTORS 4

static ssize_t result(ssize_t n)
{
	return n < 0 ? -errno : n;
}

/* The buffer's first n bytes in pieces. */
static int pieces(struct end *e, size_t n, struct iovec *iov)
{
	size_t each = n / VECTORS;
	int used = 0;

	for (int i = 0; i < VECTORS; i++) {
		size_t len = i < VECTORS - 1 ? each : n - each * (VECTORS - 1);

		if (len)
			iov[used++] = (struct iovec){ e->buf + (size_t)i * each, len };
	}
	return used;
}

static ssize_t by_send(struct end *e, size_t n)
{
	return result(S(e->account, send(e->fd, e->buf, n, 0)));
}

static ssize_t by_send_more(struct end *e, size_t n)
{
	return result(S(e->account, send(e->fd, e->buf, n, MSG_MORE)));
}

static ssize_t by_sendto(struct end *e, size_t n)
{
	return result(S(e->account, sendto(e->fd, e->buf, n, MSG_NOSIGNAL, NULL, 0)));
}

static ssize_t by_write(struct end *e, size_t n)
{
	return result(S(e->account, write(e->fd, e->buf, n)));
}

static ssize_t by_writev(struct end *e, size_t n)
{
	struct iovec iov[VECTORS];
	int used = pieces(e, n, iov);

	return result(S(e->account, writev(e->fd, iov, used)));
}

static ssize_t by_pwritev2(struct end *e, size_t n)
{
	struct iovec iov[VECTORS];
	int used = pieces(e, n, iov);

	return result(S(e->account, pwritev2(e->fd, iov, used, -1, 0)));
}

static ssize_t by_sendmsg(struct end *e, size_t n)
{
	struct iovec iov[VECTORS];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)pieces(e, n, iov) };

	return result(S(e->account, sendmsg(e->fd, &msg, 0)));
}

static unsigned int messages(struct end *e, size_t n, struct iovec *iov, struct mmsghdr *msgs)
{
	unsigned int used = (unsigned int)pieces(e, n, iov);

	memset(msgs, 0, VECTORS * sizeof(*msgs));
	for (unsigned int i = 0; i < used; i++) {
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	return used;
}

static ssize_t by_sendmmsg(struct end *e, size_t n)
{
	struct iovec iov[VECTORS];
	struct mmsghdr msgs[VECTORS];
	unsigned int used = messages(e, n, iov, msgs);
	int k = sendmmsg(e->fd, msgs, used, 0);
	ssize_t sum = 0;

	for (int i = 0; i < k; i++)
		sum += S(e->account, msgs[i].msg_len);
	return k < 0 ? -errno : sum;
}

static void drain_completions(int fd)
{
	char control[128];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };

	while (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
		msg.msg_controllen = sizeof(control);
}

static ssize_t by_zerocopy(struct end *e, size_t n)
{
	ssize_t k;

	if (setsockopt(e->fd, SOL_SOCKET, SO_ZEROCOPY, &(int){ 1 }, sizeof(int)))
		return -errno;
	k = S(e->account, send(e->fd, e->buf, n, MSG_ZEROCOPY));
	if (k < 0 && errno == ENOBUFS)
		k = S(e->account, send(e->fd, e->buf, n, 0));
	k = result(k);
	drain_completions(e->fd);
	return k;
}

static ssize_t by_sendfile(struct end *e, size_t n)
{
	off_t offset = (off_t)(n % 4096);

	return result(S(e->account, sendfile(e->fd, e->file, &offset, n)));
}

/* What is in the pipe, all of it. */
static ssize_t pipe_out(struct end *e, size_t n, unsigned int flags)
{
	size_t done = 0;

	while (done < n) {
		ssize_t k = S(e->account, splice(e->pipe[0], NULL, e->fd, NULL, n - done, flags));

		if (k <= 0)
			return result(k);
		done += (size_t)k;
	}
	return (ssize_t)done;
}

static ssize_t by_splice(struct end *e, size_t n)
{
	ssize_t k = write(e->pipe[1], e->buf, n < 4096 ? n : 4096);

	return k < 0 ? -errno : pipe_out(e, (size_t)k, 0);
}

static ssize_t by_vmsplice(struct end *e, size_t n)
{
	struct iovec iov = { e->buf, n < 4096 ? n : 4096 };
	ssize_t k = vmsplice(e->pipe[1], &iov, 1, 0);

	return k < 0 ? -errno : pipe_out(e, (size_t)k, SPLICE_F_MORE);
}

static ssize_t by_aio(struct end *e, size_t n, unsigned int opcode)
{
	struct iocb cb = { .aio_fildes = (unsigned int)e->fd,
			   .aio_lio_opcode = (uint16_t)opcode,
			   .aio_buf = (uint64_t)(uintptr_t)e->buf,
			   .aio_nbytes = n };
	struct iocb *list = &cb;
	struct io_event event;

	if (!e->aio && syscall(SYS_io_setup, 8, &e->aio))
		return -errno;
	if (syscall(SYS_io_submit, e->aio, 1, &list) != 1 ||
	    syscall(SYS_io_getevents, e->aio, 1, 1, &event, NULL) != 1)
		return -errno;
	return (ssize_t)event.res;
}

static ssize_t by_aio_write(struct end *e, size_t n)
{
	return S(e->account, by_aio(e, n, IOCB_CMD_PWRITE));
}

const struct call send_calls[] = {
	{ "send", by_send, NO_RING },
	{ "send MSG_MORE", by_send_more, NO_RING },
	{ "sendto", by_sendto, NO_RING },
	{ "write", by_write, NO_RING },
	{ "writev", by_writev, NO_RING },
	{ "pwritev2", by_pwritev2, NO_RING },
	{ "sendmsg", by_sendmsg, NO_RING },
	{ "sendmmsg", by_sendmmsg, NO_RING },
	{ "send MSG_ZEROCOPY", by_zerocopy, NO_RING },
	{ "sendfile", by_sendfile, NO_RING },
	{ "splice from a pipe", by_splice, NO_RING },
	{ "vmsplice and splice", by_vmsplice, NO_RING },
	{ "io_submit write", by_aio_write, NO_RING },
	{ NULL, NULL, NO_RING },
};

static ssize_t by_recv(struct end *e, size_t n)
{
	return result(R(e->account, recv(e->fd, e->buf, n, 0)));
}

static ssize_t by_recvfrom(struct end *e, size_t n)
{
	union address from;
	socklen_t len = sizeof(from);

	return result(R(e->account, recvfrom(e->fd, e->buf, n, 0, &from.any, &len)));
}

static ssize_t by_read(struct end *e, size_t n)
{
	return result(R(e->account, read(e->fd, e->buf, n)));
}

static ssize_t by_readv(struct end *e, size_t n)
{
	struct iovec iov[VECTORS];
	int used = pieces(e, n, iov);

	return result(R(e->account, readv(e->fd, iov, used)));
}

static ssize_t by_preadv2(struct end *e, size_t n)
{
	struct iovec iov[VECTORS];
	int used = pieces(e, n, iov);

	return result(R(e->account, preadv2(e->fd, iov, used, -1, 0)));
}

static ssize_t by_recvmsg(struct end *e, size_t n)
{
	struct iovec iov[VECTORS];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)pieces(e, n, iov) };

	return result(R(e->account, recvmsg(e->fd, &msg, 0)));
}

static ssize_t by_recvmmsg(struct end *e, size_t n)
{
	struct iovec iov[VECTORS];
	struct mmsghdr msgs[VECTORS];
	unsigned int used = messages(e, n, iov, msgs);
	int k = recvmmsg(e->fd, msgs, used, MSG_WAITFORONE, NULL);
	ssize_t sum = 0;

	for (int i = 0; i < k; i++)
		sum += R(e->account, msgs[i].msg_len);
	return k < 0 ? -errno : sum;
}

/* Looked at three times, taken once. */
static ssize_t by_peek(struct end *e, size_t n)
{
	for (int i = 0; i < 3; i++)
		if (recv(e->fd, e->buf, n, MSG_PEEK) < 0)
			return -errno;
	return by_recv(e, n);
}

static ssize_t by_waitall(struct end *e, size_t n)
{
	return result(R(e->account, recv(e->fd, e->buf, n, MSG_WAITALL)));
}

/* The bytes are thrown away; the call returns how many they were. */
static ssize_t by_trunc(struct end *e, size_t n)
{
	return result(R(e->account, recv(e->fd, NULL, n, MSG_TRUNC)));
}

static ssize_t by_dontwait(struct end *e, size_t n)
{
	ssize_t k = R(e->account, recv(e->fd, e->buf, n, MSG_DONTWAIT));

	return k < 0 && errno == EAGAIN ? by_recv(e, n) : result(k);
}

static ssize_t by_splice_out(struct end *e, size_t n)
{
	ssize_t k = ledger_received_unseen(e->account, splice(e->fd, NULL, e->pipe[1], NULL,
							      n < 16384 ? n : 16384, 0));

	if (k < 0)
		return -errno;
	for (ssize_t left = k; left > 0;) {
		ssize_t got = read(e->pipe[0], e->buf, (size_t)left);

		if (got <= 0)
			return -EIO;
		left -= got;
	}
	return k;
}

static ssize_t by_aio_read(struct end *e, size_t n)
{
	return R(e->account, by_aio(e, n, IOCB_CMD_PREAD));
}

/* Whole pages are mapped, the rest is received. */
static ssize_t by_zerocopy_receive(struct end *e, size_t n)
{
	struct tcp_zerocopy_receive zc = { .length = END_BUFFER };
	socklen_t len = sizeof(zc);

	if (!e->map)
		e->map = mmap(NULL, END_BUFFER, PROT_READ, MAP_SHARED, e->fd, 0);
	if (e->map == MAP_FAILED)
		return -errno;
	zc.address = (uint64_t)(uintptr_t)e->map;
	if (getsockopt(e->fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &zc, &len))
		return errno == EIO ? 0 : -errno; /* so it says that the end is reached */
	ledger_received_unseen(e->account, zc.length);
	if (zc.length)
		madvise(e->map, zc.length, MADV_DONTNEED);
	if (zc.length && !zc.recv_skip_hint)
		return zc.length;
	return by_recv(e, zc.recv_skip_hint && zc.recv_skip_hint < n ? zc.recv_skip_hint : n);
}

const struct call recv_calls[] = {
	{ "recv", by_recv, NO_RING },
	{ "recvfrom", by_recvfrom, NO_RING },
	{ "read", by_read, NO_RING },
	{ "readv", by_readv, NO_RING },
	{ "preadv2", by_preadv2, NO_RING },
	{ "recvmsg", by_recvmsg, NO_RING },
	{ "recvmmsg", by_recvmmsg, NO_RING },
	{ "recv after three MSG_PEEK", by_peek, NO_RING },
	{ "recv MSG_WAITALL", by_waitall, NO_RING },
	{ "recv MSG_TRUNC", by_trunc, NO_RING },
	{ "recv MSG_DONTWAIT", by_dontwait, NO_RING },
	{ "splice to a pipe", by_splice_out, NO_RING },
	{ "io_submit read", by_aio_read, NO_RING },
	{ "TCP_ZEROCOPY_RECEIVE", by_zerocopy_receive, NO_RING },
	{ NULL, NULL, NO_RING },
};
