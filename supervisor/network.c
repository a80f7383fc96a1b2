// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The network part, see network.h: opens and closes it, its place in the tick's chain, and the
 * order of a sample. What BPF wrote is in network_fold.c, who lives in network_process.c, the
 * streams in network_rows.c.
 */
#include "network_impl.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Direct descriptors: below are the task iterators', above the host's files. */
#define SLOT_FIRST 2
#define NAME_TEXT  8

int mote_blocks_new(struct blocks *blocks, uint32_t rows)
{
	uint32_t n = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;

	blocks->rows = rows;
	blocks->changed = malloc(n * sizeof(*blocks->changed));
	if (!blocks->changed)
		return -ENOMEM;
	memset(blocks->changed, 0, n * sizeof(*blocks->changed));
	return 0;
}

uint32_t mote_blocks_next(const struct blocks *blocks, uint32_t row, uint64_t since)
{
	while (row < blocks->rows && blocks->changed[row >> BLOCK_SHIFT] <= since)
		row = (row | (BLOCK_ROWS - 1)) + 1;
	return row < blocks->rows ? row : blocks->rows;
}

static int open_slots(struct mote_network *network)
{
	const struct mote_network_maps *maps = network->maps;
	struct mote_slots_memory sockets = {
		.table = MOTE_SLOTS_SOCKETS,
		.slots = maps->sockets,
		.stride = sizeof(struct mote_socket),
		.own = offsetof(struct mote_socket, state_own),
		.size = maps->nsockets,
		.marks = maps->socket_marks,
		.reap = &maps->reaps[MOTE_SLOTS_SOCKETS],
		.cpus = maps->cpus,
		.ncpus = maps->ncpus,
	};
	struct mote_slots_memory flows = sockets;
	int err;

	flows.table = MOTE_SLOTS_FLOWS;
	flows.slots = maps->flows;
	flows.stride = sizeof(struct mote_flow);
	flows.own = offsetof(struct mote_flow, state);
	flows.size = maps->nflows;
	flows.marks = maps->flow_marks;
	flows.reap = &maps->reaps[MOTE_SLOTS_FLOWS];
	err = mote_slots_new(&sockets, &mote_network_socket_ops, network, &network->sockets);
	return err ?: mote_slots_new(&flows, &mote_network_flow_ops, network, &network->flows);
}

static int open_rows(struct mote_network *network)
{
	uint32_t ended = network->options->tables_ended_sockets;

	network->table = mote_table_new(MOTE_STREAM_NETWORK, MOTE_PROTOCOLS, NAME_TEXT);
	if (!network->table || mote_blocks_new(&network->socket_blocks, network->maps->nsockets) ||
	    mote_blocks_new(&network->flow_blocks, network->maps->nflows) ||
	    mote_ended_new(&network->ended_sockets, ended,
			   sizeof(struct mote_network_ended_socket)) ||
	    mote_ended_new(&network->ended_flows, ended, sizeof(struct mote_network_ended_flow)))
		return -ENOMEM;
	return mote_network_processes_new(network);
}

/* Without the reaper slots are not given back: what finds none is in `other`. */
static int open_files(struct mote_network *network, bool direct)
{
	const char *names[NETWORK_FILES] = { network->maps->reap, network->maps->tcp,
					     network->maps->udp };

	for (int i = 0; i < NETWORK_FILES; i++) {
		int err;

		if (!names[i])
			continue;
		err = mote_file_open_iterator(&network->file[i], network->maps->dirfd, names[i],
					      SLOT_FIRST + i, direct);
		if (err == -ENOMEM || (err && i == FILE_REAP))
			return err;
		network->has_file[i] = !err;
	}
	return 0;
}

int mote_network_open(const struct mote_network_config *config, struct mote_network **out)
{
	struct mote_network *network = calloc(1, sizeof(*network));
	int err;

	if (!network)
		return -ENOMEM;
	network->options = config->options;
	network->maps = config->maps;
	network->process = config->process;
	/* A process is in the listing after the next at the latest. */
	if (config->listed)
		network->patience = 2 * config->options->process_listing * NS_PER_MS;
	err = open_slots(network);
	err = err ?: open_rows(network);
	err = err ?: open_files(network, config->direct);
	err = err ?: mote_network_misses_open(network);
	if (err) {
		mote_network_close(network);
		return err;
	}
	*out = network;
	return 0;
}

void mote_network_close(struct mote_network *network)
{
	if (!network)
		return;
	for (int i = 0; i < NETWORK_FILES; i++) {
		if (network->has_file[i])
			mote_file_close(&network->file[i]);
	}
	mote_network_misses_close(network);
	mote_network_processes_free(network);
	mote_ended_free(&network->ended_sockets);
	mote_ended_free(&network->ended_flows);
	free(network->socket_blocks.changed);
	free(network->flow_blocks.changed);
	mote_table_free(network->table);
	mote_slots_free(network->sockets);
	mote_slots_free(network->flows);
	free(network);
}

struct mote_table *mote_network_table(struct mote_network *network)
{
	return network->table;
}

/* What is absent here */

static const char *why_tcp(const struct mote_network *network, bool unattributed)
{
	if (!network->maps->has[MOTE_NET_TCP])
		return network->maps->why[MOTE_NET_TCP];
	if (unattributed && !network->options->network_reconciliation)
		return "[network] reconciliation = off";
	return NULL;
}

static const char *why_process_field(const struct mote_network *network, int field)
{
	enum mote_net_event event;

	switch (field) {
	case PROCESS_NETWORK_TCP_BYTES_SENT:
	case PROCESS_NETWORK_TCP_BYTES_RECEIVED:
	case PROCESS_NETWORK_TCP_CALLS_SENT:
	case PROCESS_NETWORK_TCP_CALLS_RECEIVED:
		event = MOTE_NET_TCP;
		break;
	case PROCESS_NETWORK_UDP_BYTES_SENT:
	case PROCESS_NETWORK_UDP_CALLS_SENT:
		event = MOTE_NET_UDP_SEND;
		break;
	case PROCESS_NETWORK_UDP_BYTES_RECEIVED:
	case PROCESS_NETWORK_UDP_CALLS_RECEIVED:
		event = MOTE_NET_UDP_RECV;
		break;
	default:
		return NULL;
	}
	return network->maps->has[event] ? NULL : network->maps->why[event];
}

const char *mote_network_why(const struct mote_network *network, enum mote_stream_id stream,
			     int field)
{
	if (stream == MOTE_STREAM_SOCKET)
		return field < SOCKET_RETRANSMITTED_BYTES
			       ? NULL
			       : why_tcp(network, field >= SOCKET_UNATTRIBUTED_SENT);
	if (stream == MOTE_STREAM_NETWORK)
		return field == NETWORK_UNATTRIBUTED_SENT || field == NETWORK_UNATTRIBUTED_RECEIVED
			       ? why_tcp(network, true)
		       : field == NETWORK_RETRANSMITTED_BYTES ? why_tcp(network, false)
							      : NULL;
	if (stream == MOTE_STREAM_PROCESS_NETWORK)
		return why_process_field(network, field);
	return NULL;
}
