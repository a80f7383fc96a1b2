// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The files of cgroupfs, and paths. The first byte says which file of which version; what follows
 * is its text, and a path.
 */
#include <stdint.h>
#include <string.h>

#include "cgroup_filter.h"
#include "cgroup_identity.h"
#include "fuzz_tables.h"
#include "parse_cgroup.h"

static void parse_file(uint8_t which, struct mote_text text)
{
	unsigned int n;
	const struct mote_cgroup_file *files = mote_cgroup_files(which & 1 ? 1 : 2, &n);
	const struct mote_cgroup_file *file = &files[(which >> 1) % n];
	struct mote_cgroup_values once = { .present = ~0ull }, twice = once;
	int err = mote_parse_cgroup(file, text, &once);

	FUZZ_REQUIRE(err == 0 || err == -EBADMSG);
	FUZZ_REQUIRE((once.present | file->gives) == ~0ull);
	FUZZ_REQUIRE(!err || !memcmp(&once, &twice, sizeof(once)));
	FUZZ_REQUIRE(mote_parse_cgroup(file, text, &twice) == err);
	FUZZ_REQUIRE(!memcmp(&once, &twice, sizeof(once)));
}

static void identify(struct mote_text path)
{
	struct mote_cgroup_identity identity;
	const char *end = path.data + path.len;

	mote_cgroup_identify(path, &identity);
	FUZZ_REQUIRE(identity.container.len == 0 || identity.container.len == 64);
	FUZZ_REQUIRE(!identity.container.len ||
		     (identity.container.data >= path.data && identity.container.data + 64 <= end));
	FUZZ_REQUIRE(!identity.unit.len || (identity.unit.data >= path.data &&
					    identity.unit.data + identity.unit.len <= end));
	FUZZ_REQUIRE(strlen(identity.pod) == 0 || strlen(identity.pod) == 32 ||
		     strlen(identity.pod) == 36);
	mote_cgroup_matches("/*slice /a?b*/c *x*y*", path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = check_copy(data + (size > 0), size ? size - 1 : 0);
	struct mote_text text = { copy, size ? size - 1 : 0 };

	if (size) {
		parse_file(data[0], text);
		identify(text);
	}
	free(copy);
	return 0;
}
