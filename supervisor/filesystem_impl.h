/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What filesystem.c and filesystem_round.c share. */
#ifndef MOTE_FILESYSTEM_IMPL_H
#define MOTE_FILESYSTEM_IMPL_H

#include <limits.h>

#include "filesystem.h"
#include "parse_mounts.h"
#include "thread.h"

#define MOTE_STATFS_HUNG_NS 1000000000ull /* a call that lasts longer hangs */
#define MOTE_MOUNT_BYTES    (16 * 1024)   /* of mountinfo at a time */

struct mote_statfs_worker {
	struct mote_filesystems *fs;
	pthread_t thread;
	bool started, ended;
	bool calling; /* is inside statfs(), since `since`, for the mount `id` */
	uint64_t since;
	uint32_t id;
	uint64_t device_id;
	char path[PATH_MAX]; /* its own: the list may be made anew while the call lasts */
};

struct mote_filesystems {
	int mountinfo;
	uint64_t interval;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	bool abandoned;       /* mote_filesystems_stop() is over: the last thread frees all this */
	unsigned int running; /* threads that have not ended */
	struct mote_statfs_worker *active;
	uint64_t next_round;
	struct mote_mounts *list;
	bool open;       /* a round has begun and is not over */
	unsigned int at; /* the mount that it looks at next */
	bool published;

	struct mote_triple triple;
	struct mote_mounts *results[3];
	_Atomic uint64_t dropped;
	_Atomic unsigned int hung;
	struct mote_statfs_worker workers[MOTE_STATFS_THREADS];
	char text[MOTE_MOUNT_BYTES];
};

/* A thread's function; `worker` is a struct mote_statfs_worker. */
void *mote_filesystems_work(void *worker);
/* When no thread is left. */
void mote_filesystems_destroy(struct mote_filesystems *fs);

#endif
