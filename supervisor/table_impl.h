/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The inside of a table, for table.c, table_row.c and table_ended.c only. */
#ifndef MOTE_TABLE_IMPL_H
#define MOTE_TABLE_IMPL_H

#include "table.h"

#define NONE   UINT32_MAX
#define BIT(n) (1ull << (n))

struct mote_row {
	uint64_t present;     /* bit per field: has a value */
	uint64_t seen;        /* bit per field: was set in this sample */
	uint64_t known;       /* bit per field: had a value once, `last` of a counter is valid */
	uint64_t changed;     /* time */
	uint64_t mark;        /* the parser's */
	uint64_t asked, kept; /* number of the sample */
	uint32_t next, prev;  /* in the order the rows were made */
	uint32_t chain;       /* next of this hash, or next free row */
	uint32_t follow;      /* the row that was asked for after this one */
	uint32_t hash, keylen;
	/*
	 * values[nfields], of STR fields the length, then last[nfields]: the largest value of a
	 * counter that the kernel gave since it last began anew. Then the strings.
	 */
	uint64_t values[];
};

struct ended {
	uint64_t time; /* 0: empty */
	char key[];
};

struct mote_table {
	enum mote_stream_id stream;
	unsigned int nfields, rows, text;
	uint64_t counters; /* bit per field */
	bool keyed;
	uint8_t slot[64]; /* of a STR field: which string of the row */

	uint64_t now, sample;
	uint32_t first, last, free;
	uint32_t *guess; /* where the index of the row expected next is written */
	uint32_t start;  /* the row asked for first */

	char *row_base;
	size_t row_size, text_offset;
	uint32_t *heads;
	uint32_t mask;

	char *ended_base;
	size_t ended_size;
	unsigned int ended_max, ended_head; /* head: the oldest, which is written over next */
	uint64_t forgot;                    /* when the youngest key that was written over ended */
	uint64_t last_ended;                /* when the youngest key ended */
	struct mote_row *totals;
	bool any_ended;

	uint64_t fill, peak, dropped;
	uint64_t epoch;
	struct mote_notes notes;
};

static inline struct mote_row *row_at(const struct mote_table *t, uint32_t i)
{
	return (struct mote_row *)(t->row_base + (size_t)i * t->row_size);
}

static inline char *row_text(const struct mote_table *t, const struct mote_row *row,
			     unsigned int field)
{
	return (char *)row + t->text_offset + (size_t)t->slot[field] * t->text;
}

static inline uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* The largest length that fits, ends no UTF-8 character in its middle and holds no NUL. */
size_t mote_table_fitting(const struct mote_table *table, const char *text, size_t len);

/* The row ended: its key is remembered, its counters go to the totals. */
void mote_table_add_ended(struct mote_table *table, const struct mote_row *row);
/* The key is there again: clients must not be told that it ended. */
void mote_table_drop_ended(struct mote_table *table, const char *key, size_t len);

#endif
