// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The file part, see files.h: opens and closes it, its place in the tick's chain, and the order of
 * a sample.
 */
#include "files.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "files_impl.h"

/* Direct descriptors: below are the network's, above the host's files. */
#define SLOT_FIRST 6
#define NAME_TEXT  8
/* Slots that the time until the next sample may take: ended ones are free two or three later. */
#define PACE_PART 8
#define PACE_MIN  (250 * NS_PER_MS)

static int open_slots(struct mote_files *files)
{
	const struct mote_file_maps *maps = files->maps;
	const struct mote_slots_memory memory = {
		.table = (enum mote_slot_table)MOTE_FILE_ACCESSES,
		.slots = maps->accesses,
		.stride = sizeof(struct mote_access),
		.own = offsetof(struct mote_access, state),
		.size = maps->size,
		.marks = maps->marks,
		.reap = &maps->reaps[MOTE_FILE_ACCESSES],
		.cpus = maps->cpus,
		.ncpus = maps->ncpus,
	};

	return mote_slots_new(&memory, &mote_files_ops, files, &files->slots);
}

static int open_rows(struct mote_files *files)
{
	uint32_t blocks = (files->maps->size >> BLOCK_SHIFT) + 1;

	files->table = mote_table_new(MOTE_STREAM_FILE_TOTAL, 1, NAME_TEXT);
	files->blocks = malloc(blocks * sizeof(*files->blocks));
	if (!files->table || !files->blocks)
		return -ENOMEM;
	memset(files->blocks, 0, blocks * sizeof(*files->blocks));
	return mote_ended_new(&files->ended, files->options->tables_ended_files,
			      sizeof(struct files_ended));
}

static int open_files(struct mote_files *files, bool direct)
{
	const char *names[MOTE_FILES_FILES] = { files->maps->reap, files->maps->walk };

	for (int i = 0; i < MOTE_FILES_FILES; i++) {
		int err = mote_file_open_iterator(&files->file[i], files->maps->dirfd, names[i],
						  SLOT_FIRST + i, direct);

		if (err)
			return err;
		files->has_file[i] = true;
	}
	return 0;
}

int mote_files_open(const struct mote_files_config *config, struct mote_files **out)
{
	struct mote_files *files = calloc(1, sizeof(*files));
	int err;

	if (!files)
		return -ENOMEM;
	files->options = config->options;
	files->maps = config->maps;
	files->network = config->network;
	files->process = config->process;
	/* A process is in the listing after the next at the latest. */
	if (config->listed)
		files->patience = 2 * config->options->process_listing * NS_PER_MS;
	mote_files_filter_open(&files->filter, config->options);
	err = open_slots(files);
	err = err ?: open_rows(files);
	err = err ?: mote_files_edges_open(files);
	err = err ?: open_files(files, config->direct);
	if (err) {
		mote_files_close(files);
		return err;
	}
	*out = files;
	return 0;
}

void mote_files_close(struct mote_files *files)
{
	if (!files)
		return;
	for (int i = 0; i < MOTE_FILES_FILES; i++) {
		if (files->has_file[i])
			mote_file_close(&files->file[i]);
	}
	mote_files_edges_close(files);
	mote_ended_free(&files->ended);
	mote_table_free(files->table);
	mote_slots_free(files->slots);
	free(files->blocks);
	free(files);
}

struct mote_table *mote_files_table(struct mote_files *files)
{
	return files->table;
}

static const char *edge_why(const struct mote_files *files, int field)
{
	const struct mote_options *o = files->options;

	if (!files->edges.slots)
		return field >= 0       ? NULL
		       : files->network ? "[file] track_sendfile and attribution are off"
					: "nothing counts bytes of sockets";
	if (!o->file_track_read && (field == EDGE_BYTES_SENT || field == EDGE_SENDS))
		return "[file] track_read = off";
	if (!o->file_track_write && (field == EDGE_BYTES_RECEIVED || field == EDGE_RECEIVES))
		return "[file] track_write = off";
	return NULL;
}

const char *mote_files_why(const struct mote_files *files, enum mote_stream_id stream, int field)
{
	const struct mote_options *o = files->options;
	bool file = stream == MOTE_STREAM_FILE;

	if (stream == MOTE_STREAM_EDGE)
		return edge_why(files, field);

	if (!o->file_track_read &&
	    (file ? field == FILE_BYTES_READ || field == FILE_READS
		  : field == FILE_TOTAL_BYTES_READ || field == FILE_TOTAL_READS ||
			     field == FILE_TOTAL_OTHER_READ))
		return "[file] track_read = off";
	if (!o->file_track_write &&
	    (file ? field == FILE_BYTES_WRITTEN || field == FILE_WRITES
		  : field == FILE_TOTAL_BYTES_WRITTEN || field == FILE_TOTAL_WRITES ||
			     field == FILE_TOTAL_OTHER_WRITTEN))
		return "[file] track_write = off";
	if (!file && field == FILE_TOTAL_REQUESTS_MISSED && !files->maps->has[MOTE_FILE_URING] &&
	    !files->maps->has[MOTE_FILE_AIO])
		return "no hook of io_uring or libaio works here";
	return NULL;
}

/* The chain */

/* Who is idle is found by a walk, too: a thread that is at a file has bytes that are not settled.
 */
unsigned int mote_files_push(struct mote_files *files, struct mote_engine *engine, uint32_t index,
			     bool watched)
{
	const bool due[MOTE_FILES_FILES] = { files->reap, watched || mote_files_crowded(files) };
	unsigned int n = 0;

	for (int i = 0; i < MOTE_FILES_FILES; i++) {
		files->pushed[i] = due[i];
		if (due[i])
			n += mote_file_push(&files->file[i], engine, index + (uint32_t)i);
	}
	return n;
}

void mote_files_complete(struct mote_files *files, uint32_t file, uint32_t step, int res)
{
	if (file < MOTE_FILES_FILES)
		mote_file_complete(&files->file[file], step, res);
}

/* The sample */

/* Of what found no slot, and of slots that have no row. */
static struct mote_moved other_of(const struct mote_files *files)
{
	struct mote_moved sum = files->excluded;

	for (unsigned int i = 0; i < files->maps->ncpus; i++) {
		const struct mote_traffic *other = &files->maps->cpus[i].other[0];

		sum.read += __atomic_load_n(&other->received, __ATOMIC_RELAXED);
		sum.written += __atomic_load_n(&other->sent, __ATOMIC_RELAXED);
		sum.reads += __atomic_load_n(&other->received_calls, __ATOMIC_RELAXED);
		sum.writes += __atomic_load_n(&other->sent_calls, __ATOMIC_RELAXED);
	}
	return sum;
}

static void set_total(struct mote_files *files)
{
	struct mote_moved other = other_of(files), all = other;
	const struct mote_options *o = files->options;
	struct mote_table *table = files->table;
	struct mote_row *row;

	mote_moved_add(&all, &files->sum);
	mote_table_begin(table, files->now);
	row = mote_table_row(table, NULL, 0);
	if (o->file_track_read) {
		mote_row_set(table, row, FILE_TOTAL_BYTES_READ, all.read);
		mote_row_set(table, row, FILE_TOTAL_READS, all.reads);
		mote_row_set(table, row, FILE_TOTAL_OTHER_READ, other.read);
	}
	if (o->file_track_write) {
		mote_row_set(table, row, FILE_TOTAL_BYTES_WRITTEN, all.written);
		mote_row_set(table, row, FILE_TOTAL_WRITES, all.writes);
		mote_row_set(table, row, FILE_TOTAL_OTHER_WRITTEN, other.written);
	}
	mote_row_set(table, row, FILE_TOTAL_FILES, files->rows);
	mote_row_set(table, row, FILE_TOTAL_CALLS_MISSED,
		     __atomic_load_n(&files->maps->ctl->no_thread, __ATOMIC_RELAXED));
	if (files->maps->has[MOTE_FILE_URING] || files->maps->has[MOTE_FILE_AIO])
		mote_row_set(table, row, FILE_TOTAL_REQUESTS_MISSED,
			     __atomic_load_n(&files->maps->ctl->no_request, __ATOMIC_RELAXED));
	mote_table_end(table);
}

static void passed(struct mote_files *files)
{
	mote_slots_passed(files->slots);
	if (files->edges.slots)
		mote_slots_passed(files->edges.slots);
}

static void note_threads(struct mote_files *files)
{
	const struct mote_file_ctl *ctl = files->maps->ctl;
	struct mote_fill *fill = &files->threads;

	fill->size = files->maps->nthreads;
	fill->fill = __atomic_load_n(&ctl->threads, __ATOMIC_RELAXED);
	fill->dropped = __atomic_load_n(&ctl->no_thread, __ATOMIC_RELAXED);
	if (fill->peak < fill->fill)
		fill->peak = fill->fill;
}

/* As with the network's: notices, marks, grace, and the list for the next run of the reaper. */
void mote_files_sample(struct mote_files *files, uint64_t tasks, uint64_t now)
{
	files->now = now;
	if (files->pushed[FILE_REAP])
		passed(files);
	mote_slots_scan(files->slots);
	if (tasks)
		mote_files_end_dead(files, tasks);
	if (files->pushed[FILE_WALK])
		mote_files_end_idle(files);
	files->pushed[FILE_REAP] = files->pushed[FILE_WALK] = false;
	mote_slots_grace(files->slots, now);
	files->reap = mote_slots_prepare(files->slots);
	if (files->edges.slots) {
		mote_files_edges_sample(files);
		mote_slots_grace(files->edges.slots, now);
		files->reap |= mote_slots_prepare(files->edges.slots);
	}
	note_threads(files);
	set_total(files);
}

uint64_t mote_files_pace(struct mote_files *files, uint64_t elapsed, uint64_t longest)
{
	const struct mote_file_maps *maps = files->maps;
	uint64_t claims = 0, taken, wanted, part = maps->size / PACE_PART;

	if (maps->nedges && maps->nedges < maps->size)
		part = maps->nedges / PACE_PART;

	for (unsigned int i = 0; i < maps->ncpus; i++)
		claims += __atomic_load_n(&maps->cpus[i].claims, __ATOMIC_RELAXED);
	taken = claims - files->claims;
	files->claims = claims;
	if (!taken || elapsed / taken >= longest / part)
		return longest;
	wanted = elapsed * part / taken;
	return wanted < PACE_MIN ? PACE_MIN : wanted;
}

void mote_files_stats(const struct mote_files *files, uint64_t now, struct mote_files_stats *stats)
{
	struct mote_slots_stats slots;

	mote_slots_stats(files->slots, now, &slots);
	*stats = (struct mote_files_stats){ .files = slots.fill, .threads = files->threads };
	mote_ended_fill(&files->ended, &stats->ended);
	if (!files->edges.slots)
		return;
	mote_slots_stats(files->edges.slots, now, &slots);
	stats->edges = slots.fill;
	mote_ended_fill(&files->edges.ended, &stats->ended_edges);
}
