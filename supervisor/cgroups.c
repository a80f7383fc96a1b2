// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Cgroups, see cgroups.h: puts together the set of those that are known, what tells of new ones,
 * and what fills the rows. It owns all of them.
 */
#include "cgroups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_files.h"
#include "cgroup_layout.h"
#include "cgroup_watch.h"
#include "thread.h"

#define NS_PER_MS  1000000ull
#define RING_BYTES 65536u
#define FIRST_NS   2000000000ull /* for the first listing */
#define DRAIN      4096          /* records a tick */

struct mote_cgroups {
	const struct mote_options *options;
	struct mote_cgroup_layout layout;
	struct mote_cgroup_set set;
	struct mote_cgroup_files *files;
	struct mote_cgroup_watch *watch;
	uint64_t now;
	uint64_t collected; /* when a collection began last, ns; 0: never */
	bool listed;
};

static struct mote_text name_of(const struct mote_cgroup_event *event)
{
	return (struct mote_text){ event->name, event->name_len };
}

/* One record of those that came, went, or are there. `seen` of the index is when that was. */
static void take(void *ctx, const void *record, uint32_t len)
{
	struct mote_cgroups *cgroups = ctx;
	const struct mote_cgroup_event *event = record;

	switch (event->kind) {
	case MOTE_CGROUP_MKDIR:
	case MOTE_CGROUP_LISTED:
		mote_cgroup_set_add(&cgroups->set, event->id, event->parent, name_of(event),
				    event->time, cgroups->now);
		break;
	case MOTE_CGROUP_RMDIR:
		mote_cgroup_set_remove(&cgroups->set, event->id, cgroups->now);
		break;
	case MOTE_CGROUP_LIST_END:
		mote_cgroup_set_sweep(&cgroups->set, event->id, event->id, cgroups->now);
		cgroups->listed = true;
		break;
	}
}

void mote_cgroups_drain(struct mote_cgroups *cgroups, uint64_t now)
{
	cgroups->now = now;
	mote_ringbuf_drain(mote_cgroup_watch_ring(cgroups->watch), DRAIN, take, cgroups);
}

/* Before the loop: those that are there. */
static void wait_first(struct mote_cgroups *cgroups)
{
	uint64_t until = mote_thread_now() + FIRST_NS;

	while (!cgroups->listed && mote_thread_now() < until) {
		mote_cgroups_drain(cgroups, 1);
		usleep(500);
	}
}

static int open_watch(struct mote_cgroups *cgroups)
{
	const struct mote_cgroup_watch_config config = {
		.root = cgroups->layout.mount[cgroups->layout.primary],
		.events = true,
		.directories = cgroups->set.nnodes + cgroups->set.nnodes / 2,
		.interval_ms = cgroups->options->cgroup_listing,
		.bytes = RING_BYTES,
	};
	int err = mote_cgroup_watch_start(&config, &cgroups->watch);

	if (!err)
		wait_first(cgroups);
	return err;
}

static int open_files(struct mote_cgroups *cgroups)
{
	const struct mote_cgroup_files_config config = {
		.options = cgroups->options,
		.layout = &cgroups->layout,
		.set = &cgroups->set,
	};

	return mote_cgroup_files_open(&config, &cgroups->files);
}

static int open_all(struct mote_cgroups *cgroups, struct mote_tiers *tiers)
{
	int err = mote_cgroup_set_open(&cgroups->set, cgroups->options, NULL, NULL);

	if (!err)
		err = open_files(cgroups);
	if (!err)
		err = open_watch(cgroups);
	if (!err)
		mote_tiers_add(tiers, "cgroups",
			       cgroups->layout.version == 1 ? "files_v1" : "files", "%s", "");
	return err;
}

/* What stands against it, or NULL. */
static const char *refused(const struct mote_cgroups *cgroups)
{
	if (cgroups->options->cgroup_source == MOTE_CGROUP_SOURCE_OFF)
		return "[cgroup] source = off";
	if (!cgroups->layout.version)
		return "cgroupfs is not mounted";
	return NULL;
}

int mote_cgroups_open(const struct mote_options *options, struct mote_tiers *tiers,
		      struct mote_cgroups **out)
{
	struct mote_cgroups *cgroups = calloc(1, sizeof(*cgroups));
	const char *why;
	int err = 0;

	if (!cgroups)
		return -ENOMEM;
	cgroups->options = options;
	mote_cgroup_layout_open(&cgroups->layout, NULL);
	why = refused(cgroups);
	if (!why)
		err = open_all(cgroups, tiers);
	if (!why && err && err != -ENOMEM)
		why = strerrordesc_np(-err);
	if (why)
		mote_tiers_add(tiers, "cgroups", "none", "%s", why);
	if (why || err) {
		mote_cgroups_close(cgroups);
		return why ? 0 : err;
	}
	*out = cgroups;
	return 0;
}

void mote_cgroups_close(struct mote_cgroups *cgroups)
{
	if (!cgroups)
		return;
	mote_cgroup_watch_stop(cgroups->watch);
	mote_cgroup_files_close(cgroups->files);
	mote_cgroup_set_close(&cgroups->set);
	mote_cgroup_layout_close(&cgroups->layout);
	free(cgroups);
}

struct mote_cgroup_set *mote_cgroups_set(struct mote_cgroups *cgroups)
{
	return &cgroups->set;
}

const char *mote_cgroups_why(const struct mote_cgroups *cgroups, unsigned int field)
{
	const struct mote_cgroup_file *files;
	unsigned int n;
	uint64_t gives = 0;

	if (field < CGROUP_CPU_USAGE)
		return NULL;
	files = mote_cgroup_files(cgroups->layout.version, &n);
	for (unsigned int i = 0; i < n; i++)
		gives |= cgroups->layout.root[files[i].controller] >= 0 ? files[i].gives : 0;
	if (gives >> (field - CGROUP_CPU_USAGE) & 1)
		return NULL;
	return cgroups->layout.version == 1 ? "cgroup version 1 does not have it"
					    : "cgroupfs does not have it";
}

bool mote_cgroups_stale(const struct mote_cgroups *cgroups, uint64_t now)
{
	return !cgroups->collected ||
	       now - cgroups->collected >= cgroups->options->cgroup_freshness * NS_PER_MS;
}

void mote_cgroups_begin(struct mote_cgroups *cgroups, uint64_t now)
{
	mote_cgroups_drain(cgroups, now);
	cgroups->collected = now;
	mote_cgroup_files_begin(cgroups->files, now, cgroups->options->cgroup_reads ?: 1);
}

unsigned int mote_cgroups_push(struct mote_cgroups *cgroups, struct mote_engine *engine,
			       uint32_t index, unsigned int room)
{
	return mote_cgroup_files_push(cgroups->files, engine, index, room);
}

void mote_cgroups_complete(struct mote_cgroups *cgroups, uint32_t step, int res)
{
	mote_cgroup_files_complete(cgroups->files, step, res);
}

void mote_cgroups_stats(const struct mote_cgroups *cgroups, struct mote_cgroups_stats *stats)
{
	struct mote_cgroup_files_stats files;

	mote_cgroup_files_stats(cgroups->files, &files);
	*stats = (struct mote_cgroups_stats){ .errors = files.errors };
	mote_cgroup_set_fill(&cgroups->set, &stats->rows);
	stats->nodes = (struct mote_fill){ .size = cgroups->set.nnodes,
					   .fill = cgroups->set.used_nodes,
					   .peak = cgroups->set.peak_nodes };
}
