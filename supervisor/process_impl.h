/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts of the process table: process.c has its life and the order of a sample,
 * process_change.c births, deaths and what goes on, process_dead.c the accounts of the dead,
 * process_names.c command lines and executables, process_rows.c the stream.
 */
#ifndef MOTE_PROCESS_IMPL_H
#define MOTE_PROCESS_IMPL_H

#include "process.h"

#include "accounts.h"
#include "parse.h"

#define NAMED_ARGV 1u /* of mote_task.named, and of mote_process_ref.nameless */
#define NAMED_EXE  2u

/* A process: half[side][place] is its record. */
struct mote_process_ref {
	uint32_t pid;
	uint32_t place : 24;
	uint32_t side : 1;
	uint32_t nameless : 2; /* it may be without argv (1), executable (2) */
	uint32_t : 5;
	uint64_t changed; /* time of the sample in which a value last changed */
};

struct mote_process_ended {
	uint64_t time, start;
	uint32_t pid;
};

struct mote_process {
	struct mote_tasks *tasks;
	struct mote_events *events;
	struct mote_texts *texts;
	uint64_t absent;
	/* Of the newest sample: `current`; of the one before, or room. */
	struct mote_process_ref *refs[2];
	unsigned int n[2];
	unsigned int current;
	unsigned int nameless; /* of all references: what may be wanted */
	uint64_t sampled;      /* its time */
	uint64_t youngest;     /* start of the last process that was born before the first sample */

	struct mote_process_ended *ended;
	unsigned int ended_max, ended_n;
	uint64_t forgot;      /* when the youngest key that was written over ended */
	uint64_t ended_total; /* keys since start; the newest has number ended_total - 1 */
	uint64_t totals[MOTE_COUNTERS];

	struct mote_accounts *accounts;
	uint64_t unaccounted; /* final words of processes whose account may have lacked room */
	uint64_t start_unit;  /* ns: what `start` of the source's records is a multiple of */
};

static inline struct mote_task *task_of(const struct mote_process *process,
					const struct mote_process_ref *ref)
{
	return &process->tasks->half[ref->side][ref->place];
}

/* The first reference of the newest sample whose pid is not below `pid`. */
unsigned int mote_process_lower_bound(const struct mote_process *process, uint64_t pid);
/* Of the newest sample; NULL: it has none. `start` in ns. */
struct mote_process_ref *mote_process_find_pid(const struct mote_process *process, uint32_t pid);
struct mote_process_ref *mote_process_find(const struct mote_process *process, uint32_t pid,
					   uint64_t start);
/* As the source's records have it: /proc has ticks. */
uint64_t mote_process_start_of(const struct mote_process *process, const struct mote_event *event);

/* The newest sample, in the half that is not current, of a source without pairs. */
void mote_process_merge(struct mote_process *process, unsigned int half, uint64_t now);
/* What the list walk found: `n` references. */
void mote_process_take_walk(struct mote_process *process, unsigned int n, uint64_t now);

/* The counters of a task in the schema's terms; CPU time as it is shown. */
void mote_process_counters(struct mote_task *task, uint64_t out[MOTE_COUNTERS]);
/* A counter never decreases (a thread that ends takes its run_delay along). */
void mote_process_raise(struct mote_thread_counts *counts, const struct mote_thread_counts *by);
/* A process that a sample had is gone: its last counts go to the totals. */
void mote_process_bury(struct mote_process *process, struct mote_task *task, uint64_t now);
/* What BPF events tell of an end, or of a new image. */
void mote_process_exited(struct mote_process *process, const struct mote_event_exit *event);
void mote_process_executed(struct mote_process *process, const struct mote_event_exec *event,
			   uint64_t now);

/* It has no name yet, or an exec took it. */
void mote_process_lose_names(struct mote_process *process, struct mote_process_ref *ref);
/* What is known of this very image; an exec makes it void. */
void mote_process_get_text(const struct mote_process *process, const struct mote_task *task,
			   struct mote_text_entry *entry);

#endif
