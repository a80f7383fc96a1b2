// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The self and table streams, see self.h. CPU time is that of /proc/self/stat: all threads, the
 * ring's workers too from 5.12 on, in steps of 10 ms.
 */
#include "self.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "parse.h"
#include "parse_proc.h"

#define TABLES_MAX 32
#define NAME_TEXT  32

struct mote_self {
	struct mote_file stat, statm;
	struct mote_table *self, *tables;
	struct mote_task task;
	unsigned int page_size;
	uint64_t fds; /* open when the loop began; accepted connections come on top */
};

int mote_self_open(bool direct, struct mote_self **out)
{
	struct mote_self *self = calloc(1, sizeof(*self));
	int err;

	if (!self)
		return -ENOMEM;
	err = mote_file_open(&self->stat, "/proc/self/stat", -1, direct);
	if (!err)
		err = mote_file_open(&self->statm, "/proc/self/statm", -1, direct);
	self->self = mote_table_new(MOTE_STREAM_SELF, 1, NAME_TEXT);
	self->tables = mote_table_new(MOTE_STREAM_TABLE, TABLES_MAX, NAME_TEXT);
	self->page_size = (unsigned int)sysconf(_SC_PAGESIZE);
	if (!self->self || !self->tables)
		err = -ENOMEM;
	if (err == -ENOMEM) {
		mote_self_close(self);
		return err;
	}
	*out = self;
	return 0;
}

void mote_self_close(struct mote_self *self)
{
	if (!self)
		return;
	mote_file_close(&self->stat);
	mote_file_close(&self->statm);
	mote_table_free(self->self);
	mote_table_free(self->tables);
	free(self);
}

void mote_self_started(struct mote_self *self)
{
	DIR *dir = opendir("/proc/self/fd");

	while (dir && readdir(dir))
		self->fds++;
	if (!dir)
		return;
	self->fds -= 3; /* `.`, `..` and the listing's own */
	closedir(dir);
}

struct mote_table *mote_self_table(struct mote_self *self, enum mote_stream_id stream)
{
	return stream == MOTE_STREAM_SELF    ? self->self
	       : stream == MOTE_STREAM_TABLE ? self->tables
					     : NULL;
}

unsigned int mote_self_push(struct mote_self *self, struct mote_engine *engine, uint32_t index)
{
	return mote_file_push(&self->stat, engine, index) +
	       mote_file_push(&self->statm, engine, index + 1);
}

void mote_self_complete(struct mote_self *self, uint32_t file, uint32_t step, int res)
{
	mote_file_complete(file ? &self->statm : &self->stat, step, res);
}

static void network_tables(const struct mote_network *network,
			   void (*each)(void *ctx, const char *name, const char *unit,
					const struct mote_fill *fill),
			   void *ctx)
{
	struct mote_network_stats stats;

	mote_network_stats(network, 0, &stats);
	each(ctx, "sockets", "{socket}", &stats.sockets);
	each(ctx, "flows", "{flow}", &stats.flows);
	each(ctx, "network_processes", "{process}", &stats.processes);
	each(ctx, "ended_sockets", "{socket}", &stats.ended_sockets);
	each(ctx, "ended_flows", "{flow}", &stats.ended_flows);
	each(ctx, "ended_network_processes", "{process}", &stats.ended_processes);
}

static void cgroup_tables(const struct mote_cgroups *cgroups,
			  void (*each)(void *ctx, const char *name, const char *unit,
				       const struct mote_fill *fill),
			  void *ctx)
{
	struct mote_cgroups_stats stats;

	mote_cgroups_stats(cgroups, &stats);
	each(ctx, "cgroups", "{cgroup}", &stats.rows);
	each(ctx, "cgroup_names", "{cgroup}", &stats.nodes);
	if (stats.events.size)
		each(ctx, "cgroup_event_buffer", "By", &stats.events);
}

static void files_tables(const struct mote_files *files,
			 void (*each)(void *ctx, const char *name, const char *unit,
				      const struct mote_fill *fill),
			 void *ctx)
{
	struct mote_files_stats stats;

	mote_files_stats(files, 0, &stats);
	each(ctx, "files", "{file}", &stats.files);
	each(ctx, "file_threads", "{thread}", &stats.threads);
	each(ctx, "ended_files", "{file}", &stats.ended);
	if (!stats.edges.size)
		return;
	each(ctx, "edges", "{edge}", &stats.edges);
	each(ctx, "ended_edges", "{edge}", &stats.ended_edges);
}

void mote_self_tables(const struct mote_self_sources *from,
		      void (*each)(void *ctx, const char *name, const char *unit,
				   const struct mote_fill *fill),
		      void *ctx)
{
	struct mote_server_stats server;
	struct mote_fill fill, threads;

	mote_server_stats(from->server, &server);
	each(ctx, "subscribers", "{subscriber}", &server.connections);
	each(ctx, "classes", "{interval}", &server.classes);
	each(ctx, "frame_arena", "By", &server.arena);
	each(ctx, "subscriber_queue", "By", &server.queue);
	if (from->tasks) {
		struct mote_process_stats process;

		from->tasks->ops->fill(from->tasks, &fill, &threads);
		each(ctx, "processes", "{process}", &fill);
		if (threads.size)
			each(ctx, "threads", "{thread}", &threads);
		mote_process_stats(from->process, &process);
		each(ctx, "ended_processes", "{process}", &process.ended);
		each(ctx, "accounts", "{process}", &process.accounts);
		each(ctx, "process_text", "By", &process.texts);
	}
	if (from->events) {
		mote_events_fill(from->events, &fill);
		each(ctx, "event_buffer", "By", &fill);
	}
	if (from->network)
		network_tables(from->network, each, ctx);
	if (from->cgroups)
		cgroup_tables(from->cgroups, each, ctx);
	if (from->files)
		files_tables(from->files, each, ctx);
	for (unsigned int i = 0; from->host && i < MOTE_STREAMS; i++) {
		struct mote_table *table = mote_host_table(from->host, (enum mote_stream_id)i);

		if (!table || mote_streams[i].fields[0].kind != MOTE_KEY)
			continue;
		mote_table_fill(table, &fill);
		if (i == MOTE_STREAM_FILESYSTEM) {
			struct mote_host_stats host;

			mote_host_stats(from->host, &host);
			fill.dropped += host.filesystems_dropped;
		}
		each(ctx, mote_streams[i].name, "{row}", &fill);
	}
}

static void table_row(void *ctx, const char *name, const char *unit, const struct mote_fill *fill)
{
	struct mote_self *self = ctx;
	struct mote_row *row = mote_table_row(self->tables, name, strlen(name));

	if (!row)
		return;
	mote_row_set_str(self->tables, row, TABLE_NAME, name, strlen(name));
	mote_row_set_str(self->tables, row, TABLE_UNIT, unit, strlen(unit));
	mote_row_set(self->tables, row, TABLE_SIZE, fill->size);
	mote_row_set(self->tables, row, TABLE_FILL, fill->fill);
	mote_row_set(self->tables, row, TABLE_PEAK, fill->peak);
	mote_row_set(self->tables, row, TABLE_DROPPED, fill->dropped);
}

static void set_process(struct mote_self *self, struct mote_row *row)
{
	struct mote_table *table = self->self;
	const struct mote_task *task = &self->task;

	if (mote_parse_pid_stat(mote_file_text(&self->stat), &self->task) ||
	    mote_parse_pid_statm(mote_file_text(&self->statm), self->page_size, &self->task))
		return;
	mote_row_set_f64(table, row, SELF_CPU_SECONDS,
			 (double)(task->counts.utime + task->counts.stime) / 1e9);
	mote_row_set(table, row, SELF_RSS, task->rss);
	mote_row_set(table, row, SELF_VSIZE, task->vsize);
	mote_row_set(table, row, SELF_THREADS, task->threads);
	mote_row_set(table, row, SELF_MINFLT, task->counts.minflt);
	mote_row_set(table, row, SELF_MAJFLT, task->counts.majflt);
	mote_row_set(table, row, SELF_START_TIME, task->start / MOTE_NS_PER_TICK);
}

static void set_loop(struct mote_table *table, struct mote_row *row,
		     const struct mote_loop_stats *loop)
{
	mote_row_set(table, row, SELF_ENTERS, loop->waits);
	mote_row_set(table, row, SELF_TICKS, loop->ticks);
	mote_row_set(table, row, SELF_OVERRUNS, loop->overruns);
	mote_row_set(table, row, SELF_LATE, loop->late);
	mote_row_set(table, row, SELF_GAPS, loop->gaps);
	mote_row_set(table, row, SELF_TICK_DELAY, loop->delay_ns);
	mote_row_set(table, row, SELF_TICK_DELAY_PEAK, loop->delay_peak_ns);
}

static void set_server(struct mote_table *table, struct mote_row *row,
		       const struct mote_server_stats *server)
{
	mote_row_set(table, row, SELF_SUBSCRIBERS, server->subscribers);
	mote_row_set(table, row, SELF_REFUSED, server->refused);
	mote_row_set(table, row, SELF_REQUEST_ERRORS, server->request_errors);
	mote_row_set(table, row, SELF_FRAMES, server->frames_sent);
	mote_row_set(table, row, SELF_BYTES, server->bytes_sent);
	mote_row_set(table, row, SELF_FRAMES_DROPPED, server->frames_dropped);
	mote_row_set(table, row, SELF_BYTES_DROPPED, server->bytes_dropped);
}

static void set_network(struct mote_table *table, struct mote_row *row,
			const struct mote_network *network, uint64_t now)
{
	struct mote_network_stats stats;

	mote_network_stats(network, now, &stats);
	if (stats.has_misses)
		mote_row_set(table, row, SELF_HOOK_MISSES, stats.misses);
	if (stats.has_events)
		mote_row_set(table, row, SELF_SOCKET_EVENTS_DROPPED, stats.events_dropped);
	mote_row_set(table, row, SELF_GRACE_AGE, stats.grace_age);
	mote_row_set(table, row, SELF_SLOTS_WAITING, stats.waiting);
}

void mote_self_sample(struct mote_self *self, const struct mote_self_sources *from, uint64_t now)
{
	struct mote_server_stats server;
	struct mote_host_stats host = { 0 };
	struct mote_cgroups_stats cgroups = { 0 };
	struct mote_row *row;

	mote_server_stats(from->server, &server);
	if (from->host)
		mote_host_stats(from->host, &host);
	mote_table_begin(self->self, now);
	row = mote_table_row(self->self, NULL, 0);
	set_process(self, row);
	set_loop(self->self, row, from->loop);
	set_server(self->self, row, &server);
	if (from->cgroups) {
		mote_cgroups_stats(from->cgroups, &cgroups);
		mote_row_set(self->self, row, SELF_CGROUP_COLLECTIONS, cgroups.collections);
		mote_row_set(self->self, row, SELF_CGROUP_LATE, cgroups.late);
	}
	mote_row_set(self->self, row, SELF_READ_ERRORS,
		     host.read_errors + from->loop->read_errors + cgroups.errors);
	mote_row_set(self->self, row, SELF_PARSE_ERRORS, host.parse_errors);
	mote_row_set(self->self, row, SELF_FDS, self->fds + server.subscribers);
	if (from->events)
		mote_row_set(self->self, row, SELF_EVENTS_DROPPED,
			     mote_events_dropped(from->events));
	if (from->network)
		set_network(self->self, row, from->network, now);
	mote_table_end(self->self);

	mote_table_begin(self->tables, now);
	mote_self_tables(from, table_row, self);
	mote_table_end(self->tables);
}
