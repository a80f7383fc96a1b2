/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The processes that the /proc source knows, sorted by pid, each with its open files. Memory only:
 * whoever moves an entry out has closed its descriptors before.
 */
#ifndef MOTE_PROC_POOL_H
#define MOTE_PROC_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "listing.h"
#include "proc_files.h"

/* How far a process has got in this sample. */
enum mote_proc_state {
	MOTE_PROC_NEW,     /* nothing is open */
	MOTE_PROC_OPENING, /* stat is being opened: only if that works the others are */
	MOTE_PROC_OPEN,    /* stat is open, the others are not */
	MOTE_PROC_READY,   /* to be read */
	MOTE_PROC_READING, /* what is always read was asked for */
	MOTE_PROC_DONE,
	MOTE_PROC_ENDED, /* to be closed and forgotten when the next sample begins */
};

struct mote_proc {
	uint32_t pid;
	int fd[MOTE_PROC_FILES]; /* -1: not open */
	uint32_t at;             /* its record in the half of the last sample */
	uint32_t exec_id;        /* grows when it may run another program */
	uint64_t ran;            /* the first thread's run time at the last sample, ns */
	uint8_t state;
	uint8_t got;    /* bit by file: read in this sample */
	uint8_t refuse; /* bit by file: not to be had, to be closed */
	bool recorded;  /* `at` is valid */
	bool leader;    /* status was seen to be a process's, not a thread's */
	bool again;     /* born again while it was known: look whether the pid is another's now */
};

struct mote_proc_pool {
	struct mote_proc *procs;
	unsigned int n, max, peak;
	uint32_t *born; /* sorted; what events told since the sample before */
	unsigned int nborn;
	unsigned int beyond; /* processes that are known of, but found no room */
	uint64_t dropped;    /* the same since start, each counted as it came */
};

/* 0 or -ENOMEM. */
int mote_proc_pool_open(struct mote_proc_pool *pool, unsigned int max);
void mote_proc_pool_close(struct mote_proc_pool *pool);

/* A process was born, or runs another program. */
void mote_proc_pool_born(struct mote_proc_pool *pool, uint32_t pid);

/*
 * Begins a sample: forgets the ended, adds those born and those of `listed` (NULL: no new list).
 * The room there is goes to the lowest pids.
 */
void mote_proc_pool_renew(struct mote_proc_pool *pool, const struct mote_pids *listed);

#endif
