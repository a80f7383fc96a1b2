/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the loop asks of the kernel, and how: one io_uring (ring.c), or plain system calls where
 * that is refused (sync.c). Both take the same operations and give the same results; a caller
 * cannot tell them apart but by mote_engine_name().
 *
 * Operations are pushed, and submitted all at once by mote_engine_wait(). Nothing is allocated
 * after mote_engine_open(). What an operation points to must live until its completion.
 */
#ifndef MOTE_ENGINE_H
#define MOTE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct mote_engine;

enum mote_op {
	MOTE_OP_READ,     /* fd or slot, buf, len, offset */
	MOTE_OP_OPEN,     /* fd: directory, path, slot: where a direct descriptor goes, or -1 */
	MOTE_OP_CLOSE,    /* fd or slot */
	MOTE_OP_ACCEPT,   /* fd; result: the new descriptor, close-on-exec */
	MOTE_OP_RECV,     /* fd, buf, len; MOTE_SQE_NOWAIT: -EAGAIN at once if there is nothing */
	MOTE_OP_SEND,     /* fd, msg; always with MSG_DONTWAIT and MSG_NOSIGNAL */
	MOTE_OP_WRITABLE, /* fd; completes when it can be written to */
	MOTE_OP_HANGUP,   /* fd, whose input is over; at once; result & POLLHUP: so is its output */
	MOTE_OPS
};

enum mote_sqe_flags {
	MOTE_SQE_LINK = 1,  /* the next operation starts when this one has ended, failed or not */
	MOTE_SQE_SLOT = 2,  /* fd is a slot of direct descriptors */
	MOTE_SQE_ASYNC = 4, /* to a worker at once: it may take long, or is not always ready */
	MOTE_SQE_MAY_BLOCK = 8, /* may wait for another process: never linked behind the timer */
	MOTE_SQE_NOWAIT = 16,
	MOTE_SQE_WAIT = 32,  /* a READ of something that is not always ready: a timer, a signal */
	MOTE_SQE_READY = 64, /* an OPEN of a file that always is, see mote_engine_ready() */
};

#define MOTE_OFFSET_CURRENT UINT64_MAX
#define MOTE_ENGINE_SLOTS   80

struct mote_sqe {
	uint64_t tag; /* comes back with the completion */
	enum mote_op op;
	unsigned int flags;
	int fd;
	int slot;
	void *buf;
	uint32_t len;
	uint64_t offset;
	const char *path;
	const struct msghdr *msg;
};

struct mote_cqe {
	uint64_t tag;
	int res; /* as the system call returns it, or negative errno */
};

struct mote_engine_config {
	unsigned int sq_entries;
	unsigned int workers;
};

/* What io_uring can do here, for --check and hello. */
struct mote_engine_features {
	int error;          /* 0, or why there is no ring: -EPERM, -ENOSYS, ... */
	bool direct;        /* open, read and close of a direct descriptor in one chain */
	bool single_issuer; /* SINGLE_ISSUER and COOP_TASKRUN */
	bool worker_bound;  /* IORING_REGISTER_IOWQ_MAX_WORKERS */
	unsigned int last_op;
};

int mote_engine_open_ring(const struct mote_engine_config *config, struct mote_engine **out);
int mote_engine_open_sync(const struct mote_engine_config *config, struct mote_engine **out);
void mote_engine_close(struct mote_engine *engine);
void mote_engine_probe_ring(struct mote_engine_features *features);

const char *mote_engine_name(const struct mote_engine *engine); /* "uring" or "sync" */
/* Whether MOTE_OP_OPEN takes a slot. */
bool mote_engine_direct(const struct mote_engine *engine);
/*
 * Whether reads of a slot that was opened with MOTE_SQE_READY need no worker: where the loop's
 * thread is awake already, for the timer, it makes them itself, and two wake-ups less are a tick's
 * cost.
 */
bool mote_engine_ready(const struct mote_engine *engine);
/*
 * Puts a file of /proc that is open into a slot for such reads; false if it is to be read with
 * MOTE_SQE_ASYNC instead. Before the loop only: it reads the file once.
 */
bool mote_engine_hold(struct mote_engine *engine, int fd, int slot);
/* How many operations that may block can be under way without holding up the others. */
unsigned int mote_engine_blocking_max(const struct mote_engine *engine);
/* How many operations can be pushed before the next wait. */
unsigned int mote_engine_room(const struct mote_engine *engine);

/* 0, or -EBUSY when the queue is full: wait first. */
int mote_engine_push(struct mote_engine *engine, const struct mote_sqe *sqe);
/* The operation pushed last is its chain's end, whatever its flags said. */
void mote_engine_end_chain(struct mote_engine *engine);

/*
 * Submits what was pushed and waits for `want` completions; gives up to `max` of them. It may
 * return fewer than wanted (a signal, a worker being made): ask again. Never fails for good
 * unless the kernel refuses the engine itself: negative errno.
 */
int mote_engine_wait(struct mote_engine *engine, unsigned int want, struct mote_cqe *cqes,
		     unsigned int max);

/* The engines' side. */
struct mote_engine_ops {
	const char *name;
	void (*close)(struct mote_engine *engine);
	int (*push)(struct mote_engine *engine, const struct mote_sqe *sqe);
	void (*end_chain)(struct mote_engine *engine);
	int (*wait)(struct mote_engine *engine, unsigned int want, struct mote_cqe *cqes,
		    unsigned int max);
	unsigned int (*room)(const struct mote_engine *engine);
	bool (*hold)(struct mote_engine *engine, int fd, int slot); /* NULL: never */
};

struct mote_engine {
	const struct mote_engine_ops *ops;
	bool direct, ready;
	unsigned int blocking_max;
};

#endif
