// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Which network devices are leaves: see leaf.h for the rule. The thread owns `devices`, made anew
 * at each look from the names in /proc/net/dev and a few faccessat() each, and hands them to the
 * loop through three buffers; the loop only sets `asked`. It opens nothing after the start, so that
 * `lower_NAME` cannot be listed: it is tried for every other name. It never fails after the start;
 * what sysfs does not tell is said by the note.
 */
#include "leaf.h"
#include "scan.h"
#include "thread.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull
#define POLL_NS   (1000 * NS_PER_MS)  /* how often `asked` is looked at */
#define LOOK_NS   (10000 * NS_PER_MS) /* how often all devices are */
#define TEXT_MAX  (16 * 1024)         /* of /proc/net/dev at a time, some hundred lines */

struct device {
	char name[IFNAMSIZ];
	bool known, virtual; /* in sysfs; made by software */
	bool port, tun;      /* of a bridge; its other end is a file */
	bool leaf;
};

struct devices {
	unsigned int used;
	bool cut; /* there are more than fit */
	struct device *at;
};

enum note { NONE, NO_SYSFS, OTHER_SYSFS };

struct mote_leaves {
	int sysfs, netdev; /* sysfs: -1 without */
	unsigned int max;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* of `stop` alone */
	pthread_cond_t wake;
	bool stop;
	_Atomic bool asked;
	_Atomic int note;
	struct mote_triple triple;
	struct devices devices[3];
	unsigned int guess; /* the loop's: where the device asked for next should stand */
	char text[TEXT_MAX];
};

static bool starts_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Whether sysfs has NAME/FILE, or NAME/PREFIXother; links are followed. */
static bool has(const struct mote_leaves *leaves, const char *name, const char *file,
		const char *other)
{
	char path[2 * IFNAMSIZ + 16];
	char *at = stpcpy(path, name);

	*at++ = '/';
	stpcpy(stpcpy(at, file), other);
	return faccessat(leaves->sysfs, path, F_OK, 0) == 0;
}

static bool is_over_another(const struct mote_leaves *leaves, const struct devices *all,
			    const struct device *device)
{
	if (has(leaves, device->name, "bridge", "") || has(leaves, device->name, "bonding", ""))
		return true;
	for (unsigned int i = 0; i < all->used; i++) {
		if (has(leaves, device->name, "lower_", all->at[i].name))
			return true;
	}
	return false;
}

/*
 * Kinds that sysfs tells apart only in files which would have to be opened, by the names that the
 * kernel or everybody gives them.
 */
static bool is_never_leaf(const char *name)
{
	static const char *const kinds[] = { "ifb", "dummy", "kube-ipvs", "nlmon", "teql", "vcan" };

	if (!strcmp(name, "lo"))
		return true;
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (starts_with(name, kinds[i]))
			return true;
	}
	return false;
}

/* What such a device carries goes through another device once more, within its packets. */
static bool is_tunnel(const char *name)
{
	static const char *const kinds[] = { "sit",     "tunl",    "ip6tnl", "ip6_vti", "ip_vti",
					     "gre",     "erspan",  "ip6gre", "vxlan",   "geneve",
					     "flannel", "cilium_", "wg",     "ipip" };

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (starts_with(name, kinds[i]))
			return true;
	}
	return false;
}

static void look_at(const struct mote_leaves *leaves, struct device *device)
{
	device->leaf = false;
	device->known = has(leaves, device->name, "", "");
	device->virtual = !has(leaves, device->name, "device", "");
	device->port = has(leaves, device->name, "brport", "");
	device->tun = has(leaves, device->name, "tun_flags", "");
}

static bool is_hardware(const struct device *device)
{
	return !device->virtual;
}

static bool is_software(const struct device *device)
{
	return !device->port && !device->tun && !is_tunnel(device->name);
}

static bool is_software_port(const struct device *device)
{
	return !device->tun && !is_tunnel(device->name);
}

static bool is_any(const struct device *device)
{
	return true;
}

/* The first that has a leaf gives all leaves. */
typedef bool (*tier_fn)(const struct device *device);
static const tier_fn tiers[] = { is_hardware, is_software, is_software_port, is_any };
#define TIERS (sizeof(tiers) / sizeof(tiers[0]))

/* Makes leaves of the devices of a tier with none below them; false if it has no leaf. */
static bool take_tier(const struct mote_leaves *leaves, struct devices *all, tier_fn in_tier)
{
	bool any = false;

	for (unsigned int i = 0; i < all->used; i++) {
		struct device *device = &all->at[i];

		device->leaf = device->known && !is_never_leaf(device->name) && in_tier(device) &&
			       !is_over_another(leaves, all, device);
		any |= device->leaf;
	}
	return any;
}

static void take_all(struct devices *all)
{
	for (unsigned int i = 0; i < all->used; i++)
		all->at[i].leaf = strcmp(all->at[i].name, "lo") != 0;
}

/* Devices other than lo: whether there are any, and whether sysfs knows one of them. */
static bool is_other_sysfs(const struct devices *all)
{
	bool any = false;

	for (unsigned int i = 0; i < all->used; i++) {
		if (!strcmp(all->at[i].name, "lo"))
			continue;
		if (all->at[i].known)
			return false;
		any = true;
	}
	return any;
}

/*
 * A device that sysfs does not show came or went this moment: it is left out, so that the loop asks
 * again. If it shows none of them, it was mounted in another network namespace.
 */
static enum note judge(const struct mote_leaves *leaves, struct devices *all)
{
	unsigned int kept = 0;

	if (leaves->sysfs < 0) {
		take_all(all);
		return NO_SYSFS;
	}
	for (unsigned int i = 0; i < all->used; i++)
		look_at(leaves, &all->at[i]);
	if (is_other_sysfs(all)) {
		take_all(all);
		return OTHER_SYSFS;
	}
	for (unsigned int i = 0; i < TIERS; i++) {
		if (take_tier(leaves, all, tiers[i]))
			break;
	}
	for (unsigned int i = 0; i < all->used; i++) {
		if (all->at[i].known)
			all->at[kept++] = all->at[i];
	}
	all->used = kept;
	return NONE;
}

static void add_device(const struct mote_leaves *leaves, struct devices *all, struct mote_scan line)
{
	struct mote_text before = mote_scan_until(&line, ':');
	struct mote_scan head = mote_scan_text(before);
	struct mote_text name = mote_scan_word(&head);
	struct device *device = &all->at[all->used];

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
static void read_names(struct mote_leaves *leaves, struct devices *all)
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
	struct devices *all = &leaves->devices[leaves->triple.back];

	read_names(leaves, all);
	atomic_store_explicit(&leaves->note, judge(leaves, all), memory_order_relaxed);
	mote_triple_publish(&leaves->triple);
}

static void *watch(void *arg)
{
	struct mote_leaves *leaves = arg;
	uint64_t next = 0, now;

	mote_thread_touch_stack();
	pthread_mutex_lock(&leaves->lock);
	while (!leaves->stop) {
		now = mote_thread_now();
		if (atomic_exchange_explicit(&leaves->asked, false, memory_order_relaxed) ||
		    now >= next) {
			pthread_mutex_unlock(&leaves->lock);
			look(leaves);
			pthread_mutex_lock(&leaves->lock);
			next = now + LOOK_NS;
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
	free(leaves);
}

/* One block, touched; not malloc(), which memset() turns into calloc(), which need not touch. */
static struct mote_leaves *allocate(unsigned int max)
{
	size_t head = (sizeof(struct mote_leaves) + 63) & ~(size_t)63;
	size_t each = max * sizeof(struct device);
	size_t size = (head + 3 * each + 63) & ~(size_t)63;
	struct mote_leaves *leaves = aligned_alloc(64, size);

	if (!leaves)
		return NULL;
	memset(leaves, 0, size);
	leaves->max = max;
	for (unsigned int i = 0; i < 3; i++)
		leaves->devices[i].at = (struct device *)((char *)leaves + head + i * each);
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
static const struct device *find(struct mote_leaves *leaves, const struct devices *all,
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
	const struct devices *all;
	const struct device *device;

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
	case NO_SYSFS:
		return "/sys/class/net is not there, so netdev's total is of every device but lo: "
		       "a bridge or bond counts twice; mount sysfs";
	case OTHER_SYSFS:
		return "/sys is of another network namespace, so netdev's total is of every "
		       "device but lo: a bridge or bond counts twice; mount sysfs anew";
	}
	return NULL;
}
