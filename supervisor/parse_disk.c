// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/diskstats: 14 columns, 18 from 4.18 (discards), 20 from 5.5 (flushes). Its sectors are
 * of 512 bytes whatever the device's are. Times are 32-bit counts of ms, which wrap after 49 days
 * of busy time; the table's counter rule takes that for a restart and goes on. A host may have no
 * disk: empty text is right.
 */
#include "scan.h"

#include <assert.h>

#define SECTOR        512
#define COLUMNS       (DISK_FLUSH_TIME - DISK_READS + 1)
#define COLUMNS_LEAST 11
static_assert(COLUMNS == 17, "disk fields stand in the order of /proc/diskstats");

struct disk {
	uint64_t major, minor;
	struct mote_text name;
	uint64_t columns[COLUMNS];
	unsigned int ncolumns;
};

/* `   8       0 sda 33328 9392 ...` */
static bool read_disk(struct mote_scan *line, struct disk *disk)
{
	if (!mote_scan_u64(line, &disk->major) || !mote_scan_u64(line, &disk->minor))
		return false;
	disk->name = mote_scan_word(line);
	for (disk->ncolumns = 0; disk->ncolumns < COLUMNS; disk->ncolumns++) {
		if (!mote_scan_u64(line, &disk->columns[disk->ncolumns]))
			break;
	}
	return disk->name.len && disk->ncolumns >= COLUMNS_LEAST;
}

static uint64_t unit(unsigned int field)
{
	switch (field) {
	case DISK_READ_BYTES:
	case DISK_WRITTEN_BYTES:
	case DISK_DISCARDED_BYTES:
		return SECTOR;
	default:
		return 1;
	}
}

/* Asks again if the name is another device's now. */
static void set_partition(struct mote_table *table, struct mote_row *row, const struct disk *disk,
			  mote_partition_fn is_partition, void *ctx)
{
	bool same = mote_row_has(row, DISK_PARTITION) &&
		    mote_row_get(row, DISK_MAJOR) == disk->major &&
		    mote_row_get(row, DISK_MINOR) == disk->minor;
	uint64_t partition = mote_row_get(row, DISK_PARTITION);

	if (!is_partition)
		return;
	if (!same)
		partition = is_partition(ctx, disk->major, disk->minor,
					 mote_row_get_str(table, row, DISK_DEVICE));
	mote_row_set(table, row, DISK_PARTITION, partition);
}

int mote_parse_diskstats(struct mote_text diskstats, struct mote_table *table, uint64_t now,
			 mote_partition_fn is_partition, void *ctx)
{
	struct mote_scan text = mote_scan_text(diskstats), line;
	bool known = !diskstats.len;
	struct mote_row *row;
	struct disk disk;

	mote_table_begin(table, now);
	while (mote_scan_line(&text, &line)) {
		if (!read_disk(&line, &disk))
			continue;
		known = true;
		row = mote_table_row(table, disk.name.data, disk.name.len);
		if (!row)
			continue;
		set_partition(table, row, &disk, is_partition, ctx);
		mote_row_set(table, row, DISK_MAJOR, disk.major);
		mote_row_set(table, row, DISK_MINOR, disk.minor);
		for (unsigned int i = 0; i < disk.ncolumns; i++)
			mote_scan_set(table, row, DISK_READS + i, disk.columns[i],
				      unit(DISK_READS + i));
	}
	return mote_scan_finish(table, known && mote_scan_done(&text));
}
