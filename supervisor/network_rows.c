// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The rows of the streams socket, flow and process_network, see network.h. An update has the rows
 * in use that changed, then the last rows of what ended since, then the keys of these as ended. A
 * row's cursor is its index plus 1; from ENDED on it is the ring's.
 */
#include "network_ends.h"
#include "network_impl.h"
#include "parse.h"

#define ENDED (1ull << 63)

static void pack_traffic(msgpack_packer *pk, const struct mote_traffic *traffic)
{
	msgpack_pack_uint64(pk, traffic->sent);
	msgpack_pack_uint64(pk, traffic->received);
	msgpack_pack_uint64(pk, traffic->sent_calls);
	msgpack_pack_uint64(pk, traffic->received_calls);
}

static void pack_nils(msgpack_packer *pk, unsigned int n)
{
	while (n--)
		msgpack_pack_nil(pk);
}

static const char *protocol_name(uint32_t protocol)
{
	return protocol == MOTE_UDP ? "udp" : "tcp";
}

/* What a stream's rows are made of: an array of objects with a `changed`, and last rows. */
struct rows {
	const struct blocks *blocks;
	const void *changed; /* of the first object */
	size_t stride;
	const struct ended *ended;
};

static uint64_t changed(const struct rows *rows, uint32_t i)
{
	return *(const uint64_t *)((const char *)rows->changed + i * rows->stride);
}

static uint32_t next_changed(const struct rows *rows, uint32_t i, uint64_t since)
{
	do
		i = mote_blocks_next(rows->blocks, i, since);
	while (i < rows->blocks->rows && changed(rows, i) <= since && ++i);
	return i;
}

/*
 * The next row: `*i`, if that is not beyond the rows, else the last row that is returned, else
 * none. A keyframe (since 0) has what there is, nothing that ended.
 */
static const void *next_row(const struct rows *rows, uint64_t since, uint64_t *cursor, uint32_t *i)
{
	uint64_t at = *cursor & ~ENDED;
	const void *record;

	*i = rows->blocks->rows;
	if (!(*cursor & ENDED)) {
		*i = next_changed(rows, (uint32_t)*cursor, since);
		at = 0;
	}
	if (*i < rows->blocks->rows) {
		*cursor = (uint64_t)*i + 1;
		return NULL;
	}
	record = since ? mote_ended_next(rows->ended, since, &at) : NULL;
	if (record)
		*cursor = at | ENDED;
	return record;
}

/* Sockets */

static void pack_owner(msgpack_packer *pk, const struct mote_socket *socket)
{
	bool known = socket->tgid || socket->flags & MOTE_SOCKET_KERNEL;

	mote_pack_known(pk, known, socket->tgid);
	mote_pack_known(pk, known, socket->start / MOTE_NS_PER_TICK);
	msgpack_pack_uint32(pk, socket->uid);
	mote_pack_known(pk, socket->cgroup_id, socket->cgroup_id);
	mote_pack_known(pk, socket->netns, socket->netns);
	mote_pack_known(pk, socket->inode, socket->inode);
	mote_pack_known(pk, socket->cookie, socket->cookie);
	msgpack_pack_uint64(pk, socket->opened);
	mote_pack_known(pk, socket->closed, socket->closed);
}

static void pack_tcp(const struct mote_network *network, msgpack_packer *pk,
		     const struct mote_socket *socket)
{
	if (socket->protocol == MOTE_UDP) {
		pack_nils(pk, 4);
		return;
	}
	msgpack_pack_uint64(pk, socket->retransmitted_seen);
	mote_pack_known(pk, socket->srtt_us, socket->srtt_us);
	if (socket->flags & MOTE_SOCKET_TRUTH && network->options->network_reconciliation) {
		msgpack_pack_int64(pk, socket->unattributed_sent);
		msgpack_pack_int64(pk, socket->unattributed_received);
	} else {
		pack_nils(pk, 2);
	}
}

static void pack_socket(const struct mote_network *network, msgpack_packer *pk, uint64_t id,
			const struct mote_socket *socket)
{
	_Static_assert(SOCKET__FIELDS == 25 && SOCKET_PROTOCOL == 1 &&
			       SOCKET_PID == 1 + MOTE_ENDS_FIELDS && SOCKET_BYTES_SENT == 17 &&
			       SOCKET_RETRANSMITTED_BYTES == 21,
		       "pack_socket follows schema.def");
	msgpack_pack_array(pk, SOCKET__FIELDS);
	msgpack_pack_uint64(pk, id);
	mote_pack_ends(pk, &socket->ends);
	pack_owner(pk, socket);
	pack_traffic(pk, &socket->traffic);
	pack_tcp(network, pk, socket);
}

static bool socket_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_network *network = ctx;
	const struct mote_socket *sockets = network->maps->sockets;
	const struct rows rows = { &network->socket_blocks, &sockets->changed, sizeof(*sockets),
				   &network->ended_sockets };
	const struct mote_network_ended_socket *record;
	uint32_t i;

	record = next_row(&rows, since, cursor, &i);
	if (i < rows.blocks->rows)
		pack_socket(network, pk, mote_network_socket_id(network, i), &sockets[i]);
	else if (record)
		pack_socket(network, pk, record->id, &record->socket);
	return i < rows.blocks->rows || record;
}

static bool socket_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_network *network = ctx;
	const struct mote_network_ended_socket *record =
		mote_ended_next(&network->ended_sockets, since, cursor);

	if (!record)
		return false;
	msgpack_pack_array(pk, 1);
	msgpack_pack_uint64(pk, record->id);
	return true;
}

static void socket_totals(void *ctx, msgpack_packer *pk)
{
	const struct mote_network *network = ctx;

	msgpack_pack_array(pk, SOCKET__FIELDS);
	pack_nils(pk, SOCKET_BYTES_SENT);
	pack_traffic(pk, &network->socket_totals);
	msgpack_pack_uint64(pk, network->retransmitted_totals);
	pack_nils(pk, SOCKET__FIELDS - SOCKET_SRTT);
}

static bool socket_forgot(void *ctx, uint64_t since)
{
	return ((const struct mote_network *)ctx)->ended_sockets.forgot > since;
}

const struct mote_source_ops mote_socket_source = {
	.row = socket_row,
	.ended = socket_ended,
	.totals = socket_totals,
	.forgot = socket_forgot,
};

/* Flows */

static void pack_flow_key(msgpack_packer *pk, uint64_t key, uint64_t start)
{
	msgpack_pack_uint64(pk, MOTE_FLOW_SOCKET(key));
	msgpack_pack_uint32(pk, MOTE_FLOW_TGID(key));
	msgpack_pack_uint64(pk, start / MOTE_NS_PER_TICK);
}

static void pack_flow(msgpack_packer *pk, uint64_t key, uint64_t start, uint32_t protocol,
		      const struct mote_traffic *traffic)
{
	_Static_assert(FLOW__FIELDS == 8 && FLOW_PROTOCOL == 3, "pack_flow follows schema.def");
	msgpack_pack_array(pk, FLOW__FIELDS);
	pack_flow_key(pk, key, start);
	mote_pack_word(pk, protocol_name(protocol));
	pack_traffic(pk, traffic);
}

static bool flow_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_network *network = ctx;
	const struct mote_flow *flows = network->maps->flows;
	const struct rows rows = { &network->flow_blocks, &flows->changed, sizeof(*flows),
				   &network->ended_flows };
	const struct mote_network_ended_flow *record;
	uint32_t i;

	record = next_row(&rows, since, cursor, &i);
	if (i < rows.blocks->rows)
		pack_flow(pk, flows[i].slot.key, flows[i].start, flows[i].protocol, &flows[i].seen);
	else if (record)
		pack_flow(pk, record->key, record->start, record->protocol, &record->traffic);
	return i < rows.blocks->rows || record;
}

static bool flow_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_network *network = ctx;
	const struct mote_network_ended_flow *record =
		mote_ended_next(&network->ended_flows, since, cursor);

	if (!record)
		return false;
	msgpack_pack_array(pk, 3);
	pack_flow_key(pk, record->key, record->start);
	return true;
}

static void flow_totals(void *ctx, msgpack_packer *pk)
{
	const struct mote_network *network = ctx;

	msgpack_pack_array(pk, FLOW__FIELDS);
	pack_nils(pk, FLOW_BYTES_SENT);
	pack_traffic(pk, &network->flow_totals);
}

static bool flow_forgot(void *ctx, uint64_t since)
{
	return ((const struct mote_network *)ctx)->ended_flows.forgot > since;
}

const struct mote_source_ops mote_flow_source = {
	.row = flow_row,
	.ended = flow_ended,
	.totals = flow_totals,
	.forgot = flow_forgot,
};

/* Processes */

static void pack_process(msgpack_packer *pk, uint32_t pid, uint64_t start,
			 const struct mote_traffic traffic[MOTE_PROTOCOLS])
{
	_Static_assert(PROCESS_NETWORK__FIELDS == 10 && PROCESS_NETWORK_TCP_BYTES_SENT == 2 &&
			       PROCESS_NETWORK_UDP_BYTES_SENT == 6,
		       "pack_process follows schema.def");
	msgpack_pack_array(pk, PROCESS_NETWORK__FIELDS);
	msgpack_pack_uint32(pk, pid);
	msgpack_pack_uint64(pk, start / MOTE_NS_PER_TICK);
	pack_traffic(pk, &traffic[MOTE_TCP]);
	pack_traffic(pk, &traffic[MOTE_UDP]);
}

static bool process_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct network_processes *all = &((const struct mote_network *)ctx)->processes;
	const struct rows rows = { &all->blocks, &all->at->changed, sizeof(*all->at), &all->ended };
	const struct mote_network_ended_process *record;
	uint32_t i;

	record = next_row(&rows, since, cursor, &i);
	if (i < rows.blocks->rows)
		pack_process(pk, all->at[i].pid, all->at[i].start, all->at[i].traffic);
	else if (record)
		pack_process(pk, record->pid, record->start, record->traffic);
	return i < rows.blocks->rows || record;
}

static bool process_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct network_processes *all = &((const struct mote_network *)ctx)->processes;
	const struct mote_network_ended_process *record =
		mote_ended_next(&all->ended, since, cursor);

	if (!record)
		return false;
	msgpack_pack_array(pk, 2);
	msgpack_pack_uint32(pk, record->pid);
	msgpack_pack_uint64(pk, record->start / MOTE_NS_PER_TICK);
	return true;
}

static void process_totals(void *ctx, msgpack_packer *pk)
{
	const struct network_processes *all = &((const struct mote_network *)ctx)->processes;

	msgpack_pack_array(pk, PROCESS_NETWORK__FIELDS);
	pack_nils(pk, PROCESS_NETWORK_TCP_BYTES_SENT);
	pack_traffic(pk, &all->totals[MOTE_TCP]);
	pack_traffic(pk, &all->totals[MOTE_UDP]);
}

static bool process_forgot(void *ctx, uint64_t since)
{
	return ((const struct mote_network *)ctx)->processes.ended.forgot > since;
}

const struct mote_source_ops mote_process_network_source = {
	.row = process_row,
	.ended = process_ended,
	.totals = process_totals,
	.forgot = process_forgot,
};
