// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Datagrams of the proc connector. One that is refused or passed over leaves the event as it was;
 * one that is taken is a known kind with a pid, and gives the same whatever was there before.
 */
#include "connector.h"
#include "fuzz_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mote_event_exit one, two, before;
	char *copy = check_copy(data, size);
	int ret;

	memset(&one, 0x5a, sizeof(one));
	memset(&two, 0xa5, sizeof(two));
	before = one;
	ret = mote_connector_parse(copy, size, &one);
	FUZZ_REQUIRE(ret == 1 || ret == 0 || ret == -EBADMSG);
	FUZZ_REQUIRE(ret == mote_connector_parse(copy, size, &two));
	if (ret == 1) {
		FUZZ_REQUIRE(!memcmp(&one, &two, sizeof(one)));
		FUZZ_REQUIRE(one.event.kind >= MOTE_EVENT_FORK &&
			     one.event.kind <= MOTE_EVENT_EXIT);
		FUZZ_REQUIRE(one.event.kind == MOTE_EVENT_EXIT || !one.exit_code);
	} else {
		FUZZ_REQUIRE(!memcmp(&one, &before, sizeof(one)));
	}
	free(copy);
	return 0;
}
