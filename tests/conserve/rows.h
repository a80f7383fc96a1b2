/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rows of one stream as a subscriber has them: frames added up as docs/PROTOCOL.md says. Texts
 * are kept as a hash. A row that has ended is kept, with its last values, marked as not live.
 */
#ifndef MOTE_CONSERVE_ROWS_H
#define MOTE_CONSERVE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmote.h"

#define ROW_FIELDS 40

struct row {
	bool live, given; /* given: a row, not only an `ended` key, was ever received */
	uint64_t nil;     /* a bit a field */
	uint64_t value[ROW_FIELDS];
};

struct rows {
	char name[24];
	char field[ROW_FIELDS][32];
	bool counter[ROW_FIELDS];
	size_t nfields, nkeys;
	struct row *row;
	size_t n, cap;
	uint32_t *index; /* open addressing, row number + 1 */
	size_t slots;
	struct row totals; /* live: there are any */
	uint64_t time, updates, missed;
	size_t live;
};

/* false: the hello has no such stream */
bool rows_init(struct rows *rows, const struct mote_hello *hello, const char *stream);
void rows_free(struct rows *rows);
/* A DATA message of this stream. */
void rows_take(struct rows *rows, const struct mote_message *message);

/* Number of a field, -1: there is none. */
int rows_field(const struct rows *rows, const char *name);
/* Value of a field; 0 if it is nil or not there. */
uint64_t rows_value(const struct rows *rows, const struct row *row, const char *field);
bool rows_nil(const struct rows *rows, const struct row *row, const char *field);
/* The row whose keys are these; NULL: none was ever there. */
struct row *rows_find(const struct rows *rows, const uint64_t *keys);
/* Live rows' values and the ended ones' totals. */
uint64_t rows_sum(const struct rows *rows, const char *field);

/* What a text is kept as. */
uint64_t rows_text(const char *text, size_t size);

#endif
