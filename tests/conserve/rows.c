// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Rows of a stream, found by their keys. Rows are never removed: ids are not used twice while moted
 * runs, and a row that came back would only have to be live again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

uint64_t rows_text(const char *text, size_t size)
{
	uint64_t hash = 14695981039346656037ull; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)text[i]) * 1099511628211ull;
	return hash;
}

static void *need(void *memory)
{
	if (!memory) {
		fprintf(stderr, "conserve: out of memory\n");
		exit(3);
	}
	return memory;
}

bool rows_init(struct rows *rows, const struct mote_hello *hello, const char *stream)
{
	const struct mote_stream_info *info = NULL;

	for (size_t i = 0; i < hello->nstreams; i++)
		if (!strcmp(hello->streams[i].name, stream))
			info = &hello->streams[i];
	if (!info || info->nfields > ROW_FIELDS)
		return false;
	*rows = (struct rows){ .nfields = info->nfields, .nkeys = info->nkeys, .slots = 1024 };
	snprintf(rows->name, sizeof(rows->name), "%s", stream);
	for (size_t i = 0; i < info->nfields; i++) {
		snprintf(rows->field[i], sizeof(rows->field[i]), "%s", info->fields[i].name);
		rows->counter[i] = info->fields[i].kind == MOTE_KIND_COUNTER;
	}
	rows->index = need(calloc(rows->slots, sizeof(*rows->index)));
	return true;
}

void rows_free(struct rows *rows)
{
	free(rows->row);
	free(rows->index);
	*rows = (struct rows){ .n = 0 };
}

static size_t place(const struct rows *rows, const uint64_t *keys)
{
	uint64_t hash = rows_text((const char *)keys, rows->nkeys * sizeof(*keys));
	size_t at = hash % rows->slots;

	while (rows->index[at] &&
	       memcmp(rows->row[rows->index[at] - 1].value, keys, rows->nkeys * sizeof(*keys)) != 0)
		at = (at + 1) % rows->slots;
	return at;
}

static void grow(struct rows *rows)
{
	rows->cap = rows->cap ? 2 * rows->cap : 512;
	rows->row = need(realloc(rows->row, rows->cap * sizeof(*rows->row)));
	free(rows->index);
	rows->slots = 4 * rows->cap;
	rows->index = need(calloc(rows->slots, sizeof(*rows->index)));
	for (size_t i = 0; i < rows->n; i++)
		rows->index[place(rows, rows->row[i].value)] = (uint32_t)i + 1;
}

/* Row of the keys, made if there is none. */
static struct row *have(struct rows *rows, const uint64_t *keys)
{
	size_t at;

	if (rows->n == rows->cap)
		grow(rows);
	at = place(rows, keys);
	if (!rows->index[at]) {
		struct row *row = &rows->row[rows->n];

		memset(row, 0, sizeof(*row));
		memcpy(row->value, keys, rows->nkeys * sizeof(*keys));
		rows->index[at] = (uint32_t)++rows->n;
	}
	return &rows->row[rows->index[at] - 1];
}

struct row *rows_find(const struct rows *rows, const uint64_t *keys)
{
	size_t at = place(rows, keys);

	return rows->index[at] ? &rows->row[rows->index[at] - 1] : NULL;
}

static uint64_t number(const struct mote_value *value)
{
	switch (value->type) {
	case MOTE_VALUE_U64:
		return value->u64;
	case MOTE_VALUE_I64:
		return (uint64_t)value->i64;
	case MOTE_VALUE_F64:
		return (uint64_t)value->f64;
	case MOTE_VALUE_STR:
	case MOTE_VALUE_BIN:
		return rows_text(value->str.bytes, value->str.size);
	default:
		return 0;
	}
}

static void read_cells(const struct mote_record *record, size_t n, struct row *row)
{
	row->nil = 0;
	for (size_t i = 0; i < n; i++) {
		struct mote_value value = mote_value(record, i);

		row->value[i] = number(&value);
		if (value.type == MOTE_VALUE_NIL)
			row->nil |= 1ull << i;
	}
}

static void set_live(struct rows *rows, struct row *row, bool live)
{
	rows->live += (size_t)live - (size_t)row->live;
	row->live = live;
}

static void take_row(struct rows *rows, const struct mote_record *record)
{
	struct row fresh = { .nil = 0 };
	struct row *row;

	read_cells(record, rows->nfields, &fresh);
	row = have(rows, fresh.value);
	row->nil = fresh.nil;
	memcpy(row->value, fresh.value, sizeof(fresh.value));
	row->given = true;
	set_live(rows, row, true);
}

static void take_ended(struct rows *rows, const struct mote_record *record)
{
	struct row key = { .nil = 0 };

	read_cells(record, rows->nkeys, &key);
	set_live(rows, have(rows, key.value), false);
}

void rows_take(struct rows *rows, const struct mote_message *message)
{
	struct mote_record record;

	if (message->key)
		for (size_t i = 0; i < rows->n; i++)
			set_live(rows, &rows->row[i], false);
	for (size_t i = 0; mote_row(message, i, &record); i++)
		take_row(rows, &record);
	for (size_t i = 0; mote_ended(message, i, &record); i++)
		take_ended(rows, &record);
	if (mote_totals(message, &record)) {
		read_cells(&record, rows->nfields, &rows->totals);
		rows->totals.live = true;
	}
	rows->missed += message->missed;
	if (message->more)
		return;
	rows->time = message->time;
	rows->updates++;
}

int rows_field(const struct rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->nfields; i++)
		if (!strcmp(rows->field[i], name))
			return (int)i;
	return -1;
}

uint64_t rows_value(const struct rows *rows, const struct row *row, const char *field)
{
	int i = rows_field(rows, field);

	return i < 0 || row->nil >> i & 1 ? 0 : row->value[i];
}

bool rows_nil(const struct rows *rows, const struct row *row, const char *field)
{
	int i = rows_field(rows, field);

	return i < 0 || row->nil >> i & 1;
}

uint64_t rows_sum(const struct rows *rows, const char *field)
{
	uint64_t sum = rows->totals.live ? rows_value(rows, &rows->totals, field) : 0;

	for (size_t i = 0; i < rows->n; i++)
		if (rows->row[i].live)
			sum += rows_value(rows, &rows->row[i], field);
	return sum;
}
