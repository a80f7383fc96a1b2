/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bounded scanner of /proc text, shared by the parsers: lines, words and numbers, all of them
 * views into the text. Only lines that end with a newline are given out: a number that was cut is
 * a wrong number, and a counter would take it for a restart.
 */
#ifndef MOTE_SCAN_H
#define MOTE_SCAN_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "parse.h"

struct mote_scan {
	const char *at, *end;
};

static inline struct mote_scan mote_scan_text(struct mote_text text)
{
	const char *at = text.len ? text.data : "";

	return (struct mote_scan){ at, at + text.len };
}

/* Not at the end after the last line: the text was cut within a line. */
static inline bool mote_scan_done(const struct mote_scan *scan)
{
	return scan->at == scan->end;
}

static inline bool mote_scan_line(struct mote_scan *text, struct mote_scan *line)
{
	const char *newline = memchr(text->at, '\n', text->end - text->at);

	if (!newline)
		return false;
	*line = (struct mote_scan){ text->at, newline };
	text->at = newline + 1;
	return true;
}

static inline bool mote_scan_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next word of a line, empty at its end. */
static inline struct mote_text mote_scan_word(struct mote_scan *line)
{
	const char *start = line->at, *at;

	while (start < line->end && mote_scan_is_blank(*start))
		start++;
	for (at = start; at < line->end && !mote_scan_is_blank(*at);)
		at++;
	line->at = at;
	return (struct mote_text){ start, at - start };
}

/* What stands before `stop`, which is passed over; empty, with nothing passed, if there is none. */
static inline struct mote_text mote_scan_until(struct mote_scan *line, char stop)
{
	const char *start = line->at, *at = memchr(start, stop, line->end - start);

	if (!at)
		return (struct mote_text){ start, 0 };
	line->at = at + 1;
	return (struct mote_text){ start, at - start };
}

static inline bool mote_text_is(struct mote_text text, const char *name)
{
	return strlen(name) == text.len && !memcmp(text.data, name, text.len);
}

/* False, with `v` untouched, if it is not a decimal number or does not fit. */
static inline bool mote_text_u64(struct mote_text text, uint64_t *v)
{
	uint64_t sum = 0;

	if (text.len == 0)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned int digit = (unsigned char)text.data[i] - '0';

		if (digit > 9)
			return false;
		/* 19 digits always fit */
		if (i < 19)
			sum = sum * 10 + digit;
		else if (__builtin_mul_overflow(sum, 10, &sum) ||
			 __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	*v = sum;
	return true;
}

static inline bool mote_text_s64(struct mote_text text, int64_t *v)
{
	bool minus = text.len > 0 && text.data[0] == '-';
	uint64_t size;

	if (!mote_text_u64((struct mote_text){ text.data + minus, text.len - minus }, &size) ||
	    size > INT64_MAX)
		return false;
	*v = minus ? -(int64_t)size : (int64_t)size;
	return true;
}

static inline bool mote_scan_u64_word(struct mote_scan *line, uint64_t *v)
{
	struct mote_text word = mote_scan_word(line);
	int64_t negative;

	if (word.len && word.data[0] == '-') {
		if (!mote_text_s64(word, &negative))
			return false;
		*v = 0;
		return true;
	}
	return mote_text_u64(word, v);
}

/*
 * Next word as a number. Where a kernel shows a negative one (a count that raced), it is 0. Most
 * are plain and of less than 20 digits: these are read in one go.
 */
static inline bool mote_scan_u64(struct mote_scan *line, uint64_t *v)
{
	const char *start = line->at, *at;
	uint64_t sum = 0;

	while (start < line->end && mote_scan_is_blank(*start))
		start++;
	for (at = start; at < line->end && (unsigned char)(*at - '0') <= 9; at++)
		sum = sum * 10 + (unsigned char)(*at - '0');
	if (at == start || at - start > 19 || (at < line->end && !mote_scan_is_blank(*at)))
		return mote_scan_u64_word(line, v);
	line->at = at;
	*v = sum;
	return true;
}

/* `12.34` times 10^decimals, without a detour by floating point; digits beyond are dropped. */
static inline bool mote_text_fixed(struct mote_text text, unsigned int decimals, uint64_t *v)
{
	const char *point = text.len ? memchr(text.data, '.', text.len) : NULL;
	size_t whole = point ? (size_t)(point - text.data) : text.len;
	size_t rest = point ? text.len - whole - 1 : 0;
	uint64_t sum;

	if (!mote_text_u64((struct mote_text){ text.data, whole }, &sum))
		return false;
	for (size_t i = 0; i < rest || i < decimals; i++) {
		unsigned int digit = i < rest ? (unsigned char)point[1 + i] - '0' : 0;

		if (digit > 9)
			return false;
		if (i < decimals && (__builtin_mul_overflow(sum, 10, &sum) ||
				     __builtin_add_overflow(sum, digit, &sum)))
			return false;
	}
	*v = sum;
	return true;
}

/* True once for each field of a row: of two lines with the same name the first counts. */
static inline bool mote_scan_take(uint64_t *taken, unsigned int field)
{
	bool first = !(*taken & 1ull << field);

	*taken |= 1ull << field;
	return first;
}

/* Sets `v` times `unit`; a product that does not fit leaves the field absent. */
static inline void mote_scan_set(struct mote_table *table, struct mote_row *row, unsigned int field,
				 uint64_t v, uint64_t unit)
{
	if (!__builtin_mul_overflow(v, unit, &v))
		mote_row_set(table, row, field, v);
}

/* Ends a parser's sample: if the text was cut or foreign, what it did not give stays as it was. */
static inline int mote_scan_finish(struct mote_table *table, bool whole)
{
	if (!whole) {
		mote_table_end_partial(table);
		return -EBADMSG;
	}
	mote_table_end(table);
	return 0;
}

#endif
