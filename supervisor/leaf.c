// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Which network devices are leaves, see leaf.h. The thread looks: it takes the names from
 * /proc/net/dev, has leaf_rule.c judge them and hands the list to the loop through three buffers;
 * the loop only sets `asked`. That a device was made, went, or became part of another one the
 * kernel tells by rtnetlink; what it says is not read, only that it said something. Nothing fails
 * after the start.
 */
#include "leaf.h"
#include "leaf_rule.h"
#include "scan.h"
#include "thread.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull
#define POLL_NS   (5000 * NS_PER_MS)  /* how often the thread asks whether it is to look */
#define LOOK_NS   (10000 * NS_PER_MS) /* how often it looks if nobody tells of changes, */
#define TOLD_NS   (60 * LOOK_NS)      /* and if the kernel does */
#define TOLD_MAX  64                  /* messages that are taken at a time */
#define TOLD_SIZE 4096                /* bytes that may wait: one that is lost says as much */
/*
 * 200 devices and no hardware, so that each is tried with each, take 0.2 s: a look may cost 1 % of
 * a CPU and no more, however many devices come and go.
 */
#define REST     100
#define TEXT_MAX (16 * 1024) /* of /proc/net/dev at a time, some hundred lines */

struct mote_leaves {
	int sysfs, netdev; /* sysfs: -1 without */
	int links;         /* rtnetlink, or -1 */
	unsigned int max;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* of `stop` alone */
	pthread_cond_t wake;
	bool stop;
	uint64_t next, rest_until; /* the thread's */
	_Atomic bool asked;
	_Atomic int note;
	struct mote_triple triple;
	struct mote_devices devices[3];
	unsigned int guess; /* the loop's: where the device asked for next should stand */
	char text[TEXT_MAX];
};

static void add_device(const struct mote_leaves *leaves, struct mote_devices *all,
		       struct mote_scan line)
{
	struct mote_text before = mote_scan_until(&line, ':');
	struct mote_scan head = mote_scan_text(before);
	struct mote_text name = mote_scan_word(&head);
	struct mote_device *device = &all->at[all->used];

	if (!name.len || name.len >= IFNAMSIZ || memchr(name.data, '/', name.len))
		return; /* one of the two lines of headings, which have no colon */
	if (all->used == leaves->max) {
		all->cut = true;
		return;
	}
	memcpy(device->name, name.data, name.len);
	device->name[name.len] = '\0';
	all->used++;
}

/* Short reads are not the end: the file is made as it is read. */
static void read_names(struct mote_leaves *leaves, struct mote_devices *all)
{
	struct mote_scan text, line;
	size_t have = 0;
	off_t offset = 0;
	ssize_t got;

	all->used = 0;
	all->cut = false;
	while ((got = pread(leaves->netdev, leaves->text + have, TEXT_MAX - have, offset)) > 0) {
		offset += got;
		text = mote_scan_text((struct mote_text){ leaves->text, have + got });
		while (mote_scan_line(&text, &line))
			add_device(leaves, all, line);
		have = text.end - text.at;
		if (have == TEXT_MAX)
			return; /* not a file of ours: no line is that long */
		memmove(leaves->text, text.at, have);
	}
}

static void look(struct mote_leaves *leaves)
{
	struct mote_devices *all = &leaves->devices[leaves->triple.back];

	read_names(leaves, all);
	atomic_store_explicit(&leaves->note, mote_leaf_judge(leaves->sysfs, all),
			      memory_order_relaxed);
	mote_triple_publish(&leaves->triple);
}

/* True if the kernel has told of a device; that it told more than may wait is ENOBUFS. */
static bool was_told(int links)
{
	char byte;
	int n = 0;

	while (n < TOLD_MAX && (recv(links, &byte, 1, MSG_DONTWAIT) >= 0 || errno == ENOBUFS))
		n++;
	return n > 0;
}

/* True if all devices are to be looked at now. */
static bool is_due(struct mote_leaves *leaves, uint64_t now)
{
	bool asked;

	if (now < leaves->rest_until)
		return false;
	asked = atomic_exchange_explicit(&leaves->asked, false, memory_order_relaxed);
	return was_told(leaves->links) || asked || now >= leaves->next;
}

static void *watch(void *arg)
{
	struct mote_leaves *leaves = arg;
	uint64_t now;

	mote_thread_touch_stack();
	pthread_mutex_lock(&leaves->lock);
	while (!leaves->stop) {
		now = mote_thread_now();
		if (is_due(leaves, now)) {
			pthread_mutex_unlock(&leaves->lock);
			look(leaves);
			pthread_mutex_lock(&leaves->lock);
			leaves->next = now + (leaves->links < 0 ? LOOK_NS : TOLD_NS);
			leaves->rest_until = now + REST * (mote_thread_now() - now);
		}
		if (!leaves->stop)
			mote_thread_wait(&leaves->wake, &leaves->lock, now + POLL_NS);
	}
	pthread_mutex_unlock(&leaves->lock);
	return NULL;
}

static void release(struct mote_leaves *leaves)
{
	if (leaves->sysfs >= 0)
		close(leaves->sysfs);
	if (leaves->netdev >= 0)
		close(leaves->netdev);
	if (leaves->links >= 0)
		close(leaves->links);
	free(leaves);
}

/* Of the network namespace that /proc/net/dev is of: the caller's. -1: not to be had. */
static int open_links(void)
{
	const struct sockaddr_nl groups = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	const int size = TOLD_SIZE;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (!bind(fd, (const struct sockaddr *)&groups, sizeof(groups)))
		return fd;
	close(fd);
	return -1;
}

/* One block, touched; not malloc(), which memset() turns into calloc(), which need not touch. */
static struct mote_leaves *allocate(unsigned int max)
{
	size_t head = (sizeof(struct mote_leaves) + 63) & ~(size_t)63;
	size_t each = max * sizeof(struct mote_device);
	size_t size = (head + 3 * each + 63) & ~(size_t)63;
	struct mote_leaves *leaves = aligned_alloc(64, size);

	if (!leaves)
		return NULL;
	memset(leaves, 0, size);
	leaves->max = max;
	for (unsigned int i = 0; i < 3; i++)
		leaves->devices[i].at = (struct mote_device *)((char *)leaves + head + i * each);
	mote_triple_init(&leaves->triple);
	return leaves;
}

int mote_leaves_open(const char *sysfs, const char *netdev, unsigned int max,
		     struct mote_leaves **out)
{
	struct mote_leaves *leaves;
	int err;

	if (max == 0)
		return -EINVAL;
	leaves = allocate(max);
	if (!leaves)
		return -ENOMEM;
	leaves->sysfs = open(sysfs ? sysfs : "/sys/class/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
	leaves->netdev = open(netdev ? netdev : "/proc/net/dev", O_RDONLY | O_CLOEXEC);
	leaves->links = open_links();
	err = leaves->netdev < 0 ? -errno : mote_thread_cond_init(&leaves->wake);
	if (err) {
		release(leaves);
		return err;
	}
	pthread_mutex_init(&leaves->lock, NULL);
	*out = leaves;
	return 0;
}

int mote_leaves_run(struct mote_leaves *leaves)
{
	int err;

	look(leaves); /* so that the first sample already has a total */
	err = mote_thread_start(&leaves->thread, "mote-leaf", watch, leaves);
	leaves->started = !err;
	return err;
}

int mote_leaves_start(unsigned int max, struct mote_leaves **out)
{
	struct mote_leaves *leaves;
	int err = mote_leaves_open(NULL, NULL, max, &leaves);

	if (err)
		return err;
	err = mote_leaves_run(leaves);
	if (err)
		mote_leaves_stop(leaves);
	else
		*out = leaves;
	return err;
}

void mote_leaves_stop(struct mote_leaves *leaves)
{
	if (!leaves)
		return;
	pthread_mutex_lock(&leaves->lock);
	leaves->stop = true;
	pthread_cond_broadcast(&leaves->wake);
	pthread_mutex_unlock(&leaves->lock);
	if (leaves->started)
		pthread_join(leaves->thread, NULL); /* nothing it calls can hang */
	pthread_cond_destroy(&leaves->wake);
	pthread_mutex_destroy(&leaves->lock);
	release(leaves);
}

/* Devices are asked for in the order of /proc/net/dev, which is the order they stand in here. */
static const struct mote_device *find(struct mote_leaves *leaves, const struct mote_devices *all,
				      const char *name)
{
	for (unsigned int i = 0; i < all->used; i++) {
		unsigned int at = (leaves->guess + i) % all->used;

		if (!strcmp(all->at[at].name, name)) {
			leaves->guess = at + 1;
			return &all->at[at];
		}
	}
	return NULL;
}

int mote_leaves_get(void *ctx, const char *name)
{
	struct mote_leaves *leaves = ctx;
	const struct mote_devices *all;
	const struct mote_device *device;

	mote_triple_take(&leaves->triple);
	all = &leaves->devices[leaves->triple.front];
	device = find(leaves, all, name);
	if (device)
		return device->leaf;
	if (all->cut)
		return 0; /* it may be one that does not fit: to ask each second would not help */
	atomic_store_explicit(&leaves->asked, true, memory_order_relaxed);
	return -1;
}

const char *mote_leaves_note(const struct mote_leaves *leaves)
{
	switch (atomic_load_explicit(&leaves->note, memory_order_relaxed)) {
	case MOTE_LEAF_NO_SYSFS:
		return "/sys/class/net is not there, so netdev's total is of every device but lo: "
		       "a bridge or bond counts twice; mount sysfs";
	case MOTE_LEAF_OTHER_SYSFS:
		return "/sys is of another network namespace, so netdev's total is of every "
		       "device but lo: a bridge or bond counts twice; mount sysfs anew";
	}
	return NULL;
}
