/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The host's collectors: a table of which files feed which streams and who parses them. A
 * collector does no I/O of its own and allocates nothing after start.
 */
#ifndef MOTE_HOST_H
#define MOTE_HOST_H

#include <stdint.h>

#include "engine.h"
#include "frame.h"
#include "options.h"
#include "table.h"

struct mote_host;

/* Opens the files and allocates the tables and the threads that collectors need. */
int mote_host_open(const struct mote_options *options, bool direct, struct mote_host **out);
void mote_host_close(struct mote_host *host);

/* Streams it feeds. */
uint32_t mote_host_streams(const struct mote_host *host);
struct mote_table *mote_host_table(struct mote_host *host,
				   enum mote_stream_id stream); /* or NULL */
/* Why a stream or a field of it is absent on this host; NULL if it is not. */
const char *mote_host_why(const struct mote_host *host, enum mote_stream_id stream);

/* Why netdev's total may count a byte twice on this host, or NULL. */
const char *mote_host_note(const struct mote_host *host);

/* Lets a ring read the files without a worker, as far as it can. Before the loop only. */
void mote_host_hold(struct mote_host *host, struct mote_engine *engine);
/* Pushes the reads of the collectors that feed `streams`; operations pushed. `base`: first index.
 */
unsigned int mote_host_push(struct mote_host *host, struct mote_engine *engine, uint32_t streams);
/* Completion of MOTE_TAG_FILE with an index below mote_host_files(). */
void mote_host_complete(struct mote_host *host, uint32_t index, uint32_t step, int res);
uint32_t mote_host_files(const struct mote_host *host);
/* All reads of `streams` are there: parse. Returns the streams that were sampled. */
uint32_t mote_host_parse(struct mote_host *host, uint32_t streams, uint64_t now);

struct mote_host_stats {
	uint64_t read_errors, parse_errors;
	uint64_t filesystems_dropped;
};
void mote_host_stats(const struct mote_host *host, struct mote_host_stats *stats);

#endif
