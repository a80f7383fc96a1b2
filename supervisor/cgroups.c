// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Cgroups, see cgroups.h: puts together the set of those that are known, what tells of new ones,
 * and what fills the rows: the walk, and files for what it does not give. It owns all of them.
 */
#include "cgroups_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_cpus.h"
#include "descriptors.h"
#include "thread.h"

#define NS_PER_MS  1000000ull
#define WATCH_RING 65536u        /* with what inotify tells */
#define LIST_RING  16384u        /* what is listed alone */
#define FIRST_NS   2000000000ull /* for the first listing */

/* A limit below this leaves none for cgroups: all else together takes as many. */
#define DESCRIPTORS_LEAST 128

static bool without_bpf(const struct mote_options *options)
{
	return options->mote_probes == MOTE_PROBES_NONE;
}

/* Where version 2 has the controllers, or is all that there may be. */
static bool wants_walk(const struct mote_cgroups *cgroups)
{
	enum mote_cgroup_source source = cgroups->options->cgroup_source;

	if (source == MOTE_CGROUP_SOURCE_ITERATOR)
		return true;
	return source == MOTE_CGROUP_SOURCE_AUTO && cgroups->layout.version != 1;
}

static unsigned int whole_power(size_t bytes)
{
	unsigned int power = 4096;

	while (power < bytes)
		power *= 2;
	return power;
}

static int open_probes(struct mote_cgroups *cgroups, unsigned int kernel)
{
	const struct mote_options *options = cgroups->options;
	const struct mote_probes_cgroup_config config = {
		.walk = wants_walk(cgroups),
		.events = true,
		.rows = options->tables_cgroups,
		.slots = mote_cgroup_index_size(options->tables_cgroups),
		.event_bytes = whole_power(options->tables_cgroup_events),
		.hierarchy = wants_walk(cgroups) ? 0 : cgroups->layout.hierarchy,
		/* Paths are those of the mount, as the files are that are read beside the walk. */
		.root = cgroups->layout.root[MOTE_CGROUP_UNIFIED],
		.kernel = kernel,
		.btf = options->mote_btf,
		.uid = (uid_t)-1,
		.gid = (gid_t)-1,
	};
	int err = mote_probes_cgroup_open(&config, cgroups->why, sizeof(cgroups->why),
					  &cgroups->probes);

	if (!err)
		cgroups->walk = mote_probes_cgroup_walk(cgroups->probes);
	return err;
}

int mote_cgroups_new(const struct mote_options *options, unsigned int kernel,
		     struct mote_cgroups **out)
{
	struct mote_cgroups *cgroups = calloc(1, sizeof(*cgroups));
	int err = 0;

	if (!cgroups)
		return -ENOMEM;
	cgroups->options = options;
	cgroups->status.fd = -1;
	cgroups->budget.limit = options->cgroup_budget * NS_PER_MS;
	cgroups->crowded = mote_descriptors_allow(DESCRIPTORS_LEAST) < DESCRIPTORS_LEAST;
	mote_cgroup_layout_open(&cgroups->layout, cgroups->crowded ? "" : NULL);
	if (without_bpf(options))
		snprintf(cgroups->why, sizeof(cgroups->why), "probes = none");
	else if (options->cgroup_source != MOTE_CGROUP_SOURCE_OFF && !cgroups->crowded)
		err = open_probes(cgroups, kernel);
	if (err)
		mote_cgroups_close(cgroups);
	else
		*out = cgroups;
	return err;
}

static struct mote_text name_of(const struct mote_cgroup_event *event)
{
	return (struct mote_text){ event->name, event->name_len };
}

/* One of those that came, went, or are there. `seen` of the index is when that was. */
static void take(struct mote_cgroups *cgroups, const struct mote_cgroup_event *event)
{
	switch (event->kind) {
	case MOTE_CGROUP_MKDIR:
	case MOTE_CGROUP_LISTED:
		if (!mote_cgroup_set_add(&cgroups->set, event->id, event->parent, name_of(event),
					 event->time, cgroups->now))
			cgroups->left_out += event->kind == MOTE_CGROUP_LISTED;
		break;
	case MOTE_CGROUP_RMDIR:
		mote_cgroup_set_remove(&cgroups->set, event->id, cgroups->now);
		break;
	case MOTE_CGROUP_LIST_END:
		mote_cgroup_set_sweep(&cgroups->set, event->id, event->id, cgroups->now);
		mote_cgroup_set_unplaced(&cgroups->set, cgroups->left_out + event->parent);
		cgroups->left_out = 0;
		cgroups->listed = true;
		break;
	}
}

static void take_listed(void *ctx, const void *record, uint32_t len)
{
	take(ctx, record);
}

/* With a walk the set learns from that alone: an event may be later than it, and its row empty. */
void mote_cgroups_drain(struct mote_cgroups *cgroups, uint64_t now)
{
	const struct mote_cgroup_event *event;

	cgroups->now = now;
	if (mote_cgroup_log_told(&cgroups->log))
		mote_cgroup_set_bury(&cgroups->set);
	if (cgroups->watch && cgroups->log.ring != mote_cgroup_watch_ring(cgroups->watch))
		mote_ringbuf_drain(mote_cgroup_watch_ring(cgroups->watch), UINT32_MAX, take_listed,
				   cgroups);
	while ((event = mote_cgroup_log_next(&cgroups->log))) {
		if (!cgroups->walk)
			take(cgroups, event);
	}
}

/* Before the loop: those that are there. */
static void wait_first(struct mote_cgroups *cgroups)
{
	uint64_t until = mote_thread_now() + FIRST_NS;

	while (!cgroups->listed && mote_thread_now() < until) {
		mote_cgroups_drain(cgroups, 1);
		if (cgroups->log.ring)
			mote_cgroup_event_source.trim(&cgroups->log, cgroups->log.seen);
		usleep(500);
	}
}

/* BPF tells of those that come and go, or the thread watches for them. */
static int open_watch(struct mote_cgroups *cgroups)
{
	const struct mote_cgroup_watch_config config = {
		.root = cgroups->layout.mount[cgroups->layout.primary],
		.events = !cgroups->log.ring,
		.directories = cgroups->set.nnodes,
		.interval_ms = cgroups->options->cgroup_listing,
		.bytes = cgroups->log.ring ? LIST_RING : WATCH_RING,
	};
	int err = mote_cgroup_watch_start(&config, &cgroups->watch);

	if (err)
		return err;
	if (!cgroups->log.ring && !mote_cgroup_watch_has_events(cgroups->watch)) {
		snprintf(cgroups->why, sizeof(cgroups->why),
			 "inotify has no instance left: raise fs.inotify.max_user_instances");
	} else if (!cgroups->log.ring) {
		cgroups->log.ring = mote_cgroup_watch_ring(cgroups->watch);
		cgroups->log.dropped = mote_cgroup_watch_dropped(cgroups->watch);
	}
	wait_first(cgroups);
	return 0;
}

static int open_files(struct mote_cgroups *cgroups, bool direct, unsigned int held)
{
	const struct mote_cgroup_files_config config = {
		.options = cgroups->options,
		.layout = &cgroups->layout,
		.set = &cgroups->set,
		.given = cgroups->iter ? mote_cgroup_iter_gives(cgroups->iter) : 0,
		.held = held,
		.direct = direct,
	};

	return cgroups->layout.version ? mote_cgroup_files_open(&config, &cgroups->files) : 0;
}

static void open_log(struct mote_cgroups *cgroups)
{
	struct mote_cgroup_ring *ring =
		cgroups->probes ? mote_probes_cgroup_ring(cgroups->probes) : NULL;

	cgroups->log = (struct mote_cgroup_log){ .set = &cgroups->set };
	if (!ring)
		return;
	cgroups->log.ring = &ring->ring;
	cgroups->log.dropped = (const uint64_t *)ring->dropped;
	cgroups->log.seen = *ring->ring.consumer;
}

/* The number of reads goes by what mote may use, which may change. */
static int open_status(struct mote_cgroups *cgroups, bool direct)
{
	int err;

	cgroups->reads = cgroups->options->cgroup_reads ?: 1;
	if (cgroups->options->cgroup_reads || !cgroups->layout.version)
		return 0;
	cgroups->own = mote_cgroup_own(&cgroups->layout);
	err = mote_file_open(&cgroups->status, "/proc/self/status", -1, direct);
	return err == -ENOMEM ? err : 0;
}

static int open_all(struct mote_cgroups *cgroups, bool direct, unsigned int held)
{
	const struct mote_cgroup_walk *walk = cgroups->walk;
	int err = mote_cgroup_set_open(&cgroups->set, cgroups->options, walk ? walk->rows : NULL,
				       walk ? walk->index : NULL);

	if (err)
		return err;
	open_log(cgroups);
	if (walk)
		err = mote_cgroup_iter_open(walk, &cgroups->layout, &cgroups->set, direct,
					    &cgroups->iter);
	if (!err)
		err = open_files(cgroups, direct, held);
	if (!err)
		err = open_status(cgroups, direct);
	if (!err && !walk)
		err = open_watch(cgroups);
	if (err)
		return err;
	mote_cgroup_set_settle(&cgroups->set);
	if (cgroups->files)
		mote_cgroup_files_settle(cgroups->files);
	return 0;
}

/* What stands against it, or NULL. The iterator shows the hierarchy of version 2, whatever is
 * beside. */
static const char *refused(struct mote_cgroups *cgroups)
{
	if (cgroups->options->cgroup_source == MOTE_CGROUP_SOURCE_OFF)
		return "[cgroup] source = off";
	if (cgroups->crowded)
		return "the limit of open files has no room for cgroups: raise LimitNOFILE, or ulimit -Hn";
	if (cgroups->walk && cgroups->layout.version == 1)
		mote_cgroup_layout_unify(&cgroups->layout);
	if (!cgroups->walk && !cgroups->layout.version)
		return "cgroupfs is not mounted";
	return NULL;
}

static void add_tiers(const struct mote_cgroups *cgroups, struct mote_tiers *tiers)
{
	const char *how = cgroups->walk                  ? "iter/cgroup"
			  : cgroups->layout.version == 1 ? "files_v1"
							 : "files";
	bool bpf = cgroups->probes && mote_probes_cgroup_ring(cgroups->probes);

	mote_tiers_add(tiers, "cgroups", how, "%s",
		       cgroups->walk ? ""
		       : cgroups->layout.version == 1
			       ? "the controllers are in hierarchies of version 1"
			       : cgroups->why);
	mote_tiers_add(tiers, "cgroup_events",
		       bpf                 ? "tp_btf"
		       : cgroups->log.ring ? "inotify"
					   : "none",
		       "%s", bpf ? "" : cgroups->why);
}

/* Fewer files are kept open than were asked for: each sample opens, reads and closes the others. */
static void note_room(const struct mote_cgroups *cgroups, struct mote_tiers *tiers)
{
	struct mote_cgroup_files_stats files = { 0 };
	char choice[32];

	if (cgroups->files)
		mote_cgroup_files_stats(cgroups->files, &files);
	if (files.pool_max >= files.wanted)
		return;
	snprintf(choice, sizeof(choice), "%u descriptors", files.pool_max);
	mote_tiers_add(
		tiers, "cgroup_files", choice,
		"the limit of open files has no room for [cgroup] descriptors = %u: raise LimitNOFILE, or ulimit -Hn",
		files.wanted);
}

int mote_cgroups_open(struct mote_cgroups *cgroups, bool direct, unsigned int held,
		      struct mote_tiers *tiers)
{
	const char *why = refused(cgroups);
	int err = why ? -EOPNOTSUPP : 0;

	if (!err && cgroups->options->cgroup_source == MOTE_CGROUP_SOURCE_ITERATOR &&
	    !cgroups->walk)
		return -ENOENT;
	if (!err)
		err = open_all(cgroups, direct, held);
	if (err == -ENOMEM)
		return err;
	if (err) {
		mote_tiers_add(tiers, "cgroups", "none", "%s", why ?: strerrordesc_np(-err));
		return -EOPNOTSUPP;
	}
	add_tiers(cgroups, tiers);
	note_room(cgroups, tiers);
	return 0;
}

void mote_cgroups_close(struct mote_cgroups *cgroups)
{
	if (!cgroups)
		return;
	mote_cgroup_watch_stop(cgroups->watch);
	mote_cgroup_files_close(cgroups->files);
	mote_cgroup_iter_close(cgroups->iter);
	mote_file_close(&cgroups->status);
	mote_cgroup_set_close(&cgroups->set);
	mote_probes_cgroup_close(cgroups->probes);
	mote_cgroup_layout_close(&cgroups->layout);
	free(cgroups);
}

struct mote_source mote_cgroups_source(struct mote_cgroups *cgroups, enum mote_stream_id stream)
{
	if (stream == MOTE_STREAM_CGROUP)
		return (struct mote_source){ &mote_cgroup_source, &cgroups->set };
	return (struct mote_source){ cgroups->log.ring ? &mote_cgroup_event_source : NULL,
				     &cgroups->log };
}

/* Values that are to be had here, bits. */
static uint64_t gives(const struct mote_cgroups *cgroups)
{
	unsigned int n;
	const struct mote_cgroup_file *files = mote_cgroup_files(cgroups->layout.version, &n);
	uint64_t values = cgroups->iter ? mote_cgroup_iter_gives(cgroups->iter) : 0;

	for (unsigned int i = 0; cgroups->layout.version && i < n; i++)
		values |= cgroups->layout.root[files[i].controller] >= 0 ? files[i].gives : 0;
	return values;
}

const char *mote_cgroups_why(const struct mote_cgroups *cgroups, unsigned int field)
{
	if (field < CGROUP_CPU_USAGE || gives(cgroups) >> (field - CGROUP_CPU_USAGE) & 1)
		return NULL;
	return cgroups->layout.version == 1 ? "cgroup version 1 does not have it"
					    : "cgroupfs is not mounted";
}

void mote_cgroups_stats(const struct mote_cgroups *cgroups, struct mote_cgroups_stats *stats)
{
	struct mote_cgroup_files_stats files = { 0 };

	if (cgroups->files)
		mote_cgroup_files_stats(cgroups->files, &files);
	*stats = (struct mote_cgroups_stats){ .errors = files.errors,
					      .late = cgroups->late,
					      .collections = cgroups->collections };
	if (cgroups->iter)
		stats->errors += mote_cgroup_iter_errors(cgroups->iter);
	mote_cgroup_set_fill(&cgroups->set, &stats->rows);
	mote_cgroup_log_fill(&cgroups->log, &stats->events);
	stats->nodes = (struct mote_fill){ .size = cgroups->set.nnodes,
					   .fill = cgroups->set.used_nodes,
					   .peak = cgroups->set.peak_nodes };
}
