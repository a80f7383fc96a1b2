// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* /proc/stat to the cpu and kernel rows, the latter with file-nr. */
#include "fuzz_tables.h"

static int parse_kernel(struct mote_text text, struct mote_table *table, uint64_t now)
{
	struct mote_text stat = fuzz_split(&text, 1);

	return mote_parse_kernel(stat, text, 12345, table, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_texts(data, size, MOTE_STREAM_CPU, mote_parse_stat_cpu);
	fuzz_texts(data, size, MOTE_STREAM_KERNEL, parse_kernel);
	return 0;
}
