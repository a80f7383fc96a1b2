// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Tables of rows: see table.h. One block of memory holds the table, its rows with their strings,
 * the hash heads, the ring of ended keys and the totals of ended rows; it is touched when it is
 * made, so that a tick neither allocates nor faults. Nothing here fails but mote_table_new(), and
 * mote_table_row() when the table is full.
 */
#include "table_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENDED_MIN 64

static uint32_t row_index(const struct mote_table *t, const struct mote_row *row)
{
	return ((const char *)row - t->row_base) / t->row_size;
}

static size_t align(size_t size)
{
	return (size + 63) & ~(size_t)63;
}

/* Sets what depends on the fields only; returns the number of strings a row has. */
static unsigned int read_schema(struct mote_table *t, enum mote_stream_id stream)
{
	const struct mote_stream *s = &mote_streams[stream];
	unsigned int strings = 0;

	t->stream = stream;
	t->nfields = s->nfields;
	t->keyed = s->fields[0].kind == MOTE_KEY;
	for (unsigned int i = 0; i < s->nfields; i++) {
		if (s->fields[i].kind == MOTE_COUNTER)
			t->counters |= BIT(i);
		if (s->fields[i].type == MOTE_STR)
			t->slot[i] = strings++;
	}
	return strings;
}

static bool usable(enum mote_stream_id stream, unsigned int rows, unsigned int text)
{
	const struct mote_field *fields = mote_streams[stream].fields;

	if (rows == 0 || rows == NONE || text < 2)
		return false;
	if (fields[0].kind != MOTE_KEY)
		return true;
	return fields[0].type == MOTE_STR && fields[1].kind != MOTE_KEY;
}

static uint32_t hash_size(unsigned int rows)
{
	uint32_t size = 8;

	while (size < rows && size < BIT(31))
		size *= 2;
	return size;
}

static void init_lists(struct mote_table *t)
{
	for (uint32_t i = 0; i < t->rows; i++)
		row_at(t, i)->chain = i + 1 < t->rows ? i + 1 : NONE;
	for (uint32_t i = 0; i <= t->mask; i++)
		t->heads[i] = NONE;
	t->first = t->last = t->start = NONE;
	t->guess = &t->start;
}

struct mote_table *mote_table_new(enum mote_stream_id stream, unsigned int rows, unsigned int text)
{
	struct mote_table shape = { .rows = rows, .text = text }, *t;
	size_t rows_bytes, heads_bytes, ended_bytes;

	if (!usable(stream, rows, text)) {
		errno = EINVAL;
		return NULL;
	}
	unsigned int strings = read_schema(&shape, stream);
	shape.text_offset = sizeof(struct mote_row) + 2 * shape.nfields * sizeof(uint64_t);
	shape.row_size = align(shape.text_offset + (size_t)strings * text);
	shape.mask = hash_size(rows) - 1;
	shape.ended_max = !shape.keyed ? 1 : rows < 2 * ENDED_MIN ? ENDED_MIN : rows / 2;
	shape.ended_size = (sizeof(struct ended) + text + 7) & ~(size_t)7;
	rows_bytes = ((size_t)rows + 1) * shape.row_size; /* and the totals */
	heads_bytes = align((shape.mask + 1) * sizeof(uint32_t));
	ended_bytes = align(shape.ended_max * shape.ended_size);

	/* Not malloc(): compilers join it with memset() to calloc(), which need not touch a page.
	 */
	size_t size = align(sizeof(*t)) + rows_bytes + heads_bytes + ended_bytes;
	t = aligned_alloc(64, size);
	if (!t)
		return NULL;
	memset(t, 0, size);
	*t = shape;
	t->row_base = (char *)t + align(sizeof(*t));
	t->totals = row_at(t, rows);
	t->heads = (uint32_t *)(t->row_base + rows_bytes);
	t->ended_base = (char *)t->heads + heads_bytes;
	init_lists(t);
	return t;
}

void mote_table_free(struct mote_table *table)
{
	free(table);
}

void mote_table_begin(struct mote_table *t, uint64_t now)
{
	t->now = now;
	t->sample++;
	t->guess = &t->start;
}

static uint32_t hash_key(const char *key, size_t len)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)key[i]) * 16777619u;
	return hash;
}

static bool has_key(const struct mote_table *t, const struct mote_row *row, const char *key,
		    size_t len)
{
	return row->keylen == len && !memcmp(row_text(t, row, 0), key, len);
}

static uint32_t find_hashed(const struct mote_table *t, const char *key, size_t len, uint32_t hash)
{
	uint32_t i = t->heads[hash & t->mask];

	while (i != NONE) {
		const struct mote_row *row = row_at(t, i);

		if (row->hash == hash && has_key(t, row, key, len))
			break;
		i = row->chain;
	}
	return i;
}

/* A row without values, at the end of the list; NONE if the table is full. */
static uint32_t make_row(struct mote_table *t, const char *key, size_t len, uint32_t hash)
{
	uint32_t i = t->free;

	if (i == NONE) {
		t->dropped++;
		return NONE;
	}
	struct mote_row *row = row_at(t, i);
	t->free = row->chain;
	memset(row, 0, t->row_size);
	*row = (struct mote_row){ .next = NONE, .prev = t->last, .follow = NONE, .hash = hash };
	row->changed = t->now;
	row->chain = t->heads[hash & t->mask];
	t->heads[hash & t->mask] = i;
	*(t->last == NONE ? &t->first : &row_at(t, t->last)->next) = i;
	t->last = i;
	if (t->keyed) {
		row->keylen = row->values[0] = len;
		memcpy(row_text(t, row, 0), key, len);
		row->present = row->known = BIT(0);
		if (t->any_ended)
			mote_table_drop_ended(t, key, len);
	}
	if (++t->fill > t->peak)
		t->peak = t->fill;
	return i;
}

static uint32_t find_row(struct mote_table *t, const char *key, size_t len)
{
	uint32_t i = *t->guess, hash;

	if (!t->keyed)
		return t->first != NONE ? t->first : make_row(t, "", 0, 0);
	/* A row that ended meanwhile is on the free list: its keylen is NONE. */
	if (i != NONE && has_key(t, row_at(t, i), key, len))
		return i;
	hash = hash_key(key, len);
	i = find_hashed(t, key, len, hash);
	return i != NONE ? i : make_row(t, key, len, hash);
}

struct mote_row *mote_table_row(struct mote_table *t, const char *key, size_t len)
{
	size_t fits = t->keyed ? mote_table_fitting(t, key, len) : 0;
	uint32_t i = find_row(t, key, fits);
	struct mote_row *row;

	if (i == NONE)
		return NULL;
	row = row_at(t, i);
	if (row->asked == t->sample) {
		if (!t->keyed)
			return row;
		t->dropped += fits < len;
		return NULL;
	}
	row->asked = t->sample;
	row->seen = t->keyed ? BIT(0) : 0;
	*t->guess = i;
	t->guess = &row->follow;
	return row;
}

void mote_table_keep(struct mote_table *t,
		     void (*gone)(struct mote_table *table, struct mote_row *row))
{
	for (uint32_t i = t->first; i != NONE; i = row_at(t, i)->next) {
		struct mote_row *row = row_at(t, i);

		if (row->asked == t->sample)
			continue;
		row->kept = t->sample;
		if (gone)
			gone(t, row);
	}
}

static void end_row(struct mote_table *t, struct mote_row *row)
{
	uint32_t i = row_index(t, row), *link = &t->heads[row->hash & t->mask];

	mote_table_add_ended(t, row);
	while (*link != i)
		link = &row_at(t, *link)->chain;
	*link = row->chain;
	*(row->prev == NONE ? &t->first : &row_at(t, row->prev)->next) = row->next;
	*(row->next == NONE ? &t->last : &row_at(t, row->next)->prev) = row->prev;
	row->keylen = NONE; /* the guesses that still name it miss */
	row->chain = t->free;
	t->free = i;
	t->fill--;
	t->epoch++;
}

void mote_table_end(struct mote_table *t)
{
	uint32_t next;

	for (uint32_t i = t->first; i != NONE; i = next) {
		struct mote_row *row = row_at(t, i);

		next = row->next;
		if (row->asked != t->sample) {
			if (row->kept == t->sample)
				continue;
			if (t->keyed) {
				end_row(t, row);
				continue;
			}
			row->seen = 0;
		}
		if (row->present != row->seen) {
			row->present = row->seen;
			row->changed = t->now;
		}
	}
}

void mote_table_end_partial(struct mote_table *t)
{
	(void)t; /* rows and fields go only when they are looked for and missed: nothing to do */
}

struct mote_notes *mote_table_notes(struct mote_table *t)
{
	return &t->notes;
}

enum mote_stream_id mote_table_stream(const struct mote_table *t)
{
	return t->stream;
}

const struct mote_row *mote_table_next(const struct mote_table *t, const struct mote_row *row)
{
	uint32_t i = row ? row->next : t->first;

	return i == NONE ? NULL : row_at(t, i);
}

void mote_table_fill(const struct mote_table *t, struct mote_fill *fill)
{
	*fill = (struct mote_fill){ t->rows, t->fill, t->peak, t->dropped };
}
