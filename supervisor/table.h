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
 * Returns NULL, with errno: ENOMEM, or EINVAL for 0 rows, fewer than 2 bytes of text, or a stream
 * whose key is not one STR. Allocates and touches everything it will ever use.
 */
struct mote_table *mote_table_new(enum mote_stream_id stream, unsigned int rows, unsigned int text);
void mote_table_free(struct mote_table *table);

/*
 * A sample: begin, then for each line of the source mote_table_row() and mote_row_set*() and then
 * end. Rows not asked for between begin and end have ended and leave the table; fields not set in
 * a row that was asked for become absent. The row of a stream without keys never ends, but is left
 * without fields. `now` is the sample's time in ns and must grow from sample to sample.
 */
void mote_table_begin(struct mote_table *table, uint64_t now);
void mote_table_end(struct mote_table *table);
/* Instead of mote_table_end() if the source was cut short: what was not given stays as it was. */
void mote_table_end_partial(struct mote_table *table);

/*
 * The row with this key (the stream's first field, a STR; key NULL for a stream without keys),
 * made if it is new. NULL if the table is full, which is counted, or if the key was asked for in
 * this sample already (the first line wins; counted only if it is a longer key that was cut). Keys
 * end at the first NUL. Rows asked for in the order of the sample before are found at once.
 */
struct mote_row *mote_table_row(struct mote_table *table, const char *key, size_t len);
/*
 * Keeps rows that were not asked for, with all their fields; calls `gone`, if not NULL, with each
 * (a CPU that went offline).
 */
void mote_table_keep(struct mote_table *table,
		     void (*gone)(struct mote_table *table, struct mote_row *row));

/*
 * Sets a field. A COUNTER that decreases gives delta 0: the value stays until the kernel's has
 * caught up, or, if it fell by more than half, goes on from there (a device that was replaced). It
 * saturates at the largest u64. A COUNTER of type F64 is mote's own: one that decreases stays. A
 * value that is not a number is not taken. A string is cut to fit, between UTF-8 characters, and
 * at its first NUL.
 */
void mote_row_set(struct mote_table *table, struct mote_row *row, unsigned int field, uint64_t v);
void mote_row_set_f64(struct mote_table *table, struct mote_row *row, unsigned int field, double v);
void mote_row_set_str(struct mote_table *table, struct mote_row *row, unsigned int field,
		      const char *text, size_t len);

bool mote_row_has(const struct mote_row *row, unsigned int field); /* false: nil in a frame */
uint64_t mote_row_get(const struct mote_row *row, unsigned int field);
double mote_row_get_f64(const struct mote_row *row, unsigned int field);
const char *mote_row_get_str(const struct mote_table *table, const struct mote_row *row,
			     unsigned int field);

/* A number for the parser's own use, 0 in a new row; it is in no frame. */
uint64_t mote_row_mark(const struct mote_row *row);
void mote_row_set_mark(struct mote_row *row, uint64_t mark);

/*
 * Where the parser found which field's line in the text of the last sample, for it to look there
 * first; empty in a new table.
 */
struct mote_notes {
	size_t length; /* of the text */
	unsigned int n;
	struct mote_note {
		uint16_t at, next;     /* where it began, and the line after it */
		uint8_t field, length; /* of its name */
	} note[64];
};
struct mote_notes *mote_table_notes(struct mote_table *table);

enum mote_stream_id mote_table_stream(const struct mote_table *table);
/* The row after `row`, in the order they were made; NULL at the end. NULL starts. */
const struct mote_row *mote_table_next(const struct mote_table *table, const struct mote_row *row);
/* Time of the sample in which a field of the row last changed or the row was made. */
uint64_t mote_row_changed(const struct mote_row *row);

/*
 * Keys that ended in samples later than `since`, oldest first, less those that are there again;
 * NULL at the end. `cursor` starts at 0.
 */
const char *mote_table_ended(const struct mote_table *table, uint64_t since, unsigned int *cursor);
/* True if a key that ended after `since` is no longer remembered: only a keyframe is right. */
bool mote_table_forgot(const struct mote_table *table, uint64_t since);
/* The sums of the COUNTER fields of all rows that ever ended; NULL if none did. */
const struct mote_row *mote_table_totals(const struct mote_table *table);

/* Grows when a row ends: a row found before may be another's now. */
uint64_t mote_table_epoch(const struct mote_table *table);

/* Fill, peak and turned away, for the table stream. */
struct mote_fill {
	uint64_t size, fill, peak, dropped;
};
void mote_table_fill(const struct mote_table *table, struct mote_fill *fill);

#endif
