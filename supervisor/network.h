/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets, what processes moved over them, and the sums: the streams socket, flow, process_network
 * and network. BPF counts in mapped slots (abi.h, slots.h); a sample adds up what is new. Each byte
 * is added once to its flow, socket, process and protocol; what these had when they ended stays in
 * the totals. Nothing is allocated after mote_network_open().
 */
#ifndef MOTE_NETWORK_H
#define MOTE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "frame.h"
#include "options.h"
#include "probes_network.h"
#include "process.h"
#include "table.h"

struct mote_network;

struct mote_network_config {
	const struct mote_options *options;
	const struct mote_network_maps *maps;
	struct mote_process *process; /* who lives; may be NULL: then nobody ends */
	bool listed; /* processes come from a listing of /proc: new ones are late in it */
	bool direct; /* mote_engine_direct() */
};

/* All of it stays the caller's. 0 or negative errno. */
int mote_network_open(const struct mote_network_config *config, struct mote_network **out);
void mote_network_close(struct mote_network *network);

#define MOTE_NETWORK_STREAMS                                                                     \
	(1u << MOTE_STREAM_SOCKET | 1u << MOTE_STREAM_FLOW | 1u << MOTE_STREAM_PROCESS_NETWORK | \
	 1u << MOTE_STREAM_NETWORK)

/* Why a field is nil in every row, NULL if it is not; field -1: the whole stream. */
const char *mote_network_why(const struct mote_network *network, enum mote_stream_id stream,
			     int field);

/*
 * The part in a chain that is for a sample at `time`: files take indices from `index` on.
 * `watched`: somebody has subscribed to one of the streams.
 */
unsigned int mote_network_push(struct mote_network *network, struct mote_engine *engine,
			       uint32_t index, uint64_t time, bool watched);
void mote_network_complete(struct mote_network *network, uint32_t file, uint32_t step, int res);
/*
 * Adds up what is new by `now`. `tasks`: when the processes were sampled that
 * mote_process_sampled() was given since the call before; 0: they were not.
 */
void mote_network_sample(struct mote_network *network, uint64_t tasks, uint64_t now);

/* The most that may pass until the next sample, for slots and processes to suffice at the pace of
 * the last `elapsed` ns; at most `longest`. */
uint64_t mote_network_pace(struct mote_network *network, uint64_t elapsed, uint64_t longest);

/* Whether records of sockets are to be written from now on: somebody has subscribed to events. */
void mote_network_want_events(struct mote_network *network, bool wanted);

/*
 * Whether the table of processes is about to be full. Only a sample of processes tells which of
 * them have ended.
 */
bool mote_network_crowded(const struct mote_network *network);

struct mote_network_stats {
	struct mote_fill sockets, flows, processes;
	struct mote_fill ended_sockets, ended_flows, ended_processes;
	uint64_t grace_age; /* ns */
	uint64_t waiting;   /* slots */
	uint64_t misses;    /* runs of programs that the kernel left out */
	bool has_misses;
	uint64_t events_dropped;
	bool has_events;
};
void mote_network_stats(const struct mote_network *network, uint64_t now,
			struct mote_network_stats *stats);

/* The sources of the streams; ctx is the struct mote_network. */
extern const struct mote_source_ops mote_socket_source;
extern const struct mote_source_ops mote_flow_source;
extern const struct mote_source_ops mote_process_network_source;
/* The table of the stream network. */
struct mote_table *mote_network_table(struct mote_network *network);

#endif
