/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls that move bytes of a stream, each behind one function: it makes the call (or a few of
 * them), accounts what they returned, and gives back the bytes, 0 at the end of the stream, or a
 * negative errno.
 */
#ifndef MOTE_CONSERVE_CALLS_H
#define MOTE_CONSERVE_CALLS_H

#include <linux/aio_abi.h>
#include <liburing.h>

#include "cases.h"

#define END_BUFFER 65536

/* One side of a connection, used by one thread. */
struct end {
	int fd;
	struct account *account;
	char *buf; /* END_BUFFER bytes, page-aligned */
	int pipe[2], file;
	aio_context_t aio;
	struct io_uring ring;
	bool has_ring;
	void *map; /* of the socket, for TCP_ZEROCOPY_RECEIVE */
};

enum ring_kind { NO_RING, RING, RING_SQPOLL };

struct call {
	const char *name;
	ssize_t (*call)(struct end *end, size_t n);
	enum ring_kind ring;
};

extern const struct call send_calls[], recv_calls[];           /* ended by a NULL name */
extern const struct call ring_send_calls[], ring_recv_calls[]; /* with the ring that is there */

/* Buffers and, if `ring` says so, a ring; the end is the calling thread's. */
void end_open(struct end *end, int fd, struct account *account, enum ring_kind ring);
void end_close(struct end *end);

/*
 * `threads` connections of all families, one way: `rounds` calls of `sends`, in turn, until the
 * receivers, by `receives`, in turn, saw the end.
 */
void stream_bytes(const struct call *sends, unsigned int nsends, const struct call *receives,
		  unsigned int nreceives, unsigned int threads, unsigned long rounds);
unsigned int count_calls(const struct call *calls);

#endif
