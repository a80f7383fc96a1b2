/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process table: what a sample of all processes (tasks.h) and the events of births and deaths
 * (events.h) make together. A process is (pid, start). Counters of processes that ended, those
 * that were born and died between two samples included, are kept in totals, each exactly once.
 */
#ifndef MOTE_PROCESS_H
#define MOTE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "events.h"
#include "frame.h"
#include "options.h"
#include "tasks.h"
#include "text.h"

struct mote_process;

/* `tasks` is where samples come from; `events` may be NULL. Both stay the caller's. */
struct mote_process *mote_process_new(const struct mote_options *options, struct mote_tasks *tasks,
				      struct mote_events *events);
void mote_process_free(struct mote_process *process);

/* The half that the next sample is to fill. */
unsigned int mote_process_half(const struct mote_process *process);
/*
 * The sample is complete: `n` tasks of that half, sorted by pid, none of them read before
 * `began` (CLOCK_MONOTONIC ns); `now` is the sample's time.
 */
void mote_process_sampled(struct mote_process *process, unsigned int n, uint64_t began,
			  uint64_t now);

/*
 * What is not known yet of living processes: walks `from` (a cursor, 0 to begin with) to the next
 * process without a command line (or executable); NULL: none is left.
 */
struct mote_task *mote_process_wants_argv(struct mote_process *process, uint32_t *from);
struct mote_task *mote_process_wants_exe(struct mote_process *process, uint32_t *from);
/* Gives it; a task that is gone or has made an exec since is left alone. len 0: it has none. */
void mote_process_give_argv(struct mote_process *process, uint32_t pid, uint64_t start,
			    uint32_t exec_id, const char *argv, uint32_t len, uint64_t now);
void mote_process_give_exe(struct mote_process *process, uint32_t pid, uint64_t start,
			   uint32_t exec_id, const char *exe, uint32_t len, uint64_t now);

/* Fields that are nil in every row. */
void mote_process_set_absent(struct mote_process *process, uint64_t fields);

/* Whether the newest sample has this process; `start` in ns. */
bool mote_process_lives(struct mote_process *process, uint32_t pid, uint64_t start);
/* Path of its executable, not ended by NUL: its length; 0: it is not known. */
uint32_t mote_process_exe(struct mote_process *process, uint32_t pid, uint64_t start,
			  char exe[MOTE_EXE_MAX]);
/* Whether the newest sample had room for all: only then who is not in it has ended. */
bool mote_process_whole(const struct mote_process *process);
/*
 * Processes that samples had and have no more, in the order of their ends; `*cursor` is 0 to begin
 * with. 1, and the process, its start in ticks; 0: no more; -1: some were forgotten meanwhile.
 */
int mote_process_next_ended(const struct mote_process *process, uint64_t *cursor, uint32_t *pid,
			    uint64_t *start);

struct mote_process_stats {
	uint64_t processes;
	struct mote_fill ended, texts;
	struct mote_fill accounts; /* dropped: final words that could not be added to the totals */
};
void mote_process_stats(const struct mote_process *process, struct mote_process_stats *stats);

/* The process stream; ctx is the struct mote_process. */
extern const struct mote_source_ops mote_process_source;

#endif
