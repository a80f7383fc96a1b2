// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The walk over cgroups, see cgroup_iter.h. Two files are read with it, if cgroupfs is mounted:
 * memory.stat of the root, which makes the kernel flush the counters of memory where the walk
 * cannot (6.16), and its cpu.stat, as the root's CPU time is not kept in its cgroup.
 */
#include "cgroup_iter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "task.h"

#define SLOT_WALK  5  /* of the iterators' */
#define AGAIN_MAX  64 /* walks a sample, where many are not known yet */
#define CALM_MAX   2  /* where there are not so many */
#define BIT(value) (1ull << MOTE_CGROUP_##value)
#define CPU_STAT                                                               \
	(BIT(CPU_USAGE) | BIT(CPU_USER) | BIT(CPU_SYSTEM) | BIT(CPU_PERIODS) | \
	 BIT(CPU_THROTTLED) | BIT(CPU_THROTTLED_TIME))

enum { WALK, FLUSH, ROOT_CPU };

struct mote_cgroup_iter {
	struct mote_cgroup_ctl *ctl;
	struct mote_cgroup_set *set;
	struct mote_file file[MOTE_CGROUP_ITER_FILES];
	char path[MOTE_CGROUP_ITER_FILES][MOTE_CGROUP_MOUNT + 16];
	bool flushes_all;
	uint64_t now, before, errors;
	unsigned int walks, calm; /* of this sample */
};

static int open_file(struct mote_cgroup_iter *iter, unsigned int i, const char *mount,
		     const char *name, bool direct)
{
	int err;

	snprintf(iter->path[i], sizeof(iter->path[i]), "%s/%s", mount, name);
	err = mote_file_open(&iter->file[i], iter->path[i], -1, direct);
	return err == -ENOMEM ? err : 0; /* not there: an empty text for ever */
}

static int open_files(struct mote_cgroup_iter *iter, const struct mote_cgroup_walk *walk,
		      const struct mote_cgroup_layout *layout, bool direct)
{
	const char *mount = layout->mount[MOTE_CGROUP_UNIFIED];
	int err = mote_file_open_iterator(&iter->file[WALK], walk->dirfd, walk->name, SLOT_WALK,
					  direct);

	if (err || !mount[0])
		return err;
	if (!walk->flushes_all)
		err = open_file(iter, FLUSH, mount, "memory.stat", direct);
	return err ? err : open_file(iter, ROOT_CPU, mount, "cpu.stat", direct);
}

int mote_cgroup_iter_open(const struct mote_cgroup_walk *walk,
			  const struct mote_cgroup_layout *layout, struct mote_cgroup_set *set,
			  bool direct, struct mote_cgroup_iter **out)
{
	struct mote_cgroup_iter *iter = calloc(1, sizeof(*iter));
	int err;

	if (!iter)
		return -ENOMEM;
	iter->ctl = walk->ctl;
	iter->set = set;
	iter->flushes_all = walk->flushes_all;
	for (unsigned int i = 0; i < MOTE_CGROUP_ITER_FILES; i++)
		iter->file[i].fd = -1;
	err = open_files(iter, walk, layout, direct);
	if (err)
		mote_cgroup_iter_close(iter);
	else
		*out = iter;
	return err;
}

void mote_cgroup_iter_close(struct mote_cgroup_iter *iter)
{
	if (!iter)
		return;
	for (unsigned int i = 0; i < MOTE_CGROUP_ITER_FILES; i++)
		mote_file_close(&iter->file[i]);
	free(iter);
}

uint64_t mote_cgroup_iter_gives(const struct mote_cgroup_iter *iter)
{
	uint64_t all = (1ull << MOTE_CGROUP_FAST) - 1;

	return iter->ctl->has_stat ? all : all & ~MOTE_CGROUP_STAT;
}

void mote_cgroup_iter_begin(struct mote_cgroup_iter *iter, uint64_t now)
{
	iter->now = now;
	iter->walks = iter->calm = 0;
}

/* Those that this walk found and that were not known. True if any of them is now. */
static bool take_new(struct mote_cgroup_iter *iter)
{
	uint32_t n = iter->ctl->unknown < MOTE_CGROUP_NEW ? iter->ctl->unknown : MOTE_CGROUP_NEW;
	uint32_t added = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct mote_cgroup_new *fresh = &iter->ctl->fresh[i];
		struct mote_text name = { fresh->name, fresh->name_len };

		added += mote_cgroup_set_add(iter->set, fresh->id, fresh->parent, name,
					     iter->ctl->begun, iter->now);
	}
	if (!added)
		mote_cgroup_set_unplaced(iter->set, iter->ctl->unknown);
	return added;
}

/* The split of CPU time as cpu.stat shows it: never less than was shown before, by anybody. */
static void take_cputime(struct mote_cgroup_row *row)
{
	const struct mote_thread_counts counts = { .utime = row->utime,
						   .stime = row->stime,
						   .run_time = row->v[MOTE_CGROUP_CPU_USAGE] };
	uint64_t utime = row->v[MOTE_CGROUP_CPU_USER], stime = row->v[MOTE_CGROUP_CPU_SYSTEM];

	if (utime < row->prev_utime)
		utime = row->prev_utime;
	if (stime < row->prev_stime)
		stime = row->prev_stime;
	mote_task_cputime(&counts, &utime, &stime);
	row->v[MOTE_CGROUP_CPU_USER] = utime;
	row->v[MOTE_CGROUP_CPU_SYSTEM] = stime;
	row->present |= BIT(CPU_USER) | BIT(CPU_SYSTEM);
}

/* Of the hierarchy: its CPU time is the machine's, which the walk does not give. */
static bool is_root(const struct mote_cgroup_iter *iter, const struct mote_cgroup_row *row)
{
	return !iter->ctl->root_level && !iter->set->nodes[row->node].level;
}

static void take_rows(struct mote_cgroup_iter *iter)
{
	struct mote_cgroup_row *other = &iter->set->rows[iter->set->max];

	for (uint32_t i = 0; i < iter->set->fresh_row; i++) {
		struct mote_cgroup_row *row = &iter->set->rows[i];

		if (!row->changed || row->written <= iter->before)
			continue;
		if (row->present & BIT(CPU_USAGE) && !is_root(iter, row))
			take_cputime(row);
		row->changed = iter->now;
	}
	if (other->present & BIT(CPU_USAGE))
		take_cputime(other);
	mote_cgroup_other_done(iter->set, iter->now);
	iter->before = iter->ctl->begun;
}

static void take_root_cpu(struct mote_cgroup_iter *iter)
{
	struct mote_cgroup_values values = { 0 };
	struct mote_text text = mote_file_text(&iter->file[ROOT_CPU]);
	unsigned int n;

	for (uint32_t i = 0; text.len && i < iter->set->fresh_row; i++) {
		struct mote_cgroup_row *row = &iter->set->rows[i];

		if (!row->changed || !is_root(iter, row))
			continue;
		if (!mote_parse_cgroup(mote_cgroup_files(2, &n), text, &values))
			mote_cgroup_row_take(row, CPU_STAT, &values, iter->now);
	}
}

bool mote_cgroup_iter_goes_on(unsigned int walks, unsigned int *calm, uint32_t unknown)
{
	*calm = unknown > MOTE_CGROUP_NEW ? 0 : *calm + 1;
	return unknown && walks < AGAIN_MAX && *calm < CALM_MAX;
}

/* Of the walk that has just been read; true if there is to be another. */
static bool take_walk(struct mote_cgroup_iter *iter)
{
	struct mote_cgroup_ctl *ctl = iter->ctl;

	mote_file_text(&iter->file[WALK]);
	mote_file_text(&iter->file[FLUSH]);
	if (__atomic_load_n(&ctl->done, __ATOMIC_ACQUIRE) != ctl->begun || iter->file[WALK].error) {
		iter->errors++;
		return false;
	}
	if (ctl->known < iter->set->known)
		mote_cgroup_set_sweep(iter->set, ctl->begun, UINT64_MAX, iter->now);
	return mote_cgroup_iter_goes_on(iter->walks, &iter->calm, ctl->unknown) && take_new(iter);
}

static void finish(struct mote_cgroup_iter *iter)
{
	take_rows(iter);
	take_root_cpu(iter);
}

unsigned int mote_cgroup_iter_push(struct mote_cgroup_iter *iter, struct mote_engine *engine,
				   uint32_t index)
{
	unsigned int n = mote_file_push(&iter->file[FLUSH], engine, index + FLUSH);

	if (!iter->walks++)
		n += mote_file_push(&iter->file[ROOT_CPU], engine, index + ROOT_CPU);
	return n + mote_file_push(&iter->file[WALK], engine, index + WALK);
}

bool mote_cgroup_iter_take(struct mote_cgroup_iter *iter, uint64_t now)
{
	iter->now = now;
	if (take_walk(iter))
		return true;
	finish(iter);
	return false;
}

void mote_cgroup_iter_complete(struct mote_cgroup_iter *iter, uint32_t file, uint32_t step, int res)
{
	mote_file_complete(&iter->file[file], step, res);
}

uint64_t mote_cgroup_iter_errors(const struct mote_cgroup_iter *iter)
{
	return iter->errors;
}
