// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* /proc/self/mountinfo: bounds hold, strings end, no point stands twice; pieces give the same. */
#include "parse_check.h"
#include "parse_mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

static void check_list(const struct mote_mounts *list)
{
	require(list->used <= list->max, "used <= max");
	require(list->text_used <= list->text_max, "text_used <= text_max");
	for (unsigned int i = 0; i < list->used; i++) {
		const struct mote_mount *mount = &list->mounts[i];

		require(mount->point < mount->device && mount->device < mount->type &&
				mount->type < list->text_used,
			"strings are in the text");
		require(memchr(list->text + mount->type, 0, list->text_used - mount->type),
			"strings end");
		require(!mount->hidden && !mount->space.known, "flags are clear");
		for (unsigned int j = 0; j < i; j++)
			require(strcmp(list->text + mount->point,
				       list->text + list->mounts[j].point) != 0,
				"one row a mount point");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = check_copy(data, size);
	struct mote_mounts *list = mote_mounts_new(4), *pieces = mote_mounts_new(4);
	size_t half = size / 2, done, taken;

	done = mote_mounts_parse(list, (struct mote_text){ copy, size });
	require(done <= size && (done == size || !memchr(copy + done, '\n', size - done)),
		"whole lines are taken");
	check_list(list);
	taken = mote_mounts_parse(pieces, (struct mote_text){ copy, half });
	taken += mote_mounts_parse(pieces, (struct mote_text){ copy + taken, size - taken });
	require(taken == done && pieces->used == list->used && pieces->text_used == list->text_used,
		"pieces give the same as the whole");
	mote_mounts_copy(pieces, list);
	check_list(pieces);
	mote_mounts_free(list);
	mote_mounts_free(pieces);
	free(copy);
	return 0;
}
