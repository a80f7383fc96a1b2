// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A sample of cgroups, see cgroups.h: the walk, then the files, as part of the tick's chain, in
 * rounds after it, or apart from ticks where they take too long.
 */
#include "cgroup_cpus.h"
#include "cgroups_impl.h"
#include "thread.h"

#define NS_PER_MS   1000000ull
#define NS_PER_S    1000000000ull
#define READS_MAX   16           /* direct descriptors of cgroup_files_round.c */
#define AHEAD_LEAST 64           /* operations */
#define FRESH_LEAST 200000000ull /* ns: those who waited are served before the next has ended */
#define APART_MOST  256          /* operations a round that no tick waits for */

enum { INDEX_FILES, INDEX_STATUS, INDEX_ITER };
_Static_assert(INDEX_ITER + MOTE_CGROUP_ITER_FILES == MOTE_CGROUPS_INDICES, "cgroups.h");

bool mote_cgroups_stale(const struct mote_cgroups *cgroups, uint64_t now)
{
	return !cgroups->collected ||
	       now - cgroups->collected >= cgroups->options->cgroup_freshness * NS_PER_MS;
}

/* How many files are read at a time in the next sample, by what mote may use now. */
static void count_reads(struct mote_cgroups *cgroups)
{
	unsigned int affinity =
		cgroups->status.buf ? mote_cgroup_parse_affinity(mote_file_text(&cgroups->status))
				    : 0;

	if (affinity)
		cgroups->reads = mote_cgroup_cpus(&cgroups->set, cgroups->own, affinity);
	if (cgroups->reads > READS_MAX)
		cgroups->reads = READS_MAX;
}

static unsigned int push_walk(struct mote_cgroups *cgroups, struct mote_engine *engine,
			      uint32_t index)
{
	return cgroups->iter ? mote_cgroup_iter_push(cgroups->iter, engine, index + INDEX_ITER) : 0;
}

/* Rows that have become free are given away; that there are too few is said. */
static void reseat(struct mote_cgroups *cgroups)
{
	uint64_t dropped = cgroups->set.dropped;
	bool nameless =
		cgroups->now - cgroups->renamed >= cgroups->options->cgroup_listing * NS_PER_MS;

	if (mote_cgroup_set_reseat(&cgroups->set, nameless, cgroups->now))
		cgroups->renamed = cgroups->now;
	if (dropped == cgroups->warned)
		return;
	cgroups->warned = dropped;
	mote_log_limited(&cgroups->limit, cgroups->now,
			 "a table is full: cgroups are summed in `other`: raise [tables] cgroups");
}

/* Several chains cannot hang on one timer. */
unsigned int mote_cgroups_push_ahead(struct mote_cgroups *cgroups, struct mote_engine *engine,
				     uint32_t index, unsigned int room, uint64_t now)
{
	unsigned int n;

	cgroups->step = IDLE;
	if (!cgroups->collected || room < AHEAD_LEAST)
		return 0;
	cgroups->now = now;
	reseat(cgroups); /* before the walk, which fills the rows that are given away */
	cgroups->step = WALKING;
	if (cgroups->iter)
		mote_cgroup_iter_begin(cgroups->iter, now);
	n = mote_file_push(&cgroups->status, engine, index + INDEX_STATUS);
	n += push_walk(cgroups, engine, index);
	cgroups->files_ahead = cgroups->files && cgroups->reads == 1 && !cgroups->busy &&
			       !mote_cgroup_budget_is_apart(&cgroups->budget, now);
	if (!cgroups->files_ahead)
		return n;
	mote_cgroup_files_begin(cgroups->files, now, 1, true);
	return n +
	       mote_cgroup_files_push_ahead(cgroups->files, engine, index + INDEX_FILES, room - n);
}

void mote_cgroups_begin(struct mote_cgroups *cgroups, uint64_t now)
{
	mote_cgroups_drain(cgroups, now);
	cgroups->collected = now;
	cgroups->collections++;
	cgroups->names_only = false;
	cgroups->began = now;
	if (cgroups->step == WALKING)
		return; /* it was begun ahead */
	reseat(cgroups);
	cgroups->step = IDLE;
	cgroups->files_ahead = false;
	if (cgroups->iter)
		mote_cgroup_iter_begin(cgroups->iter, now);
}

bool mote_cgroups_needs_names(const struct mote_cgroups *cgroups)
{
	return cgroups->iter && mote_cgroup_log_has_more(&cgroups->log);
}

void mote_cgroups_begin_names(struct mote_cgroups *cgroups, uint64_t now)
{
	mote_cgroups_drain(cgroups, now);
	cgroups->names_only = true;
	cgroups->step = IDLE;
	mote_cgroup_iter_begin(cgroups->iter, now);
}

/* The walk, if there is one, and then the files. */
static unsigned int push_first(struct mote_cgroups *cgroups, struct mote_engine *engine,
			       uint32_t index)
{
	unsigned int n = mote_file_push(&cgroups->status, engine, index + INDEX_STATUS);

	n += push_walk(cgroups, engine, index);
	if (n)
		mote_engine_end_chain(engine);
	cgroups->step = WALKING;
	return n;
}

static unsigned int walk_again(struct mote_cgroups *cgroups, struct mote_engine *engine,
			       uint32_t index)
{
	unsigned int n = push_walk(cgroups, engine, index);

	mote_engine_end_chain(engine);
	return n;
}

static void begin_files(struct mote_cgroups *cgroups)
{
	cgroups->step = READING;
	if (cgroups->names_only || !cgroups->files)
		return;
	cgroups->late += cgroups->busy;
	if (cgroups->busy)
		return;
	count_reads(cgroups);
	if (cgroups->files_ahead)
		mote_cgroup_files_arrive(cgroups->files, cgroups->now);
	else
		mote_cgroup_files_begin(cgroups->files, cgroups->now, cgroups->reads, false);
}

static void push_apart(struct mote_cgroups *cgroups, struct mote_engine *engine, uint32_t index,
		       unsigned int room)
{
	cgroups->apart = mote_cgroup_files_push(cgroups->files, engine, index + INDEX_FILES,
						room < APART_MOST ? room : APART_MOST, true);
	cgroups->busy = cgroups->apart;
}

static void tell_slow(struct mote_cgroups *cgroups, uint64_t clock)
{
	mote_log_limited(&cgroups->slow_limit, clock,
			 "reading files of cgroups took %llu"
			 " ms: ticks do not wait for it for %llu s",
			 (unsigned long long)(clock - cgroups->began) / NS_PER_MS,
			 (unsigned long long)cgroups->budget.span / NS_PER_S);
}

/* The next round: one that a tick waits for, or, from when that takes too long, one apart. */
static unsigned int push_files(struct mote_cgroups *cgroups, struct mote_engine *engine,
			       uint32_t index, unsigned int room)
{
	uint64_t clock = mote_thread_now();
	bool apart = mote_cgroup_budget_is_apart(&cgroups->budget, clock);

	if (!apart && !mote_cgroup_budget_exceeds(&cgroups->budget, cgroups->began, clock))
		return mote_cgroup_files_push(cgroups->files, engine, index + INDEX_FILES, room,
					      false);
	if (!apart)
		tell_slow(cgroups, clock);
	push_apart(cgroups, engine, index, room);
	cgroups->late += cgroups->busy;
	return 0;
}

unsigned int mote_cgroups_push(struct mote_cgroups *cgroups, struct mote_engine *engine,
			       uint32_t index, unsigned int room)
{
	unsigned int n = cgroups->step == IDLE ? push_first(cgroups, engine, index) : 0;

	if (n)
		return n;
	if (cgroups->step == WALKING) {
		if (cgroups->iter && mote_cgroup_iter_take(cgroups->iter, cgroups->now))
			return walk_again(cgroups, engine, index);
		begin_files(cgroups);
	}
	return cgroups->files && !cgroups->names_only && !cgroups->busy
		       ? push_files(cgroups, engine, index, room)
		       : 0;
}

unsigned int mote_cgroups_apart(const struct mote_cgroups *cgroups)
{
	return cgroups->apart;
}

bool mote_cgroups_busy(const struct mote_cgroups *cgroups)
{
	return cgroups->busy;
}

bool mote_cgroups_wait(const struct mote_cgroups *cgroups)
{
	uint64_t fresh = cgroups->options->cgroup_freshness * NS_PER_MS;

	if (fresh < FRESH_LEAST)
		fresh = FRESH_LEAST;
	return cgroups->busy && (!cgroups->ended || mote_thread_now() - cgroups->ended >= fresh);
}

void mote_cgroups_apart_complete(struct mote_cgroups *cgroups, uint32_t step, int res)
{
	cgroups->apart--;
	mote_cgroup_files_complete(cgroups->files, step, res);
}

/* Freshness counts from the end of one that takes long, or those who wait would never have it. */
void mote_cgroups_go_on(struct mote_cgroups *cgroups, struct mote_engine *engine, uint32_t index,
			uint64_t now)
{
	mote_cgroup_files_move(cgroups->files, now);
	push_apart(cgroups, engine, index, mote_engine_room(engine) / 2);
	if (cgroups->busy)
		return;
	cgroups->collected = now;
	cgroups->ended = mote_thread_now();
}

void mote_cgroups_complete(struct mote_cgroups *cgroups, uint32_t index, uint32_t step, int res)
{
	if (index == INDEX_FILES)
		mote_cgroup_files_complete(cgroups->files, step, res);
	else if (index == INDEX_STATUS)
		mote_file_complete(&cgroups->status, step, res);
	else
		mote_cgroup_iter_complete(cgroups->iter, index - INDEX_ITER, step, res);
}
