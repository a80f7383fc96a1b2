/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the fuzzers of table-filling parsers share. An input is up to 8 texts parted by NUL;
 * where a parser takes several files, these are parted by the byte 1. After every text: the table
 * is consistent, no counter fell, and the same text again changes nothing.
 */
#ifndef MOTE_FUZZ_TABLES_H
#define MOTE_FUZZ_TABLES_H

#include "parse_check.h"

typedef int (*fuzz_parse_fn)(struct mote_text text, struct mote_table *table, uint64_t now);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_REQUIRE(condition)                                                          \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, \
				#condition);                                             \
			abort();                                                         \
		}                                                                        \
	} while (0)

/* Cuts what stands before the first byte `stop`, or all, off `rest`. */
static inline struct mote_text fuzz_split(struct mote_text *rest, char stop)
{
	const char *at = rest->len ? memchr(rest->data, stop, rest->len) : NULL;
	struct mote_text text = { rest->data, at ? (size_t)(at - rest->data) : rest->len };
	size_t used = text.len + (at != NULL);

	*rest = (struct mote_text){ rest->data + used, rest->len - used };
	return text;
}

/* Rows are as many as the fill says, keys differ, strings end, ended keys are not live. */
static inline void fuzz_consistent(const struct mote_table *table)
{
	bool keyed = mote_streams[mote_table_stream(table)].fields[0].kind == MOTE_KEY;
	const struct mote_row *row = NULL;
	unsigned int cursor = 0;
	struct mote_fill fill;
	const char *ended;
	uint64_t n = 0;

	mote_table_fill(table, &fill);
	while ((row = mote_table_next(table, row))) {
		n++;
		if (keyed)
			FUZZ_REQUIRE(check_find(table, mote_row_get_str(table, row, 0)) == row);
	}
	FUZZ_REQUIRE(n == fill.fill && fill.fill <= fill.peak && fill.peak <= fill.size);
	while ((ended = mote_table_ended(table, 0, &cursor)))
		FUZZ_REQUIRE(!check_find(table, ended));
}

static inline void fuzz_one_text(struct mote_text text, struct mote_table *table,
				 fuzz_parse_fn parse, uint64_t *now, struct check_sums *sums)
{
	struct mote_fill before, after;
	int ret, again;

	mote_table_fill(table, &before);
	ret = parse(text, table, ++*now);
	FUZZ_REQUIRE(ret == 0 || ret == -EBADMSG);
	fuzz_consistent(table);
	FUZZ_REQUIRE(check_counters(table, sums));
	again = parse(text, table, ++*now);
	FUZZ_REQUIRE(ret == again);
	mote_table_fill(table, &after);
	/* a row that was turned away may find room now */
	if (before.dropped == after.dropped)
		FUZZ_REQUIRE(check_unchanged(table, *now));
	FUZZ_REQUIRE(check_counters(table, sums));
}

static inline void fuzz_texts(const uint8_t *data, size_t size, enum mote_stream_id stream,
			      fuzz_parse_fn parse)
{
	struct mote_text rest = { (const char *)data, size };
	struct mote_table *table = mote_table_new(stream, 24, 12);
	struct check_sums sums = { 0 };
	uint64_t now = 0;

	FUZZ_REQUIRE(table);
	for (unsigned int i = 0; i < 8 && (i == 0 || rest.len); i++) {
		struct mote_text text = fuzz_split(&rest, '\0');
		char *copy = check_copy(text.len ? text.data : "", text.len);

		fuzz_one_text((struct mote_text){ copy, text.len }, table, parse, &now, &sums);
		free(copy);
	}
	mote_table_free(table);
}

#endif
