/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tick. One submission sends the frames of the tick before and hangs the reads of the next on
 * its timer; when they are there, they are parsed, encoded and submitted with the one after.
 */
#ifndef MOTE_LOOP_H
#define MOTE_LOOP_H

#include "cgroups.h"
#include "engine.h"
#include "events.h"
#include "files.h"
#include "host.h"
#include "naming.h"
#include "network.h"
#include "options.h"
#include "process.h"
#include "self.h"
#include "server.h"
#include "tasks.h"

struct mote_loop;

/*
 * What the loop drives; all stays the caller's. host, tasks, events, network, cgroups and files may
 * be NULL.
 */
struct mote_loop_parts {
	const struct mote_options *options;
	struct mote_engine *engine;
	struct mote_server *server;
	struct mote_host *host;
	struct mote_tasks *tasks;
	struct mote_events *events;
	struct mote_process *process;
	struct mote_naming *naming;
	struct mote_network *network;
	struct mote_cgroups *cgroups;
	struct mote_files *files;
	struct mote_self *self;
	const struct mote_self_sources *from; /* its figures' */
	struct mote_loop_stats *stats;
};

/* SIGTERM, SIGINT and SIGHUP wait for the loop from now on: what is made must be removed again. */
void mote_loop_block_signals(void);
/* Makes the timer and takes over these signals. */
int mote_loop_open(const struct mote_loop_parts *parts, struct mote_loop **out);
void mote_loop_close(struct mote_loop *loop);

/* Runs until one of them comes: 0; or negative errno if the engine fails for good. */
int mote_loop_run(struct mote_loop *loop);

#endif
