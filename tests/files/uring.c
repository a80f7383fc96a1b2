// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The same by io_uring: by the thread itself, by a worker, and by the kernel's polling thread. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <string.h>
#include <unistd.h>

#include "actor.h"

#define SIZE 65536

static char buf[SIZE] __attribute__((aligned(4096)));

static ssize_t one(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	ssize_t res;
	int rc;

	need(io_uring_submit(ring) >= 0, "io_uring_submit");
	do
		rc = io_uring_wait_cqe(ring, &cqe);
	while (rc == -EINTR);
	need(!rc, "io_uring_wait_cqe");
	res = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

struct ring {
	struct io_uring ring;
	struct account *from, *to;
	int in, out;
	unsigned int flags; /* of each request */
};

static struct io_uring_sqe *get(struct ring *r)
{
	struct io_uring_sqe *sqe;

	/* The polling thread may complete a request before it says that its entry is free. */
	while (!(sqe = io_uring_get_sqe(&r->ring)) && r->ring.flags & IORING_SETUP_SQPOLL)
		usleep(1000);
	need(sqe != NULL, "room in the ring");
	return sqe;
}

static void read_at(struct ring *r, unsigned int n, uint64_t at)
{
	struct io_uring_sqe *sqe = get(r);

	io_uring_prep_read(sqe, r->in, buf, n, at);
	sqe->flags |= r->flags;
	took(r->from, one(&r->ring));
}

static void write_at(struct ring *r, unsigned int n, uint64_t at)
{
	struct io_uring_sqe *sqe = get(r);

	io_uring_prep_write(sqe, r->out, buf, n, at);
	sqe->flags |= r->flags;
	gave(r->to, one(&r->ring));
}

static void vectors(struct ring *r)
{
	struct iovec v[2] = { { buf, 100 }, { buf + 100, 200 } };
	struct io_uring_sqe *sqe = get(r);

	io_uring_prep_readv(sqe, r->in, v, 2, 0);
	sqe->flags |= r->flags;
	took(r->from, one(&r->ring));
	sqe = get(r);
	io_uring_prep_writev(sqe, r->out, v, 2, 0);
	sqe->flags |= r->flags;
	gave(r->to, one(&r->ring));
}

/* As many at once as there is room, none with a number of its own. */
static void many(struct ring *r)
{
	struct io_uring_cqe *cqe;

	for (int i = 0; i < 8; i++) {
		struct io_uring_sqe *sqe = get(r);

		io_uring_prep_read(sqe, r->in, buf + i * 4096, 1000 + (unsigned int)i, 0);
		sqe->flags |= r->flags;
	}
	need(io_uring_submit(&r->ring) >= 0, "io_uring_submit");
	for (int i = 0; i < 8; i++) {
		need(!io_uring_wait_cqe(&r->ring, &cqe), "io_uring_wait_cqe");
		took(r->from, cqe->res);
		io_uring_cqe_seen(&r->ring, cqe);
	}
}

static void act(const char *folder, const char *where, const char *what, unsigned int setup,
		unsigned int request, int flags)
{
	char path[2][512], name[64];
	struct ring r = { .flags = request };

	if (io_uring_queue_init(8, &r.ring, setup))
		return;
	snprintf(name, sizeof(name), "%s from", what);
	r.in = open_new(folder, name, SIZE, flags, path[0]);
	snprintf(name, sizeof(name), "%s to", what);
	r.out = open_new(folder, name, SIZE, flags, path[1]);
	if (r.in >= 0 && r.out >= 0) {
		snprintf(name, sizeof(name), "%s: %s", where, what);
		r.from = account_of(name, r.in, path[0]);
		r.to = account_of(name, r.out, path[1]);
		read_at(&r, 8192, 4096);
		write_at(&r, 4096, 0);
		if (!flags) {
			read_at(&r, 4096, SIZE - 536); /* less than asked for */
			read_at(&r, 100, SIZE);        /* the end */
			write_at(&r, 3, SIZE);
			vectors(&r);
			many(&r);
		}
		r.from->calls = r.to->calls = false;
	}
	close(r.in);
	close(r.out);
	io_uring_queue_exit(&r.ring);
}

void act_uring(const char *folder, const char *where)
{
	if (book->no_uring)
		return;
	act(folder, where, "io_uring", 0, 0, 0);
	act(folder, where, "io_uring by a worker", 0, IOSQE_ASYNC, 0);
	act(folder, where, "io_uring, SQPOLL", IORING_SETUP_SQPOLL, 0, 0);
	act(folder, where, "io_uring, O_DIRECT", 0, 0, O_DIRECT);
}
