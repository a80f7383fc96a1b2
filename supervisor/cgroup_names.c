// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The store of names, see cgroup_names.h. A block says how much of the name it has, and the first
 * how much there is in all. Nothing fails but for want of room, and then nothing was taken.
 */
#include "cgroup_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lazy.h"

#define BLOCK_TEXT 27
#define NAME_MAX_  255

struct mote_cgroup_block {
	uint32_t next; /* number and 1 */
	uint8_t len;   /* of the name from here on */
	char text[BLOCK_TEXT];
};
_Static_assert(sizeof(struct mote_cgroup_block) == 32, "blocks have no gaps");

/* Its pages are touched as they come into use. */
int mote_cgroup_names_open(struct mote_cgroup_names *names, uint32_t blocks)
{
	*names = (struct mote_cgroup_names){ .n = blocks };
	names->blocks = mote_lazy_alloc(blocks * sizeof(*names->blocks));
	return names->blocks ? 0 : -ENOMEM;
}

void mote_cgroup_names_close(struct mote_cgroup_names *names)
{
	mote_lazy_free(names->blocks, names->n * sizeof(*names->blocks));
	*names = (struct mote_cgroup_names){ 0 };
}

/* Adds never used blocks to the free ones; false: there are none left. */
static bool more(struct mote_cgroup_names *names, uint32_t *link)
{
	if (names->fresh == names->n)
		return false;
	names->blocks[names->fresh].next = 0;
	*link = ++names->fresh;
	return true;
}

uint32_t mote_cgroup_names_put(struct mote_cgroup_names *names, const char *name, uint32_t len)
{
	uint32_t handle, *link = &names->free;

	if (len > NAME_MAX_)
		len = NAME_MAX_;
	/* The blocks it takes are the first of the free ones: the chain is there already. */
	for (uint32_t left = len ? len : 1; left; left -= left < BLOCK_TEXT ? left : BLOCK_TEXT) {
		if (!*link && !more(names, link))
			return 0;
		link = &names->blocks[*link - 1].next;
	}
	handle = names->free;
	names->free = *link;
	*link = 0;
	for (uint32_t i = handle; i; i = names->blocks[i - 1].next) {
		struct mote_cgroup_block *block = &names->blocks[i - 1];
		uint32_t n = len < BLOCK_TEXT ? len : BLOCK_TEXT;

		block->len = (uint8_t)len;
		memcpy(block->text, name, n);
		name += n;
		len -= n;
	}
	return handle;
}

void mote_cgroup_names_drop(struct mote_cgroup_names *names, uint32_t handle)
{
	uint32_t last = handle;

	if (!handle)
		return;
	while (names->blocks[last - 1].next)
		last = names->blocks[last - 1].next;
	names->blocks[last - 1].next = names->free;
	names->free = handle;
}

uint32_t mote_cgroup_names_len(const struct mote_cgroup_names *names, uint32_t handle)
{
	return handle ? names->blocks[handle - 1].len : 0;
}

void mote_cgroup_names_copy(const struct mote_cgroup_names *names, uint32_t handle, char *to)
{
	for (; handle; handle = names->blocks[handle - 1].next) {
		const struct mote_cgroup_block *block = &names->blocks[handle - 1];
		uint32_t n = block->len < BLOCK_TEXT ? block->len : BLOCK_TEXT;

		memcpy(to, block->text, n);
		to += n;
	}
}
