// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* /proc/meminfo and /proc/vmstat. */
#include "fuzz_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_texts(data, size, MOTE_STREAM_MEMORY, mote_parse_meminfo);
	fuzz_texts(data, size, MOTE_STREAM_VM, mote_parse_vmstat);
	return 0;
}
