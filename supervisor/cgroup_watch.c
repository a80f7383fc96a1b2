// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Lists and watches the tree of cgroups in a thread, see cgroup_watch.h. The thread owns inotify,
 * the tree and the writing side of the ring; stopping it is the only thing that it is asked for. A
 * directory is watched before it is listed, so that none is made unseen in between; it may be told
 * of twice then, which the reader does not mind, but is an event once.
 */
#include "cgroup_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"
#include "cgroup_tree.h"
#include "lazy.h"
#include "thread.h"

#define LEVELS     32 /* that are gone down */
#define PATH_BYTES 4096
#define NS_PER_MS  1000000ull
#define FULL_MS    5 /* between two looks at a full ring */
#define DISCARD    (1u << 30)
#define HEADER     8u

struct mote_cgroup_watch {
	struct mote_cgroup_watch_config config;
	char root[PATH_BYTES];
	struct mote_ringbuf ring;
	uint64_t consumer, producer;
	uint8_t *data;
	struct mote_cgroup_tree tree;
	pthread_t thread;
	int inotify, bell; /* the bell: stop */
	uint64_t dropped;
	uint64_t listing;  /* its number */
	uint64_t left_out; /* of this listing: the tree has no room for them */
	bool full;         /* there were such in this listing, or the one before */
	uint64_t next;     /* when to list, ns */
	char path[PATH_BYTES];
	char events[8192] __attribute__((aligned(8)));
	char entries[LEVELS][2048];
	struct mote_cgroup_event record;
};

static bool stopped(struct mote_cgroup_watch *watch, int timeout_ms)
{
	struct pollfd bell = { .fd = watch->bell, .events = POLLIN };

	return poll(&bell, 1, timeout_ms) > 0;
}

/* Waits for room; false: it is to stop. */
static bool has_room(struct mote_cgroup_watch *watch, uint64_t bytes)
{
	while (watch->producer + bytes - __atomic_load_n(&watch->consumer, __ATOMIC_ACQUIRE) >
	       watch->ring.size) {
		if (stopped(watch, FULL_MS))
			return false;
	}
	return true;
}

static void put(struct mote_cgroup_watch *watch, const void *record, uint32_t len, uint32_t flags)
{
	uint8_t *at = watch->data + (watch->producer & (watch->ring.size - 1));
	uint32_t header = len | flags;

	memcpy(at, &header, sizeof(header));
	if (record)
		memcpy(at + HEADER, record, len);
	__atomic_store_n(&watch->producer, watch->producer + ((HEADER + len + 7) & ~7ull),
			 __ATOMIC_RELEASE);
}

/* A record is in one piece: what is left at the end of the memory is passed over. */
static void send(struct mote_cgroup_watch *watch)
{
	struct mote_cgroup_event *record = &watch->record;
	uint64_t tail, bytes;
	uint32_t len;

	record->time = mote_thread_now();
	len = (uint32_t)offsetof(struct mote_cgroup_event, name) + record->name_len;
	bytes = (HEADER + len + 7) & ~7ull;
	tail = watch->ring.size - (watch->producer & (watch->ring.size - 1));
	if (!has_room(watch, bytes + (tail < bytes ? tail : 0)))
		return;
	if (tail < bytes)
		put(watch, NULL, (uint32_t)(tail - HEADER), DISCARD);
	put(watch, record, len, 0);
}

static void emit(struct mote_cgroup_watch *watch, enum mote_cgroup_event_kind kind, uint32_t dir,
		 uint64_t id)
{
	const struct mote_cgroup_dir *d = &watch->tree.dirs[dir];
	struct mote_cgroup_event *record = &watch->record;

	record->kind = kind;
	record->id = id;
	record->level = d->level;
	record->parent = d->parent == MOTE_CGROUP_NO_DIR ? 0 : watch->tree.dirs[d->parent].id;
	if (kind == MOTE_CGROUP_LIST_END)
		record->parent = watch->left_out;
	record->name_len = mote_cgroup_names_len(&watch->tree.names, d->name);
	mote_cgroup_names_copy(&watch->tree.names, d->name, record->name);
	send(watch);
}

/* Of one that the tree has no room for. */
static void emit_left_out(struct mote_cgroup_watch *watch, enum mote_cgroup_event_kind kind,
			  uint32_t parent, const char *name)
{
	struct mote_cgroup_event *record = &watch->record;

	record->kind = kind;
	record->id = 0;
	record->level = watch->tree.dirs[parent].level + 1;
	record->parent = watch->tree.dirs[parent].id;
	record->name_len = (uint32_t)strnlen(name, sizeof(record->name) - 1);
	memcpy(record->name, name, record->name_len);
	send(watch);
}

static bool is_folder(const struct dirent64 *entry)
{
	return entry->d_type == DT_DIR && strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

static int path_of(struct mote_cgroup_watch *watch, uint32_t dir)
{
	return mote_cgroup_tree_path(&watch->tree, dir, watch->root, watch->path,
				     sizeof(watch->path));
}

/* Without one nothing is told of what is in it, but by listings: that is counted once. */
static void add_watch(struct mote_cgroup_watch *watch, uint32_t dir, bool fresh)
{
	int wd;

	if (watch->inotify < 0 || watch->tree.dirs[dir].wd >= 0 || path_of(watch, dir))
		return;
	wd = inotify_add_watch(watch->inotify, watch->path,
			       IN_CREATE | IN_DELETE | IN_ONLYDIR | IN_DONT_FOLLOW);
	if (wd >= 0)
		mote_cgroup_tree_set_wd(&watch->tree, dir, wd);
	else if (fresh && errno != ENOENT)
		__atomic_fetch_add(&watch->dropped, 1, __ATOMIC_RELAXED);
}

static uint64_t id_of(struct mote_cgroup_watch *watch, uint32_t dir)
{
	struct stat st;

	return path_of(watch, dir) || lstat(watch->path, &st) ? 0 : st.st_ino;
}

/* Gone, and all that was below it, of which inotify has told or has lost to tell. */
static void forget(struct mote_cgroup_watch *watch, uint32_t dir)
{
	for (uint32_t i = 0; i < watch->tree.fresh; i++) {
		if (watch->tree.dirs[i].name && watch->tree.dirs[i].parent == dir)
			forget(watch, i);
	}
	emit(watch, MOTE_CGROUP_RMDIR, dir, watch->tree.dirs[dir].id);
	mote_cgroup_tree_remove(&watch->tree, dir);
}

static void list(struct mote_cgroup_watch *watch, uint32_t dir, bool events);

static void count_left_out(struct mote_cgroup_watch *watch, int dirfd, const char *name,
			   uint32_t level)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *buf = watch->entries[level];
	ssize_t len;

	watch->left_out++;
	while (fd >= 0 && (len = getdents64(fd, buf, sizeof(watch->entries[0]))) > 0) {
		for (ssize_t at = 0; at < len;) {
			const struct dirent64 *entry = (const void *)(buf + at);

			if (is_folder(entry) && level < LEVELS - 1)
				count_left_out(watch, fd, entry->d_name, level + 1);
			at += entry->d_reclen;
		}
	}
	if (fd >= 0)
		close(fd);
}

/* One that the tree has no room for, and all below: a listing counts them. */
static void leave_out(struct mote_cgroup_watch *watch, uint32_t parent, const char *name,
		      bool events)
{
	uint32_t level = watch->tree.dirs[parent].level + 1;
	int fd;

	watch->full = true;
	if (events) {
		emit_left_out(watch, MOTE_CGROUP_MKDIR, parent, name);
		return;
	}
	fd = path_of(watch, parent) ? -1 : open(watch->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (level < LEVELS)
		count_left_out(watch, fd, name, level);
	close(fd);
}

/* What a listing finds after the first was made since, and inotify's word of it is on its way. */
static bool is_late(const struct mote_cgroup_watch *watch)
{
	return watch->inotify >= 0 && watch->listing > 1 && !watch->full;
}

/* `events`: what is not known yet has just been made. */
static void found(struct mote_cgroup_watch *watch, uint32_t parent, const char *name, uint64_t id,
		  bool events)
{
	uint32_t dir = mote_cgroup_tree_find(&watch->tree, parent, name);
	bool fresh;

	if (dir != MOTE_CGROUP_NO_DIR && id && watch->tree.dirs[dir].id != id) {
		forget(watch, dir); /* another of the same name */
		dir = MOTE_CGROUP_NO_DIR;
	}
	fresh = dir == MOTE_CGROUP_NO_DIR;
	if (fresh)
		dir = mote_cgroup_tree_add(&watch->tree, parent, name, id);
	if (dir == MOTE_CGROUP_NO_DIR) {
		leave_out(watch, parent, name, events);
		return;
	}
	if (fresh || !events)
		add_watch(watch, dir, fresh);
	if (!watch->tree.dirs[dir].id)
		watch->tree.dirs[dir].id = id_of(watch, dir);
	watch->tree.dirs[dir].seen = watch->listing;
	if (fresh || !events)
		emit(watch,
		     fresh && (events || is_late(watch)) ? MOTE_CGROUP_MKDIR : MOTE_CGROUP_LISTED,
		     dir, watch->tree.dirs[dir].id);
	if (watch->tree.dirs[dir].level < LEVELS - 1)
		list(watch, dir, events);
}

/* The directories in this one. */
static void list(struct mote_cgroup_watch *watch, uint32_t dir, bool events)
{
	char *buf = watch->entries[watch->tree.dirs[dir].level];
	int fd = path_of(watch, dir) ? -1 : open(watch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t len;

	while (fd >= 0 && (len = getdents64(fd, buf, sizeof(watch->entries[0]))) > 0) {
		for (ssize_t at = 0; at < len;) {
			const struct dirent64 *entry = (const void *)(buf + at);

			if (is_folder(entry))
				found(watch, dir, entry->d_name, entry->d_ino, events);
			at += entry->d_reclen;
		}
	}
	if (fd >= 0)
		close(fd);
}

/* Those that the listing did not find; children come before what they are in. */
static void forget_unseen(struct mote_cgroup_watch *watch)
{
	struct mote_cgroup_tree *tree = &watch->tree;

	for (uint32_t level = LEVELS; level > 0; level--) {
		for (uint32_t i = 0; i < tree->fresh; i++) {
			const struct mote_cgroup_dir *d = &tree->dirs[i];

			if (d->name && d->level == level && d->seen < watch->listing)
				forget(watch, i);
		}
	}
}

static void list_all(struct mote_cgroup_watch *watch)
{
	uint64_t began = mote_thread_now();

	watch->listing++;
	watch->left_out = 0;
	watch->tree.dirs[0].seen = watch->listing;
	add_watch(watch, 0, watch->listing == 1);
	emit(watch, MOTE_CGROUP_LISTED, 0, watch->tree.dirs[0].id);
	list(watch, 0, false);
	forget_unseen(watch);
	emit(watch, MOTE_CGROUP_LIST_END, 0, began);
	watch->full = watch->left_out;
	watch->next = mote_thread_now() + watch->config.interval_ms * NS_PER_MS;
}

static void take_event(struct mote_cgroup_watch *watch, const struct inotify_event *event)
{
	uint32_t parent, dir;

	if (event->mask & IN_Q_OVERFLOW) {
		__atomic_fetch_add(&watch->dropped, 1, __ATOMIC_RELAXED);
		watch->next = 0;
	}
	parent = mote_cgroup_tree_find_wd(&watch->tree, event->wd);
	if (parent == MOTE_CGROUP_NO_DIR || !(event->mask & IN_ISDIR) || !event->len)
		return;
	if (event->mask & IN_CREATE) {
		found(watch, parent, event->name, 0, true);
	} else if (event->mask & IN_DELETE) {
		dir = mote_cgroup_tree_find(&watch->tree, parent, event->name);
		if (dir != MOTE_CGROUP_NO_DIR)
			forget(watch, dir);
		else if (watch->full)
			emit_left_out(watch, MOTE_CGROUP_RMDIR, parent, event->name);
	}
}

static void take_events(struct mote_cgroup_watch *watch)
{
	ssize_t len = read(watch->inotify, watch->events, sizeof(watch->events));

	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *event = (const void *)(watch->events + at);

		take_event(watch, event);
		at += (ssize_t)sizeof(*event) + event->len;
	}
}

static void *work(void *arg)
{
	struct mote_cgroup_watch *watch = arg;
	struct pollfd fds[2] = { { .fd = watch->bell, .events = POLLIN },
				 { .fd = watch->inotify, .events = POLLIN } };

	mote_thread_touch_stack();
	while (!(fds[0].revents & POLLIN)) {
		uint64_t now = mote_thread_now();

		if (now >= watch->next)
			list_all(watch);
		now = mote_thread_now();
		fds[0].revents = fds[1].revents = 0;
		poll(fds, 2, watch->next > now ? (int)((watch->next - now) / NS_PER_MS + 1) : 0);
		if (fds[1].revents & POLLIN)
			take_events(watch);
	}
	return NULL;
}

static void release(struct mote_cgroup_watch *watch)
{
	if (watch->inotify >= 0)
		close(watch->inotify);
	if (watch->bell >= 0)
		close(watch->bell);
	mote_cgroup_tree_close(&watch->tree);
	mote_lazy_free(watch->data, watch->ring.size);
	mote_lazy_free(watch, sizeof(*watch));
}

static int prepare(struct mote_cgroup_watch *watch, const struct mote_cgroup_watch_config *config)
{
	struct stat st;
	int err;

	if (strlen(config->root) >= sizeof(watch->root))
		return -ENAMETOOLONG;
	strcpy(watch->root, config->root);
	if (stat(config->root, &st))
		return -errno;
	watch->data = mote_lazy_alloc(config->bytes);
	if (!watch->data)
		return -ENOMEM;
	watch->ring = (struct mote_ringbuf){ .consumer = &watch->consumer,
					     .producer = &watch->producer,
					     .data = watch->data,
					     .size = config->bytes };
	err = mote_cgroup_tree_open(&watch->tree, config->directories);
	if (err)
		return err;
	mote_cgroup_tree_add(&watch->tree, MOTE_CGROUP_NO_DIR, "", st.st_ino);
	watch->bell = eventfd(0, EFD_CLOEXEC);
	if (config->events)
		watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	/* Without inotify there are listings. */
	return watch->bell < 0 ? -errno : 0;
}

int mote_cgroup_watch_start(const struct mote_cgroup_watch_config *config,
			    struct mote_cgroup_watch **out)
{
	struct mote_cgroup_watch *watch = mote_lazy_alloc(sizeof(*watch));
	int err;

	if (!watch)
		return -ENOMEM;
	watch->config = *config;
	watch->inotify = watch->bell = -1;
	err = prepare(watch, config);
	if (!err)
		err = mote_thread_start(&watch->thread, "mote-cgroups", work, watch);
	if (err) {
		release(watch);
		return err;
	}
	*out = watch;
	return 0;
}

void mote_cgroup_watch_stop(struct mote_cgroup_watch *watch)
{
	uint64_t one = 1;

	if (!watch)
		return;
	if (write(watch->bell, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(watch->thread, NULL); /* cgroupfs waits for nobody */
	release(watch);
}

struct mote_ringbuf *mote_cgroup_watch_ring(struct mote_cgroup_watch *watch)
{
	return &watch->ring;
}

bool mote_cgroup_watch_has_events(const struct mote_cgroup_watch *watch)
{
	return watch->inotify >= 0;
}

const uint64_t *mote_cgroup_watch_dropped(const struct mote_cgroup_watch *watch)
{
	return &watch->dropped;
}
