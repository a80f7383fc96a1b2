// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The set of known cgroups, see cgroup_set.h: its memory, the index, names and places in the tree.
 * Nothing here fails after the start but for want of room.
 */
#include "cgroup_set_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lazy.h"

#define NODES_PER_ROW   2
#define BLOCKS_PER_NODE 4 /* of a name: 108 bytes; a container of Kubernetes has 80 */
#define BLOCKS_LIKELY   2
#define SLOTS_PER_ROW   16 /* of the walk's, which knows those without a name, too */
#define SLOTS_OWN       4
#define ENDED_MIN       64
#define DEAD_SHARE      8 /* at most this part of the nodes is of those that ended */

static uint32_t power_of_two(uint32_t least)
{
	uint32_t size = 256;

	while (size < least)
		size *= 2;
	return size;
}

uint32_t mote_cgroup_index_size(uint32_t rows)
{
	return power_of_two(rows * SLOTS_PER_ROW);
}

/*
 * The index is touched, as any of it may be written next. All else is used from the beginning on,
 * and touched as far as mote_cgroup_set_settle() finds it likely to be.
 */
static int allocate(struct mote_cgroup_set *set)
{
	uint32_t slots = set->own_memory ? power_of_two(set->max * SLOTS_OWN)
					 : mote_cgroup_index_size(set->max);

	if (set->own_memory) {
		set->rows = mote_lazy_alloc((set->max + 1) * sizeof(*set->rows));
		set->index = malloc(slots * sizeof(*set->index));
	}
	set->nodes = mote_lazy_alloc(set->nnodes * sizeof(*set->nodes));
	set->free_rows = calloc(set->max, sizeof(*set->free_rows));
	set->ended = calloc(set->ended_max, sizeof(*set->ended));
	if (!set->rows || !set->index || !set->nodes || !set->free_rows || !set->ended)
		return -ENOMEM;
	memset(set->index, 0, slots * sizeof(*set->index));
	set->mask = slots - 1;
	return mote_cgroup_names_open(&set->names, set->nnodes * BLOCKS_PER_NODE);
}

int mote_cgroup_set_open(struct mote_cgroup_set *set, const struct mote_options *options,
			 struct mote_cgroup_row *rows, struct mote_cgroup_slot *index)
{
	uint32_t max = options->tables_cgroups;
	int err;

	*set = (struct mote_cgroup_set){ .options = options,
					 .rows = rows,
					 .index = index,
					 .own_memory = !rows,
					 .max = max,
					 .nnodes = max * NODES_PER_ROW,
					 .free_node = MOTE_CGROUP_NONE,
					 .dead_node = MOTE_CGROUP_NONE,
					 .ended_max = max < 2 * ENDED_MIN ? ENDED_MIN : max / 2 };
	err = allocate(set);
	if (err)
		mote_cgroup_set_close(set);
	return err;
}

/* The first `n` of `of`, or as many as there are. */
static void touch(void *memory, size_t size, uint64_t n, uint64_t of)
{
	mote_lazy_touch(memory, size * (n < of ? n : of));
}

/* Room for twice as many as there are now, and some more. */
uint32_t mote_cgroup_set_likely(const struct mote_cgroup_set *set)
{
	uint64_t nodes = 2 * (uint64_t)set->used_nodes + 64;

	return nodes < set->nnodes ? (uint32_t)nodes : set->nnodes;
}

void mote_cgroup_set_settle(struct mote_cgroup_set *set)
{
	uint64_t nodes = mote_cgroup_set_likely(set);

	if (set->own_memory) {
		touch(set->rows, sizeof(*set->rows), nodes, set->max + 1);
		mote_lazy_touch(&set->rows[set->max], sizeof(*set->rows)); /* `other` */
	}
	touch(set->nodes, sizeof(*set->nodes), nodes, set->nnodes);
	touch(set->free_rows, sizeof(*set->free_rows), set->max, set->max);
	touch(set->ended, sizeof(*set->ended), set->ended_max, set->ended_max);
	touch(set->names.blocks, 32, nodes * BLOCKS_LIKELY + 2ull * set->names.fresh, set->names.n);
}

/* Rows that never had an owner come after those that were given back. */
uint32_t mote_cgroup_set_rows_in_use(const struct mote_cgroup_set *set)
{
	return set->fresh_row - set->nfree;
}

uint32_t mote_cgroup_set_take_row(struct mote_cgroup_set *set)
{
	uint32_t row = set->nfree ? set->free_rows[--set->nfree] : set->fresh_row++;

	if (mote_cgroup_set_rows_in_use(set) > set->peak)
		set->peak = mote_cgroup_set_rows_in_use(set);
	return row;
}

void mote_cgroup_set_close(struct mote_cgroup_set *set)
{
	if (set->own_memory) {
		mote_lazy_free(set->rows, (set->max + 1) * sizeof(*set->rows));
		free(set->index);
	}
	mote_lazy_free(set->nodes, set->nnodes * sizeof(*set->nodes));
	free(set->free_rows);
	free(set->ended);
	mote_cgroup_names_close(&set->names);
	*set = (struct mote_cgroup_set){ 0 };
}

struct mote_cgroup_slot *mote_cgroup_set_find_any(const struct mote_cgroup_set *set, uint64_t id)
{
	uint32_t at = mote_cgroup_place(id, set->mask);

	for (unsigned int i = 0; i < MOTE_CGROUP_PROBES; i++) {
		struct mote_cgroup_slot *slot = &set->index[(at + i) & set->mask];

		if (slot->id == id)
			return slot;
		if (!slot->id)
			break;
	}
	return NULL;
}

bool mote_cgroup_set_is_dead(const struct mote_cgroup_set *set, const struct mote_cgroup_slot *slot)
{
	return slot->node != MOTE_CGROUP_NONE && !set->nodes[slot->node].id;
}

struct mote_cgroup_slot *mote_cgroup_set_find(const struct mote_cgroup_set *set, uint64_t id)
{
	struct mote_cgroup_slot *slot = mote_cgroup_set_find_any(set, id);

	return slot && !mote_cgroup_set_is_dead(set, slot) ? slot : NULL;
}

uint32_t mote_cgroup_set_node(const struct mote_cgroup_set *set, uint64_t id)
{
	const struct mote_cgroup_slot *slot = id ? mote_cgroup_set_find_any(set, id) : NULL;

	return slot ? slot->node : MOTE_CGROUP_NONE;
}

/* At least a quarter of it stays free. */
struct mote_cgroup_slot *mote_cgroup_set_free_slot(const struct mote_cgroup_set *set, uint64_t id)
{
	uint32_t at = mote_cgroup_place(id, set->mask);

	if (set->known + set->ndead >= (set->mask + 1) / 4 * 3)
		return NULL;
	for (unsigned int i = 0; i < MOTE_CGROUP_PROBES; i++) {
		struct mote_cgroup_slot *slot = &set->index[(at + i) & set->mask];

		if (!slot->id)
			return slot;
	}
	return NULL;
}

/* Moves up what would not be found across the gap. */
void mote_cgroup_set_free_slot_at(struct mote_cgroup_set *set, struct mote_cgroup_slot *slot)
{
	uint32_t gap = (uint32_t)(slot - set->index), at = gap;

	for (;;) {
		struct mote_cgroup_slot *next = &set->index[at = (at + 1) & set->mask];

		if (!next->id)
			break;
		if (((at - mote_cgroup_place(next->id, set->mask)) & set->mask) <
		    ((at - gap) & set->mask))
			continue;
		set->index[gap] = *next;
		gap = at;
	}
	set->index[gap] = (struct mote_cgroup_slot){ 0 };
}

static void drop_node(struct mote_cgroup_set *set, uint32_t node)
{
	struct mote_cgroup_node *n = &set->nodes[node];

	mote_cgroup_names_drop(&set->names, n->name);
	*n = (struct mote_cgroup_node){ .next = set->free_node };
	set->free_node = node;
	set->used_nodes--;
}

void mote_cgroup_set_bury(struct mote_cgroup_set *set)
{
	while (set->dead_node != MOTE_CGROUP_NONE) {
		uint32_t node = set->dead_node;

		set->dead_node = set->nodes[node].next;
		mote_cgroup_set_free_slot_at(set,
					     mote_cgroup_set_find_any(set, set->nodes[node].born));
		drop_node(set, node);
	}
	set->ndead = 0;
}

void mote_cgroup_set_keep_dead(struct mote_cgroup_set *set, struct mote_cgroup_slot *slot)
{
	struct mote_cgroup_node *n = &set->nodes[slot->node];

	slot->row = n->row = MOTE_CGROUP_NONE;
	n->shown = false;
	n->born = n->id;
	n->id = 0;
	n->next = set->dead_node;
	set->dead_node = slot->node;
	set->ndead++;
}

bool mote_cgroup_set_has_nodes(const struct mote_cgroup_set *set)
{
	return set->free_node != MOTE_CGROUP_NONE || set->fresh_node < set->nnodes;
}

/* What is new comes before what ended. */
void mote_cgroup_set_make_room(struct mote_cgroup_set *set, uint64_t id)
{
	const struct mote_cgroup_slot *slot = mote_cgroup_set_find_any(set, id);

	if ((slot && mote_cgroup_set_is_dead(set, slot)) || !mote_cgroup_set_has_nodes(set) ||
	    set->ndead >= set->nnodes / DEAD_SHARE)
		mote_cgroup_set_bury(set);
}

/* MOTE_CGROUP_NONE if there is no room. */
uint32_t mote_cgroup_set_make_node(struct mote_cgroup_set *set, uint64_t id, uint32_t parent,
				   struct mote_text name, uint64_t now)
{
	bool fresh = set->free_node == MOTE_CGROUP_NONE;
	uint32_t node = fresh ? set->fresh_node : set->free_node;
	bool root = parent == MOTE_CGROUP_NONE;
	struct mote_cgroup_node *n;
	uint32_t handle;

	if (node >= set->nnodes)
		return MOTE_CGROUP_NONE;
	handle = root ? 0 : mote_cgroup_names_put(&set->names, name.data, (uint32_t)name.len);
	if (!root && !handle)
		return MOTE_CGROUP_NONE;
	n = &set->nodes[node];
	if (fresh)
		set->fresh_node++;
	else
		set->free_node = n->next;
	if (++set->used_nodes > set->peak_nodes)
		set->peak_nodes = set->used_nodes;
	*n = (struct mote_cgroup_node){ .id = id,
					.born = now,
					.parent = parent,
					.parent_id = root ? 0 : set->nodes[parent].id,
					.row = MOTE_CGROUP_NONE,
					.name = handle,
					.level = root ? 0 : set->nodes[parent].level + 1 };
	return node;
}

/* The node above; one whose cgroup is gone may be another's by now. */
uint32_t mote_cgroup_set_above(const struct mote_cgroup_set *set, uint32_t node)
{
	const struct mote_cgroup_node *n = &set->nodes[node], *up;

	if (n->parent == MOTE_CGROUP_NONE)
		return MOTE_CGROUP_NONE;
	up = &set->nodes[n->parent];
	return (up->id ?: up->born) == n->parent_id ? n->parent : MOTE_CGROUP_NONE;
}

uint32_t mote_cgroup_set_path(const struct mote_cgroup_set *set, uint32_t node, char *buf,
			      uint32_t size)
{
	uint32_t len = 0, at;

	for (uint32_t i = node; i != MOTE_CGROUP_NONE && set->nodes[i].name;
	     i = mote_cgroup_set_above(set, i))
		len += 1 + mote_cgroup_names_len(&set->names, set->nodes[i].name);
	if (len > size || !size)
		return 0;
	at = len;
	for (uint32_t i = node; i != MOTE_CGROUP_NONE && set->nodes[i].name;
	     i = mote_cgroup_set_above(set, i)) {
		at -= mote_cgroup_names_len(&set->names, set->nodes[i].name);
		mote_cgroup_names_copy(&set->names, set->nodes[i].name, buf + at);
		buf[--at] = '/';
	}
	if (!len)
		buf[len++] = '/';
	return len;
}

uint32_t mote_cgroup_set_path_below(const struct mote_cgroup_set *set, uint32_t parent,
				    struct mote_text name, char *buf, uint32_t size)
{
	uint32_t len = 0;

	if (name.len + 1 < size)
		len = mote_cgroup_set_path(set, parent, buf, size - 1 - (uint32_t)name.len);
	if (!len)
		return 0;
	if (len > 1)
		buf[len++] = '/';
	memcpy(buf + len, name.data, name.len);
	return len + (uint32_t)name.len;
}
