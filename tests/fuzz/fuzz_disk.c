// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* /proc/diskstats. */
#include "fuzz_tables.h"

static bool is_partition(void *ctx, unsigned int major, unsigned int minor, const char *name)
{
	(void)ctx;
	FUZZ_REQUIRE(*name && strlen(name) < 12);
	return (major ^ minor) & 1;
}

static int parse(struct mote_text text, struct mote_table *table, uint64_t now)
{
	return mote_parse_diskstats(text, table, now, is_partition, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_texts(data, size, MOTE_STREAM_DISK, parse);
	return 0;
}
