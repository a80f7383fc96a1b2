// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The tick of the network part: what goes into the chain, and the order of a sample
 * (docs/SLOTS.md): notices of what ended, marks, grace, and the list for the next run of the
 * reaper.
 */
#include <string.h>

#include "network_impl.h"

/*
 * A walk over all sockets takes half a microsecond for each; so many ns for each socket between two
 * walks keep it at 1/2000 of a CPU.
 */
#define WALK_NS      (10 * NS_PER_S)
#define WALK_NS_EACH (NS_PER_MS)
/* Where a hook tells of UDP's ends the walk finds only what that missed. */
#define WALK_SELDOM 6
/* Slots that the time until the next sample may take: ended ones are free two or three later. */
#define PACE_PART 8
#define PACE_MIN  (250 * NS_PER_MS)

/* The chain */

/*
 * TCP: what changes while nobody calls, what hooks do not see, and which sockets ended with all of
 * them left out. UDP: which sockets are gone, where no hook tells, and where the hook's program was
 * left out.
 */
static bool walk_is_due(const struct mote_network *network, int file, uint64_t time, bool watched)
{
	unsigned int protocol = file == FILE_TCP ? MOTE_TCP : MOTE_UDP;
	uint64_t sockets = network->sum[protocol].sockets, least = WALK_NS;
	uint64_t period = sockets * WALK_NS_EACH;

	/* Nobody wants to know, unless it is what fills the table that has ended unseen. */
	if (file == FILE_TCP && !watched && sockets <= network->maps->nsockets / 2)
		return false;
	if (file == FILE_UDP && (!watched || network->maps->has[MOTE_NET_DESTROY]))
		period = (period < least ? least : period) * WALK_SELDOM;
	/* Dead ones may be what fills the table. */
	if (file == FILE_UDP && sockets > network->maps->nsockets / 4)
		period = least = PACE_MIN;
	return time >= network->read[file] + (period < least ? least : period);
}

unsigned int mote_network_push(struct mote_network *network, struct mote_engine *engine,
			       uint32_t index, uint64_t time, bool watched)
{
	unsigned int n = 0;

	for (int i = 0; i < NETWORK_FILES; i++) {
		bool due = i == FILE_REAP ? network->reap : walk_is_due(network, i, time, watched);

		network->pushed[i] = network->has_file[i] && due;
		if (!network->pushed[i])
			continue;
		network->read[i] = time;
		n += mote_file_push(&network->file[i], engine, index + (uint32_t)i);
	}
	return n + mote_network_misses_push(network, engine, index + NETWORK_FILES, time, watched);
}

void mote_network_complete(struct mote_network *network, uint32_t file, uint32_t step, int res)
{
	if (file < NETWORK_FILES)
		mote_file_complete(&network->file[file], step, res);
	else
		mote_network_misses_complete(network, file - NETWORK_FILES, res);
}

/* The sample */

/* Of flows that found no slot. */
static struct mote_traffic other_of(const struct mote_network *network, unsigned int protocol)
{
	struct mote_traffic sum = { 0 };

	for (unsigned int i = 0; i < network->maps->ncpus; i++) {
		const struct mote_traffic *other = &network->maps->cpus[i].other[protocol];

		sum.sent += __atomic_load_n(&other->sent, __ATOMIC_RELAXED);
		sum.received += __atomic_load_n(&other->received, __ATOMIC_RELAXED);
		sum.sent_calls += __atomic_load_n(&other->sent_calls, __ATOMIC_RELAXED);
		sum.received_calls += __atomic_load_n(&other->received_calls, __ATOMIC_RELAXED);
	}
	return sum;
}

static void set_tcp(struct mote_network *network, struct mote_row *row)
{
	struct mote_table *table = network->table;

	mote_row_set(table, row, NETWORK_RETRANSMITTED_BYTES, network->retransmitted);
	if (!network->options->network_reconciliation)
		return;
	mote_row_set(table, row, NETWORK_UNATTRIBUTED_SENT, (uint64_t)network->unattributed_sent);
	mote_row_set(table, row, NETWORK_UNATTRIBUTED_RECEIVED,
		     (uint64_t)network->unattributed_received);
}

static void set_protocol(struct mote_network *network, unsigned int protocol, const char *name)
{
	struct mote_traffic other = other_of(network, protocol), all = other;
	const struct mote_network_maps *maps = network->maps;
	struct mote_table *table = network->table;
	struct mote_row *row = mote_table_row(table, name, strlen(name));
	bool sent = maps->has[protocol == MOTE_TCP ? MOTE_NET_TCP : MOTE_NET_UDP_SEND];
	bool received = maps->has[protocol == MOTE_TCP ? MOTE_NET_TCP : MOTE_NET_UDP_RECV];

	mote_traffic_add(&all, &network->sum[protocol].traffic);
	if (sent) {
		mote_row_set(table, row, NETWORK_BYTES_SENT, all.sent);
		mote_row_set(table, row, NETWORK_CALLS_SENT, all.sent_calls);
		mote_row_set(table, row, NETWORK_OTHER_SENT, other.sent);
	}
	if (received) {
		mote_row_set(table, row, NETWORK_BYTES_RECEIVED, all.received);
		mote_row_set(table, row, NETWORK_CALLS_RECEIVED, all.received_calls);
		mote_row_set(table, row, NETWORK_OTHER_RECEIVED, other.received);
	}
	mote_row_set(table, row, NETWORK_SOCKETS, network->sum[protocol].sockets);
	mote_row_set(table, row, NETWORK_SOCKETS_OPENED, network->sum[protocol].opened);
	mote_row_set(table, row, NETWORK_SOCKETS_CLOSED, network->sum[protocol].closed);
	if (protocol == MOTE_TCP && sent)
		set_tcp(network, row);
}

static void set_rows(struct mote_network *network)
{
	const bool *has = network->maps->has;

	mote_table_begin(network->table, network->now);
	if (has[MOTE_NET_TCP])
		set_protocol(network, MOTE_TCP, "tcp");
	if (has[MOTE_NET_UDP_SEND] || has[MOTE_NET_UDP_RECV])
		set_protocol(network, MOTE_UDP, "udp");
	mote_table_end(network->table);
}

static void passed(struct mote_network *network)
{
	if (!network->pushed[FILE_REAP])
		return;
	network->pushed[FILE_REAP] = false;
	mote_slots_passed(network->sockets);
	mote_slots_passed(network->flows);
}

/*
 * Sockets before flows: what was written before a socket closed is found when its flows are
 * ended. And flows are gone before their sockets, so that a socket's last row is complete.
 */
void mote_network_sample(struct mote_network *network, uint64_t tasks, uint64_t now)
{
	bool more;

	network->now = now;
	passed(network);
	mote_network_misses_take(network);
	mote_network_processes_settle(network, tasks);
	mote_slots_scan(network->sockets);
	mote_slots_scan(network->flows);
	mote_network_end_closed(network);
	mote_slots_grace(network->flows, now);
	mote_slots_grace(network->sockets, now);
	more = mote_slots_prepare(network->sockets);
	network->reap = mote_slots_prepare(network->flows) || more;
	set_rows(network);
}

/* Of `elapsed` ns, in which so many were taken, as many as take a part of `size`. */
static uint64_t pace_of(uint64_t taken, uint64_t size, uint64_t elapsed, uint64_t longest)
{
	uint64_t part = size / PACE_PART;

	return !taken || elapsed / taken >= longest / part ? longest : elapsed * part / taken;
}

uint64_t mote_network_pace(struct mote_network *network, uint64_t elapsed, uint64_t longest)
{
	const struct mote_network_maps *maps = network->maps;
	const struct network_processes *all = &network->processes;
	uint64_t size = maps->nsockets < maps->nflows ? maps->nsockets : maps->nflows;
	uint64_t claims = 0, slots, made;

	for (unsigned int i = 0; i < maps->ncpus; i++)
		claims += __atomic_load_n(&maps->cpus[i].claims, __ATOMIC_RELAXED);
	slots = pace_of(claims - network->claims, size, elapsed, longest);
	made = pace_of(all->made - network->made, all->size, elapsed, longest);
	network->claims = claims;
	network->made = all->made;
	if (made < slots)
		slots = made;
	return slots < PACE_MIN ? PACE_MIN : slots;
}

void mote_network_want_events(struct mote_network *network, bool wanted)
{
	if (network->maps->events)
		__atomic_store_n(&network->maps->ctl->events, wanted, __ATOMIC_RELAXED);
}

void mote_network_stats(const struct mote_network *network, uint64_t now,
			struct mote_network_stats *stats)
{
	const struct network_processes *all = &network->processes;
	struct mote_slots_stats sockets, flows;

	mote_slots_stats(network->sockets, now, &sockets);
	mote_slots_stats(network->flows, now, &flows);
	*stats = (struct mote_network_stats){
		.sockets = sockets.fill,
		.flows = flows.fill,
		.processes = { all->size, all->fill, all->peak, all->dropped },
		.grace_age =
			sockets.grace_age > flows.grace_age ? sockets.grace_age : flows.grace_age,
		.waiting = (uint64_t)sockets.waiting + flows.waiting,
		.misses = network->misses,
		.has_misses = network->has_misses,
		.events_dropped =
			__atomic_load_n(&network->maps->ctl->events_dropped, __ATOMIC_RELAXED),
		.has_events = network->maps->events,
	};
	mote_ended_fill(&network->ended_sockets, &stats->ended_sockets);
	mote_ended_fill(&network->ended_flows, &stats->ended_flows);
	mote_ended_fill(&all->ended, &stats->ended_processes);
}
