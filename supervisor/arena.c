// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The circle of frames, see arena.h. Descriptors are a circle too; ids grow for ever and wrap.
 * Frames are freed in order: one that is done with waits for those before it, or is evicted.
 */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

#define FRAMES 1024 /* a power of two */

struct mote_arena {
	char *block;
	uint32_t size;
	uint32_t head;           /* where the next frame goes */
	uint32_t oldest, newest; /* ids: [oldest, newest) exist */
	uint64_t used, peak, dropped;
	mote_arena_evict evict;
	void *ctx;
	struct mote_arena_frame frames[FRAMES];
};

static struct mote_arena_frame *frame_of(const struct mote_arena *arena, uint32_t id)
{
	return (struct mote_arena_frame *)&arena->frames[id % FRAMES];
}

struct mote_arena *mote_arena_new(uint32_t size, mote_arena_evict evict, void *ctx)
{
	struct mote_arena *arena = malloc(sizeof(*arena));
	char *block = malloc(size);

	if (!arena || !block) {
		free(arena);
		free(block);
		return NULL;
	}
	memset(arena, 0, sizeof(*arena));
	memset(block, 0, size);
	arena->block = block;
	arena->size = size;
	arena->evict = evict;
	arena->ctx = ctx;
	return arena;
}

void mote_arena_free(struct mote_arena *arena)
{
	if (!arena)
		return;
	free(arena->block);
	free(arena);
}

static void free_oldest(struct mote_arena *arena)
{
	struct mote_arena_frame *frame = frame_of(arena, arena->oldest);

	if (frame->refs) {
		arena->dropped++;
		arena->evict(arena->ctx, arena->oldest);
	}
	arena->used -= frame->len;
	arena->oldest++;
}

/* Free bytes in a row at `head`, given that the oldest frame, if any, is still there. */
static uint32_t room_at_head(const struct mote_arena *arena)
{
	uint32_t tail;

	if (arena->oldest == arena->newest)
		return arena->size - arena->head;
	tail = (uint32_t)(frame_of(arena, arena->oldest)->data - arena->block);
	return tail > arena->head ? tail - arena->head : arena->size - arena->head;
}

static void free_done(struct mote_arena *arena)
{
	while (arena->oldest != arena->newest && !frame_of(arena, arena->oldest)->refs)
		free_oldest(arena);
}

char *mote_arena_reserve(struct mote_arena *arena, uint32_t len)
{
	if (len > arena->size / 2)
		return NULL;
	free_done(arena);
	if (arena->newest - arena->oldest == FRAMES)
		free_oldest(arena);
	for (;;) {
		bool empty = arena->oldest == arena->newest;
		uint32_t tail =
			empty ? 0 : (uint32_t)(frame_of(arena, arena->oldest)->data - arena->block);

		if (empty)
			arena->head = 0;
		if (room_at_head(arena) > len)
			return arena->block + arena->head;
		/* Not enough up to the end: begin anew in front, unless the tail is there. */
		if (!empty && tail <= arena->head && arena->head != 0 &&
		    arena->size - arena->head <= len) {
			arena->head = 0;
			if (tail == 0)
				free_oldest(arena);
			continue;
		}
		free_oldest(arena);
	}
}

uint32_t mote_arena_commit(struct mote_arena *arena, uint32_t len, uint8_t stream)
{
	uint32_t id = arena->newest++;

	*frame_of(arena, id) = (struct mote_arena_frame){ .data = arena->block + arena->head,
							  .len = len,
							  .stream = stream };
	arena->head += len;
	arena->used += len;
	if (arena->used > arena->peak)
		arena->peak = arena->used;
	return id;
}

const struct mote_arena_frame *mote_arena_get(const struct mote_arena *arena, uint32_t id)
{
	return frame_of(arena, id);
}

void mote_arena_ref(struct mote_arena *arena, uint32_t id)
{
	frame_of(arena, id)->refs++;
}

void mote_arena_unref(struct mote_arena *arena, uint32_t id)
{
	frame_of(arena, id)->refs--;
}

void mote_arena_fill(const struct mote_arena *arena, struct mote_fill *fill)
{
	*fill = (struct mote_fill){ .size = arena->size,
				    .fill = arena->used,
				    .peak = arena->peak,
				    .dropped = arena->dropped };
}
