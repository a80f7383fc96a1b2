// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The rounds of the reader of cgroupfs, see cgroup_files.h. A job is one file of one cgroup. With
 * direct descriptors it takes one round: open, read and close by a slot, and the open once more of
 * a file that the pool is to have; else one for the open and one for the rest. Of the pool's files
 * there is the read alone. What came of it says cgroup_files_take.c.
 */
#include <string.h>

#include "cgroup_files_impl.h"
#include "tag.h"

#define SLOT_FIRST 64 /* and as many as there are chains; below are naming.c's */
/*
 * A list may be longer than the page that the kernel gives at a time. One of these reads is full,
 * or is the last.
 */
#define LIST_SHORT 512
#define LIST_READ  4032
#define LIST_LINE  9 /* bytes, at most */

/* As many lines as a list had the last time, and some. */
static uint64_t expected(const struct mote_cgroup_files *files, const struct mote_cgroup_job *job)
{
	const struct mote_cgroup_set *set = files->config.set;
	const struct mote_cgroup_file *file = &files->table[job->file];
	const struct mote_cgroup_row *row = &set->rows[set->nodes[job->node].row];
	uint64_t lines = file->counts_lines ? row->v[__builtin_ctzll(file->gives)] : 0;

	return lines + lines / 8;
}

static bool begin_job(struct mote_cgroup_files *files, struct mote_cgroup_job *job)
{
	struct mote_cgroup_pool *pool;

	*job = (struct mote_cgroup_job){ .fd = -1, .since = files->sample };
	if (!mote_cgroup_files_next(files, &job->node, &job->file))
		return false;
	job->id = files->config.set->nodes[job->node].id;
	job->stage = files->config.direct ? MOTE_CGROUP_DIRECT : MOTE_CGROUP_OPEN;
	job->expect = expected(files, job);
	if (job->file >= files->hot)
		return true;
	pool = mote_cgroup_files_pool(files, job->node);
	if (pool && pool->fd1[job->file]) {
		job->fd = pool->fd1[job->file] - 1;
		job->pooled = true;
		job->stage = MOTE_CGROUP_READ;
	} else if (pool && files->pooled < files->pool_max) {
		job->keep = true;
		files->pooled++;
	}
	return true;
}

/* One descriptor of a node whose cgroup is gone. */
static bool begin_close(struct mote_cgroup_files *files, struct mote_cgroup_job *job,
			uint32_t *from)
{
	uint32_t end = files->config.set->fresh_node * MOTE_CGROUP_HOT_MAX;

	for (; files->pool && *from < end; ++*from) {
		struct mote_cgroup_pool *pool = &files->pool[*from / MOTE_CGROUP_HOT_MAX];
		int *fd1 = &pool->fd1[*from % MOTE_CGROUP_HOT_MAX];

		if (!*fd1 || pool->id == files->config.set->nodes[*from / MOTE_CGROUP_HOT_MAX].id)
			continue;
		*job = (struct mote_cgroup_job){ .stage = MOTE_CGROUP_CLOSE,
						 .fd = *fd1 - 1,
						 .since = files->sample };
		*fd1 = 0;
		files->pooled--;
		return true;
	}
	return false;
}

void mote_cgroup_files_let_go(struct mote_cgroup_files *files, struct mote_cgroup_job *job)
{
	if (job->pooled)
		files->pool[job->node].fd1[job->file] = 0;
	if (job->pooled || job->keep)
		files->pooled--;
	job->pooled = job->keep = false;
	job->stage = job->fd >= 0 ? MOTE_CGROUP_CLOSE : MOTE_CGROUP_FREE;
}

/* What the pool has of a node that is gone is closed from there. */
static void abandon(struct mote_cgroup_files *files, struct mote_cgroup_job *job)
{
	if (job->pooled)
		job->stage = MOTE_CGROUP_FREE;
	else
		mote_cgroup_files_let_go(files, job);
}

/* Another cgroup may have the node of one that waited for its round. */
static bool is_stale(const struct mote_cgroup_files *files, const struct mote_cgroup_job *job)
{
	const struct mote_cgroup_node *node = &files->config.set->nodes[job->node];

	return job->stage != MOTE_CGROUP_FREE && job->stage != MOTE_CGROUP_CLOSE &&
	       (node->id != job->id || node->row == MOTE_CGROUP_NONE);
}

static unsigned int begin_jobs(struct mote_cgroup_files *files)
{
	unsigned int busy = 0;
	uint32_t closing = 0;

	for (unsigned int i = 0; i < files->njobs; i++) {
		struct mote_cgroup_job *job = &files->jobs[i];

		if (is_stale(files, job))
			abandon(files, job);
		busy += job->stage != MOTE_CGROUP_FREE || begin_close(files, job, &closing) ||
			begin_job(files, job);
	}
	return busy;
}

/* Of the root the file's name alone, else the path without its first slash. */
static const char *path_of(struct mote_cgroup_files *files, const struct mote_cgroup_job *job)
{
	const char *name = files->table[job->file].name;
	char *path = files->paths + files->path_used;
	uint32_t room = files->path_room - files->path_used, len;
	size_t more = strlen(name) + 2;

	if (room <= more)
		return NULL;
	len = mote_cgroup_set_path(files->config.set, job->node, path,
				   room - (uint32_t)more < MOTE_CGROUP_PATH ? room - (uint32_t)more
									    : MOTE_CGROUP_PATH);
	if (!len)
		return NULL;
	if (len > 1)
		path[len++] = '/';
	strcpy(path + len, name);
	files->path_used += len + (uint32_t)more;
	return path + 1;
}

/* How it is read: false if there is no room for its text in this round. */
static bool divide(struct mote_cgroup_files *files, struct mote_cgroup_job *job)
{
	uint64_t list = job->expect * LIST_LINE;
	uint32_t room = files->text_used ? files->text_room : MOTE_CGROUP_TEXT;

	job->reads = 1;
	job->len = files->bytes[job->file];
	if (files->table[job->file].counts_lines && list < LIST_SHORT)
		job->len = LIST_SHORT;
	else if (files->table[job->file].counts_lines) {
		job->reads = (uint16_t)(list / LIST_READ < MOTE_CGROUP_READS_MAX
						? list / LIST_READ + 1
						: MOTE_CGROUP_READS_MAX);
		job->len = LIST_READ;
	}
	if (files->text_used + job->reads * job->len > room)
		return false;
	job->text = files->text + files->text_used;
	return true;
}

static bool has_close(const struct mote_cgroup_job *job)
{
	return job->stage == MOTE_CGROUP_CLOSE || job->stage == MOTE_CGROUP_DIRECT ||
	       (job->stage == MOTE_CGROUP_READ && !job->pooled && !job->keep);
}

static bool has_reads(const struct mote_cgroup_job *job)
{
	return job->stage == MOTE_CGROUP_DIRECT || job->stage == MOTE_CGROUP_READ;
}

static bool has_open(const struct mote_cgroup_job *job)
{
	return job->stage == MOTE_CGROUP_DIRECT || job->stage == MOTE_CGROUP_OPEN;
}

static unsigned int operations(const struct mote_cgroup_job *job)
{
	return has_open(job) + (job->stage == MOTE_CGROUP_DIRECT && job->keep) +
	       (has_reads(job) ? job->reads : 0) + has_close(job);
}

/* Where a round's operations go. */
struct round {
	struct mote_engine *engine;
	uint32_t index;
	unsigned int room, n;
	unsigned int chain; /* number of the chain that is being made */
	bool apart;         /* no tick waits for them */
};

static void push(struct round *round, struct mote_sqe *sqe, unsigned int job, unsigned int step)
{
	sqe->tag = mote_tag(round->apart ? MOTE_TAG_CGROUP : MOTE_TAG_FILE, round->index,
			    job * MOTE_CGROUP_STEPS + step);
	sqe->flags |= MOTE_SQE_LINK | MOTE_SQE_ASYNC | (round->apart ? MOTE_SQE_MAY_BLOCK : 0);
	mote_engine_push(round->engine, sqe);
	round->n++;
}

static void push_open(struct mote_cgroup_files *files, struct round *round, unsigned int i,
		      const char *path, int slot)
{
	const struct mote_cgroup_job *job = &files->jobs[i];
	struct mote_sqe sqe = {
		.op = MOTE_OP_OPEN,
		.fd = files->config.layout->root[files->table[job->file].controller],
		.path = path,
		.slot = slot,
	};

	push(round, &sqe, i,
	     slot < 0 && job->stage == MOTE_CGROUP_DIRECT ? MOTE_CGROUP_STEP_KEEP
							  : MOTE_CGROUP_STEP_OPEN);
}

static void push_reads(struct mote_cgroup_files *files, struct round *round, unsigned int i,
		       int slot)
{
	struct mote_cgroup_job *job = &files->jobs[i];

	for (unsigned int k = 0; k < job->reads; k++) {
		struct mote_sqe sqe = {
			.op = MOTE_OP_READ,
			.flags = slot < 0 ? 0 : MOTE_SQE_SLOT,
			.fd = slot < 0 ? job->fd : slot,
			.buf = job->text + k * job->len,
			.len = job->len,
			.offset = slot < 0 && (job->pooled || job->keep) ? 0 : MOTE_OFFSET_CURRENT,
		};

		push(round, &sqe, i, MOTE_CGROUP_STEP_READ + k);
	}
	files->text_used += job->reads * job->len;
}

/* False: it has no operation in this round. */
static bool push_job(struct mote_cgroup_files *files, struct round *round, unsigned int i)
{
	struct mote_cgroup_job *job = &files->jobs[i];
	int slot = job->stage == MOTE_CGROUP_DIRECT ? SLOT_FIRST + (int)round->chain : -1;
	struct mote_sqe close = { .op = MOTE_OP_CLOSE,
				  .flags = slot < 0 ? 0 : MOTE_SQE_SLOT,
				  .fd = slot < 0 ? job->fd : slot };
	const char *path = NULL;

	if ((has_reads(job) && !divide(files, job)) || round->n + operations(job) > round->room)
		return false;
	if (has_open(job) && !(path = path_of(files, job)))
		return false;
	job->flying = true;
	job->full = false;
	job->res = 0;
	job->lines = 0;
	if (has_open(job))
		push_open(files, round, i, path, slot);
	if (has_reads(job))
		push_reads(files, round, i, slot);
	if (has_close(job))
		push(round, &close, i, MOTE_CGROUP_STEP_CLOSE);
	if (job->keep && job->stage == MOTE_CGROUP_DIRECT)
		push_open(files, round, i, path, -1);
	return true;
}

/* `busy` jobs in as many chains of equal length as are read at a time, or in the loop's. */
static unsigned int push_jobs(struct mote_cgroup_files *files, struct round *round,
			      unsigned int busy, bool link)
{
	unsigned int length = (busy + files->at_a_time - 1) / files->at_a_time, pushed = 0;

	files->text_used = files->path_used = 0;
	for (unsigned int i = 0; i < files->njobs && round->n < round->room; i++) {
		if (files->jobs[i].stage == MOTE_CGROUP_FREE || !push_job(files, round, i))
			continue;
		if (!link && ++pushed % length == 0) {
			mote_engine_end_chain(round->engine);
			round->chain++;
		}
	}
	if (!link && pushed % length)
		mote_engine_end_chain(round->engine);
	return round->n;
}

/* Whether the sample cannot be without it. */
static bool is_owed(const struct mote_cgroup_files *files, const struct mote_cgroup_job *job)
{
	if (job->stage == MOTE_CGROUP_FREE)
		return false;
	if (!files->ahead || files->sample - job->since >= MOTE_CGROUP_LAG)
		return true;
	return job->stage != MOTE_CGROUP_CLOSE && job->file < files->hot;
}

static bool is_complete(struct mote_cgroup_files *files)
{
	for (unsigned int i = 0; i < files->njobs; i++) {
		if (is_owed(files, &files->jobs[i]))
			return false;
	}
	return !mote_cgroup_files_owes(files);
}

/* A path or a text that is too long for a whole round's memory: it would wait for ever. */
static void give_up(struct mote_cgroup_files *files)
{
	for (unsigned int i = 0; i < files->njobs; i++) {
		if (files->jobs[i].stage != MOTE_CGROUP_FREE)
			abandon(files, &files->jobs[i]);
	}
	files->stats.errors++;
}

unsigned int mote_cgroup_files_push_ahead(struct mote_cgroup_files *files,
					  struct mote_engine *engine, uint32_t index,
					  unsigned int room)
{
	struct round round = { .engine = engine, .index = index, .room = room };

	return push_jobs(files, &round, begin_jobs(files), true);
}

unsigned int mote_cgroup_files_push(struct mote_cgroup_files *files, struct mote_engine *engine,
				    uint32_t index, unsigned int room, bool apart)
{
	struct round round = { .engine = engine, .index = index, .room = room, .apart = apart };
	unsigned int busy;

	mote_cgroup_files_take(files);
	while (room && !is_complete(files)) {
		busy = begin_jobs(files);
		if (busy && push_jobs(files, &round, busy, false))
			return round.n;
		if (busy)
			give_up(files);
	}
	if (!files->config.given)
		mote_cgroup_other_end(files->config.set, files->now);
	return 0;
}
