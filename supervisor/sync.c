// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The engine without io_uring: the same operations by plain system calls. Operations that are
 * not ready wait in one poll(); those that may block on another process go to a thread, one chain
 * at a time, so that they cannot hold up a tick. It owns an array of operations, a table that
 * stands for direct descriptors, and that thread.
 */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "thread.h"

#define NONE (-1)

struct operation {
	struct mote_sqe sqe;
	int next; /* linked behind this one, or the next free one */
};

struct sync_engine {
	struct mote_engine base;
	unsigned int entries, used;
	struct operation *ops;
	int free;
	int *heads; /* of chains that have not started */
	unsigned int nheads;
	int last; /* the operation that the next push is linked behind, or NONE */
	struct pollfd *polls;
	struct mote_cqe *done;
	unsigned int ndone;
	int slots[MOTE_ENGINE_SLOTS];

	/* The blocking thread: takes `job`, leaves completions in `blocked`, rings `bell`. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	int job;
	int blocking; /* the chain that the thread has, or NONE; the loop's side of `job` */
	struct mote_cqe *blocked;
	unsigned int nblocked;
	int bell;
};

static struct sync_engine *sync_of(struct mote_engine *engine)
{
	return (struct sync_engine *)engine;
}

static unsigned int sync_room(const struct mote_engine *engine)
{
	const struct sync_engine *sync = (const struct sync_engine *)engine;

	return sync->entries - sync->used - sync->ndone; /* each becomes a completion */
}

static int sync_push(struct mote_engine *engine, const struct mote_sqe *sqe)
{
	struct sync_engine *sync = sync_of(engine);
	int i = sync->free;

	if (!sync_room(engine))
		return -EBUSY;
	sync->free = sync->ops[i].next;
	sync->used++;
	sync->ops[i] = (struct operation){ .sqe = *sqe, .next = NONE };
	if (sync->last == NONE)
		sync->heads[sync->nheads++] = i;
	else
		sync->ops[sync->last].next = i;
	sync->last = sqe->flags & MOTE_SQE_LINK ? i : NONE;
	return 0;
}

static void sync_end_chain(struct mote_engine *engine)
{
	sync_of(engine)->last = NONE;
}

static int result(ssize_t res)
{
	return res < 0 ? -errno : (int)res;
}

static int do_open(struct sync_engine *sync, const struct mote_sqe *sqe)
{
	int fd = openat(sqe->fd, sqe->path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || sqe->slot < 0)
		return result(fd);
	if (sync->slots[sqe->slot] >= 0)
		close(sync->slots[sqe->slot]);
	sync->slots[sqe->slot] = fd;
	return 0;
}

static int do_close(struct sync_engine *sync, const struct mote_sqe *sqe, int fd)
{
	if (sqe->flags & MOTE_SQE_SLOT)
		sync->slots[sqe->fd] = -1;
	return fd < 0 ? -EBADF : result(close(fd));
}

static int hangup(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLRDHUP };

	return poll(&poll_fd, 1, 0) < 0 ? -errno : poll_fd.revents;
}

static int execute(struct sync_engine *sync, const struct mote_sqe *sqe)
{
	int fd = sqe->flags & MOTE_SQE_SLOT ? sync->slots[sqe->fd] : sqe->fd;

	switch (sqe->op) {
	case MOTE_OP_READ:
		if (sqe->offset == MOTE_OFFSET_CURRENT || sqe->flags & MOTE_SQE_WAIT)
			return result(read(fd, sqe->buf, sqe->len));
		return result(pread(fd, sqe->buf, sqe->len, (off_t)sqe->offset));
	case MOTE_OP_OPEN:
		return do_open(sync, sqe);
	case MOTE_OP_CLOSE:
		return do_close(sync, sqe, fd);
	case MOTE_OP_ACCEPT:
		return result(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	case MOTE_OP_RECV:
		return result(recv(fd, sqe->buf, sqe->len, MSG_DONTWAIT));
	case MOTE_OP_SEND:
		return result(sendmsg(fd, sqe->msg, MSG_DONTWAIT | MSG_NOSIGNAL));
	case MOTE_OP_WRITABLE:
		return POLLOUT;
	case MOTE_OP_HANGUP:
		return hangup(fd);
	case MOTE_OPS:
		break;
	}
	return -EINVAL;
}

/* What a chain's head must wait for, in terms of poll(); 0: nothing. */
static short waits_for(const struct mote_sqe *sqe)
{
	if (sqe->op == MOTE_OP_WRITABLE)
		return POLLOUT;
	if (sqe->op == MOTE_OP_ACCEPT || (sqe->op == MOTE_OP_READ && sqe->flags & MOTE_SQE_WAIT) ||
	    (sqe->op == MOTE_OP_RECV && !(sqe->flags & MOTE_SQE_NOWAIT)))
		return POLLIN;
	return 0;
}

static void release(struct sync_engine *sync, int i)
{
	sync->ops[i].next = sync->free;
	sync->free = i;
	sync->used--;
}

/* Runs a chain from `i` on. */
static void run_chain(struct sync_engine *sync, int i)
{
	while (i != NONE) {
		int next = sync->ops[i].next;

		sync->done[sync->ndone++] =
			(struct mote_cqe){ .tag = sync->ops[i].sqe.tag,
					   .res = execute(sync, &sync->ops[i].sqe) };
		release(sync, i);
		i = next;
	}
}

static void *blocking_thread(void *arg)
{
	struct sync_engine *sync = arg;

	mote_thread_touch_stack();
	pthread_mutex_lock(&sync->lock);
	while (!sync->stop) {
		if (sync->job == NONE) {
			pthread_cond_wait(&sync->wake, &sync->lock);
			continue;
		}
		for (int i = sync->job; i != NONE; i = sync->ops[i].next) {
			pthread_mutex_unlock(&sync->lock);
			int res = execute(sync, &sync->ops[i].sqe);

			pthread_mutex_lock(&sync->lock);
			sync->blocked[sync->nblocked++] =
				(struct mote_cqe){ .tag = sync->ops[i].sqe.tag, .res = res };
		}
		sync->job = NONE;
		eventfd_write(sync->bell, 1);
	}
	pthread_mutex_unlock(&sync->lock);
	return NULL;
}

static void start_blocking(struct sync_engine *sync, int head)
{
	sync->blocking = head;
	pthread_mutex_lock(&sync->lock);
	sync->job = head;
	pthread_cond_signal(&sync->wake);
	pthread_mutex_unlock(&sync->lock);
}

static void take_blocked(struct sync_engine *sync)
{
	int head = sync->blocking;
	eventfd_t rung;

	eventfd_read(sync->bell, &rung);
	pthread_mutex_lock(&sync->lock);
	memcpy(sync->done + sync->ndone, sync->blocked, sync->nblocked * sizeof(*sync->blocked));
	sync->ndone += sync->nblocked;
	sync->nblocked = 0;
	pthread_mutex_unlock(&sync->lock);
	sync->blocking = NONE;
	while (head != NONE) {
		int next = sync->ops[head].next;

		release(sync, head);
		head = next;
	}
}

static void drop_head(struct sync_engine *sync, unsigned int at)
{
	memmove(sync->heads + at, sync->heads + at + 1,
		(--sync->nheads - at) * sizeof(*sync->heads));
}

/* Runs the chains that wait for nothing. */
static void run_ready(struct sync_engine *sync)
{
	for (unsigned int i = 0; i < sync->nheads;) {
		int head = sync->heads[i];
		const struct mote_sqe *sqe = &sync->ops[head].sqe;

		if (sqe->flags & MOTE_SQE_MAY_BLOCK) {
			if (sync->blocking != NONE) {
				i++;
				continue;
			}
			drop_head(sync, i);
			start_blocking(sync, head);
		} else if (waits_for(sqe)) {
			i++;
		} else {
			drop_head(sync, i);
			run_chain(sync, head);
		}
	}
}

static int poll_heads(struct sync_engine *sync)
{
	unsigned int n = sync->nheads;
	int ready;

	for (unsigned int i = 0; i < n; i++) {
		const struct mote_sqe *sqe = &sync->ops[sync->heads[i]].sqe;

		/* A chain that waits for the blocking thread is not polled. */
		sync->polls[i] = (struct pollfd){
			.fd = sqe->flags & MOTE_SQE_MAY_BLOCK ? -1 : sqe->fd,
			.events = waits_for(sqe),
		};
	}
	sync->polls[n] = (struct pollfd){ .fd = sync->bell, .events = POLLIN };
	ready = poll(sync->polls, n + 1, -1);
	if (ready <= 0)
		return ready < 0 ? -errno : 0;
	if (sync->polls[n].revents)
		take_blocked(sync);
	for (unsigned int i = n; i-- > 0;) {
		int head = sync->heads[i];

		if (!sync->polls[i].revents)
			continue;
		drop_head(sync, i);
		run_chain(sync, head);
	}
	return 0;
}

static int sync_wait(struct mote_engine *engine, unsigned int want, struct mote_cqe *cqes,
		     unsigned int max)
{
	struct sync_engine *sync = sync_of(engine);
	int err = 0;
	unsigned int n;

	run_ready(sync);
	while (sync->ndone < want && !err) {
		err = poll_heads(sync);
		run_ready(sync);
	}
	if (err && err != -EINTR)
		return err;
	n = sync->ndone < max ? sync->ndone : max;
	memcpy(cqes, sync->done, n * sizeof(*cqes));
	sync->ndone -= n;
	memmove(sync->done, sync->done + n, sync->ndone * sizeof(*sync->done));
	return (int)n;
}

static void sync_free(struct sync_engine *sync)
{
	if (!sync)
		return;
	if (sync->bell >= 0)
		close(sync->bell);
	free(sync->ops);
	free(sync->heads);
	free(sync->polls);
	free(sync->done);
	free(sync->blocked);
	free(sync);
}

static void sync_close(struct mote_engine *engine)
{
	struct sync_engine *sync = sync_of(engine);

	pthread_mutex_lock(&sync->lock);
	sync->stop = true;
	pthread_cond_signal(&sync->wake);
	pthread_mutex_unlock(&sync->lock);
	/* A read that never returns must not keep the process: the thread dies with it. */
	if (sync->blocking != NONE)
		return;
	pthread_join(sync->thread, NULL);
	for (unsigned int i = 0; i < MOTE_ENGINE_SLOTS; i++) {
		if (sync->slots[i] >= 0)
			close(sync->slots[i]);
	}
	sync_free(sync);
}

static const struct mote_engine_ops sync_ops = {
	.name = "sync",
	.close = sync_close,
	.push = sync_push,
	.end_chain = sync_end_chain,
	.wait = sync_wait,
	.room = sync_room,
};

static int sync_allocate(struct sync_engine *sync, unsigned int entries)
{
	sync->ops = calloc(entries, sizeof(*sync->ops));
	sync->heads = calloc(entries, sizeof(*sync->heads));
	sync->polls = calloc(entries + 1, sizeof(*sync->polls));
	sync->done = calloc(entries, sizeof(*sync->done));
	sync->blocked = calloc(entries, sizeof(*sync->blocked));
	if (!sync->ops || !sync->heads || !sync->polls || !sync->done || !sync->blocked)
		return -ENOMEM;
	for (unsigned int i = 0; i < entries; i++)
		sync->ops[i].next = i + 1 < entries ? (int)i + 1 : NONE;
	memset(sync->slots, -1, sizeof(sync->slots));
	sync->entries = entries;
	sync->last = sync->job = sync->blocking = NONE;
	return 0;
}

int mote_engine_open_sync(const struct mote_engine_config *config, struct mote_engine **out)
{
	struct sync_engine *sync = calloc(1, sizeof(*sync));
	int err = -ENOMEM;

	if (sync) {
		sync->bell = -1;
		err = sync_allocate(sync, config->sq_entries);
	}
	if (!err) {
		sync->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = sync->bell < 0 ? -errno : 0;
	}
	if (!err) {
		pthread_mutex_init(&sync->lock, NULL);
		pthread_cond_init(&sync->wake, NULL);
		err = mote_thread_start(&sync->thread, "mote-blocking", blocking_thread, sync);
	}
	if (err) {
		sync_free(sync);
		return err;
	}
	sync->base = (struct mote_engine){ .ops = &sync_ops, .direct = true, .blocking_max = 1 };
	*out = &sync->base;
	return 0;
}
