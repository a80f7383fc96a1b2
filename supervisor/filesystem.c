// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The life of the filesystem threads, and the loop's side of them: see filesystem.h;
 * filesystem_round.c is what the threads do. Memory is one block and four lists, all of it freed by
 * mote_filesystems_stop(), or by the last thread if one hangs then.
 */
#include "filesystem_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull
#define FIRST_NS  (200 * NS_PER_MS)

static void release(struct mote_filesystems *fs)
{
	for (unsigned int i = 0; i < 3; i++)
		mote_mounts_free(fs->results[i]);
	mote_mounts_free(fs->list);
	if (fs->mountinfo >= 0)
		close(fs->mountinfo);
	free(fs);
}

void mote_filesystems_destroy(struct mote_filesystems *fs)
{
	pthread_cond_destroy(&fs->wake);
	pthread_mutex_destroy(&fs->lock);
	release(fs);
}

static int allocate(struct mote_filesystems *fs, unsigned int max)
{
	bool whole = true;

	fs->list = mote_mounts_new(max);
	for (unsigned int i = 0; i < 3; i++) {
		fs->results[i] = mote_mounts_new(max);
		whole = whole && fs->results[i];
	}
	return whole && fs->list ? 0 : -ENOMEM;
}

int mote_filesystems_open(const char *mountinfo, unsigned int max, unsigned int interval_ms,
			  struct mote_filesystems **out)
{
	struct mote_filesystems *fs;
	int err;

	if (max == 0 || interval_ms == 0)
		return -EINVAL;
	/* not malloc(): with memset() it becomes calloc(), which need not touch a page */
	fs = aligned_alloc(64, (sizeof(*fs) + 63) & ~63ul);
	if (!fs)
		return -ENOMEM;
	memset(fs, 0, sizeof(*fs));
	fs->interval = interval_ms * NS_PER_MS;
	mote_triple_init(&fs->triple);
	fs->mountinfo = open(mountinfo ? mountinfo : "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	err = fs->mountinfo < 0 ? -errno : allocate(fs, max);
	if (!err)
		err = mote_thread_cond_init(&fs->wake);
	if (err) {
		release(fs);
		return err;
	}
	pthread_mutex_init(&fs->lock, NULL);
	*out = fs;
	return 0;
}

/* The first subscriber shall not have to wait an interval for the first rows. */
static void wait_first(struct mote_filesystems *fs)
{
	uint64_t until = mote_thread_now() + FIRST_NS;

	pthread_mutex_lock(&fs->lock);
	while (!fs->published && mote_thread_now() < until)
		mote_thread_wait(&fs->wake, &fs->lock, until);
	pthread_mutex_unlock(&fs->lock);
}

int mote_filesystems_run(struct mote_filesystems *fs)
{
	int err = 0;

	pthread_mutex_lock(&fs->lock);
	for (unsigned int i = 0; i < MOTE_STATFS_THREADS && !err; i++) {
		struct mote_statfs_worker *worker = &fs->workers[i];

		worker->fs = fs;
		err = mote_thread_start(&worker->thread, "mote-statfs", mote_filesystems_work,
					worker);
		worker->started = !err;
		fs->running += !err;
	}
	fs->stop = err != 0;
	pthread_mutex_unlock(&fs->lock);
	if (!err)
		wait_first(fs);
	return err;
}

int mote_filesystems_start(unsigned int max, unsigned int interval_ms,
			   struct mote_filesystems **out)
{
	struct mote_filesystems *fs;
	int err = mote_filesystems_open(NULL, max, interval_ms, &fs);

	if (err)
		return err;
	err = mote_filesystems_run(fs);
	if (err)
		mote_filesystems_stop(fs);
	else
		*out = fs;
	return err;
}

/* Those that have not ended are left to themselves. */
static void join_or_leave(struct mote_filesystems *fs)
{
	for (unsigned int i = 0; i < MOTE_STATFS_THREADS; i++) {
		struct mote_statfs_worker *worker = &fs->workers[i];

		if (worker->ended)
			pthread_join(worker->thread, NULL);
		else if (worker->started)
			pthread_detach(worker->thread);
	}
}

void mote_filesystems_stop(struct mote_filesystems *fs)
{
	uint64_t until = mote_thread_now() + MOTE_STATFS_HUNG_NS;
	bool abandoned;

	if (!fs)
		return;
	pthread_mutex_lock(&fs->lock);
	fs->stop = true;
	pthread_cond_broadcast(&fs->wake);
	while (fs->running && mote_thread_now() < until)
		mote_thread_wait(&fs->wake, &fs->lock, until);
	/* under the lock, which a thread takes once more before it ends */
	join_or_leave(fs);
	abandoned = fs->abandoned = fs->running != 0;
	pthread_mutex_unlock(&fs->lock);
	if (!abandoned)
		mote_filesystems_destroy(fs);
}

static void set_space(struct mote_table *table, struct mote_row *row,
		      const struct mote_space *space)
{
	if (space->sized) {
		mote_row_set(table, row, FILESYSTEM_SIZE, space->size);
		mote_row_set(table, row, FILESYSTEM_FREE, space->free);
		mote_row_set(table, row, FILESYSTEM_AVAILABLE, space->available);
	}
	if (space->inoded) {
		mote_row_set(table, row, FILESYSTEM_INODES, space->inodes);
		mote_row_set(table, row, FILESYSTEM_INODES_FREE, space->inodes_free);
	}
	if (space->known)
		mote_row_set(table, row, FILESYSTEM_READ_ONLY, space->read_only);
}

static void set_name(struct mote_table *table, struct mote_row *row, unsigned int field,
		     const char *name)
{
	mote_row_set_str(table, row, field, name, strlen(name));
}

void mote_filesystems_collect(struct mote_filesystems *fs, struct mote_table *table, uint64_t now)
{
	const struct mote_mounts *list;

	if (!mote_triple_take(&fs->triple))
		return;
	list = fs->results[fs->triple.front];
	mote_table_begin(table, now);
	for (unsigned int i = 0; i < list->used; i++) {
		const struct mote_mount *mount = &list->mounts[i];
		const char *point = list->text + mount->point;
		struct mote_row *row = mote_table_row(table, point, strlen(point));

		if (!row)
			continue;
		set_name(table, row, FILESYSTEM_DEVICE, list->text + mount->device);
		set_name(table, row, FILESYSTEM_TYPE, list->text + mount->type);
		set_space(table, row, &mount->space);
	}
	mote_table_end(table);
}

uint64_t mote_filesystems_dropped(const struct mote_filesystems *fs)
{
	return atomic_load_explicit(&fs->dropped, memory_order_relaxed);
}

unsigned int mote_filesystems_hung(const struct mote_filesystems *fs)
{
	return atomic_load_explicit(&fs->hung, memory_order_relaxed);
}
