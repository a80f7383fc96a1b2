// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/net/dev. A name's first byte says whether the device is a leaf: `n` not known yet, else by
 * its lowest bit; so a text that is parsed again finds the same places.
 */
#include "fuzz_tables.h"

static int is_leaf(void *ctx, const char *name)
{
	(void)ctx;
	FUZZ_REQUIRE(*name && strlen(name) < 12);
	return *name == 'n' ? -1 : *name & 1;
}

static int parse(struct mote_text text, struct mote_table *table, uint64_t now)
{
	const struct mote_row *total = check_find(table, "total");
	uint64_t before = total ? mote_row_get(total, NETDEV_RX_BYTES) : 0;
	int ret = mote_parse_netdev(text, table, now, is_leaf, NULL);

	total = check_find(table, "total");
	FUZZ_REQUIRE(!total || mote_row_get(total, NETDEV_RX_BYTES) >= before);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_texts(data, size, MOTE_STREAM_NETDEV, parse);
	return 0;
}
