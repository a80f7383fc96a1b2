// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Tables of rows: see table.h. One block of memory holds the table, its rows with their strings,
 * the hash heads, the ring of ended keys and the totals of ended rows; it is touched when it is
 * made, so that a tick neither allocates nor faults. Nothing here fails but mote_table_new(), and
 * mote_table_row() when the table is full.
 */
#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE      UINT32_MAX
#define ENDED_MIN 64
#define BIT(n)    (1ull << (n))

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
	struct mote_row *totals;
	bool any_ended;

	uint64_t fill, peak, dropped;
	uint64_t epoch;
};

static struct mote_row *row_at(const struct mote_table *t, uint32_t i)
{
	return (struct mote_row *)(t->row_base + (size_t)i * t->row_size);
}

static uint32_t row_index(const struct mote_table *t, const struct mote_row *row)
{
	return ((const char *)row - t->row_base) / t->row_size;
}

static char *row_text(const struct mote_table *t, const struct mote_row *row, unsigned int field)
{
	return (char *)row + t->text_offset + (size_t)t->slot[field] * t->text;
}

static struct ended *ended_at(const struct mote_table *t, unsigned int i)
{
	return (struct ended *)(t->ended_base + (size_t)(i % t->ended_max) * t->ended_size);
}

/* The largest length that fits, ends no UTF-8 character in its middle and holds no NUL. */
static size_t cut_length(const struct mote_table *t, const char *text, size_t len)
{
	size_t max = t->text - 1;

	if (len > max) {
		for (len = max; len > 0 && max - len < 3 && (text[len] & 0xc0) == 0x80;)
			len--;
	}
	return strnlen(text, len);
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
	shape.ended_max = !shape.keyed ? 1 : rows < ENDED_MIN / 2 ? ENDED_MIN : rows * 2;
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

/* The key is there again: clients must not be told that it ended. */
static void forget_ended(struct mote_table *t, const char *key, size_t len)
{
	for (unsigned int i = 0; i < t->ended_max; i++) {
		struct ended *e = ended_at(t, i);

		if (e->time && !memcmp(e->key, key, len) && !e->key[len])
			e->time = 0;
	}
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
			forget_ended(t, key, len);
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
	size_t fits = t->keyed ? cut_length(t, key, len) : 0;
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

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void add_to_totals(struct mote_table *t, const struct mote_row *row)
{
	uint64_t counters = row->known & t->counters;

	for (uint64_t left = counters; left; left &= left - 1) {
		unsigned int field = __builtin_ctzll(left);

		if (mote_streams[t->stream].fields[field].type == MOTE_F64) {
			double sum =
				mote_row_get_f64(t->totals, field) + mote_row_get_f64(row, field);
			memcpy(&t->totals->values[field], &sum, sizeof(sum));
		} else {
			t->totals->values[field] =
				add_saturated(t->totals->values[field], row->values[field]);
		}
	}
	t->totals->present |= counters;
	t->totals->changed = t->now;
	t->any_ended = true;
}

static void remember_ended(struct mote_table *t, const struct mote_row *row)
{
	struct ended *e = ended_at(t, t->ended_head);

	if (e->time > t->forgot)
		t->forgot = e->time;
	e->time = t->now;
	memcpy(e->key, row_text(t, row, 0), row->keylen);
	e->key[row->keylen] = '\0';
	t->ended_head = (t->ended_head + 1) % t->ended_max;
}

static void end_row(struct mote_table *t, struct mote_row *row)
{
	uint32_t i = row_index(t, row), *link = &t->heads[row->hash & t->mask];

	add_to_totals(t, row);
	remember_ended(t, row);
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

static void store(struct mote_table *t, struct mote_row *row, unsigned int field, uint64_t v)
{
	uint64_t bit = BIT(field);

	row->seen |= bit;
	if (row->values[field] == v && (row->present & bit))
		return;
	row->values[field] = v;
	row->present |= bit;
	row->known |= bit;
	row->changed = t->now;
}

/* The counter rule of table.h: what a counter stands at when the kernel says `v`. */
static uint64_t count(struct mote_table *t, struct mote_row *row, unsigned int field, uint64_t v)
{
	uint64_t *last = &row->values[t->nfields + field], shown = row->values[field];

	if (!(row->known & BIT(field)))
		shown = v;
	else if (v >= *last)
		shown = add_saturated(shown, v - *last);
	else if (v >= *last - *last / 2)
		return shown;
	*last = v;
	return shown;
}

void mote_row_set(struct mote_table *t, struct mote_row *row, unsigned int field, uint64_t v)
{
	if (t->counters & BIT(field))
		v = count(t, row, field, v);
	store(t, row, field, v);
}

void mote_row_set_f64(struct mote_table *t, struct mote_row *row, unsigned int field, double v)
{
	uint64_t bits;

	if (v != v)
		return;
	if ((t->counters & row->known & BIT(field)) && v < mote_row_get_f64(row, field))
		v = mote_row_get_f64(row, field);
	memcpy(&bits, &v, sizeof(bits));
	store(t, row, field, bits);
}

void mote_row_set_str(struct mote_table *t, struct mote_row *row, unsigned int field,
		      const char *text, size_t len)
{
	size_t fits = cut_length(t, text, len);
	char *mine = row_text(t, row, field);

	if (row->values[field] != fits || memcmp(mine, text, fits)) {
		memcpy(mine, text, fits);
		mine[fits] = '\0';
		row->present &= ~BIT(field); /* so that store() sees a change of equal length */
	}
	store(t, row, field, fits);
}

bool mote_row_has(const struct mote_row *row, unsigned int field)
{
	return row->present & BIT(field);
}

uint64_t mote_row_get(const struct mote_row *row, unsigned int field)
{
	return row->values[field];
}

double mote_row_get_f64(const struct mote_row *row, unsigned int field)
{
	double v;

	memcpy(&v, &row->values[field], sizeof(v));
	return v;
}

const char *mote_row_get_str(const struct mote_table *t, const struct mote_row *row,
			     unsigned int field)
{
	return row_text(t, row, field);
}

uint64_t mote_row_changed(const struct mote_row *row)
{
	return row->changed;
}

uint64_t mote_row_mark(const struct mote_row *row)
{
	return row->mark;
}

void mote_row_set_mark(struct mote_row *row, uint64_t mark)
{
	row->mark = mark;
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

const char *mote_table_ended(const struct mote_table *t, uint64_t since, unsigned int *cursor)
{
	while (*cursor < t->ended_max) {
		const struct ended *e = ended_at(t, t->ended_head + (*cursor)++);

		if (e->time > since)
			return e->key;
	}
	return NULL;
}

bool mote_table_forgot(const struct mote_table *t, uint64_t since)
{
	return t->forgot > since;
}

const struct mote_row *mote_table_totals(const struct mote_table *t)
{
	return t->any_ended ? t->totals : NULL;
}

uint64_t mote_table_epoch(const struct mote_table *t)
{
	return t->epoch;
}

void mote_table_fill(const struct mote_table *t, struct mote_fill *fill)
{
	*fill = (struct mote_fill){ t->rows, t->fill, t->peak, t->dropped };
}
