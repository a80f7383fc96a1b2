/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The text store: command lines and paths of executables, in chained blocks of one allocation. A
 * handle is the number of the first block, 0 for none. What does not fit is counted.
 */
#ifndef MOTE_TEXT_H
#define MOTE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "table.h"

struct mote_texts;

struct mote_text_entry {
	bool has_argv, has_exe;
	uint16_t argv_len, exe_len;
	char argv[MOTE_ARGV_MAX]; /* arguments, each with its NUL, the last perhaps without */
	char exe[MOTE_EXE_MAX];   /* no NUL */
};

struct mote_texts *mote_texts_new(uint32_t bytes);
void mote_texts_free(struct mote_texts *texts);

/* Replaces what `handle` (or 0) held; returns the new handle, 0 if there was no room. */
uint32_t mote_texts_put(struct mote_texts *texts, uint32_t handle,
			const struct mote_text_entry *entry);
void mote_texts_drop(struct mote_texts *texts, uint32_t handle);
/* handle 0 gives an entry that has nothing. */
void mote_texts_get(const struct mote_texts *texts, uint32_t handle, struct mote_text_entry *entry);
/* An eighth is free, which is more than the largest entry: what found no room may try again. */
bool mote_texts_roomy(const struct mote_texts *texts);
void mote_texts_fill(const struct mote_texts *texts, struct mote_fill *fill); /* bytes */

#endif
