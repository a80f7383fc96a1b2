// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Rings of last rows, see network_ended.h. Records have numbers from 0 on, so that a cursor stays
 * right while records come and go.
 */
#include "network_ended.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mote_ended_new(struct ended *ended, uint32_t size, size_t record)
{
	*ended = (struct ended){ .record = record, .size = size };
	ended->base = malloc(size * record);
	if (!ended->base)
		return -ENOMEM;
	memset(ended->base, 0, size * record);
	return 0;
}

void mote_ended_free(struct ended *ended)
{
	free(ended->base);
	ended->base = NULL;
}

static struct ended_record *numbered(const struct ended *ended, uint64_t number)
{
	return (struct ended_record *)(ended->base + number % ended->size * ended->record);
}

void *mote_ended_add(struct ended *ended, uint64_t now)
{
	struct ended_record *record = numbered(ended, ended->total);

	if (ended->n < ended->size)
		ended->n++;
	else if (record->time > ended->forgot)
		ended->forgot = record->time;
	memset(record, 0, ended->record);
	record->time = now;
	ended->total++;
	return record;
}

void *mote_ended_at(const struct ended *ended, uint32_t age)
{
	return age < ended->n ? numbered(ended, ended->total - 1 - age) : NULL;
}

/* Of the first that ended after `since`: times grow, but for those that were taken back. */
static uint64_t first_after(const struct ended *ended, uint64_t since)
{
	uint64_t number = ended->total, first = number;

	while (ended->total - number < ended->n) {
		uint64_t time = numbered(ended, number - 1)->time;

		if (time && time <= since)
			break;
		number--;
		if (time)
			first = number;
	}
	return first;
}

const void *mote_ended_next(const struct ended *ended, uint64_t since, uint64_t *cursor)
{
	uint64_t oldest = ended->total - ended->n;
	uint64_t number = *cursor ? *cursor - 1 : first_after(ended, since);

	if (number < oldest)
		number = oldest; /* the source's forgot() tells that some are missing */
	while (number < ended->total && numbered(ended, number)->time <= since)
		number++;
	if (number >= ended->total)
		return NULL;
	*cursor = number + 2;
	return numbered(ended, number);
}

void mote_ended_fill(const struct ended *ended, struct mote_fill *fill)
{
	*fill = (struct mote_fill){ .size = ended->size, .fill = ended->n, .peak = ended->n };
}
