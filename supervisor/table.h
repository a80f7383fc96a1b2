/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A bounded table of rows of one stream: what a parser fills and the frame encoder reads. It is
 * allocated once; a row that does not fit is counted. A row knows when it last changed, so that
 * each class of subscribers gets what changed after its own last frame, and keys that ended are
 * remembered (bounded) with the totals of their counters.
 */
#ifndef MOTE_TABLE_H
#define MOTE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema.h"

struct mote_table;
struct mote_row;

/*
 * `rows` is the most rows held; `text` the most bytes kept of each string, its NUL included.
 * Returns NULL when there is no memory. Allocates and touches everything it will ever use.
 */
struct mote_table *mote_table_new(enum mote_stream_id stream, unsigned int rows, unsigned int text);
void mote_table_free(struct mote_table *table);

/*
 * A sample: begin, then for each line of the source mote_table_row() and mote_row_set*() and then
 * end. Rows not asked for between begin and end have ended and leave the table. `now` is the
 * sample's time in ns and must grow from sample to sample.
 */
void mote_table_begin(struct mote_table *table, uint64_t now);
void mote_table_end(struct mote_table *table);

/*
 * The row with this key (the stream's first field, a STR; key NULL for a stream without keys),
 * made if it is new. NULL if the table is full, which is counted. Rows asked for in the order of
 * the sample before are found at once.
 */
struct mote_row *mote_table_row(struct mote_table *table, const char *key, size_t len);
/* Keeps rows that were not asked for; calls `gone` with each (a CPU that went offline). */
void mote_table_keep(struct mote_table *table,
		     void (*gone)(struct mote_table *table, struct mote_row *row));

/*
 * Sets a field. A COUNTER that decreases gives delta 0: the value stays until the kernel's has
 * caught up, or, if it fell by more than half, goes on from there (a device that was replaced).
 */
void mote_row_set(struct mote_table *table, struct mote_row *row, unsigned int field, uint64_t v);
void mote_row_set_f64(struct mote_table *table, struct mote_row *row, unsigned int field, double v);
void mote_row_set_str(struct mote_table *table, struct mote_row *row, unsigned int field,
		      const char *text, size_t len); /* cut to fit */

bool mote_row_has(const struct mote_row *row, unsigned int field); /* false: nil in a frame */
uint64_t mote_row_get(const struct mote_row *row, unsigned int field);
double mote_row_get_f64(const struct mote_row *row, unsigned int field);
const char *mote_row_get_str(const struct mote_table *table, const struct mote_row *row,
			     unsigned int field);

enum mote_stream_id mote_table_stream(const struct mote_table *table);
/* The next row with key `key` or NULL; rows in the order they were made. NULL starts. */
const struct mote_row *mote_table_next(const struct mote_table *table, const struct mote_row *row);

/* Fill, peak and turned away, for the table stream. */
struct mote_fill {
	uint64_t size, fill, peak, dropped;
};
void mote_table_fill(const struct mote_table *table, struct mote_fill *fill);

#endif
