// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * statfs() of every mount, round by round: see filesystem.h. A round reads mountinfo anew into
 * `list` and calls statfs() for one mount after the other without holding the lock; at its end the
 * list is handed to the loop. `active` is the thread that has the round; one whose call lasts too
 * long loses it to another. The lock belongs to the threads; the loop never takes it.
 */
#include "filesystem.h"
#include "parse_mounts.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull
#define HUNG_NS   (1000 * NS_PER_MS)
#define FIRST_NS  (200 * NS_PER_MS)
#define MOUNT_BYTES                                                                  \
	(16 * 1024) /* of mountinfo at a time; a longer line is cut behind its names \
		     */

struct worker {
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
	struct worker *active;
	uint64_t next_round;
	struct mote_mounts *list;
	bool open;       /* a round has begun and is not over */
	unsigned int at; /* the mount that it looks at next */
	bool published;

	struct mote_triple triple;
	struct mote_mounts *results[3];
	_Atomic uint64_t dropped;
	_Atomic unsigned int hung;
	struct worker workers[MOTE_STATFS_THREADS];
	char text[MOUNT_BYTES];
};

/*
 * The file is made as it is read, some lines at a time, so that a short read is not its end. One
 * that changes between two reads can lose or repeat a line for this round.
 */
static void read_mounts(struct mote_filesystems *fs)
{
	size_t have = 0, done;
	bool cut = false; /* the rest of a line that was longer than the buffer comes first */
	off_t offset = 0;
	ssize_t got;

	mote_mounts_clear(fs->list);
	while ((got = pread(fs->mountinfo, fs->text + have, sizeof(fs->text) - have, offset)) > 0) {
		struct mote_text text = { fs->text, have + got };

		offset += got;
		if (cut) {
			const char *end = memchr(text.data, '\n', text.len);

			done = end ? (size_t)(end + 1 - text.data) : text.len;
			cut = !end;
		} else {
			done = mote_mounts_parse(fs->list, text);
			if (done == 0 && text.len == sizeof(fs->text)) {
				mote_mounts_add(fs->list, text);
				done = text.len;
				cut = true;
			}
		}
		have = text.len - done;
		memmove(fs->text, fs->text + done, have);
	}
}

static void begin_round(struct mote_filesystems *fs, uint64_t now)
{
	read_mounts(fs);
	fs->at = 0;
	fs->open = true;
	fs->next_round = now + fs->interval;
	atomic_fetch_add_explicit(&fs->dropped, fs->list->turned_away, memory_order_relaxed);
}

static void publish(struct mote_filesystems *fs)
{
	mote_mounts_copy(fs->results[fs->triple.back], fs->list);
	mote_triple_publish(&fs->triple);
	if (!fs->published) {
		fs->published = true;
		pthread_cond_broadcast(&fs->wake);
	}
}

/* Other threads that are inside a call; of superblock `device_id` if `device_id` is not NULL. */
static unsigned int others_calling(const struct worker *self, const uint64_t *device_id)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < MOTE_STATFS_THREADS; i++) {
		const struct worker *other = &self->fs->workers[i];

		if (other != self && (other->calling || !other->started) &&
		    (!device_id || (other->calling && other->device_id == *device_id)))
			n++;
	}
	return n;
}

/* The next mount of the round that this thread may call statfs() for; NULL at the round's end. */
static const struct mote_mount *next_mount(const struct worker *self)
{
	struct mote_filesystems *fs = self->fs;
	bool last = others_calling(self, NULL) == MOTE_STATFS_THREADS - 1;

	while (fs->at < fs->list->used) {
		const struct mote_mount *mount = &fs->list->mounts[fs->at++];

		if ((mount->local || !last) && !others_calling(self, &mount->device_id))
			return mount;
	}
	return NULL;
}

static bool scale(uint64_t blocks, uint64_t size, uint64_t *bytes)
{
	return !__builtin_mul_overflow(blocks, size, bytes);
}

static void fill_space(struct mote_space *space, const struct statfs *st)
{
	uint64_t unit = st->f_frsize ? st->f_frsize : st->f_bsize;

	*space = (struct mote_space){ .known = true, .inoded = st->f_files != 0 };
	space->sized = st->f_blocks != 0 && scale(st->f_blocks, unit, &space->size) &&
		       scale(st->f_bfree, unit, &space->free) &&
		       scale(st->f_bavail, unit, &space->available);
	space->inodes = st->f_files;
	space->inodes_free = st->f_ffree;
	space->read_only = st->f_flags & ST_RDONLY;
}

static void keep_result(struct mote_filesystems *fs, const struct worker *self,
			const struct statfs *st)
{
	for (unsigned int i = 0; i < fs->list->used; i++) {
		struct mote_mount *mount = &fs->list->mounts[i];

		if (mount->id == self->id && mount->device_id == self->device_id)
			fill_space(&mount->space, st);
	}
}

static void call_statfs(struct worker *self, const struct mote_mount *mount)
{
	struct mote_filesystems *fs = self->fs;
	const char *point = fs->list->text + mount->point;
	size_t len = strlen(point);
	struct statfs st;
	int err;

	if (len >= sizeof(self->path))
		return; /* the kernel takes no such path */
	self->id = mount->id;
	self->device_id = mount->device_id;
	memcpy(self->path, point, len + 1);
	self->since = mote_thread_now();
	self->calling = true;
	pthread_mutex_unlock(&fs->lock);
	err = statfs(self->path, &st);
	pthread_mutex_lock(&fs->lock);
	self->calling = false;
	if (err == 0)
		keep_result(fs, self, &st);
}

/* Goes on with the round until it is over, or until it was taken away during a call. */
static void do_round(struct worker *self)
{
	struct mote_filesystems *fs = self->fs;
	const struct mote_mount *mount;

	fs->active = self;
	while (!fs->stop && (mount = next_mount(self)) != NULL) {
		call_statfs(self, mount);
		if (fs->active != self) {
			atomic_fetch_sub_explicit(&fs->hung, 1, memory_order_relaxed);
			if (!fs->open)
				publish(fs); /* a late result of a round that is over */
			return;
		}
	}
	publish(fs);
	fs->open = false;
	fs->active = NULL;
}

/* The round is taken from a thread whose call hangs; until when to wait for that otherwise. */
static uint64_t check_active(struct mote_filesystems *fs, uint64_t now)
{
	uint64_t until = fs->active->since + HUNG_NS;

	if (!fs->active->calling || now < until)
		return until;
	atomic_fetch_add_explicit(&fs->hung, 1, memory_order_relaxed);
	fs->active = NULL;
	return now;
}

/* What there is to do now; returns until when to wait, or 0 not to. */
static uint64_t work_once(struct worker *self, uint64_t now)
{
	struct mote_filesystems *fs = self->fs;
	uint64_t until;

	if (fs->active) {
		until = check_active(fs, now);
		if (fs->active)
			return until;
	}
	if (!fs->open) {
		if (now < fs->next_round)
			return fs->next_round;
		begin_round(fs, now);
	}
	do_round(self);
	return 0;
}

static void release(struct mote_filesystems *fs)
{
	for (unsigned int i = 0; i < 3; i++)
		mote_mounts_free(fs->results[i]);
	mote_mounts_free(fs->list);
	if (fs->mountinfo >= 0)
		close(fs->mountinfo);
	free(fs);
}

static void destroy(struct mote_filesystems *fs)
{
	pthread_cond_destroy(&fs->wake);
	pthread_mutex_destroy(&fs->lock);
	release(fs);
}

static void *work(void *arg)
{
	struct worker *self = arg;
	struct mote_filesystems *fs = self->fs;
	uint64_t until;
	bool last;

	mote_thread_touch_stack();
	pthread_mutex_lock(&fs->lock);
	while (!fs->stop) {
		until = work_once(self, mote_thread_now());
		if (until && !fs->stop)
			mote_thread_wait(&fs->wake, &fs->lock, until);
	}
	self->ended = true;
	last = --fs->running == 0 && fs->abandoned;
	pthread_cond_broadcast(&fs->wake);
	pthread_mutex_unlock(&fs->lock);
	if (last)
		destroy(fs);
	return NULL;
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
		struct worker *worker = &fs->workers[i];

		worker->fs = fs;
		err = mote_thread_start(&worker->thread, "mote-statfs", work, worker);
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
		struct worker *worker = &fs->workers[i];

		if (worker->ended)
			pthread_join(worker->thread, NULL);
		else if (worker->started)
			pthread_detach(worker->thread);
	}
}

void mote_filesystems_stop(struct mote_filesystems *fs)
{
	uint64_t until = mote_thread_now() + HUNG_NS;
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
		destroy(fs);
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
