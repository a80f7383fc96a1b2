// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Adding up, see network.h. What a flow has more than at the sample before goes to the flow's row,
 * its socket, its process and its protocol; so the sums of each are equal, whatever a table was too
 * full for. Of a slot's memory the first part is BPF's, the second ours (abi.h): ours is 0 in a
 * slot that is not in use, as `gone` leaves it.
 *
 * A flow ends when its socket closed or its process ended. A flow may be seen before its socket is,
 * or after it is gone: then it has none, and the totals get its bytes.
 */
#include <stddef.h>
#include <string.h>

#include "network_impl.h"

static struct mote_socket *socket_at(const struct mote_network *network, uint32_t slot)
{
	return &network->maps->sockets[slot];
}

static struct mote_flow *flow_at(const struct mote_network *network, uint32_t slot)
{
	return &network->maps->flows[slot];
}

void mote_traffic_add(struct mote_traffic *to, const struct mote_traffic *from)
{
	to->sent += from->sent;
	to->received += from->received;
	to->sent_calls += from->sent_calls;
	to->received_calls += from->received_calls;
}

bool mote_traffic_any(const struct mote_traffic *traffic)
{
	return traffic->sent | traffic->received | traffic->sent_calls | traffic->received_calls;
}

uint64_t mote_network_socket_id(const struct mote_network *network, uint32_t slot)
{
	return MOTE_SOCKET_ID(slot, socket_at(network, slot)->slot.gen);
}

static enum mote_protocol protocol_of(uint32_t protocol)
{
	return protocol == MOTE_UDP ? MOTE_UDP : MOTE_TCP;
}

/* The socket of a flow, while that has its slot; NULL: it had none, or is gone. */
static struct mote_socket *socket_of(const struct mote_network *network,
				     const struct mote_flow *flow)
{
	uint64_t id = MOTE_FLOW_SOCKET(flow->slot.key);
	uint32_t slot = MOTE_SOCKET_SLOT(id);

	if (slot >= network->maps->nsockets || mote_network_socket_id(network, slot) != id)
		return NULL;
	return socket_at(network, slot);
}

/* Ours, but for the word that slots.c keeps in it. */
static void clear(void *own, size_t size, uint32_t *state)
{
	uint32_t kept = *state;

	memset(own, 0, size);
	*state = kept;
}

/* Sockets */

static void socket_changed(struct mote_network *network, struct mote_socket *socket)
{
	uint32_t slot = (uint32_t)(socket - network->maps->sockets);

	socket->changed = network->now;
	blocks_changed(&network->socket_blocks, slot, network->now);
}

/*
 * The kernel's own counters were read when the state changed or in the last walk, so of an open
 * socket that moved bytes since they are behind, and say nothing.
 */
static int64_t beyond(const struct mote_socket *socket, uint64_t truth, uint64_t seen)
{
	int64_t more = (int64_t)(truth - seen);

	return more < 0 && !socket->closed ? 0 : more;
}

/* What the kernel's own counters have beyond what the hooks saw: its difference goes to the sums.
 */
static void reconcile(struct mote_network *network, struct mote_socket *socket)
{
	int64_t sent, received;

	if (!(socket->flags & MOTE_SOCKET_TRUTH) || !network->options->network_reconciliation)
		return;
	sent = beyond(socket, socket->accepted - socket->accepted_base, socket->traffic.sent);
	received = beyond(socket, socket->taken - socket->taken_base, socket->traffic.received);
	network->unattributed_sent += sent - socket->unattributed_sent;
	network->unattributed_received += received - socket->unattributed_received;
	socket->unattributed_sent = sent;
	socket->unattributed_received = received;
}

/* A socket from before mote, or from before there was room, was not sent again in vain since. */
static void begin_socket(struct mote_network *network, struct mote_socket *socket)
{
	enum mote_protocol protocol = protocol_of(socket->protocol);

	if (socket->flags & (MOTE_SOCKET_SEEDED | MOTE_SOCKET_LATE))
		socket->retransmitted_seen = socket->retransmitted;
	network->sum[protocol].sockets++;
	network->sum[protocol].opened++;
}

static void close_socket(struct mote_network *network, struct mote_socket *socket)
{
	socket->flags_own |= OWN_CLOSED;
	socket->next = network->closed;
	network->closed = (uint32_t)(socket - network->maps->sockets) + 1;
	network->sum[protocol_of(socket->protocol)].closed++;
}

static void fold_socket(void *ctx, uint32_t slot, bool first)
{
	struct mote_network *network = ctx;
	struct mote_socket *socket = socket_at(network, slot);
	uint64_t retransmitted;

	if (first)
		begin_socket(network, socket);
	retransmitted = socket->retransmitted;
	network->retransmitted += retransmitted - socket->retransmitted_seen;
	socket->retransmitted_seen = retransmitted;
	reconcile(network, socket);
	socket_changed(network, socket);
	if (__atomic_load_n(&socket->closed, __ATOMIC_ACQUIRE) && !(socket->flags_own & OWN_CLOSED))
		close_socket(network, socket);
}

/* What is left of it are its last row and the totals. */
static void socket_gone(void *ctx, uint32_t slot)
{
	struct mote_network *network = ctx;
	struct mote_socket *socket = socket_at(network, slot);
	struct mote_network_ended_socket *record =
		mote_ended_add(&network->ended_sockets, network->now);
	uint32_t flow = socket->flows;

	record->id = mote_network_socket_id(network, slot);
	record->socket = *socket;
	mote_traffic_add(&network->socket_totals, &socket->traffic);
	network->retransmitted_totals += socket->retransmitted_seen;
	network->sum[protocol_of(socket->protocol)].sockets--;
	while (flow) {
		struct mote_flow *of = flow_at(network, flow - 1);

		flow = of->socket_next;
		of->socket_next = of->socket_prev = 0;
	}
	clear(&socket->flows, sizeof(*socket) - offsetof(struct mote_socket, flows),
	      &socket->state_own);
}

const struct mote_slots_ops mote_network_socket_ops = { .fold = fold_socket, .gone = socket_gone };

/* Flows */

/* What came since the last time. */
static struct mote_traffic take(struct mote_flow *flow)
{
	struct mote_traffic now = {
		.sent = __atomic_load_n(&flow->traffic.sent, __ATOMIC_RELAXED),
		.received = __atomic_load_n(&flow->traffic.received, __ATOMIC_RELAXED),
		.sent_calls = __atomic_load_n(&flow->traffic.sent_calls, __ATOMIC_RELAXED),
		.received_calls = __atomic_load_n(&flow->traffic.received_calls, __ATOMIC_RELAXED),
	};
	struct mote_traffic more = {
		.sent = now.sent - flow->seen.sent,
		.received = now.received - flow->seen.received,
		.sent_calls = now.sent_calls - flow->seen.sent_calls,
		.received_calls = now.received_calls - flow->seen.received_calls,
	};

	flow->seen = now;
	return more;
}

static void join_socket(struct mote_network *network, struct mote_socket *socket, uint32_t slot)
{
	struct mote_flow *flow = flow_at(network, slot);

	flow->socket_next = socket->flows;
	if (socket->flows)
		flow_at(network, socket->flows - 1)->socket_prev = slot + 1;
	socket->flows = slot + 1;
}

static void leave_socket(struct mote_network *network, struct mote_socket *socket,
			 const struct mote_flow *flow)
{
	if (flow->socket_next)
		flow_at(network, flow->socket_next - 1)->socket_prev = flow->socket_prev;
	if (flow->socket_prev)
		flow_at(network, flow->socket_prev - 1)->socket_next = flow->socket_next;
	else if (socket && socket->flows == (uint32_t)(flow - network->maps->flows) + 1)
		socket->flows = flow->socket_next;
}

/* Clients must not be told that a key ended which is there again. */
static void forget_end(struct mote_network *network, const struct mote_flow *flow)
{
	struct mote_network_ended_flow *record;

	for (uint32_t i = 0; (record = mote_ended_at(&network->ended_flows, i)); i++) {
		if (record->key == flow->slot.key && record->start == flow->start)
			record->at.time = 0;
	}
}

static void begin_flow(struct mote_network *network, struct mote_socket *socket, uint32_t slot)
{
	struct mote_flow *flow = flow_at(network, slot);
	bool homeless = MOTE_FLOW_SOCKET(flow->slot.key) < MOTE_SLOTS_MAX;
	bool closed = socket ? socket->flags_own & OWN_CLOSED : !homeless;

	if (socket)
		join_socket(network, socket, slot);
	mote_network_process_join(network, slot);
	/* A key has one end at most unless one of these holds. */
	if (closed || homeless || network->processes.reborn)
		forget_end(network, flow);
	/* Nothing else will end one that is written to after the end of its socket or process, or
	 * whose process and socket have no room. */
	if (closed || mote_network_process_ended(network, flow) ||
	    (homeless && flow->process == MOTE_NO_PROCESS))
		mote_slots_end(network->flows, slot);
}

/* There may be room for its process now: for what comes from now on. */
static void rejoin_flow(struct mote_network *network, uint32_t slot)
{
	if (mote_network_process_rejoin(network, slot) &&
	    mote_network_process_ended(network, flow_at(network, slot)))
		mote_slots_end(network->flows, slot);
}

static void fold_flow(void *ctx, uint32_t slot, bool first)
{
	struct mote_network *network = ctx;
	struct mote_flow *flow = flow_at(network, slot);
	struct mote_socket *socket = socket_of(network, flow);
	struct mote_traffic more = take(flow);

	if (first)
		begin_flow(network, socket, slot);
	else if (!mote_traffic_any(&more))
		return;
	else
		rejoin_flow(network, slot);
	flow->changed = network->now;
	blocks_changed(&network->flow_blocks, slot, network->now);
	mote_traffic_add(&network->sum[protocol_of(flow->protocol)].traffic, &more);
	mote_network_process_add(network, flow, &more);
	if (!socket) {
		mote_traffic_add(&network->socket_totals, &more);
		return;
	}
	mote_traffic_add(&socket->traffic, &more);
	reconcile(network, socket);
	socket_changed(network, socket);
#ifdef MOTE_MUTANT_CLEAR /* broken on purpose, see bpf/net.bpf.c: what was read is cleared */
	flow->traffic = flow->seen = (struct mote_traffic){ 0 };
#endif
}

static void flow_gone(void *ctx, uint32_t slot)
{
	struct mote_network *network = ctx;
	struct mote_flow *flow = flow_at(network, slot);
	struct mote_network_ended_flow *record =
		mote_ended_add(&network->ended_flows, network->now);

	record->key = flow->slot.key;
	record->start = flow->start;
	record->traffic = flow->seen;
	record->protocol = flow->protocol;
	mote_traffic_add(&network->flow_totals, &flow->seen);
	leave_socket(network, socket_of(network, flow), flow);
	mote_network_process_leave(network, slot);
	flow->traffic = (struct mote_traffic){ 0 };
	clear(&flow->seen, sizeof(*flow) - offsetof(struct mote_flow, seen), &flow->state);
}

const struct mote_slots_ops mote_network_flow_ops = { .fold = fold_flow, .gone = flow_gone };

void mote_network_end_closed(struct mote_network *network)
{
	while (network->closed) {
		uint32_t slot = network->closed - 1;
		struct mote_socket *socket = socket_at(network, slot);

		network->closed = socket->next;
		socket->next = 0;
		for (uint32_t flow = socket->flows; flow;
		     flow = flow_at(network, flow - 1)->socket_next)
			mote_slots_end(network->flows, flow - 1);
		mote_slots_end(network->sockets, slot);
	}
}
