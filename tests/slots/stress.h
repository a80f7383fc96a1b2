/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slots' stress test: threads whose system calls a BPF program counts by key, through a table
 * that is far smaller than the number of keys, while one thread ends and reaps them. One run is one
 * process.
 */
#ifndef MOTE_TEST_STRESS_H
#define MOTE_TEST_STRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "filler.h"
#include "slots.h"

struct bpf_object;

/* What a run is there to meet. */
struct stress_met {
	uint64_t lost_races, mismatches, grace_waits, orphans;
	uint64_t late;     /* events taken only after the delete */
	uint64_t recalled; /* events whose slot was remembered */
};

/* How a run is; 0 is the default of each. */
struct stress_config {
	const char *name;
	uint32_t keys;       /* each is written a few times and ends; 1 .. keys */
	uint32_t slots;      /* 1024 */
	uint32_t writers;    /* 4, on the CPUs in turn */
	uint32_t tick_us;    /* 1000; between two passes of the owner */
	uint32_t ticks;      /* go on with the same keys until the owner made so many */
	uint32_t stall_mask; /* as in struct filler_config */
	uint32_t stall_us;
	bool failures;   /* of pushes and deletes, made by the test */
	bool overload;   /* writers do not wait for room: what finds none is in `other` */
	bool marks_only; /* nothing ends: what was written must be seen by the marks alone */
	bool violate;    /* the owner calls bpf() */
	bool recall;     /* writers remember where a key was */
	enum filler_mutant mutant;
	struct stress_met least; /* less proves nothing; of the runs of a case together */
};

/* Filled by stress_open(). */
struct stress {
	const struct stress_config *config;
	struct bpf_object *object;
	int dirfd;        /* a bpffs in which `reap` is pinned */
	int queue, index; /* maps */
	int program;
	struct filler_counter *counters;
	struct mote_slot_marks *marks;
	struct mote_slot_cpu *cpus;
	struct mote_reap *reap;
	struct filler_stats *stats;
	unsigned int ncpus;

	/* By key; the writers' and the owner's */
	uint32_t *sent_bytes, *sent_events, *seen_bytes, *seen_events;
	uint64_t total_bytes, total_events; /* the owner's */
	uint64_t late;
	uint64_t ticks;
	uint64_t unseen; /* marks_only: events that the marks did not tell of */
	double seconds;
	struct mote_slots_stats end;

	/* Between threads */
	uint64_t freed;
	uint32_t running;               /* writers */
	bool enough;                    /* ticks */
	struct stress_notices *notices; /* by writer */
};

/* Notices that a key has ended, from one writer to the owner. */
#define STRESS_NOTICES 65536
struct stress_notices {
	uint32_t head, tail;
	uint32_t key[STRESS_NOTICES];
};

/* 0 or negative errno, with a message. Needs root. */
int stress_open(const struct stress_config *config, struct stress *stress);

void *stress_writer(void *arg);
struct stress_writer {
	struct stress *stress;
	uint32_t number;
};

/* The owner's thread, which seccomp kills if it calls bpf(). Ends when nothing is left to reap. */
void *stress_owner(void *stress);

/* The sum of one count over all CPUs. */
#define STRESS_SUM(stress, field)                                                               \
	({                                                                                      \
		uint64_t sum_ = 0;                                                              \
		for (unsigned int cpu_ = 0; cpu_ < (stress)->ncpus; cpu_++)                     \
			sum_ += __atomic_load_n(&(stress)->cpus[cpu_].field, __ATOMIC_RELAXED); \
		sum_;                                                                           \
	})

#endif
