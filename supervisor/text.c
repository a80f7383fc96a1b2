// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The text store, see text.h. The first block of a chain begins with the lengths.
 */
#include "text.h"

#include <stdlib.h>
#include <string.h>

#define DATA 60

struct block {
	uint32_t next; /* in the chain, or of the free ones; 0 ends */
	char data[DATA];
};

struct lengths {
	uint16_t argv, exe; /* length + 1; 0: not known */
};

struct mote_texts {
	struct block *blocks; /* the first is not used: 0 is no handle */
	uint32_t n, free, used, peak;
	uint64_t dropped;
};

struct mote_texts *mote_texts_new(uint32_t bytes)
{
	struct mote_texts *texts = calloc(1, sizeof(*texts));
	uint32_t n = bytes / sizeof(struct block);

	if (!texts)
		return NULL;
	texts->blocks = malloc((size_t)n * sizeof(struct block));
	if (!texts->blocks) {
		free(texts);
		return NULL;
	}
	memset(texts->blocks, 0, (size_t)n * sizeof(struct block));
	texts->n = n;
	for (uint32_t i = 1; i < n; i++)
		texts->blocks[i].next = i + 1 < n ? i + 1 : 0;
	texts->free = n > 1 ? 1 : 0;
	return texts;
}

void mote_texts_free(struct mote_texts *texts)
{
	if (!texts)
		return;
	free(texts->blocks);
	free(texts);
}

void mote_texts_drop(struct mote_texts *texts, uint32_t handle)
{
	while (handle) {
		uint32_t next = texts->blocks[handle].next;

		texts->blocks[handle].next = texts->free;
		texts->free = handle;
		texts->used--;
		handle = next;
	}
}

/* Where a chain is written to or read from. */
struct cursor {
	struct block *blocks;
	uint32_t block, at;
};

static void copy(struct cursor *cursor, char *data, size_t len, bool in)
{
	while (len) {
		size_t n = DATA - cursor->at < len ? DATA - cursor->at : len;
		char *place = cursor->blocks[cursor->block].data + cursor->at;

		memcpy(in ? place : data, in ? data : place, n);
		data += n;
		len -= n;
		cursor->at += (uint32_t)n;
		if (cursor->at == DATA && len) {
			cursor->block = cursor->blocks[cursor->block].next;
			cursor->at = 0;
		}
	}
}

static uint32_t take(struct mote_texts *texts, size_t len)
{
	uint32_t need = (uint32_t)((len + DATA - 1) / DATA), first = texts->free, last = 0;

	if (texts->used + need > texts->n - 1) {
		texts->dropped++;
		return 0;
	}
	for (uint32_t i = 0; i < need; i++) {
		last = texts->free;
		texts->free = texts->blocks[last].next;
	}
	texts->blocks[last].next = 0;
	texts->used += need;
	if (texts->used > texts->peak)
		texts->peak = texts->used;
	return first;
}

uint32_t mote_texts_put(struct mote_texts *texts, uint32_t handle,
			const struct mote_text_entry *entry)
{
	struct lengths lengths = {
		.argv = entry->has_argv ? entry->argv_len + 1 : 0,
		.exe = entry->has_exe ? entry->exe_len + 1 : 0,
	};
	struct cursor cursor = { .blocks = texts->blocks };

	mote_texts_drop(texts, handle);
	handle = take(texts, sizeof(lengths) + (entry->has_argv ? entry->argv_len : 0u) +
				     (entry->has_exe ? entry->exe_len : 0u));
	if (!handle)
		return 0;
	cursor.block = handle;
	copy(&cursor, (char *)&lengths, sizeof(lengths), true);
	if (entry->has_argv)
		copy(&cursor, (char *)entry->argv, entry->argv_len, true);
	if (entry->has_exe)
		copy(&cursor, (char *)entry->exe, entry->exe_len, true);
	return handle;
}

void mote_texts_get(const struct mote_texts *texts, uint32_t handle, struct mote_text_entry *entry)
{
	struct cursor cursor = { .blocks = texts->blocks, .block = handle };
	struct lengths lengths = { 0 };

	if (handle)
		copy(&cursor, (char *)&lengths, sizeof(lengths), false);
	entry->has_argv = lengths.argv != 0;
	entry->has_exe = lengths.exe != 0;
	entry->argv_len = lengths.argv ? lengths.argv - 1 : 0;
	entry->exe_len = lengths.exe ? lengths.exe - 1 : 0;
	copy(&cursor, entry->argv, entry->argv_len, false);
	copy(&cursor, entry->exe, entry->exe_len, false);
}

bool mote_texts_roomy(const struct mote_texts *texts)
{
	return texts->n > 1 && texts->n - 1 - texts->used >= texts->n / 8;
}

void mote_texts_fill(const struct mote_texts *texts, struct mote_fill *fill)
{
	*fill = (struct mote_fill){
		.size = (uint64_t)(texts->n ? texts->n - 1 : 0) * sizeof(struct block),
		.fill = (uint64_t)texts->used * sizeof(struct block),
		.peak = (uint64_t)texts->peak * sizeof(struct block),
		.dropped = texts->dropped,
	};
}
