// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * statfs() of every mount, round by round: see filesystem.h. A round reads mountinfo anew into
 * `list` and calls statfs() for one mount after the other without holding the lock; at its end the
 * list is handed to the loop. `active` is the thread that has the round; one whose call lasts too
 * long loses it to another. The lock belongs to the threads; the loop never takes it.
 */
#include "filesystem_impl.h"

#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

/*
 * Takes whole lines from the first `len` bytes; returns how many are left for the next time. A line
 * that is longer than the buffer is taken up to there, and its rest is passed over.
 */
static size_t take_lines(struct mote_filesystems *fs, size_t len, bool *cut)
{
	struct mote_text text = { fs->text, len };
	const char *end;
	size_t done;

	if (*cut) {
		end = memchr(text.data, '\n', len);
		if (!end)
			return 0;
		*cut = false;
		text.len -= end + 1 - text.data;
		text.data = end + 1;
	}
	done = mote_mounts_parse(fs->list, text);
	if (done == 0 && text.len == sizeof(fs->text)) {
		mote_mounts_add(fs->list, text);
		*cut = true;
		return 0;
	}
	memmove(fs->text, text.data + done, text.len - done);
	return text.len - done;
}

/*
 * The file is made as it is read, some lines at a time, so that a short read is not its end. One
 * that changes between two reads can lose or repeat a line for this round.
 */
static void read_mounts(struct mote_filesystems *fs)
{
	bool cut = false;
	size_t have = 0;
	off_t offset = 0;
	ssize_t got;

	mote_mounts_clear(fs->list);
	while ((got = pread(fs->mountinfo, fs->text + have, sizeof(fs->text) - have, offset)) > 0) {
		offset += got;
		have = take_lines(fs, have + got, &cut);
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
static unsigned int others_calling(const struct mote_statfs_worker *self, const uint64_t *device_id)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < MOTE_STATFS_THREADS; i++) {
		const struct mote_statfs_worker *other = &self->fs->workers[i];

		if (other != self && (other->calling || !other->started) &&
		    (!device_id || (other->calling && other->device_id == *device_id)))
			n++;
	}
	return n;
}

/* The next mount of the round that this thread may call statfs() for; NULL at the round's end. */
static const struct mote_mount *next_mount(const struct mote_statfs_worker *self)
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

static void keep_result(struct mote_filesystems *fs, const struct mote_statfs_worker *self,
			const struct statfs *st)
{
	for (unsigned int i = 0; i < fs->list->used; i++) {
		struct mote_mount *mount = &fs->list->mounts[i];

		if (mount->id == self->id && mount->device_id == self->device_id)
			fill_space(&mount->space, st);
	}
}

static void call_statfs(struct mote_statfs_worker *self, const struct mote_mount *mount)
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
static void do_round(struct mote_statfs_worker *self)
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
	uint64_t until = fs->active->since + MOTE_STATFS_HUNG_NS;

	if (!fs->active->calling || now < until)
		return until;
	atomic_fetch_add_explicit(&fs->hung, 1, memory_order_relaxed);
	fs->active = NULL;
	return now;
}

/* What there is to do now; returns until when to wait, or 0 not to. */
static uint64_t work_once(struct mote_statfs_worker *self, uint64_t now)
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

void *mote_filesystems_work(void *arg)
{
	struct mote_statfs_worker *self = arg;
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
		mote_filesystems_destroy(fs);
	return NULL;
}
