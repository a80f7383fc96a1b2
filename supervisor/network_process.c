// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The processes that moved bytes: a fixed array with a hash by pid. A process is made by its first
 * flow and ends when the process table says so: one that a sample had, when a later one has it no
 * more; one that none had yet, when it is not in the next. With its last flow it leaves the table.
 * What found no room, and what ended, is in the totals.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "network_impl.h"
#include "parse.h"

#define NONE MOTE_NO_PROCESS

static uint32_t *head_of(struct network_processes *all, uint32_t pid)
{
	return &all->heads[pid & all->mask];
}

static uint32_t find(struct network_processes *all, uint32_t pid, uint64_t start)
{
	for (uint32_t i = *head_of(all, pid); i; i = all->at[i - 1].next) {
		if (all->at[i - 1].pid == pid && all->at[i - 1].start == start)
			return i - 1;
	}
	return NONE;
}

/* As in a table of rows: a key that is there again must not be told as ended. */
static void forget_end(struct network_processes *all, uint32_t pid, uint64_t start)
{
	struct mote_network_ended_process *record;

	for (uint32_t i = 0; (record = mote_ended_at(&all->ended, i)); i++) {
		if (record->pid != pid || record->start != start)
			continue;
		record->at.time = 0;
		all->reborn = true;
	}
}

/* A sample of processes will tell whether it lives. */
static void await_sample(struct network_processes *all, uint32_t i)
{
	all->at[i].fresh = all->fresh;
	all->fresh = i + 1;
}

static uint32_t make(struct mote_network *network, uint32_t pid, uint64_t start)
{
	struct network_processes *all = &network->processes;
	uint32_t i = all->free - 1, *head = head_of(all, pid);
	struct network_process *process = &all->at[i];

	if (!all->free)
		return NONE;
	all->made++;
	all->free = process->next;
	*process = (struct network_process){ .pid = pid,
					     .start = start,
					     .since = network->now,
					     .state = pid ? PROCESS_FRESH : PROCESS_ALIVE,
					     .next = *head };
	*head = i + 1;
	if (pid)
		await_sample(all, i);
	forget_end(all, pid, start);
	if (++all->fill > all->peak)
		all->peak = all->fill;
	return i;
}

int mote_network_processes_new(struct mote_network *network)
{
	struct network_processes *all = &network->processes;
	uint32_t heads = 64;

	all->size = network->options->tables_network_processes;
	while (heads < all->size)
		heads *= 2;
	all->mask = heads - 1;
	all->at = malloc(all->size * sizeof(*all->at));
	all->heads = malloc(heads * sizeof(*all->heads));
	if (!all->at || !all->heads || mote_blocks_new(&all->blocks, all->size) ||
	    mote_ended_new(&all->ended, network->options->tables_ended_sockets,
			   sizeof(struct mote_network_ended_process)))
		return -ENOMEM;
	memset(all->at, 0, all->size * sizeof(*all->at));
	memset(all->heads, 0, heads * sizeof(*all->heads));
	for (uint32_t i = 0; i < all->size; i++)
		all->at[i].next = i + 1 < all->size ? i + 2 : 0;
	all->free = 1;
	make(network, 0, 0); /* the kernel always has room */
	all->made = 0;
	return 0;
}

void mote_network_processes_free(struct mote_network *network)
{
	free(network->processes.at);
	free(network->processes.heads);
	free(network->processes.blocks.changed);
	mote_ended_free(&network->processes.ended);
}

static void end(struct mote_network *network, uint32_t i)
{
	struct network_processes *all = &network->processes;
	struct network_process *process = &all->at[i];
	struct mote_network_ended_process *record = mote_ended_add(&all->ended, network->now);
	uint32_t *link = head_of(all, process->pid);

	record->pid = process->pid;
	record->start = process->start;
	memcpy(record->traffic, process->traffic, sizeof(record->traffic));
	for (unsigned int p = 0; p < MOTE_PROTOCOLS; p++)
		mote_traffic_add(&all->totals[p], &process->traffic[p]);
	while (*link != i + 1)
		link = &all->at[*link - 1].next;
	*link = process->next;
	*process = (struct network_process){ .next = all->free };
	all->free = i + 1;
	all->fill--;
}

/* Flows */

/* False: there is no room. */
static bool join(struct mote_network *network, uint32_t slot)
{
	struct network_processes *all = &network->processes;
	struct mote_flow *flow = &network->maps->flows[slot];
	uint32_t pid = MOTE_FLOW_TGID(flow->slot.key), i = find(all, pid, flow->start);

	if (i == NONE)
		i = make(network, pid, flow->start);
	flow->process = i;
	if (i == NONE)
		return false;
	flow->process_next = all->at[i].flows;
	if (flow->process_next)
		network->maps->flows[flow->process_next - 1].process_prev = slot + 1;
	all->at[i].flows = slot + 1;
	return true;
}

void mote_network_process_join(struct mote_network *network, uint32_t slot)
{
	network->processes.dropped += !join(network, slot);
}

bool mote_network_process_rejoin(struct mote_network *network, uint32_t slot)
{
	return network->maps->flows[slot].process == NONE && join(network, slot);
}

bool mote_network_crowded(const struct mote_network *network)
{
	return network->processes.fill * 4 > network->processes.size * 3ull;
}

bool mote_network_process_ended(const struct mote_network *network, const struct mote_flow *flow)
{
	return flow->process != NONE && network->processes.at[flow->process].state == PROCESS_DEAD;
}

void mote_network_process_add(struct mote_network *network, const struct mote_flow *flow,
			      const struct mote_traffic *more)
{
	struct network_processes *all = &network->processes;
	unsigned int protocol = flow->protocol == MOTE_UDP ? MOTE_UDP : MOTE_TCP;

	if (flow->process == NONE) {
		mote_traffic_add(&all->totals[protocol], more);
		return;
	}
	mote_traffic_add(&all->at[flow->process].traffic[protocol], more);
	all->at[flow->process].changed = network->now;
	blocks_changed(&all->blocks, flow->process, network->now);
}

void mote_network_process_leave(struct mote_network *network, uint32_t slot)
{
	struct mote_flow *flows = network->maps->flows, *flow = &flows[slot];
	struct network_process *process;

	if (flow->process == NONE)
		return;
	process = &network->processes.at[flow->process];
	if (flow->process_next)
		flows[flow->process_next - 1].process_prev = flow->process_prev;
	if (flow->process_prev)
		flows[flow->process_prev - 1].process_next = flow->process_next;
	else
		process->flows = flow->process_next;
	if (process->state == PROCESS_DEAD && !process->flows)
		end(network, flow->process);
}

/* Who ended */

static void died(struct mote_network *network, uint32_t i)
{
	struct network_process *process = &network->processes.at[i];
	struct mote_flow *flows = network->maps->flows;

	process->state = PROCESS_DEAD;
	for (uint32_t flow = process->flows; flow; flow = flows[flow - 1].process_next)
		mote_slots_end(network->flows, flow - 1);
	if (!process->flows)
		end(network, i);
}

/* The process table's keys have ticks. */
static uint32_t find_ticks(struct network_processes *all, uint32_t pid, uint64_t ticks)
{
	for (uint32_t i = *head_of(all, pid); i; i = all->at[i - 1].next) {
		if (all->at[i - 1].pid == pid && all->at[i - 1].start / MOTE_NS_PER_TICK == ticks)
			return i - 1;
	}
	return NONE;
}

/* It may have ended: the newest sample tells. */
static void doubt(struct network_processes *all, uint32_t i)
{
	all->at[i].state = PROCESS_FRESH;
	all->at[i].since = 0;
	await_sample(all, i);
}

/* Some ends were missed: those that live are to be found again. */
static void doubt_all(struct network_processes *all)
{
	for (uint32_t i = 0; i < all->size; i++)
		if (all->at[i].state == PROCESS_ALIVE && all->at[i].pid)
			doubt(all, i);
}

static void take_ended(struct mote_network *network)
{
	struct network_processes *all = &network->processes;
	uint64_t ticks;
	uint32_t pid, i;
	int r;

	while ((r = mote_process_next_ended(network->process, &all->cursor, &pid, &ticks))) {
		if (r < 0) {
			doubt_all(all);
			continue;
		}
		i = find_ticks(all, pid, ticks);
		if (i != NONE && all->at[i].state == PROCESS_ALIVE)
			doubt(all, i);
	}
}

/*
 * Fresh ones: the sample that was taken since has those that live. One that had no room for all
 * says nothing of who is not in it; but who has no flow left may go, lest a table of processes that
 * is always full fills ours.
 */
static bool has_ended(const struct mote_network *network, const struct network_process *process,
		      uint64_t tasks)
{
	return process->since + network->patience < tasks &&
	       (!process->flows || mote_process_whole(network->process));
}

static void take_fresh(struct mote_network *network, uint64_t tasks)
{
	struct network_processes *all = &network->processes;
	uint32_t next = all->fresh;

	all->fresh = 0;
	while (next) {
		uint32_t i = next - 1;
		struct network_process *process = &all->at[i];

		next = process->fresh;
		process->fresh = 0;
		if (mote_process_lives(network->process, process->pid, process->start)) {
			process->state = PROCESS_ALIVE;
		} else if (has_ended(network, process, tasks)) {
			died(network, i);
		} else {
			await_sample(all, i);
		}
	}
}

void mote_network_processes_settle(struct mote_network *network, uint64_t tasks)
{
	if (!network->process || !tasks)
		return;
	take_ended(network);
	take_fresh(network, tasks);
}
