// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What a table keeps of rows that ended: their keys in a ring, the oldest of which is written over,
 * and the sums of their counters.
 */
#include "table_impl.h"

#include <string.h>

static struct ended *ended_at(const struct mote_table *t, unsigned int i)
{
	return (struct ended *)(t->ended_base + (size_t)(i % t->ended_max) * t->ended_size);
}

void mote_table_drop_ended(struct mote_table *t, const char *key, size_t len)
{
	for (unsigned int i = 0; i < t->ended_max; i++) {
		struct ended *e = ended_at(t, i);

		if (e->time && !memcmp(e->key, key, len) && !e->key[len])
			e->time = 0;
	}
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
	t->last_ended = t->now;
	t->ended_head = (t->ended_head + 1) % t->ended_max;
}

void mote_table_add_ended(struct mote_table *t, const struct mote_row *row)
{
	add_to_totals(t, row);
	remember_ended(t, row);
}

const char *mote_table_ended(const struct mote_table *t, uint64_t since, unsigned int *cursor)
{
	/* The ring is not looked at in vain: nothing of it is in a cache. */
	while (t->last_ended > since && *cursor < t->ended_max) {
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
