// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The fields of a table's rows: see table.h. What is set here is what a frame shows; a value that
 * is what it was marks nothing.
 */
#include "table_impl.h"

#include <string.h>

size_t mote_table_fitting(const struct mote_table *t, const char *text, size_t len)
{
	size_t max = t->text - 1;

	if (len > max) {
		for (len = max; len > 0 && max - len < 3 && (text[len] & 0xc0) == 0x80;)
			len--;
	}
	return strnlen(text, len);
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
	size_t fits = mote_table_fitting(t, text, len);
	char *mine = row_text(t, row, field);

	if (row->values[field] != fits || memcmp(mine, text, fits) != 0) {
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
