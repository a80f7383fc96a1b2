// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Lists /proc in a thread of its own, see listing.h. The thread owns the descriptor and one of
 * three lists; all memory is there before it starts. A listing that fails midway is not handed
 * over: what is not in a list would be taken for a process that does not exist.
 */
#include "listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "thread.h"

#define NS_PER_MS 1000000ull

struct list {
	uint32_t *pid;
	unsigned int n, more;
};

struct mote_listing {
	struct mote_triple triple;
	struct list list[3];
	unsigned int max;
	uint64_t interval; /* ns */
	int fd;
	pthread_t thread;
	pthread_mutex_t lock; /* of what is below, which the loop never touches */
	pthread_cond_t wake;
	bool stop;
	int first; /* 1: the first listing is not done yet; else 0 or its error */
	char buf[32768];
};

/* A name that is not all digits is not a process. The kernel's have no leading zeros. */
static bool pid_of(const char *name, uint32_t *pid)
{
	uint32_t sum = 0;

	if (*name < '1' || *name > '9')
		return false;
	for (; *name >= '0' && *name <= '9'; name++)
		sum = sum * 10 + (uint32_t)(*name - '0');
	*pid = sum;
	return *name == 0;
}

/* /proc gives processes by ascending pid; one that was born meanwhile may come out of order. */
static void add(const struct mote_listing *listing, struct list *list, uint32_t pid)
{
	if (list->n && list->pid[list->n - 1] >= pid)
		return;
	if (list->n == listing->max)
		list->more++;
	else
		list->pid[list->n++] = pid;
}

static int list_all(struct mote_listing *listing)
{
	struct list *list = &listing->list[listing->triple.back];
	uint32_t pid;
	ssize_t len;

	list->n = list->more = 0;
	if (lseek(listing->fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((len = getdents64(listing->fd, listing->buf, sizeof(listing->buf))) > 0) {
		for (ssize_t at = 0; at < len;) {
			const struct dirent64 *entry = (const void *)(listing->buf + at);

			if (pid_of(entry->d_name, &pid))
				add(listing, list, pid);
			at += entry->d_reclen;
		}
	}
	if (len < 0)
		return -errno;
	mote_triple_publish(&listing->triple);
	return 0;
}

static void *work(void *arg)
{
	struct mote_listing *listing = arg;
	uint64_t next = mote_thread_now();
	int err;

	mote_thread_touch_stack();
	pthread_mutex_lock(&listing->lock);
	while (!listing->stop) {
		if (mote_thread_now() < next) {
			mote_thread_wait(&listing->wake, &listing->lock, next);
			continue;
		}
		pthread_mutex_unlock(&listing->lock);
		err = list_all(listing);
		next = mote_thread_now() + listing->interval;
		pthread_mutex_lock(&listing->lock);
		if (listing->first == 1) {
			listing->first = err;
			pthread_cond_broadcast(&listing->wake);
		}
	}
	pthread_mutex_unlock(&listing->lock);
	return NULL;
}

static void release(struct mote_listing *listing)
{
	for (int i = 0; i < 3; i++)
		free(listing->list[i].pid);
	if (listing->fd >= 0)
		close(listing->fd);
	free(listing);
}

static int prepare(struct mote_listing *listing, const char *proc)
{
	listing->fd = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (listing->fd < 0)
		return -errno;
	for (int i = 0; i < 3; i++) {
		listing->list[i].pid = malloc(listing->max * sizeof(uint32_t));
		if (!listing->list[i].pid)
			return -ENOMEM;
		memset(listing->list[i].pid, 0xff, listing->max * sizeof(uint32_t));
	}
	return mote_thread_cond_init(&listing->wake);
}

static int wait_first(struct mote_listing *listing)
{
	int err;

	pthread_mutex_lock(&listing->lock);
	while (listing->first == 1)
		pthread_cond_wait(&listing->wake, &listing->lock);
	err = listing->first;
	pthread_mutex_unlock(&listing->lock);
	return err;
}

int mote_listing_start(const char *proc, unsigned int max, unsigned int interval_ms,
		       struct mote_listing **out)
{
	struct mote_listing *listing;
	int err;

	if (max == 0 || interval_ms == 0)
		return -EINVAL;
	listing = malloc(sizeof(*listing));
	if (!listing)
		return -ENOMEM;
	memset(listing, 0, sizeof(*listing));
	listing->max = max;
	listing->interval = interval_ms * NS_PER_MS;
	listing->first = 1;
	listing->fd = -1;
	mote_triple_init(&listing->triple);
	err = prepare(listing, proc ? proc : "/proc");
	if (!err) {
		pthread_mutex_init(&listing->lock, NULL);
		err = mote_thread_start(&listing->thread, "mote-listing", work, listing);
	}
	if (err) {
		release(listing);
		return err;
	}
	err = wait_first(listing);
	if (err) {
		mote_listing_stop(listing);
		return err;
	}
	*out = listing;
	return 0;
}

void mote_listing_stop(struct mote_listing *listing)
{
	if (!listing)
		return;
	pthread_mutex_lock(&listing->lock);
	listing->stop = true;
	pthread_cond_signal(&listing->wake);
	pthread_mutex_unlock(&listing->lock);
	pthread_join(listing->thread, NULL); /* a listing of /proc waits for nobody */
	pthread_cond_destroy(&listing->wake);
	pthread_mutex_destroy(&listing->lock);
	release(listing);
}

bool mote_listing_take(struct mote_listing *listing, struct mote_pids *out)
{
	const struct list *list;

	if (!mote_triple_take(&listing->triple))
		return false;
	list = &listing->list[listing->triple.front];
	*out = (struct mote_pids){ .pid = list->pid, .n = list->n, .more = list->more };
	return true;
}
