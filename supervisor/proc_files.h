/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which files of /proc/PID can be had on this host, what that leaves absent and why, and for how
 * many processes they can be held open. Asked once, at start.
 */
#ifndef MOTE_PROC_FILES_H
#define MOTE_PROC_FILES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * None of these waits for the target's mmap lock, as cmdline, maps and smaps do. io takes its
 * exec_update_lock, which an exec holds while it swaps memory maps.
 */
enum mote_proc_file {
	MOTE_PROC_STAT,
	MOTE_PROC_STATM,
	MOTE_PROC_SCHEDSTAT,
	MOTE_PROC_STATUS,
	MOTE_PROC_IO,
	MOTE_PROC_FILES
};

struct mote_proc_files {
	bool has[MOTE_PROC_FILES];
	unsigned int count;             /* of those */
	uint32_t size[MOTE_PROC_FILES]; /* bytes that a read needs */
	bool io_foreign;                /* false: io is there, but not for us */
};

extern const char *const mote_proc_file_names[MOTE_PROC_FILES];

/* `proc`: a descriptor of /proc. 0, or negative errno if not even stat can be read. */
int mote_proc_files_probe(struct mote_proc_files *files, int proc);

/* Bits PROCESS_<FIELD> that cannot be had, and why one of them cannot. */
uint64_t mote_proc_files_absent(const struct mote_proc_files *files);
const char *mote_proc_files_why(const struct mote_proc_files *files, unsigned int field);

/*
 * How many processes, `wanted` at most, can have `count` descriptors each. Raises RLIMIT_NOFILE
 * as far as that needs, and has the kernel make its table of descriptors now.
 */
unsigned int mote_proc_files_limit(int proc, unsigned int count, unsigned int wanted);

#endif
