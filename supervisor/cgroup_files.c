// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The reader of cgroupfs, see cgroup_files.h: which files are read in a sample, and the pool of
 * those that stay open. The pool owns descriptors by node; those of nodes that are gone are closed
 * at the next sample. A file that is not there is left alone until its slow files are read again:
 * the cgroup is gone, or has not got that controller.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_files_impl.h"
#include "descriptors.h"
#include "lazy.h"

#define JOBS_MIN   64
#define JOBS_OPEN  64 /* where each holds a descriptor for a moment */
#define JOBS_FEW   8  /* and descriptors are few */
#define TEXT_MIN   (16 * 1024)
#define PATHS_MIN  (4 * 1024)
#define FEW        16 /* cgroups that may come to those of a host with few */
#define SLOW_SHARE 10 /* of the slow files of all cgroups so many are read at once, a tenth */
#define NS_PER_MS  1000000ull

/* What the pool may have, and how many files may be open beside it. */
static void divide_descriptors(struct mote_cgroup_files *files)
{
	unsigned int wanted =
		files->hot ? (unsigned int)files->config.options->cgroup_descriptors : 0;
	unsigned int others = files->config.held + MOTE_DESCRIPTORS_RESERVE;
	unsigned int limit = mote_descriptors_allow(others + wanted);
	unsigned int spare = limit > others ? limit - others : 0;

	files->pool_max = spare < wanted ? spare : wanted;
	files->stats.pool_max = files->pool_max;
	files->stats.wanted = wanted;
	files->njobs = MOTE_CGROUP_JOBS;
	if (!files->config.direct)
		files->njobs = limit >= others ? JOBS_OPEN : JOBS_FEW;
}

static int open_pool(struct mote_cgroup_files *files)
{
	uint32_t nodes = files->config.set->nnodes;

	divide_descriptors(files);
	if (!files->pool_max)
		return 0;
	files->pool = mote_lazy_alloc(nodes * sizeof(*files->pool));
	return files->pool ? 0 : -ENOMEM;
}

/* Files that give nothing that the walk does not give are not read. */
static bool is_needed(const struct mote_cgroup_files *files, unsigned int file)
{
	const struct mote_cgroup_file *f = &files->table[file];

	return f->gives & ~files->config.given && files->config.layout->root[f->controller] >= 0;
}

int mote_cgroup_files_open(const struct mote_cgroup_files_config *config,
			   struct mote_cgroup_files **out)
{
	struct mote_cgroup_files *files = mote_lazy_alloc(sizeof(*files));
	int err;

	if (!files)
		return -ENOMEM;
	files->config = *config;
	files->table = mote_cgroup_files(config->layout->version, &files->n);
	for (unsigned int i = 0; i < files->n; i++)
		files->bytes[i] = files->table[i].bytes;
	for (unsigned int i = 0; i < MOTE_CGROUP_HOT_MAX && files->table[i].pace == MOTE_CGROUP_HOT;
	     i++)
		files->hot += is_needed(files, i) ? i + 1 - files->hot : 0;
	files->read.node = files->slow.node = config->set->nnodes;
	files->text_room = MOTE_CGROUP_TEXT;
	files->path_room = MOTE_CGROUP_PATHS;
	err = open_pool(files);
	if (err) {
		mote_lazy_free(files, sizeof(*files));
		return err;
	}
	*out = files;
	return 0;
}

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Bytes of text, and files, of one cgroup in a sample. */
static void measure(const struct mote_cgroup_files *files, uint32_t *bytes, uint32_t *count)
{
	uint32_t slow = 0, nslow = 0;

	*bytes = *count = 0;
	for (unsigned int i = 0; i < files->n; i++) {
		if (!is_needed(files, i))
			continue;
		if (i < files->hot) {
			*bytes += files->bytes[i];
			++*count;
		} else {
			slow += files->bytes[i];
			nslow++;
		}
	}
	*bytes += slow / SLOW_SHARE;
	*count += (nslow + SLOW_SHARE - 1) / SLOW_SHARE;
}

/*
 * A round uses no more memory than this, but for a file that is longer by itself. For a quarter
 * more cgroups than there are, and some: with still more a tick takes a second round.
 */
static void settle_rounds(struct mote_cgroup_files *files)
{
	uint32_t used = files->config.set->used_nodes, likely = used + used / 4 + FEW, bytes, count;

	measure(files, &bytes, &count);
	files->text_room = clamp(likely * bytes, TEXT_MIN, MOTE_CGROUP_TEXT);
	files->path_room = clamp(files->text_room / 16, PATHS_MIN, MOTE_CGROUP_PATHS);
	files->njobs = clamp(likely * count, JOBS_MIN < files->njobs ? JOBS_MIN : files->njobs,
			     files->njobs);
	mote_lazy_touch(files, offsetof(struct mote_cgroup_files, jobs) +
				       files->njobs * sizeof(files->jobs[0]));
	mote_lazy_touch(files->text, files->text_room);
	mote_lazy_touch(files->paths, files->path_room);
}

void mote_cgroup_files_settle(struct mote_cgroup_files *files)
{
	unsigned int pooled = mote_cgroup_set_likely(files->config.set) * files->hot;
	int any = files->config.layout->root[files->config.layout->primary];

	mote_descriptors_grow(any, files->config.held + MOTE_DESCRIPTORS_RESERVE / 2 +
					   (pooled < files->pool_max ? pooled : files->pool_max));
	settle_rounds(files);
	if (files->pool)
		mote_lazy_touch(files->pool,
				mote_cgroup_set_likely(files->config.set) * sizeof(*files->pool));
}

void mote_cgroup_files_close(struct mote_cgroup_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; files->pool && i < files->config.set->fresh_node; i++) {
		for (unsigned int k = 0; k < MOTE_CGROUP_HOT_MAX; k++) {
			if (files->pool[i].fd1[k])
				close(files->pool[i].fd1[k] - 1);
		}
	}
	mote_lazy_free(files->pool, files->config.set->nnodes * sizeof(*files->pool));
	mote_lazy_free(files, sizeof(*files));
}

static uint64_t slow_interval(const struct mote_cgroup_files *files)
{
	return files->config.options->cgroup_slow * NS_PER_MS;
}

/*
 * As many nodes a sample as that all have had their turn once in [cgroup] slow. If the last sample
 * is longer ago than that, all of them in this one; and what a row says then is too old to tell
 * whether its cgroup moved, but where a walk has just been.
 */
static void plan_slow(struct mote_cgroup_files *files)
{
	uint64_t slow = slow_interval(files), elapsed = files->planned - files->last_slow;
	bool all = !files->last_slow || elapsed >= slow;

	files->all_slow = all && (files->ahead || !files->config.given);
	files->ahead = files->ahead && !all;
	files->slow_left = files->config.set->used_nodes;
	if (!all)
		files->slow_left = (unsigned int)(files->slow_left * elapsed / slow) + 1;
	files->last_slow = files->planned;
	/* What the sample before has left to this one goes on where it is. */
	if (files->slow.node < files->config.set->fresh_node)
		return;
	files->slow = (struct mote_cgroup_cursor){ 0 };
	files->slow_since = files->sample;
}

void mote_cgroup_files_begin(struct mote_cgroup_files *files, uint64_t now, unsigned int at_a_time,
			     bool ahead)
{
	files->now = files->planned = now;
	files->at_a_time = at_a_time;
	files->ahead = ahead;
	files->fresh = false;
	files->sample++;
	files->read = (struct mote_cgroup_cursor){ 0 };
	plan_slow(files);
	if (!ahead && !files->config.given)
		mote_cgroup_other_clear(files->config.set);
}

void mote_cgroup_files_arrive(struct mote_cgroup_files *files, uint64_t now)
{
	files->now = now;
	if (!files->config.given)
		mote_cgroup_other_clear(files->config.set);
	if (files->read.node < files->config.set->fresh_node)
		return;
	files->fresh = true;
	files->read = (struct mote_cgroup_cursor){ 0 };
}

void mote_cgroup_files_move(struct mote_cgroup_files *files, uint64_t now)
{
	files->now = now;
}

/* Something happened in it since its slow files were read. */
static bool moved(const struct mote_cgroup_row *row)
{
	return row->v[MOTE_CGROUP_CPU_USAGE] != row->slow_cpu ||
	       row->v[MOTE_CGROUP_MEMORY_CURRENT] != row->slow_memory;
}

/* Those that did not move all the same, once in ten times: their limits may be other ones. */
static bool is_slow_due(struct mote_cgroup_files *files, const struct mote_cgroup_row *row)
{
	uint64_t slow = slow_interval(files), age = files->planned - row->slow;

	if (!row->slow)
		return true;
	if (!files->slow_left || age + slow / 16 < slow ||
	    (!files->all_slow && !moved(row) && age < 10 * slow))
		return false;
	files->slow_left--;
	return true;
}

void mote_cgroup_files_remember(struct mote_cgroup_row *row)
{
	row->slow_cpu = row->v[MOTE_CGROUP_CPU_USAGE];
	row->slow_memory = row->v[MOTE_CGROUP_MEMORY_CURRENT];
}

/*
 * The turn of its slow files, and of those that were not there. What is summed has what moves each
 * time only.
 */
static bool begin_slow(struct mote_cgroup_files *files, uint32_t node)
{
	struct mote_cgroup_set *set = files->config.set;
	uint32_t at = set->nodes[node].row;
	struct mote_cgroup_row *row = &set->rows[at];

	if (at >= set->max || !is_slow_due(files, row))
		return false;
	row->slow = files->planned;
	mote_cgroup_files_remember(row);
	files->slow.missing = row->missing;
	row->missing = 0;
	return true;
}

static bool is_due(const struct mote_cgroup_files *files, uint32_t node, unsigned int file)
{
	const struct mote_cgroup_set *set = files->config.set;
	uint32_t row = set->nodes[node].row;

	if (!is_needed(files, file))
		return false;
	if (row >= set->max)
		return files->table[file].gives & mote_cgroup_files_summed(set, row);
	return !(set->rows[row].missing >> file & 1);
}

static bool has_row(const struct mote_cgroup_files *files, uint32_t node)
{
	const struct mote_cgroup_node *n = &files->config.set->nodes[node];

	return n->id && n->row != MOTE_CGROUP_NONE;
}

/* Moves on to the next file that is read each time; false: none. */
static bool seek_read(struct mote_cgroup_files *files)
{
	const struct mote_cgroup_set *set = files->config.set;
	struct mote_cgroup_cursor *at = &files->read;

	for (; at->node < set->fresh_node; at->node++, at->file = 0) {
		if (!has_row(files, at->node) ||
		    (files->fresh && set->nodes[at->node].born != files->now))
			continue;
		for (; at->file < files->hot; at->file++) {
			if (is_due(files, at->node, at->file))
				return true;
		}
	}
	return false;
}

static bool seek_slow(struct mote_cgroup_files *files)
{
	struct mote_cgroup_cursor *at = &files->slow;

	for (; at->node < files->config.set->fresh_node; at->node++, at->file = 0) {
		if (!has_row(files, at->node) || (!at->file && !begin_slow(files, at->node)))
			continue;
		for (; at->file < files->n; at->file++) {
			if ((files->table[at->file].pace == MOTE_CGROUP_SLOW ||
			     at->missing >> at->file & 1) &&
			    is_due(files, at->node, at->file))
				return true;
		}
	}
	return false;
}

bool mote_cgroup_files_next(struct mote_cgroup_files *files, uint32_t *node, uint32_t *file)
{
	struct mote_cgroup_cursor *at = seek_read(files)   ? &files->read
					: seek_slow(files) ? &files->slow
							   : NULL;

	if (!at)
		return false;
	*node = at->node;
	*file = at->file++;
	return true;
}

bool mote_cgroup_files_owes(struct mote_cgroup_files *files)
{
	if (seek_read(files))
		return true;
	if (files->ahead && files->sample - files->slow_since < MOTE_CGROUP_LAG)
		return false;
	return seek_slow(files);
}

struct mote_cgroup_pool *mote_cgroup_files_pool(struct mote_cgroup_files *files, uint32_t node)
{
	struct mote_cgroup_pool *pool = files->pool ? &files->pool[node] : NULL;
	uint64_t id = files->config.set->nodes[node].id;

	if (!pool || pool->id == id)
		return pool;
	for (unsigned int i = 0; i < MOTE_CGROUP_HOT_MAX; i++) {
		if (pool->fd1[i])
			return NULL;
	}
	pool->id = id;
	return pool;
}

void mote_cgroup_files_stats(const struct mote_cgroup_files *files,
			     struct mote_cgroup_files_stats *stats)
{
	*stats = files->stats;
	stats->pooled = files->pooled;
}
