/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Space of mounted filesystems. statfs() has no ring opcode and hangs on a dead network mount, so
 * threads of its own call it, at its own interval, and the tick only copies what is there.
 *
 * Three threads (MOTE_STATFS_THREADS) share the work, one at a time. When a call has lasted 1 s,
 * the mount counts as hung: another thread goes on with the rest, and leaves every mount of that
 * superblock alone until the call returns. With two calls hung, the last thread looks only at types
 * whose statfs() stays on this machine. So no dead server hides the space of local filesystems, and
 * one dead server hides nobody else's.
 */
#ifndef MOTE_FILESYSTEM_H
#define MOTE_FILESYSTEM_H

#include <stdint.h>

#include "table.h"

#define MOTE_STATFS_THREADS 3

struct mote_filesystems;

/*
 * In two steps. Open when the mount namespace is the one to tell of: that opens `mountinfo` (NULL:
 * /proc/self/mountinfo) and allocates. Run after privileges were dropped, as credentials, Landlock
 * and capabilities are a thread's own, and setuid() would wait for a thread that hangs; it waits
 * for the first results for up to 200 ms. Then the threads call pread, statfs, futex and
 * clock_gettime only. `max` mounts are looked at, more are counted. 0 or negative errno.
 */
int mote_filesystems_open(const char *mountinfo, unsigned int max, unsigned int interval_ms,
			  struct mote_filesystems **out);
int mote_filesystems_run(struct mote_filesystems *fs);
/* Both steps at once. */
int mote_filesystems_start(unsigned int max, unsigned int interval_ms,
			   struct mote_filesystems **out);
/* Waits up to 1 s for a call that lasts; then its thread is left to itself, and frees all at last.
 */
void mote_filesystems_stop(struct mote_filesystems *fs);

/*
 * Copies the newest results into the table; never waits: if there are none since the last time,
 * the rows stay as they were. Rows whose statfs() did not come back, or may not be called by mote
 * (EACCES), are nil but for their names. A filesystem without inodes of a fixed number (btrfs) or
 * without a size has nil for these.
 */
void mote_filesystems_collect(struct mote_filesystems *fs, struct mote_table *table, uint64_t now);
/* Mounts that did not fit, summed over all rounds as mote_table_fill()'s `dropped` is. */
uint64_t mote_filesystems_dropped(const struct mote_filesystems *fs);
/* Calls of statfs() that last longer than 1 s now. */
unsigned int mote_filesystems_hung(const struct mote_filesystems *fs);

#endif
