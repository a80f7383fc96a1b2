/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What processes read from and write to files: the streams file and file_total. BPF counts in
 * mapped slots (abi_file.h, slots.h); a sample adds up what is new, and what its walk of the living
 * threads found beyond that. What ended stays in the totals. Nothing is allocated after
 * mote_files_open().
 */
#ifndef MOTE_FILES_H
#define MOTE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "frame.h"
#include "options.h"
#include "probes_file.h"
#include "probes_network.h"
#include "process.h"
#include "table.h"

struct mote_files;

struct mote_files_config {
	const struct mote_options *options;
	const struct mote_file_maps *maps;
	const struct mote_network_maps *network; /* whose sockets edges have; NULL: none */
	struct mote_process *process;            /* who lives, and what it is called; may be NULL */
	bool listed; /* processes come from a listing of /proc: new ones are late in it */
	bool direct; /* mote_engine_direct() */
};

/* All of it stays the caller's. 0 or negative errno. */
int mote_files_open(const struct mote_files_config *config, struct mote_files **out);
void mote_files_close(struct mote_files *files);

#define MOTE_FILES_STREAMS \
	(1u << MOTE_STREAM_FILE | 1u << MOTE_STREAM_FILE_TOTAL | 1u << MOTE_STREAM_EDGE)
#define MOTE_FILES_FILES 2 /* indices that the chain's files take */

/* Why a field is nil in every row; NULL if it is not; field -1: the whole stream. */
const char *mote_files_why(const struct mote_files *files, enum mote_stream_id stream, int field);

/* As with network.h. */
unsigned int mote_files_push(struct mote_files *files, struct mote_engine *engine, uint32_t index,
			     bool watched);
void mote_files_complete(struct mote_files *files, uint32_t file, uint32_t step, int res);
void mote_files_sample(struct mote_files *files, uint64_t tasks, uint64_t now);
uint64_t mote_files_pace(struct mote_files *files, uint64_t elapsed, uint64_t longest);

struct mote_files_stats {
	struct mote_fill files, threads, ended, edges, ended_edges;
};
void mote_files_stats(const struct mote_files *files, uint64_t now, struct mote_files_stats *stats);

/* The sources of the streams file and edge; ctx is the struct mote_files. */
extern const struct mote_source_ops mote_file_source;
extern const struct mote_source_ops mote_edge_source;
/* The table of the stream file_total. */
struct mote_table *mote_files_table(struct mote_files *files);

#endif
