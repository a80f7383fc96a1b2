/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds out what processes are called: executables' paths by the `idents` iterator, command lines
 * by reads of /proc/PID/cmdline. Such a read waits for the process's mmap lock, as `ps` does when
 * it hangs: these reads are in no tick's chain, and fewer than there are workers.
 */
#ifndef MOTE_NAMING_H
#define MOTE_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "options.h"
#include "probes.h"
#include "process.h"

struct mote_naming;

/* `iterator` may be NULL. */
int mote_naming_open(const struct mote_options *options, struct mote_engine *engine,
		     struct mote_probes_iterator *iterator, struct mote_process *process,
		     struct mote_naming **out);
void mote_naming_close(struct mote_naming *naming);

/* After a sample: asks for what is missing. Pushes reads of command lines. */
void mote_naming_ask(struct mote_naming *naming);
/* The iterator's operations, if anything was asked for; linked, tagged MOTE_TAG_FILE `index`. */
unsigned int mote_naming_push(struct mote_naming *naming, uint32_t index);
void mote_naming_complete(struct mote_naming *naming, uint32_t step, int res);
/* The chain is complete: takes the iterator's records. */
void mote_naming_take(struct mote_naming *naming, uint64_t now);
/* How many completions of command lines are to come shortly, 0 if they hang. */
unsigned int mote_naming_soon(const struct mote_naming *naming);
/* A completion of MOTE_TAG_ARGV. */
void mote_naming_argv(struct mote_naming *naming, const struct mote_cqe *cqe, uint64_t now);

#endif
