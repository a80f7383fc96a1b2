// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The reader of cgroupfs, see cgroup_files.h. A job is one file of one cgroup: it is opened, read
 * and closed, or, of the pool, only read. A round has one operation of each job. The pool owns
 * descriptors by node; those of nodes that are gone are closed at the next sample. A file that is
 * not there is left alone until its slow files are read again: the cgroup is gone, or has not got
 * that controller.
 */
#include "cgroup_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "lazy.h"
#include "tag.h"

#define JOBS      64
#define JOBS_FEW  8 /* where descriptors are few: each holds one for a moment */
#define TEXT      (32 * 1024)
#define PATHS     (8 * 1024)
#define BYTES_MAX (16 * 1024) /* of a text that is read in one go */
#define TEXT_MIN  (16 * 1024) /* of the texts that are under way at a time */
#define PATHS_MIN (4 * 1024)
#define PER_NODE  64 /* bytes of text: more cgroups, fewer rounds */
#define NS_PER_MS 1000000ull
#define HOT_MAX   6

enum stage { FREE, OPEN, READ, CLOSE };

struct job {
	enum stage stage;
	uint32_t node, file;
	uint64_t id; /* of the node's cgroup, which may be another by then */
	int fd;
	bool pooled;
	uint32_t len; /* of the buffer in this round; 0: no operation in this round */
	uint64_t offset, lines;
	char *text;
};

/* Descriptors of a node, for the files that are read each time. */
struct pool {
	uint64_t id;
	int fd1[HOT_MAX]; /* and 1; 0: not open */
};

struct mote_cgroup_files {
	struct mote_cgroup_files_config config;
	const struct mote_cgroup_file *table;
	unsigned int n;
	uint32_t bytes[MOTE_CGROUP_FILES_MAX]; /* most that a file of this kind had, and room */
	struct job jobs[JOBS];
	unsigned int njobs;
	struct pool *pool; /* by node; NULL: none */
	unsigned int pooled, pool_max;
	unsigned int hot; /* the first files are those that are read each time */
	uint64_t now;
	unsigned int at_a_time;
	uint32_t node, file;    /* the next to look at */
	bool slow;              /* of this node: the slow files, too */
	unsigned int slow_left; /* nodes whose slow files may still be read in this sample */
	uint64_t last_slow;
	uint32_t text_used, path_used;
	uint32_t text_room, path_room; /* how much of them is used */
	struct mote_cgroup_files_stats stats;
	char text[TEXT];
	char paths[PATHS];
};

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
	files->njobs = limit >= others ? JOBS : JOBS_FEW;
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
	for (unsigned int i = 0; i < HOT_MAX && files->table[i].pace == MOTE_CGROUP_HOT; i++)
		files->hot += is_needed(files, i) ? i + 1 - files->hot : 0;
	files->node = config->set->nnodes;
	files->text_room = TEXT;
	files->path_room = PATHS;
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

/* A round uses no more text and paths than this, but for a file that is longer by itself. */
static void settle_text(struct mote_cgroup_files *files)
{
	uint32_t text = mote_cgroup_set_likely(files->config.set) * PER_NODE;

	files->text_room = clamp(text, TEXT_MIN, TEXT);
	files->path_room = clamp(text / 4, PATHS_MIN, PATHS);
	mote_lazy_touch(files, offsetof(struct mote_cgroup_files, text));
	mote_lazy_touch(files->text, files->text_room);
	mote_lazy_touch(files->paths, files->path_room);
}

void mote_cgroup_files_settle(struct mote_cgroup_files *files)
{
	unsigned int pooled = mote_cgroup_set_likely(files->config.set) * files->hot;
	int any = files->config.layout->root[files->config.layout->primary];

	mote_descriptors_grow(any, files->config.held + MOTE_DESCRIPTORS_RESERVE / 2 +
					   (pooled < files->pool_max ? pooled : files->pool_max));
	settle_text(files);
	if (files->pool)
		mote_lazy_touch(files->pool,
				mote_cgroup_set_likely(files->config.set) * sizeof(*files->pool));
}

void mote_cgroup_files_close(struct mote_cgroup_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; files->pool && i < files->config.set->fresh_node; i++) {
		for (unsigned int k = 0; k < HOT_MAX; k++) {
			if (files->pool[i].fd1[k])
				close(files->pool[i].fd1[k] - 1);
		}
	}
	mote_lazy_free(files->pool, files->config.set->nnodes * sizeof(*files->pool));
	mote_lazy_free(files, sizeof(*files));
}

/*
 * As many nodes a sample as that all have had their turn once in [cgroup] slow; if the last sample
 * is longer ago than that, all.
 */
static unsigned int turn(const struct mote_cgroup_files *files)
{
	uint64_t slow = files->config.options->cgroup_slow * NS_PER_MS;
	uint64_t elapsed = files->now - files->last_slow;

	if (!files->last_slow || elapsed >= slow)
		return files->config.set->used_nodes;
	return (unsigned int)(files->config.set->used_nodes * elapsed / slow) + 1;
}

void mote_cgroup_files_begin(struct mote_cgroup_files *files, uint64_t now, unsigned int at_a_time)
{
	files->now = now;
	files->at_a_time = at_a_time;
	files->node = files->file = 0;
	files->slow_left = turn(files);
	files->last_slow = now;
	if (!files->config.given)
		mote_cgroup_other_clear(files->config.set);
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
	uint64_t slow = files->config.options->cgroup_slow * NS_PER_MS;
	uint64_t age = files->now - row->slow;

	if (!row->slow)
		return true;
	if (!files->slow_left || age + slow / 16 < slow || (!moved(row) && age < 10 * slow))
		return false;
	files->slow_left--;
	return true;
}

static void remember(struct mote_cgroup_row *row)
{
	row->slow_cpu = row->v[MOTE_CGROUP_CPU_USAGE];
	row->slow_memory = row->v[MOTE_CGROUP_MEMORY_CURRENT];
}

static void begin_node(struct mote_cgroup_files *files, uint32_t node)
{
	struct mote_cgroup_set *set = files->config.set;
	uint32_t at = set->nodes[node].row;
	struct mote_cgroup_row *row = at < set->max ? &set->rows[at] : NULL;

	/* What is summed has what moves each time only. */
	files->slow = row && is_slow_due(files, row);
	if (!files->slow)
		return;
	row->slow = files->now;
	remember(row);
	row->missing = 0;
}

/* What is summed in `other` of one whose row is not its own. */
static uint64_t summed(const struct mote_cgroup_set *set, uint32_t row)
{
	return row == set->max ? ~0ull : MOTE_CGROUP_LOCAL;
}

static bool is_due(const struct mote_cgroup_files *files, uint32_t node, unsigned int file)
{
	const struct mote_cgroup_set *set = files->config.set;
	uint32_t row = set->nodes[node].row;

	if (!is_needed(files, file) ||
	    (files->table[file].pace == MOTE_CGROUP_SLOW && !files->slow))
		return false;
	if (row >= set->max)
		return files->table[file].gives & summed(set, row);
	return !(set->rows[row].missing >> file & 1);
}

/* The next file that is to be read; false: none. */
static bool next_file(struct mote_cgroup_files *files, uint32_t *node, uint32_t *file)
{
	const struct mote_cgroup_set *set = files->config.set;

	for (; files->node < set->fresh_node; files->node++, files->file = 0) {
		if (!set->nodes[files->node].id || set->nodes[files->node].row == MOTE_CGROUP_NONE)
			continue;
		if (!files->file)
			begin_node(files, files->node);
		while (files->file < files->n) {
			*node = files->node;
			*file = files->file++;
			if (is_due(files, *node, *file))
				return true;
		}
	}
	return false;
}

/* Its descriptors: those of whom had the node before are closed by jobs of their own. */
static struct pool *pool_of(struct mote_cgroup_files *files, uint32_t node)
{
	struct pool *pool = files->pool ? &files->pool[node] : NULL;
	uint64_t id = files->config.set->nodes[node].id;

	if (!pool || pool->id == id)
		return pool;
	for (unsigned int i = 0; i < HOT_MAX; i++) {
		if (pool->fd1[i])
			return NULL;
	}
	pool->id = id;
	return pool;
}

static bool begin_job(struct mote_cgroup_files *files, struct job *job)
{
	struct pool *pool;

	*job = (struct job){ .stage = FREE, .fd = -1 };
	if (!next_file(files, &job->node, &job->file))
		return false;
	job->id = files->config.set->nodes[job->node].id;
	job->stage = OPEN;
	if (job->file >= files->hot)
		return true;
	pool = pool_of(files, job->node);
	if (pool && pool->fd1[job->file]) {
		job->fd = pool->fd1[job->file] - 1;
		job->pooled = true;
		job->stage = READ;
	}
	return true;
}

/* One descriptor of a node whose cgroup is gone. */
static bool begin_close(struct mote_cgroup_files *files, struct job *job, uint32_t *from)
{
	for (; files->pool && *from < files->config.set->fresh_node * HOT_MAX; ++*from) {
		struct pool *pool = &files->pool[*from / HOT_MAX];
		int *fd1 = &pool->fd1[*from % HOT_MAX];

		if (!*fd1 || pool->id == files->config.set->nodes[*from / HOT_MAX].id)
			continue;
		*job = (struct job){ .stage = CLOSE, .fd = *fd1 - 1 };
		*fd1 = 0;
		files->pooled--;
		return true;
	}
	return false;
}

/* Of the root the file's name alone, else the path without its first slash. */
static const char *path_of(struct mote_cgroup_files *files, const struct job *job)
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

static bool prepare_open(struct mote_cgroup_files *files, struct job *job, struct mote_sqe *sqe)
{
	sqe->op = MOTE_OP_OPEN;
	sqe->fd = files->config.layout->root[files->table[job->file].controller];
	sqe->slot = -1;
	sqe->path = path_of(files, job);
	return sqe->path;
}

static bool prepare_read(struct mote_cgroup_files *files, struct job *job, struct mote_sqe *sqe)
{
	uint32_t room = files->text_used ? files->text_room : TEXT;

	job->len = files->bytes[job->file];
	if (files->text_used + job->len > room)
		return false;
	job->text = files->text + files->text_used;
	files->text_used += job->len;
	sqe->op = MOTE_OP_READ;
	sqe->fd = job->fd;
	sqe->buf = job->text;
	sqe->len = job->len;
	sqe->offset = job->offset;
	return true;
}

/* False: it has no operation in this round. */
static bool push_job(struct mote_cgroup_files *files, unsigned int i, struct mote_engine *engine,
		     uint32_t index)
{
	struct job *job = &files->jobs[i];
	struct mote_sqe sqe = { .tag = mote_tag(MOTE_TAG_FILE, index, i),
				.flags = MOTE_SQE_LINK | MOTE_SQE_ASYNC };
	bool ready = true;

	if (job->stage == OPEN)
		ready = prepare_open(files, job, &sqe);
	else if (job->stage == READ)
		ready = prepare_read(files, job, &sqe);
	else
		sqe = (struct mote_sqe){
			.tag = sqe.tag, .flags = sqe.flags, .op = MOTE_OP_CLOSE, .fd = job->fd
		};
	if (ready)
		mote_engine_push(engine, &sqe);
	return ready;
}

static unsigned int begin_jobs(struct mote_cgroup_files *files)
{
	unsigned int busy = 0;
	uint32_t closing = 0;

	for (unsigned int i = 0; i < files->njobs; i++) {
		struct job *job = &files->jobs[i];

		if (job->stage != FREE || begin_close(files, job, &closing) ||
		    begin_job(files, job))
			busy++;
	}
	return busy;
}

/* A path that is too long for a whole round's memory is never opened: the job would wait for ever.
 */
static void give_up(struct mote_cgroup_files *files)
{
	for (unsigned int i = 0; i < files->njobs; i++) {
		struct job *job = &files->jobs[i];

		if (job->stage == OPEN)
			job->stage = FREE;
		if (job->stage == READ)
			job->stage = job->pooled ? FREE : CLOSE;
	}
	files->stats.errors++;
}

/* `room` is for as many chains of equal length as are read at a time. */
unsigned int mote_cgroup_files_push(struct mote_cgroup_files *files, struct mote_engine *engine,
				    uint32_t index, unsigned int room)
{
	unsigned int busy = begin_jobs(files), n = 0, length;

	if (!busy && !files->config.given)
		mote_cgroup_other_done(files->config.set, files->now);
	if (!busy)
		return 0;
	length = (busy + files->at_a_time - 1) / files->at_a_time;
	files->text_used = files->path_used = 0;
	for (unsigned int i = 0; i < files->njobs && n < room; i++) {
		if (files->jobs[i].stage == FREE || !push_job(files, i, engine, index))
			continue;
		if (++n % length == 0)
			mote_engine_end_chain(engine);
	}
	if (!n) {
		give_up(files);
		return mote_cgroup_files_push(files, engine, index, room);
	}
	mote_engine_end_chain(engine);
	return n;
}

/* What the file gives is absent, until it is looked for again. */
static void not_there(struct mote_cgroup_files *files, const struct job *job, int err)
{
	struct mote_cgroup_set *set = files->config.set;
	const struct mote_cgroup_values none = { 0 };
	uint32_t row = set->nodes[job->node].row;

	if (err == -ENOENT || err == -ENODEV || err == -EOPNOTSUPP)
		files->stats.gone++;
	else
		files->stats.errors++;
	if (set->nodes[job->node].id != job->id || row >= set->max)
		return;
	if (err != -EMFILE && err != -ENFILE)
		set->rows[row].missing |= 1u << job->file;
	mote_cgroup_row_take(&set->rows[row], files->table[job->file].gives & ~files->config.given,
			     &none, files->now);
}

static void take(struct mote_cgroup_files *files, const struct job *job, struct mote_text text)
{
	const struct mote_cgroup_file *file = &files->table[job->file];
	struct mote_cgroup_set *set = files->config.set;
	struct mote_cgroup_values values = { 0 };
	uint64_t gives = file->gives & ~files->config.given;
	uint32_t row = set->nodes[job->node].row;

	if (set->nodes[job->node].id != job->id || row == MOTE_CGROUP_NONE)
		return;
	if (file->counts_lines) {
		values.present = file->gives;
		values.v[__builtin_ctzll(file->gives)] = job->lines;
	} else if (mote_parse_cgroup(file, text, &values)) {
		files->stats.errors++;
		return;
	}
	if (row >= set->max) {
		mote_cgroup_other_add(set, gives & summed(set, row), &values);
		return;
	}
	mote_cgroup_row_take(&set->rows[row], gives, &values, files->now);
	if (set->rows[row].slow == files->now)
		remember(&set->rows[row]); /* what moves it is read just now, too */
}

/* Read to its end, or as far as it can be. */
static void done(struct mote_cgroup_files *files, struct job *job)
{
	struct pool *pool = job->file < files->hot ? pool_of(files, job->node) : NULL;

	job->stage = CLOSE;
	if (job->pooled) {
		job->stage = FREE;
	} else if (pool && pool->id == job->id && files->pooled < files->pool_max) {
		pool->fd1[job->file] = job->fd + 1;
		files->pooled++;
		job->stage = FREE;
	}
}

/* One that did not answer any more is closed. */
static void failed(struct mote_cgroup_files *files, struct job *job, int err)
{
	not_there(files, job, err);
	if (job->pooled) {
		files->pool[job->node].fd1[job->file] = 0;
		files->pooled--;
	}
	job->stage = job->fd >= 0 ? CLOSE : FREE;
}

/* A file that fills the buffer is read once more, with twice the room, from the next round on. */
static bool grow(struct mote_cgroup_files *files, const struct job *job)
{
	uint32_t *bytes = &files->bytes[job->file];

	if (*bytes == job->len && *bytes < BYTES_MAX)
		*bytes *= 2;
	return *bytes > job->len;
}

static void was_read(struct mote_cgroup_files *files, struct job *job, int res)
{
	struct mote_text text = { job->text, (size_t)(res > 0 ? res : 0) };
	bool full = (uint32_t)res == job->len;

	files->stats.reads++;
	if (res < 0) {
		failed(files, job, res);
		return;
	}
	if (files->table[job->file].counts_lines) {
		job->lines += mote_parse_cgroup_lines(text);
		job->offset += (uint64_t)res;
		if (res > 0)
			return; /* once more: to its end */
	} else if (full && grow(files, job)) {
		return;
	} else if (full) {
		files->stats.cut++;
	}
	take(files, job, text);
	done(files, job);
}

void mote_cgroup_files_complete(struct mote_cgroup_files *files, uint32_t step, int res)
{
	struct job *job = &files->jobs[step];

	switch (job->stage) {
	case OPEN:
		job->fd = res;
		job->stage = READ;
		if (res < 0)
			failed(files, job, res);
		break;
	case READ:
		was_read(files, job, res);
		break;
	case CLOSE:
		job->stage = FREE;
		break;
	case FREE:
		break;
	}
}

void mote_cgroup_files_stats(const struct mote_cgroup_files *files,
			     struct mote_cgroup_files_stats *stats)
{
	*stats = files->stats;
	stats->pooled = files->pooled;
}
