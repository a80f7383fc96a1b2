// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Opens and closes the parts of the agent, see agent.h. What a host does not allow is left out,
 * with a tier that says why and fields that are absent for that reason; only what nothing can
 * stand in for (memory, the socket) ends the start.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cgroups.h"
#include "check.h"
#include "connector.h"
#include "files.h"
#include "hello.h"
#include "host_features.h"
#include "listen.h"
#include "log.h"
#include "loop.h"
#include "network.h"
#include "notify.h"
#include "privilege.h"
#include "probes.h"
#include "probes_file.h"
#include "probes_network.h"
#include "run.h"
#include "settle.h"
#include "tasks_iter.h"
#include "tasks_walk.h"
#include "tier.h"

#define TIER_EVENTS "process_events"

struct mote_agent {
	const struct mote_options *options;
	struct mote_features features;
	struct mote_tiers tiers;
	struct mote_probes *probes;
	struct mote_engine *engine;
	struct mote_host *host;
	struct mote_tasks *tasks;
	struct mote_events events;
	bool has_events;
	struct mote_process *process;
	struct mote_naming *naming;
	struct mote_probes_network *network_probes;
	const struct mote_network_maps *network_maps; /* NULL: nothing counts here */
	struct mote_network *network;
	struct mote_cgroups *cgroups;
	struct mote_probes_file *file_probes;
	const struct mote_file_maps *file_maps; /* likewise */
	struct mote_files *files;
	struct mote_self *self;
	struct mote_loop_stats stats;
	struct mote_self_sources from;
	struct mote_source sources[MOTE_STREAMS];
	struct mote_hello hello;
	char *hello_frame;
	uint32_t hello_len;
	int listener;
	struct mote_server *server;
	struct mote_loop *loop;
};

static const char *remedy(int err)
{
	switch (err) {
	case -EMFILE:
		return "; raise the limit of open files (ulimit -n, LimitNOFILE)";
	case -ENOMEM:
		return "; free memory, raise its limit, or make [tables] and [socket] smaller";
	default:
		return "";
	}
}

static int failed(const char *what, int err)
{
	if (err)
		mote_log(MOTE_LOG_ERROR, "%s: %s%s", what, strerrordesc_np(-err), remedy(err));
	return err;
}

int mote_agent_new(const struct mote_options *options, struct mote_agent **out)
{
	struct mote_agent *agent = calloc(1, sizeof(*agent));

	if (!agent)
		return failed("start", -ENOMEM);
	agent->options = options;
	agent->listener = -1;
	agent->events.fd = -1;
	mote_features_read(&agent->features, options, "");
	*out = agent;
	return 0;
}

static bool minimal(const struct mote_agent *agent)
{
	return agent->options->mote_mode == MOTE_MODE_MINIMAL;
}

static bool wants_connector(const struct mote_options *options)
{
	return options->process_events == MOTE_EVENTS_AUTO ||
	       options->process_events == MOTE_EVENTS_CONNECTOR;
}

/* Births and deaths: BPF's ring buffer, else the proc connector, else nothing. */
static int open_events(struct mote_agent *agent)
{
	const struct mote_options *options = agent->options;
	struct mote_probes_lifecycle *lifecycle = mote_probes_lifecycle(agent->probes);
	const struct mote_tier *tier = mote_tiers_find(&agent->tiers, TIER_EVENTS);
	int fd = -EOPNOTSUPP;
	char why[sizeof(tier->reason)];

	if (lifecycle) {
		mote_events_open_ring(&agent->events, &lifecycle->ring, lifecycle->ctl);
		agent->has_events = true;
		return 0;
	}
	if (wants_connector(options))
		fd = mote_connector_open();
	snprintf(why, sizeof(why), "%s",
		 tier                                       ? tier->reason
		 : options->mote_probes == MOTE_PROBES_NONE ? "probes = none"
							    : "");
	if (fd >= 0) {
		agent->has_events = true;
		mote_tiers_add(
			&agent->tiers, TIER_EVENTS, "connector",
			"%s%sso what a process used since its last sample is missed when it ends",
			why, why[0] ? "; " : "");
		return mote_events_open_connector(&agent->events, fd,
						  (uint32_t)options->tables_events);
	}
	mote_tiers_add(
		&agent->tiers, TIER_EVENTS, "none",
		"%s%sproc connector: %s; so processes that live less than [process] listing are missed",
		why, why[0] ? "; " : "",
		wants_connector(options) ? strerrordesc_np(-fd) : "not chosen");
	return 0;
}

static int open_network_probes(struct mote_agent *agent)
{
	const struct mote_probes_lifecycle *lifecycle = mote_probes_lifecycle(agent->probes);
	struct mote_file_shared shared[MOTE_FILE_SHARED];
	const struct mote_probes_network_config config = {
		.options = agent->options,
		.features = &agent->features,
		.uid = (uid_t)-1,
		.gid = (gid_t)-1,
		.events = lifecycle && agent->options->network_events ? lifecycle->fd : -1,
		.shared = shared,
	};
	int err;

	mote_probes_file_share(agent->file_probes, shared);
	err = mote_probes_network_open(&config, &agent->tiers, &agent->network_probes);
	mote_probes_file_shared(agent->file_probes);
	if (err)
		return err;
	mote_probes_network_check(agent->network_probes, &agent->tiers);
	agent->network_maps = mote_probes_network_maps(agent->network_probes);
	return 0;
}

static int open_file_probes(struct mote_agent *agent)
{
	const struct mote_probes_file_config config = {
		.options = agent->options,
		.features = &agent->features,
		.uid = (uid_t)-1,
		.gid = (gid_t)-1,
	};
	int err = mote_probes_file_open(&config, &agent->tiers, &agent->file_probes);

	if (err)
		return err;
	mote_probes_file_check(agent->file_probes, &agent->tiers);
	agent->file_maps = mote_probes_file_maps(agent->file_probes);
	return 0;
}

int mote_agent_probes(struct mote_agent *agent)
{
	const struct mote_options *options = agent->options;
	bool none = options->mote_probes == MOTE_PROBES_NONE;
	const struct mote_probes_config config = {
		.iterator = !none && options->process_source != MOTE_SOURCE_PROC,
		.list = options->process_source != MOTE_SOURCE_ITERATOR,
		.events = none ? MOTE_EVENTS_OFF : options->process_events,
		.processes = options->tables_processes,
		.threads = options->tables_threads,
		.event_bytes = (unsigned int)options->tables_events,
		.argv_bytes = (unsigned int)options->process_argv_bytes,
		.btf = options->mote_btf,
		.mount_tracefs = options->mote_mount_tracefs,
		.uid = (uid_t)-1,
		.gid = (gid_t)-1,
	};
	int err = mote_probes_open(&config, &agent->tiers, &agent->probes);

	if (!err)
		err = open_events(agent);
	if (!err)
		err = open_file_probes(agent);
	if (!err)
		err = open_network_probes(agent); /* it uses what the file programs have */
	if (!err && !minimal(agent))
		err = mote_cgroups_new(options, agent->features.version, &agent->cgroups);
	if (agent->probes)
		mote_probes_started(agent->probes);
	mote_settle_heap();
	return failed("probes", err);
}

int mote_agent_engine(struct mote_agent *agent)
{
	const struct mote_options *options = agent->options;
	struct mote_engine_config config = { options->loop_sq_entries, options->loop_workers };
	const char *reason;
	int err;

	if (options->mote_engine == MOTE_ENGINE_SYNC) {
		mote_tiers_add(&agent->tiers, "engine", "sync", "engine = sync");
		return 0;
	}
	err = mote_engine_open_ring(&config, &agent->engine);
	reason = mote_features_ring_reason(&agent->features);
	if (err && options->mote_engine == MOTE_ENGINE_URING) {
		mote_log(
			MOTE_LOG_ERROR,
			"engine = uring, but io_uring is refused (%s): %s; engine = auto falls back",
			strerrordesc_np(-err), reason);
		return err;
	}
	mote_tiers_add(&agent->tiers, "engine", err ? "sync" : "uring", "%s", err ? reason : "");
	return 0;
}

/* What stands in for a ring needs no privilege, but a thread. */
static int open_sync(struct mote_agent *agent)
{
	struct mote_engine_config config = { agent->options->loop_sq_entries,
					     agent->options->loop_workers };

	return agent->engine ? 0 : mote_engine_open_sync(&config, &agent->engine);
}

static int open_tasks(struct mote_agent *agent)
{
	struct mote_probes_iterator *iterator = mote_probes_iterator(agent->probes);
	bool direct = mote_engine_direct(agent->engine);
	int err = -ENOENT;

	if (iterator && iterator->walk_ctl)
		err = mote_tasks_walk_open(iterator, direct, &agent->tasks);
	else if (iterator)
		err = mote_tasks_iter_open(iterator, direct, &agent->tasks);
	if (err && agent->options->process_source == MOTE_SOURCE_ITERATOR) {
		mote_log(MOTE_LOG_ERROR,
			 "[process] source = iterator, but it is not to be had: see moted --check");
		return err;
	}
	if (err)
		err = mote_tasks_proc_open(agent->options, direct, agent->has_events,
					   &agent->tasks);
	return err;
}

static void absent_fields(struct mote_agent *agent, int stream, uint64_t mask,
			  const char *(*why)(const struct mote_tasks *, unsigned int))
{
	for (unsigned int i = 0; i < mote_streams[stream].nfields; i++) {
		if (mask >> i & 1)
			mote_hello_absent(&agent->hello, stream, (int)i,
					  why ? why(agent->tasks, i) : "not known to this tier");
	}
}

/* What the connector does not tell. */
#define CONNECTOR_GIVES                                                             \
	(1u << EVENT_TYPE | 1u << EVENT_TIME | 1u << EVENT_PID | 1u << EVENT_PPID | \
	 1u << EVENT_EXIT_CODE)

static const char *connector_why(const struct mote_tasks *tasks, unsigned int field)
{
	return "the proc connector does not tell it";
}

/* Each process takes descriptors where there is no iterator. */
static void note_room(struct mote_agent *agent)
{
	unsigned int max = agent->tasks->max, wanted = agent->options->tables_processes;
	char choice[32];

	if (max >= wanted)
		return;
	snprintf(choice, sizeof(choice), "%u processes", max);
	mote_tiers_add(
		&agent->tiers, "process_table", choice,
		"the limit of open files has no room for [tables] processes = %u: raise LimitNOFILE, or ulimit -Hn",
		wanted);
}

/* Whether processes come from listings of /proc. */
static bool listed(const struct mote_agent *agent)
{
	return strcmp(agent->tasks->ops->name, "proc") == 0;
}

static int collect_processes(struct mote_agent *agent)
{
	struct mote_probes_iterator *iterator = mote_probes_iterator(agent->probes);
	bool proc;
	int err;

	err = open_tasks(agent);
	if (err)
		return err;
	note_room(agent);
	proc = listed(agent);
	agent->process = mote_process_new(agent->options, agent->tasks,
					  agent->has_events ? &agent->events : NULL);
	if (!agent->process)
		return -ENOMEM;
	mote_process_set_absent(agent->process, agent->tasks->absent);
	absent_fields(agent, MOTE_STREAM_PROCESS, agent->tasks->absent,
		      proc ? mote_tasks_proc_why : NULL);
	if (!agent->has_events)
		mote_hello_absent(&agent->hello, MOTE_STREAM_EVENT, -1,
				  "no source of process events here");
	else if (agent->events.fd >= 0)
		absent_fields(agent, MOTE_STREAM_EVENT, ~(uint64_t)CONNECTOR_GIVES, connector_why);
	agent->sources[MOTE_STREAM_PROCESS] =
		(struct mote_source){ &mote_process_source, agent->process };
	if (agent->has_events)
		agent->sources[MOTE_STREAM_EVENT] =
			(struct mote_source){ &mote_events_source, &agent->events };
	return mote_naming_open(agent->options, agent->engine, proc ? NULL : iterator,
				agent->process, &agent->naming);
}

static void add_table_source(struct mote_agent *agent, struct mote_table *table)
{
	if (table)
		agent->sources[mote_table_stream(table)] =
			(struct mote_source){ &mote_table_source, table };
}

static int collect_host(struct mote_agent *agent)
{
	int err = mote_host_open(agent->options, mote_engine_direct(agent->engine), &agent->host);

	if (!err && mote_host_note(agent->host))
		mote_tiers_add(&agent->tiers, "netdev_total", "all devices", "%s",
			       mote_host_note(agent->host));
	for (unsigned int i = 0; !err && i < MOTE_STREAMS; i++) {
		enum mote_stream_id stream = (enum mote_stream_id)i;

		add_table_source(agent, mote_host_table(agent->host, stream));
		if (mote_host_why(agent->host, stream))
			mote_hello_absent(&agent->hello, (int)i, -1,
					  mote_host_why(agent->host, stream));
	}
	return err;
}

/* The streams, and what mote would tell of them. */
static void network_is_absent(struct mote_agent *agent)
{
	const struct mote_tier *tier = mote_tiers_find(&agent->tiers, "network");
	const char *why = tier ? tier->reason : "no network probes";

	for (int i = MOTE_STREAM_SOCKET; i <= MOTE_STREAM_NETWORK; i++)
		mote_hello_absent(&agent->hello, i, -1, why);
	for (int i = SELF_HOOK_MISSES; i <= SELF_SLOTS_WAITING; i++)
		mote_hello_absent(&agent->hello, MOTE_STREAM_SELF, i, why);
}

/* Records of sockets come through the buffer of those of processes. */
static void no_socket_events(struct mote_agent *agent)
{
	bool ring = agent->has_events && agent->events.fd < 0;
	const struct mote_tier *tier = mote_tiers_find(&agent->tiers, "network");
	const char *why = !agent->options->network_events ? "[network] events = off"
			  : !ring                         ? "no ring buffer of process events here"
			  : tier                          ? tier->reason
							  : "no network probes";

	if (agent->network_maps && agent->network_maps->events)
		return;
	mote_hello_absent(&agent->hello, MOTE_STREAM_SELF, SELF_SOCKET_EVENTS_DROPPED, why);
	/* What of events is absent anyway has been said. */
	for (int i = EVENT_SOCKET; ring && i < EVENT__FIELDS; i++)
		mote_hello_absent(&agent->hello, MOTE_STREAM_EVENT, i, why);
}

static void absent_network_fields(struct mote_agent *agent)
{
	for (int i = MOTE_STREAM_SOCKET; i <= MOTE_STREAM_NETWORK; i++) {
		for (int field = 0; field < (int)mote_streams[i].nfields; field++) {
			const char *why =
				mote_network_why(agent->network, (enum mote_stream_id)i, field);

			if (why)
				mote_hello_absent(&agent->hello, i, field, why);
		}
	}
}

static int collect_network(struct mote_agent *agent)
{
	struct mote_network_config config = {
		.options = agent->options,
		.maps = agent->network_maps,
		.process = agent->process,
		.listed = listed(agent),
		.direct = mote_engine_direct(agent->engine),
	};
	int err;

	no_socket_events(agent);
	if (!agent->network_maps) {
		network_is_absent(agent);
		return 0;
	}
	err = mote_network_open(&config, &agent->network);
	if (err)
		return err;
	absent_network_fields(agent);
	agent->sources[MOTE_STREAM_SOCKET] =
		(struct mote_source){ &mote_socket_source, agent->network };
	agent->sources[MOTE_STREAM_FLOW] =
		(struct mote_source){ &mote_flow_source, agent->network };
	agent->sources[MOTE_STREAM_PROCESS_NETWORK] =
		(struct mote_source){ &mote_process_network_source, agent->network };
	add_table_source(agent, mote_network_table(agent->network));
	return 0;
}

static void cgroups_are_absent(struct mote_agent *agent, const char *why)
{
	mote_hello_absent(&agent->hello, MOTE_STREAM_CGROUP, -1, why);
	mote_hello_absent(&agent->hello, MOTE_STREAM_CGROUP_EVENT, -1, why);
	mote_hello_absent(&agent->hello, MOTE_STREAM_SELF, SELF_CGROUP_COLLECTIONS, why);
	mote_hello_absent(&agent->hello, MOTE_STREAM_SELF, SELF_CGROUP_LATE, why);
}

static int collect_cgroups(struct mote_agent *agent)
{
	const struct mote_tier *tier;
	int err = mote_cgroups_open(agent->cgroups, mote_engine_direct(agent->engine),
				    agent->tasks->descriptors, &agent->tiers);

	if (err == -ENOENT)
		mote_log(MOTE_LOG_ERROR,
			 "[cgroup] source = iterator, but it is not to be had: see moted --check");
	if (err == -EOPNOTSUPP) {
		tier = mote_tiers_find(&agent->tiers, "cgroups");
		cgroups_are_absent(agent, tier->reason);
		mote_cgroups_close(agent->cgroups);
		agent->cgroups = NULL;
		return 0;
	}
	for (unsigned int i = 0; !err && i < CGROUP__FIELDS; i++) {
		const char *why = mote_cgroups_why(agent->cgroups, i);

		if (why)
			mote_hello_absent(&agent->hello, MOTE_STREAM_CGROUP, (int)i, why);
	}
	agent->sources[MOTE_STREAM_CGROUP] =
		mote_cgroups_source(agent->cgroups, MOTE_STREAM_CGROUP);
	agent->sources[MOTE_STREAM_CGROUP_EVENT] =
		mote_cgroups_source(agent->cgroups, MOTE_STREAM_CGROUP_EVENT);
	if (!agent->sources[MOTE_STREAM_CGROUP_EVENT].ops)
		mote_hello_absent(&agent->hello, MOTE_STREAM_CGROUP_EVENT, -1,
				  "no source of cgroup events here");
	return err;
}

static void absent_file_fields(struct mote_agent *agent)
{
	for (int i = MOTE_STREAM_FILE; i <= MOTE_STREAM_EDGE; i++) {
		for (int field = -1; field < (int)mote_streams[i].nfields; field++) {
			const char *why =
				mote_files_why(agent->files, (enum mote_stream_id)i, field);

			if (why)
				mote_hello_absent(&agent->hello, i, field, why);
		}
	}
}

static int collect_files(struct mote_agent *agent)
{
	struct mote_files_config config = {
		.options = agent->options,
		.maps = agent->file_maps,
		.network = agent->network_maps,
		.process = agent->process,
		.listed = listed(agent),
		.direct = mote_engine_direct(agent->engine),
	};
	const struct mote_tier *tier = mote_tiers_find(&agent->tiers, "file");
	int err;

	if (!agent->file_maps) {
		for (int i = MOTE_STREAM_FILE; i <= MOTE_STREAM_EDGE; i++)
			mote_hello_absent(&agent->hello, i, -1,
					  tier ? tier->reason : "no file probes");
		return 0;
	}
	err = mote_files_open(&config, &agent->files);
	if (err)
		return err;
	absent_file_fields(agent);
	agent->sources[MOTE_STREAM_FILE] = (struct mote_source){ &mote_file_source, agent->files };
	if (!mote_files_why(agent->files, MOTE_STREAM_EDGE, -1))
		agent->sources[MOTE_STREAM_EDGE] =
			(struct mote_source){ &mote_edge_source, agent->files };
	add_table_source(agent, mote_files_table(agent->files));
	return 0;
}

static void host_is_absent(struct mote_agent *agent)
{
	for (int i = MOTE_STREAM_CPU; i <= MOTE_STREAM_FILESYSTEM; i++)
		mote_hello_absent(&agent->hello, i, -1, "mode = minimal");
	cgroups_are_absent(agent, "mode = minimal");
}

int mote_agent_collect(struct mote_agent *agent)
{
	int err = open_sync(agent);

	if (!err)
		err = collect_processes(agent);
	if (!err && !minimal(agent))
		err = collect_host(agent);
	else if (!err)
		host_is_absent(agent);
	if (!err && !minimal(agent))
		err = collect_cgroups(agent);
	if (!err)
		err = collect_network(agent);
	if (!err)
		err = collect_files(agent);
	if (!err)
		err = mote_self_open(mote_engine_direct(agent->engine), &agent->self);
	if (err)
		return failed("collectors", err);
	add_table_source(agent, mote_self_table(agent->self, MOTE_STREAM_SELF));
	add_table_source(agent, mote_self_table(agent->self, MOTE_STREAM_TABLE));
	if (!agent->has_events)
		mote_hello_absent(&agent->hello, MOTE_STREAM_SELF, SELF_EVENTS_DROPPED,
				  "no source of process events here");
	return 0;
}

/* A ring waits for connections only on a blocking socket, poll() needs one that is not. */
static void set_blocking(const struct mote_agent *agent)
{
	bool ring = strcmp(mote_engine_name(agent->engine), "uring") == 0;
	int flags = fcntl(agent->listener, F_GETFL);

	fcntl(agent->listener, F_SETFL, ring ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

int mote_agent_listen(struct mote_agent *agent)
{
	char err[256];

	mote_loop_block_signals();
	agent->listener = mote_listen(agent->options, err, sizeof(err));
	if (agent->listener >= 0)
		return 0;
	mote_log(MOTE_LOG_ERROR, "%s", err);
	return agent->listener;
}

int mote_agent_drop(struct mote_agent *agent)
{
	signal(SIGPIPE, SIG_IGN);
	return failed("giving up privileges", mote_privilege_drop());
}

int mote_agent_serve(struct mote_agent *agent)
{
	int err;

	set_blocking(agent);
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		if (!agent->sources[i].ops)
			agent->sources[i].ops = &mote_empty_source;
	}
	agent->server =
		mote_server_new(agent->options, agent->engine, agent->listener, agent->sources);
	if (!agent->server)
		return failed("server", -ENOMEM);
	agent->from = (struct mote_self_sources){
		.loop = &agent->stats,
		.server = agent->server,
		.host = agent->host,
		.tasks = agent->tasks,
		.process = agent->process,
		.events = agent->has_events ? &agent->events : NULL,
		.network = agent->network,
		.cgroups = agent->cgroups,
		.files = agent->files,
	};
	agent->hello.options = agent->options;
	agent->hello.engine = mote_engine_name(agent->engine);
	agent->hello.tiers = &agent->tiers;
	agent->hello.from = &agent->from;
	err = mote_hello_encode(&agent->hello, &agent->hello_frame, &agent->hello_len);
	mote_server_set_hello(agent->server, agent->hello_frame, agent->hello_len);
	return failed("hello", err);
}

static void log_choices(const struct mote_agent *agent)
{
	for (unsigned int i = 0; i < agent->tiers.n; i++) {
		const struct mote_tier *tier = &agent->tiers.tier[i];

		if (tier->reason[0])
			mote_log(MOTE_LOG_NOTICE, "%s: %s: %s", tier->name, tier->choice,
				 tier->reason);
	}
}

static int open_loop(struct mote_agent *agent)
{
	struct mote_loop_parts parts = {
		.options = agent->options,
		.engine = agent->engine,
		.server = agent->server,
		.host = agent->host,
		.tasks = agent->tasks,
		.events = agent->has_events ? &agent->events : NULL,
		.process = agent->process,
		.naming = agent->naming,
		.network = agent->network,
		.cgroups = agent->cgroups,
		.files = agent->files,
		.self = agent->self,
		.from = &agent->from,
		.stats = &agent->stats,
	};

	return mote_loop_open(&parts, &agent->loop);
}

int mote_agent_run(struct mote_agent *agent)
{
	int err = open_loop(agent);

	if (err)
		return failed("loop", err);
	log_choices(agent);
	return failed("loop", mote_run(agent->loop, agent->self));
}

int mote_agent_check(struct mote_agent *agent)
{
	return failed("cannot write the output", mote_check_print(&agent->features, &agent->tiers,
								  agent->options->json, stdout));
}

void mote_agent_free(struct mote_agent *agent)
{
	if (!agent)
		return;
	/* The engine first: what it still does ends before the memory that it writes to. */
	mote_engine_close(agent->engine);
	mote_loop_close(agent->loop);
	mote_server_free(agent->server);
	if (agent->listener >= 0)
		mote_listen_close(agent->options, agent->listener);
	free(agent->hello_frame);
	mote_self_close(agent->self);
	mote_network_close(agent->network);
	mote_cgroups_close(agent->cgroups);
	mote_files_close(agent->files);
	mote_naming_close(agent->naming);
	mote_process_free(agent->process);
	if (agent->tasks)
		agent->tasks->ops->close(agent->tasks);
	if (agent->has_events)
		mote_events_close(&agent->events);
	mote_host_close(agent->host);
	mote_probes_network_close(agent->network_probes);
	mote_probes_file_close(agent->file_probes);
	mote_probes_close(agent->probes);
	mote_notify_close();
	free(agent);
}
