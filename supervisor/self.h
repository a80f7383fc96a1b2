/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What mote costs and loses: the self and table streams. Its own /proc/self/stat is one read of
 * the tick's chain; all else is counted where it happens.
 */
#ifndef MOTE_SELF_H
#define MOTE_SELF_H

#include <stdint.h>

#include "cgroups.h"
#include "engine.h"
#include "events.h"
#include "host.h"
#include "files.h"
#include "network.h"
#include "process.h"
#include "server.h"
#include "tasks.h"

struct mote_self;

/* What the loop counts. */
struct mote_loop_stats {
	uint64_t waits, ticks, overruns, late, gaps;
	uint64_t delay_ns, delay_peak_ns;
	uint64_t read_errors; /* of the task source */
};

/* Where the figures come from; what is absent on this host is NULL. */
struct mote_self_sources {
	const struct mote_loop_stats *loop;
	const struct mote_server *server;
	struct mote_host *host;
	const struct mote_tasks *tasks;
	const struct mote_process *process;
	const struct mote_events *events;
	const struct mote_network *network;
	const struct mote_cgroups *cgroups;
	const struct mote_files *files;
};

int mote_self_open(bool direct, struct mote_self **out);
void mote_self_close(struct mote_self *self);
struct mote_table *mote_self_table(struct mote_self *self, enum mote_stream_id stream);

/* At the end of start: counts the descriptors that are open now. */
void mote_self_started(struct mote_self *self);

/* Files take two indices, `index` and the next. */
#define MOTE_SELF_FILES 2
unsigned int mote_self_push(struct mote_self *self, struct mote_engine *engine, uint32_t index);
void mote_self_complete(struct mote_self *self, uint32_t file, uint32_t step, int res);
void mote_self_sample(struct mote_self *self, const struct mote_self_sources *from, uint64_t now);

/* Names, units and sizes of all tables, for hello: calls `each` for every row of the table stream.
 */
void mote_self_tables(const struct mote_self_sources *from,
		      void (*each)(void *ctx, const char *name, const char *unit,
				   const struct mote_fill *fill),
		      void *ctx);

#endif
