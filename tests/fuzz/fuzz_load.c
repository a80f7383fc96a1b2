// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* /proc/loadavg, and the four pressure files. */
#include "fuzz_tables.h"

static int parse_pressure(struct mote_text text, struct mote_table *table, uint64_t now)
{
	struct mote_text texts[MOTE_PRESSURES];

	for (unsigned int i = 0; i < MOTE_PRESSURES; i++)
		texts[i] = fuzz_split(&text, 1);
	return mote_parse_pressure(texts, table, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_texts(data, size, MOTE_STREAM_LOAD, mote_parse_loadavg);
	fuzz_texts(data, size, MOTE_STREAM_PRESSURE, parse_pressure);
	return 0;
}
