/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parsers of /proc text, one a file of the kernel, pure functions from text to rows: no I/O,
 * no allocation, no clock. `text` is not NUL-terminated and may be cut anywhere. Lines and fields
 * that are not known are passed over, so that later kernels can add some; a field that is missing
 * stays absent (nil). Each begins and ends the samples of the tables it fills.
 *
 * They return 0, or -EBADMSG if the text is not of the kind it should be or is cut within a line.
 * Then what it does say is taken, a line that was cut is not, and rows and fields that it does not
 * give stay as they were. (Text cut between two lines cannot be told from a shorter file: a read
 * that filled its buffer must not be given out as whole.) Of two lines with the same name the
 * first counts; a number that does not fit in 64 bits leaves its field absent.
 */
#ifndef MOTE_PARSE_H
#define MOTE_PARSE_H

#include <stdint.h>

#include "table.h"

struct mote_text {
	const char *data;
	size_t len;
};

/* USER_HZ, the unit of times in /proc: 100 on every architecture mote runs on. */
#define MOTE_USER_HZ     100
#define MOTE_NS_PER_TICK (1000000000ull / MOTE_USER_HZ)

/* /proc/stat to the cpu rows */
int mote_parse_stat_cpu(struct mote_text stat, struct mote_table *cpu, uint64_t now);
/*
 * /proc/stat and /proc/sys/fs/file-nr, which may be empty, to the kernel row; `uptime` in ms: what
 * /proc/uptime has is CLOCK_BOOTTIME, which is cheaper to ask.
 */
int mote_parse_kernel(struct mote_text stat, struct mote_text file_nr, uint64_t uptime,
		      struct mote_table *kernel, uint64_t now);
int mote_parse_meminfo(struct mote_text text, struct mote_table *memory, uint64_t now);
int mote_parse_vmstat(struct mote_text text, struct mote_table *vm, uint64_t now);
int mote_parse_loadavg(struct mote_text text, struct mote_table *load, uint64_t now);

/* /proc/pressure/{cpu,memory,io,irq}, in this order; empty where there is none */
#define MOTE_PRESSURES 4
int mote_parse_pressure(const struct mote_text text[MOTE_PRESSURES], struct mote_table *pressure,
			uint64_t now);

/*
 * `is_partition(ctx, major, minor, name)` tells a partition from a whole disk; it is asked once,
 * when a device is first seen.
 */
typedef bool (*mote_partition_fn)(void *ctx, unsigned int major, unsigned int minor,
				  const char *name);
int mote_parse_diskstats(struct mote_text text, struct mote_table *disk, uint64_t now,
			 mote_partition_fn is_partition, void *ctx);

/*
 * `is_leaf(ctx, name)` is asked for every device on every sample, as a device's place can change:
 * 1 leaf, 0 not, -1 not known yet (its bytes are not in the total yet). The `total` row never
 * decreases, devices that went away included.
 */
typedef int (*mote_leaf_fn)(void *ctx, const char *name);
int mote_parse_netdev(struct mote_text text, struct mote_table *netdev, uint64_t now,
		      mote_leaf_fn is_leaf, void *ctx);

#endif
