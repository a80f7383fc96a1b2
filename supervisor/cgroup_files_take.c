// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What a round of the reader of cgroupfs brought, see cgroup_files.h. Results are kept until all of
 * it is there: only then is the time of the sample known, and which cgroups are gone meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "cgroup_files_impl.h"

#define BYTES_MAX (16 * 1024) /* of a text that is read in one go */

/* What the file gives is absent, until it is looked for again. */
static void not_there(struct mote_cgroup_files *files, const struct mote_cgroup_job *job, int err)
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

static void take_values(struct mote_cgroup_files *files, const struct mote_cgroup_job *job)
{
	const struct mote_cgroup_file *file = &files->table[job->file];
	const struct mote_text text = { job->text, (size_t)job->res };
	struct mote_cgroup_set *set = files->config.set;
	struct mote_cgroup_values values = { 0 };
	uint64_t gives = file->gives & ~files->config.given;
	uint32_t row = set->nodes[job->node].row;

	if (set->nodes[job->node].id != job->id || row == MOTE_CGROUP_NONE)
		return;
	if (file->counts_lines) {
		values.present = job->full ? 0 : file->gives;
		values.v[__builtin_ctzll(file->gives)] = job->lines;
	} else if (mote_parse_cgroup(file, text, &values)) {
		files->stats.errors++;
		return;
	}
	if (row >= set->max) {
		mote_cgroup_other_add(set, gives & mote_cgroup_files_summed(set, row), &values);
		return;
	}
	mote_cgroup_row_take(&set->rows[row], gives, &values, files->now);
	if (set->rows[row].slow == files->planned)
		mote_cgroup_files_remember(&set->rows[row]); /* what moves it is read just now */
}

/* One that filled what it was given is read once more, with twice the room. */
static bool again(struct mote_cgroup_files *files, struct mote_cgroup_job *job)
{
	uint32_t *bytes = &files->bytes[job->file];

	if (files->table[job->file].counts_lines) {
		job->expect = 2 * job->lines;
		return job->reads < MOTE_CGROUP_READS_MAX;
	}
	if (*bytes == job->len && *bytes < BYTES_MAX)
		*bytes *= 2;
	return *bytes > job->len;
}

/* Gives a descriptor to the pool; false: its cgroup is gone. */
static bool pool_it(struct mote_cgroup_files *files, struct mote_cgroup_job *job, int fd)
{
	struct mote_cgroup_pool *pool = mote_cgroup_files_pool(files, job->node);

	job->fd = fd;
	if (!pool || pool->id != job->id || pool->fd1[job->file])
		return false;
	pool->fd1[job->file] = fd + 1;
	job->pooled = true;
	job->keep = false;
	return true;
}

static void was_read(struct mote_cgroup_files *files, struct mote_cgroup_job *job)
{
	bool pooled = job->pooled;

	files->stats.reads++;
	if (job->res < 0) {
		not_there(files, job, job->res);
		if (!pooled && !job->keep)
			job->fd = -1; /* closed already */
		mote_cgroup_files_let_go(files, job);
		return;
	}
	if (job->full && again(files, job)) {
		if (!pooled && !job->keep) {
			job->fd = -1;
			job->stage = files->config.direct ? MOTE_CGROUP_DIRECT : MOTE_CGROUP_OPEN;
		} else {
			job->stage = MOTE_CGROUP_READ;
		}
		return;
	}
	files->stats.cut += job->full;
	take_values(files, job);
	job->stage = MOTE_CGROUP_FREE;
	if (job->keep && !pool_it(files, job, job->fd))
		mote_cgroup_files_let_go(files, job);
}

/* Opened twice: by the slot, and to be kept. */
static void was_direct(struct mote_cgroup_files *files, struct mote_cgroup_job *job)
{
	bool lost = false;

	if (job->keep && job->kept < 0) {
		job->keep = false;
		files->pooled--;
	} else if (job->keep) {
		lost = !pool_it(files, job, job->kept);
	}
	if (job->opened < 0)
		job->res = job->opened;
	if (lost)
		mote_cgroup_files_let_go(files, job); /* there is nobody to tell of what was read */
	else
		was_read(files, job);
}

static void was_opened(struct mote_cgroup_files *files, struct mote_cgroup_job *job)
{
	job->fd = job->opened < 0 ? -1 : job->opened;
	job->stage = MOTE_CGROUP_READ;
	if (job->opened >= 0)
		return;
	not_there(files, job, job->opened);
	mote_cgroup_files_let_go(files, job);
}

void mote_cgroup_files_take(struct mote_cgroup_files *files)
{
	for (unsigned int i = 0; i < files->njobs; i++) {
		struct mote_cgroup_job *job = &files->jobs[i];

		if (!job->flying)
			continue;
		job->flying = false;
		if (job->stage == MOTE_CGROUP_DIRECT)
			was_direct(files, job);
		else if (job->stage == MOTE_CGROUP_OPEN)
			was_opened(files, job);
		else if (job->stage == MOTE_CGROUP_READ)
			was_read(files, job);
		else
			job->stage = MOTE_CGROUP_FREE;
	}
}

static void read_complete(const struct mote_cgroup_files *files, struct mote_cgroup_job *job,
			  unsigned int k, int res)
{
	if (job->res < 0)
		return;
	job->full = res == (int)job->len;
	if (res < 0 || !files->table[job->file].counts_lines)
		job->res = res;
	else
		job->lines += mote_parse_cgroup_lines(
			(struct mote_text){ job->text + k * job->len, (size_t)res });
}

void mote_cgroup_files_complete(struct mote_cgroup_files *files, uint32_t step, int res)
{
	struct mote_cgroup_job *job = &files->jobs[step / MOTE_CGROUP_STEPS];
	unsigned int what = step % MOTE_CGROUP_STEPS;

	if (what >= MOTE_CGROUP_STEP_READ)
		read_complete(files, job, what - MOTE_CGROUP_STEP_READ, res);
	else if (what == MOTE_CGROUP_STEP_OPEN)
		job->opened = res;
	else if (what == MOTE_CGROUP_STEP_KEEP)
		job->kept = res;
}
