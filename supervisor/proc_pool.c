// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The pool of known processes, see proc_pool.h. It owns its two arrays; nothing here fails after
 * they were made: what finds no room is counted.
 */
#include "proc_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mote_proc_pool_open(struct mote_proc_pool *pool, unsigned int max)
{
	*pool = (struct mote_proc_pool){ .max = max };
	pool->procs = malloc(max * sizeof(*pool->procs));
	pool->born = malloc(max * sizeof(*pool->born));
	if (!pool->procs || !pool->born) {
		mote_proc_pool_close(pool);
		return -ENOMEM;
	}
	/* Not zeros, of which the compiler would make a calloc() that touches nothing. */
	memset(pool->procs, 0xff, max * sizeof(*pool->procs));
	memset(pool->born, 0xff, max * sizeof(*pool->born));
	return 0;
}

void mote_proc_pool_close(struct mote_proc_pool *pool)
{
	free(pool->procs);
	free(pool->born);
	*pool = (struct mote_proc_pool){ 0 };
}

/* Inserts in order, once; mostly that is at the end, as pids are given in order. */
static bool insert(struct mote_proc_pool *pool, uint32_t pid)
{
	unsigned int at = pool->nborn;

	while (at && pool->born[at - 1] > pid)
		at--;
	if (at && pool->born[at - 1] == pid)
		return true;
	if (pool->nborn == pool->max)
		return false;
	memmove(pool->born + at + 1, pool->born + at, (pool->nborn - at) * sizeof(*pool->born));
	pool->born[at] = pid;
	pool->nborn++;
	return true;
}

/* If there is no room for it here, the next listing has it. */
void mote_proc_pool_born(struct mote_proc_pool *pool, uint32_t pid)
{
	insert(pool, pid);
}

static void begin(struct mote_proc *proc, uint32_t pid)
{
	*proc = (struct mote_proc){ .pid = pid, .state = MOTE_PROC_NEW };
	for (unsigned int i = 0; i < MOTE_PROC_FILES; i++)
		proc->fd[i] = -1;
}

static void forget_ended(struct mote_proc_pool *pool)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < pool->n; i++) {
		struct mote_proc *proc = &pool->procs[i];

		if (proc->state != MOTE_PROC_ENDED) {
			proc->state = MOTE_PROC_READY;
			proc->got = 0;
		} else if (proc->again) {
			begin(proc, proc->pid);
		} else {
			continue;
		}
		if (kept != i)
			pool->procs[kept] = *proc;
		kept++;
	}
	pool->n = kept;
}

/* Adds what is listed and not known to the born. Returns for how many there was no room. */
static unsigned int add_listed(struct mote_proc_pool *pool, const struct mote_pids *listed)
{
	unsigned int at = 0, lost = 0;

	for (unsigned int i = 0; i < listed->n; i++) {
		while (at < pool->n && pool->procs[at].pid < listed->pid[i])
			at++;
		if (at < pool->n && pool->procs[at].pid == listed->pid[i])
			continue;
		if (!insert(pool, listed->pid[i]))
			lost++;
	}
	return lost + listed->more;
}

/* Leaves of the born those that are not known, no more than there is room for. */
static unsigned int keep_unknown(struct mote_proc_pool *pool)
{
	unsigned int at = 0, kept = 0, lost = 0;

	for (unsigned int i = 0; i < pool->nborn; i++) {
		uint32_t pid = pool->born[i];

		while (at < pool->n && pool->procs[at].pid < pid)
			at++;
		if (at < pool->n && pool->procs[at].pid == pid) {
			pool->procs[at].again = true;
			pool->procs[at].exec_id++;
		} else if (pool->n + kept < pool->max) {
			pool->born[kept++] = pid;
		} else {
			lost++;
		}
	}
	pool->nborn = kept;
	return lost;
}

/* From the back, so that no entry is written over before it was moved. */
static void merge_born(struct mote_proc_pool *pool)
{
	unsigned int from = pool->n, to = pool->n + pool->nborn;

	pool->n = to;
	while (pool->nborn) {
		uint32_t pid = pool->born[pool->nborn - 1];

		if (from && pool->procs[from - 1].pid > pid) {
			pool->procs[--to] = pool->procs[--from];
		} else {
			begin(&pool->procs[--to], pid);
			pool->nborn--;
		}
	}
}

void mote_proc_pool_renew(struct mote_proc_pool *pool, const struct mote_pids *listed)
{
	unsigned int lost = 0;

	forget_ended(pool);
	if (listed)
		lost = add_listed(pool, listed);
	lost += keep_unknown(pool);
	/* A listing sees all that are turned away, also those that were counted before. */
	if (!listed)
		lost += pool->beyond;
	if (lost > pool->beyond)
		pool->dropped += lost - pool->beyond;
	pool->beyond = lost;
	merge_born(pool);
	if (pool->n > pool->peak)
		pool->peak = pool->n;
}
