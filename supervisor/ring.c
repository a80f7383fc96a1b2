// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The engine on io_uring: one io_uring_enter a wait. The only file that includes <liburing.h>.
 * It owns the ring, a table of direct descriptors and the bound on workers.
 *
 * Kernel facts: IORING_OP_TIMEOUT in a chain ends every wait early, so the loop's chain hangs on
 * a READ of a timerfd; direct descriptors in a chain work from 5.19 (late file assignment);
 * workers can be bounded from 5.15.
 */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "thread.h"

/* Older headers lack what the kernel may have. */
#ifndef IORING_FEAT_LINKED_FILE
#	define IORING_FEAT_LINKED_FILE (1U << 12)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#	define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif

struct ring_engine {
	struct mote_engine base;
	struct io_uring ring;
	struct io_uring_sqe *last;
};

static struct ring_engine *ring_of(struct mote_engine *engine)
{
	return (struct ring_engine *)engine;
}

static void ring_close(struct mote_engine *engine)
{
	io_uring_queue_exit(&ring_of(engine)->ring);
	free(engine);
}

static unsigned int ring_room(const struct mote_engine *engine)
{
	return io_uring_sq_space_left(&((const struct ring_engine *)engine)->ring);
}

static void prepare(struct io_uring_sqe *out, const struct mote_sqe *sqe)
{
	bool slot = sqe->flags & MOTE_SQE_SLOT;

	switch (sqe->op) {
	case MOTE_OP_READ:
		io_uring_prep_read(out, sqe->fd, sqe->buf, sqe->len, sqe->offset);
		break;
	case MOTE_OP_OPEN:
		/* O_CLOEXEC is refused for direct descriptors, which no exec can inherit. */
		if (sqe->slot >= 0)
			io_uring_prep_openat_direct(out, sqe->fd, sqe->path,
						    O_RDONLY | (sqe->flags & MOTE_SQE_READY
									? O_NONBLOCK
									: 0),
						    0, (unsigned int)sqe->slot);
		else
			io_uring_prep_openat(out, sqe->fd, sqe->path, O_RDONLY | O_CLOEXEC, 0);
		break;
	case MOTE_OP_CLOSE:
		if (slot)
			io_uring_prep_close_direct(out, (unsigned int)sqe->fd);
		else
			io_uring_prep_close(out, sqe->fd);
		slot = false;
		break;
	case MOTE_OP_ACCEPT:
		io_uring_prep_accept(out, sqe->fd, NULL, NULL, SOCK_CLOEXEC);
		break;
	case MOTE_OP_RECV:
		io_uring_prep_recv(out, sqe->fd, sqe->buf, sqe->len,
				   sqe->flags & MOTE_SQE_NOWAIT ? MSG_DONTWAIT : 0);
		break;
	case MOTE_OP_SEND:
		io_uring_prep_sendmsg(out, sqe->fd, sqe->msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case MOTE_OP_WRITABLE:
		io_uring_prep_poll_add(out, sqe->fd, POLLOUT);
		break;
	case MOTE_OP_HANGUP:
		/* It cannot be waited for: io_uring always tells POLLRDHUP too. */
		io_uring_prep_poll_add(out, sqe->fd, POLLRDHUP);
		break;
	case MOTE_OPS:
		break;
	}
	out->flags |= (slot ? IOSQE_FIXED_FILE : 0) |
		      (sqe->flags & MOTE_SQE_LINK ? IOSQE_IO_HARDLINK : 0) |
		      (sqe->flags & MOTE_SQE_ASYNC ? IOSQE_ASYNC : 0);
	out->user_data = sqe->tag;
}

static int ring_push(struct mote_engine *engine, const struct mote_sqe *sqe)
{
	struct io_uring_sqe *out = io_uring_get_sqe(&ring_of(engine)->ring);

	if (!out)
		return -EBUSY;
	prepare(out, sqe);
	ring_of(engine)->last = out;
	return 0;
}

static void ring_end_chain(struct mote_engine *engine)
{
	ring_of(engine)->last->flags &= (uint8_t)~IOSQE_IO_HARDLINK;
}

static int ring_wait(struct mote_engine *engine, unsigned int want, struct mote_cqe *cqes,
		     unsigned int max)
{
	struct io_uring *ring = &ring_of(engine)->ring;
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;
	/* The rest of what there was no room for the last time needs no call. */
	bool there = !io_uring_sq_ready(ring) && io_uring_cq_ready(ring) >= want;
	int err = there ? 0 : io_uring_submit_and_wait(ring, want);

	/* EINTR: a signal; EBUSY, EAGAIN: completions must be taken first. All: ask again. */
	if (err < 0 && err != -EINTR && err != -EBUSY && err != -EAGAIN)
		return err;
	io_uring_for_each_cqe (ring, head, cqe) {
		if (n == max)
			break;
		cqes[n++] = (struct mote_cqe){ .tag = cqe->user_data, .res = cqe->res };
	}
	io_uring_cq_advance(ring, n);
	return (int)n;
}

/* Reads a slot as a tick does; the ring is idle. */
static int read_slot(struct io_uring *ring, int slot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	char buf[64];
	int res;

	io_uring_prep_read(sqe, slot, buf, sizeof(buf), 0);
	sqe->flags |= IOSQE_FIXED_FILE;
	res = io_uring_submit(ring);
	if (res < 0)
		return res;
	do
		res = io_uring_wait_cqe(ring, &cqe);
	while (res == -EINTR);
	if (res)
		return res;
	res = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

/*
 * io_uring reads a file in the thread that submits if the file says that it does not block, which
 * those of /proc do by O_NONBLOCK only. A slot knows what its file said when it was put there, and
 * a read that gave less than the buffer takes is made once more, in vain, unless the file said
 * nothing then and is O_NONBLOCK now. Where that is refused (-EAGAIN: 6.11 and some before, and
 * files without poll()), the file says it at once.
 */
static bool ring_hold(struct mote_engine *engine, int fd, int slot)
{
	struct io_uring *ring = &ring_of(engine)->ring;
	int flags = fcntl(fd, F_GETFL);
	struct statfs fs;

	/* A file that a container has in its place may block for all we know. */
	if (!engine->ready || fstatfs(fd, &fs) || fs.f_type != PROC_SUPER_MAGIC ||
	    io_uring_register_files_update(ring, (unsigned int)slot, &fd, 1) != 1)
		return false;
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (read_slot(ring, slot) > 0)
		return true;
	io_uring_register_files_update(ring, (unsigned int)slot, &fd, 1);
	if (read_slot(ring, slot) > 0)
		return true;
	fcntl(fd, F_SETFL, flags);
	return false;
}

static const struct mote_engine_ops ring_ops = {
	.name = "uring",
	.close = ring_close,
	.push = ring_push,
	.end_chain = ring_end_chain,
	.wait = ring_wait,
	.room = ring_room,
	.hold = ring_hold,
};

/*
 * The best set of flags that this kernel takes. Not DEFER_TASKRUN: it makes a worker hand each
 * completion to the loop's thread, which then hands it the next read of the chain: 17 wake-ups of
 * each for the host's files, against 1 to 4 where the worker goes through the chain by itself.
 */
static int ring_setup(struct io_uring *ring, unsigned int entries, bool *single)
{
	static const unsigned int flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN, /* 6.0 */
		IORING_SETUP_COOP_TASKRUN,                              /* 5.19 */
		0,
	};
	int err = -EINVAL;

	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]) && err == -EINVAL; i++) {
		struct io_uring_params params = { .flags = flags[i] | IORING_SETUP_CLAMP };

		err = io_uring_queue_init_params(entries, ring, &params);
		*single = !err && i == 0;
	}
	/* A filter may allow to make a ring but not to use it. */
	if (!err && syscall(__NR_io_uring_enter, ring->ring_fd, 0, 0, 0, NULL, 0) < 0) {
		err = -errno;
		io_uring_queue_exit(ring);
	}
	return err;
}

/* Tries the chain itself: the opcode is older than the late file assignment that it needs. */
static bool ring_has_direct(struct io_uring *ring, int flags)
{
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *open, *sqe, *close;
	char buf[16];
	int read = -EBADF;

	/* Without it an old kernel may take the close of slot 0 for that of descriptor 0. */
	if (!(ring->features & IORING_FEAT_LINKED_FILE))
		return false;
	open = io_uring_get_sqe(ring);
	sqe = io_uring_get_sqe(ring);
	close = io_uring_get_sqe(ring);
	io_uring_prep_openat_direct(open, AT_FDCWD, "/proc/self/stat", O_RDONLY | flags, 0, 0);
	open->flags |= IOSQE_IO_HARDLINK;
	io_uring_prep_read(sqe, 0, buf, sizeof(buf), 0);
	sqe->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
	io_uring_prep_close_direct(close, 0);
	open->user_data = close->user_data = 0;
	sqe->user_data = 1;
	for (int left = 3; left > 0; left--) {
		if (io_uring_submit_and_wait(ring, 1) < 0 || io_uring_wait_cqe(ring, &cqe))
			return false;
		if (cqe->user_data == 1)
			read = cqe->res;
		io_uring_cqe_seen(ring, cqe);
	}
	return read > 0;
}

static bool ring_register_slots(struct io_uring *ring)
{
	int slots[MOTE_ENGINE_SLOTS];

	memset(slots, -1, sizeof(slots));
	return !io_uring_register_files(ring, slots, MOTE_ENGINE_SLOTS);
}

static void *probe_direct(void *arg)
{
	struct mote_engine *engine = arg;
	struct io_uring ring;
	bool single;

	if (ring_setup(&ring, 8, &single))
		return NULL;
	engine->direct = ring_register_slots(&ring) && ring_has_direct(&ring, 0);
	engine->ready = engine->direct && ring_has_direct(&ring, O_NONBLOCK);
	io_uring_queue_exit(&ring);
	return NULL;
}

/*
 * In a thread of its own: workers belong to the thread that submitted, the last of them stays until
 * that ends, and has the capabilities of when it was made. mote's own must not be that old.
 */
static void probe_direct_apart(struct mote_engine *engine)
{
	pthread_t thread;

	if (!mote_thread_start(&thread, "mote-probe", probe_direct, engine))
		pthread_join(thread, NULL);
}

int mote_engine_open_ring(const struct mote_engine_config *config, struct mote_engine **out)
{
	struct ring_engine *engine = calloc(1, sizeof(*engine));
	unsigned int workers[2] = { config->workers, config->workers };
	bool single;
	int err;

	if (!engine)
		return -ENOMEM;
	err = ring_setup(&engine->ring, config->sq_entries, &single);
	if (err) {
		free(engine);
		return err;
	}
	engine->base.ops = &ring_ops;
	probe_direct_apart(&engine->base);
	if (!ring_register_slots(&engine->ring))
		engine->base.direct = engine->base.ready = false;
	/* One worker must stay free for the tick's chain. Unbounded (before 5.15): many are. */
	engine->base.blocking_max = io_uring_register_iowq_max_workers(&engine->ring, workers)
					    ? 2
					    : config->workers - 1;
	io_uring_ring_dontfork(&engine->ring);
	*out = &engine->base;
	return 0;
}

void mote_engine_probe_ring(struct mote_engine_features *features)
{
	struct io_uring ring;
	unsigned int workers[2] = { 1, 1 };
	struct io_uring_probe *probe;
	struct mote_engine engine = { 0 };

	memset(features, 0, sizeof(*features));
	features->error = ring_setup(&ring, 8, &features->single_issuer);
	if (features->error)
		return;
	probe = io_uring_get_probe_ring(&ring);
	if (probe) {
		features->last_op = probe->last_op;
		io_uring_free_probe(probe);
	}
	probe_direct_apart(&engine);
	features->direct = engine.direct;
	features->worker_bound = !io_uring_register_iowq_max_workers(&ring, workers);
	io_uring_queue_exit(&ring);
}
