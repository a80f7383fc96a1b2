/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of all frames that wait to be sent: one block, used as a circle, oldest frame first
 * out. A frame is shared by its subscribers and counts them. When the circle comes round to a
 * frame that somebody still has not taken, that frame is taken from them: one slow subscriber
 * cannot hold what the others need.
 */
#ifndef MOTE_ARENA_H
#define MOTE_ARENA_H

#include <stdint.h>

#include "table.h" /* struct mote_fill */

struct mote_arena;

struct mote_arena_frame {
	const char *data;
	uint32_t len;
	uint16_t refs;
	uint8_t stream;
};

/* Takes the frame from everybody who has it; afterwards nobody may have it. */
typedef void (*mote_arena_evict)(void *ctx, uint32_t id);

struct mote_arena *mote_arena_new(uint32_t size, mote_arena_evict evict, void *ctx);
void mote_arena_free(struct mote_arena *arena);

/* Room for a frame of up to `len` bytes, evicting what is in the way; NULL if len is too much. */
char *mote_arena_reserve(struct mote_arena *arena, uint32_t len);
/* Makes a frame of the first `len` bytes reserved; nobody has it yet. Returns its id. */
uint32_t mote_arena_commit(struct mote_arena *arena, uint32_t len, uint8_t stream);

const struct mote_arena_frame *mote_arena_get(const struct mote_arena *arena, uint32_t id);
void mote_arena_ref(struct mote_arena *arena, uint32_t id);
void mote_arena_unref(struct mote_arena *arena, uint32_t id);

void mote_arena_fill(const struct mote_arena *arena, struct mote_fill *fill); /* bytes */

#endif
