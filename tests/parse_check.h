/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What must hold for every table a parser fills, whatever the text: used by the unit tests of the
 * parsers and by their fuzzers.
 */
#ifndef MOTE_PARSE_CHECK_H
#define MOTE_PARSE_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

/* A copy of exactly `len` bytes, so that ASan sees a read past the end; free() it. */
static inline char *check_copy(const void *data, size_t len)
{
	char *copy = malloc(len ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, data, len);
	return copy;
}

static inline struct mote_text check_text(const char *text)
{
	return (struct mote_text){ text, strlen(text) };
}

static inline const struct mote_row *check_find(const struct mote_table *table, const char *key)
{
	const struct mote_row *row = NULL;

	while ((row = mote_table_next(table, row))) {
		if (!strcmp(mote_row_get_str(table, row, 0), key))
			return row;
	}
	return NULL;
}

/* Sums of each COUNTER over the live and the ended rows: they never fall, absent fields included.
 */
struct check_sums {
	long double sum[64];
};

static inline bool check_counters(const struct mote_table *table, struct check_sums *before)
{
	const struct mote_stream *stream = &mote_streams[mote_table_stream(table)];
	const struct mote_row *totals = mote_table_totals(table);
	bool good = true;

	for (unsigned int i = 0; i < stream->nfields; i++) {
		const struct mote_row *row = NULL;
		long double sum = 0;

		if (stream->fields[i].kind != MOTE_COUNTER)
			continue;
		while ((row = mote_table_next(table, row)))
			sum += mote_row_get(row, i);
		if (totals && mote_row_has(totals, i))
			sum += mote_row_get(totals, i);
		if (sum < before->sum[i] && sum < (long double)UINT64_MAX) {
			fprintf(stderr, "%s.%s fell from %.0Lf to %.0Lf\n", stream->name,
				stream->fields[i].name, before->sum[i], sum);
			good = false;
		}
		before->sum[i] = sum;
	}
	return good;
}

/* Nothing changed and nothing ended in the sample of `now`, the latest. */
static inline bool check_unchanged(const struct mote_table *table, uint64_t now)
{
	const struct mote_row *row = NULL;
	unsigned int cursor = 0;
	const char *ended = mote_table_ended(table, now - 1, &cursor);
	bool good = !ended;

	if (ended)
		fprintf(stderr, "row %s ended\n", ended);
	while ((row = mote_table_next(table, row))) {
		if (mote_row_changed(row) >= now) {
			fprintf(stderr, "a row of %s changed\n",
				mote_streams[mote_table_stream(table)].name);
			good = false;
		}
	}
	return good;
}

#endif
