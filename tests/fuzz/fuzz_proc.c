// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/PID files: the first byte of an input picks the file. A refused text leaves the task as it
 * was, an accepted one gives the same task from whatever was there before.
 */
#include "fuzz_tables.h"
#include "parse_proc.h"

static int parse_statm(struct mote_text text, struct mote_task *task)
{
	return mote_parse_pid_statm(text, 4096, task);
}

static int (*const parsers[])(struct mote_text, struct mote_task *) = {
	mote_parse_pid_stat,      parse_statm,       mote_parse_pid_status,
	mote_parse_pid_schedstat, mote_parse_pid_io, mote_parse_pid_oom_score_adj,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mote_task one, two, before;
	struct mote_text text;
	char *copy;
	int ret;

	if (size < 1)
		return 0;
	copy = check_copy(data + 1, size - 1);
	text = (struct mote_text){ copy, size - 1 };
	memset(&one, 0x5a, sizeof(one));
	one.present = 0;
	two = before = one;
	ret = parsers[data[0] % 6](text, &one);
	FUZZ_REQUIRE(ret == 0 || ret == -EBADMSG);
	FUZZ_REQUIRE(ret == parsers[data[0] % 6](text, &two));
	FUZZ_REQUIRE(!memcmp(&one, &two, sizeof(one)));
	FUZZ_REQUIRE(ret ? !memcmp(&one, &before, sizeof(one)) : one.present != 0);
	FUZZ_REQUIRE(!(one.present & 1ull << PROCESS_COMM) || !one.comm[MOTE_COMM_LEN - 1]);
	free(copy);
	return 0;
}
