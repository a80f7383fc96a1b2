// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The set of known cgroups, see cgroup_set.h. A cgroup that is added after the table of rows is
 * full is summed in `other`, if none of those above it is: what that one has includes what is
 * below, and so would a sum of both; only what is not so is summed of all. Nothing here fails after
 * the start but for want of room.
 */
#include "cgroup_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup_filter.h"
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
static uint32_t rows_in_use(const struct mote_cgroup_set *set)
{
	return set->fresh_row - set->nfree;
}

static uint32_t take_row(struct mote_cgroup_set *set)
{
	uint32_t row = set->nfree ? set->free_rows[--set->nfree] : set->fresh_row++;

	if (rows_in_use(set) > set->peak)
		set->peak = rows_in_use(set);
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

static struct mote_cgroup_slot *find(const struct mote_cgroup_set *set, uint64_t id)
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

static bool is_dead(const struct mote_cgroup_set *set, const struct mote_cgroup_slot *slot)
{
	return slot->node != MOTE_CGROUP_NONE && !set->nodes[slot->node].id;
}

struct mote_cgroup_slot *mote_cgroup_set_find(const struct mote_cgroup_set *set, uint64_t id)
{
	struct mote_cgroup_slot *slot = find(set, id);

	return slot && !is_dead(set, slot) ? slot : NULL;
}

uint32_t mote_cgroup_set_node(const struct mote_cgroup_set *set, uint64_t id)
{
	const struct mote_cgroup_slot *slot = id ? find(set, id) : NULL;

	return slot ? slot->node : MOTE_CGROUP_NONE;
}

/* At least a quarter of it stays free. */
static struct mote_cgroup_slot *free_slot(const struct mote_cgroup_set *set, uint64_t id)
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
static void free_slot_at(struct mote_cgroup_set *set, struct mote_cgroup_slot *slot)
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
		free_slot_at(set, find(set, set->nodes[node].born));
		drop_node(set, node);
	}
	set->ndead = 0;
}

static void keep_dead(struct mote_cgroup_set *set, struct mote_cgroup_slot *slot)
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

static bool has_nodes(const struct mote_cgroup_set *set)
{
	return set->free_node != MOTE_CGROUP_NONE || set->fresh_node < set->nnodes;
}

/* What is new comes before what ended. */
static void make_room(struct mote_cgroup_set *set, uint64_t id)
{
	const struct mote_cgroup_slot *slot = find(set, id);

	if ((slot && is_dead(set, slot)) || !has_nodes(set) ||
	    set->ndead >= set->nnodes / DEAD_SHARE)
		mote_cgroup_set_bury(set);
}

/* MOTE_CGROUP_NONE if there is no room. */
static uint32_t make_node(struct mote_cgroup_set *set, uint64_t id, uint32_t parent,
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
static uint32_t above(const struct mote_cgroup_set *set, uint32_t node)
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

	for (uint32_t i = node; i != MOTE_CGROUP_NONE && set->nodes[i].name; i = above(set, i))
		len += 1 + mote_cgroup_names_len(&set->names, set->nodes[i].name);
	if (len > size || !size)
		return 0;
	at = len;
	for (uint32_t i = node; i != MOTE_CGROUP_NONE && set->nodes[i].name; i = above(set, i)) {
		at -= mote_cgroup_names_len(&set->names, set->nodes[i].name);
		mote_cgroup_names_copy(&set->names, set->nodes[i].name, buf + at);
		buf[--at] = '/';
	}
	if (!len)
		buf[len++] = '/';
	return len;
}

/* Whether this one, or one above it, is summed in `other`. */
static bool is_summed(const struct mote_cgroup_set *set, uint32_t node)
{
	for (uint32_t i = node; i != MOTE_CGROUP_NONE; i = above(set, i)) {
		if (set->nodes[i].shown && set->nodes[i].row >= set->max)
			return true;
	}
	return false;
}

static uint32_t row_of_others(const struct mote_cgroup_set *set, bool part)
{
	return set->max + part;
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

static void begin_row(struct mote_cgroup_set *set, uint32_t row, uint32_t node, uint64_t now)
{
	set->rows[row] = (struct mote_cgroup_row){ .changed = now, .node = node };
	set->nodes[node].row = row;
}

static void count_dropped(struct mote_cgroup_set *set)
{
	if (set->counted)
		set->counted--;
	else
		set->dropped++;
}

/* A row of its own, the row of others, or none. */
static uint32_t choose_row(struct mote_cgroup_set *set, uint32_t node, uint64_t now)
{
	if (!set->nodes[node].shown)
		return MOTE_CGROUP_NONE;
	if (set->nfree || set->fresh_row < set->max) {
		uint32_t row = take_row(set);

		begin_row(set, row, node, now);
		return row;
	}
	count_dropped(set);
	return row_of_others(set, is_summed(set, above(set, node)));
}

enum view { SHOWN, ABOVE, HIDDEN };

/* Decided by the path, before it takes any room. One that is too long is nobody's pattern. */
static enum view view_of(const struct mote_cgroup_set *set, uint32_t parent, struct mote_text name)
{
	bool root = parent == MOTE_CGROUP_NONE;
	unsigned int level = root ? 0 : set->nodes[parent].level + 1;
	char text[MOTE_CGROUP_PATH] = "/";
	uint32_t len = root ? 1 : mote_cgroup_set_path_below(set, parent, name, text, sizeof(text));
	struct mote_text path = { text, len };

	if (mote_cgroup_shown(set->options, path, level))
		return SHOWN;
	return mote_cgroup_shown_below(set->options, path, level) ? ABOVE : HIDDEN;
}

/*
 * Gives it a node. What is hidden, and all below it, has one only for the paths of events, where
 * there is plenty of room.
 */
static uint32_t place(struct mote_cgroup_set *set, uint64_t id, uint32_t parent,
		      struct mote_text name, enum view view, uint64_t now)
{
	uint32_t node;

	if (view == HIDDEN && set->used_nodes >= set->nnodes / 4)
		return MOTE_CGROUP_NONE;
	node = make_node(set, id, parent, name, now);
	if (node != MOTE_CGROUP_NONE)
		set->nodes[node].shown = view == SHOWN;
	return node;
}

/* Of one without a node: it is not shown, but may be summed. */
static uint32_t row_of_nameless(struct mote_cgroup_set *set, uint32_t parent, enum view view)
{
	if (view != HIDDEN)
		count_dropped(set);
	if (view != SHOWN)
		return MOTE_CGROUP_NONE;
	return row_of_others(set, parent != MOTE_CGROUP_NONE && is_summed(set, parent));
}

static void begin_slot(struct mote_cgroup_set *set, struct mote_cgroup_slot *slot, uint32_t parent,
		       struct mote_text name, uint64_t now)
{
	enum view view = view_of(set, parent, name);

	slot->node = place(set, slot->id, parent, name, view, now);
	if (slot->node == MOTE_CGROUP_NONE)
		slot->row = row_of_nameless(set, parent, view);
	else
		slot->row = set->nodes[slot->node].row = choose_row(set, slot->node, now);
}

/* Nothing is known of its name. */
static void begin_slot_below(struct mote_cgroup_set *set, struct mote_cgroup_slot *slot,
			     uint32_t row)
{
	bool hidden = row == MOTE_CGROUP_NONE;

	slot->node = MOTE_CGROUP_NONE;
	slot->row = hidden ? MOTE_CGROUP_NONE : row_of_others(set, true);
	if (!hidden)
		count_dropped(set);
}

static bool is_other(const struct mote_cgroup_set *set, const struct mote_cgroup_slot *slot)
{
	return slot->row >= set->max && slot->row != MOTE_CGROUP_NONE;
}

bool mote_cgroup_set_add(struct mote_cgroup_set *set, uint64_t id, uint64_t parent,
			 struct mote_text name, uint64_t seen, uint64_t now)
{
	struct mote_cgroup_slot *slot = id ? mote_cgroup_set_find(set, id) : NULL;
	const struct mote_cgroup_slot *up;

	if (id && !slot)
		make_room(set, id);
	up = parent ? mote_cgroup_set_find(set, parent) : NULL;

	if (slot) {
		slot->seen = seen;
		return true;
	}
	if (!id || (parent && !up))
		return false;
	slot = free_slot(set, id);
	if (!slot)
		return false;
	*slot = (struct mote_cgroup_slot){ .id = id, .seen = seen };
	set->known++;
	if (up && up->node == MOTE_CGROUP_NONE)
		begin_slot_below(set, slot, up->row);
	else
		begin_slot(set, slot, up ? up->node : MOTE_CGROUP_NONE, name, now);
	set->others += is_other(set, slot);
	return true;
}

void mote_cgroup_set_unplaced(struct mote_cgroup_set *set, uint64_t n)
{
	if (n > set->unplaced)
		set->dropped += n - set->unplaced;
	set->unplaced = n;
}

static void add_totals(struct mote_cgroup_set *set, const struct mote_cgroup_row *row)
{
	for (uint64_t left = row->present; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(left);

		if (mote_streams[MOTE_STREAM_CGROUP].fields[CGROUP_CPU_USAGE + i].kind !=
		    MOTE_COUNTER)
			continue;
		set->totals.v[i] += row->v[i];
		set->totals.present |= 1ull << i;
	}
	set->any_ended = true;
}

static void end_row(struct mote_cgroup_set *set, uint32_t row, uint64_t id, uint64_t now)
{
	struct mote_cgroup_ended *ended = &set->ended[set->ended_at];

	add_totals(set, &set->rows[row]);
	if (ended->time > set->forgot)
		set->forgot = ended->time;
	*ended = (struct mote_cgroup_ended){ .id = id, .time = now };
	set->ended_at = (set->ended_at + 1) % set->ended_max;
	set->rows[row].changed = 0;
	set->free_rows[set->nfree++] = row;
}

static void remove_slot(struct mote_cgroup_set *set, struct mote_cgroup_slot *slot, uint64_t now)
{
	if (slot->row < set->max)
		end_row(set, slot->row, slot->id, now);
	set->others -= is_other(set, slot);
	set->known--;
	if (slot->node != MOTE_CGROUP_NONE)
		keep_dead(set, slot);
	else
		free_slot_at(set, slot);
}

static uint32_t free_rows(const struct mote_cgroup_set *set)
{
	return set->max - rows_in_use(set);
}

static void put_row(struct mote_cgroup_set *set, uint32_t node, uint32_t row)
{
	set->nodes[node].row = row;
	find(set, set->nodes[node].id)->row = row;
}

/* Who is above another comes before it, where levels go. */
static void give_rows(struct mote_cgroup_set *set, uint32_t level, uint64_t now)
{
	for (uint32_t i = 0; i < set->fresh_node && free_rows(set); i++) {
		const struct mote_cgroup_node *n = &set->nodes[i];
		uint32_t row;

		if (!n->id || !n->shown || n->level != level || n->row < set->max)
			continue;
		row = take_row(set);
		begin_row(set, row, i, now);
		put_row(set, i, row);
		set->others--;
	}
}

/* Whose sums they are a part of may have a row now. */
static void sort_others(struct mote_cgroup_set *set)
{
	for (uint32_t i = 0; i < set->fresh_node; i++) {
		const struct mote_cgroup_node *n = &set->nodes[i];

		if (n->id && n->shown && n->row >= set->max)
			put_row(set, i, row_of_others(set, is_summed(set, above(set, i))));
	}
}

/*
 * All of them, as those above another must be told of before it. Those that then find no row have
 * been counted.
 */
static bool forget_nameless(struct mote_cgroup_set *set, uint64_t now)
{
	uint32_t forgotten = 0, rows = free_rows(set);

	for (uint32_t i = 0; i <= set->mask;) {
		struct mote_cgroup_slot *slot = &set->index[i];

		/* Freed, the slot may have the next one by now. */
		if (!slot->id || slot->node != MOTE_CGROUP_NONE || !is_other(set, slot)) {
			i++;
			continue;
		}
		remove_slot(set, slot, now);
		forgotten++;
	}
	set->counted = forgotten > rows ? forgotten - rows : 0;
	return forgotten;
}

/* The lowest level of those that have a name and no row; MOTE_CGROUP_NONE: there are none. */
static uint32_t first_level(const struct mote_cgroup_set *set)
{
	uint32_t level = MOTE_CGROUP_NONE;

	for (uint32_t i = 0; i < set->fresh_node; i++) {
		const struct mote_cgroup_node *n = &set->nodes[i];

		if (n->id && n->shown && n->row >= set->max && n->level < level)
			level = n->level;
	}
	return level;
}

bool mote_cgroup_set_reseat(struct mote_cgroup_set *set, bool nameless, uint64_t now)
{
	uint32_t level;

	if (!set->others || !free_rows(set))
		return false;
	for (level = first_level(set); level != MOTE_CGROUP_NONE && free_rows(set);
	     level = first_level(set))
		give_rows(set, level, now);
	if (level != MOTE_CGROUP_NONE)
		sort_others(set);
	return nameless && has_nodes(set) && forget_nameless(set, now);
}

void mote_cgroup_set_remove(struct mote_cgroup_set *set, uint64_t id, uint64_t now)
{
	struct mote_cgroup_slot *slot = id ? mote_cgroup_set_find(set, id) : NULL;

	if (slot)
		remove_slot(set, slot, now);
}

static bool known_before(const struct mote_cgroup_set *set, const struct mote_cgroup_slot *slot,
			 uint64_t time)
{
	return slot->node == MOTE_CGROUP_NONE || set->nodes[slot->node].born <= time;
}

void mote_cgroup_set_sweep(struct mote_cgroup_set *set, uint64_t seen, uint64_t born, uint64_t now)
{
	for (uint32_t i = 0; i <= set->mask;) {
		struct mote_cgroup_slot *slot = &set->index[i];

		/* Freed, the slot may have the next one by now. */
		if (!slot->id || is_dead(set, slot) || slot->seen >= seen ||
		    !known_before(set, slot, born))
			i++;
		else
			remove_slot(set, slot, now);
	}
}

void mote_cgroup_row_take(struct mote_cgroup_row *row, uint64_t gives,
			  const struct mote_cgroup_values *values, uint64_t now)
{
	uint64_t found = values->present & gives;
	bool changed = (row->present & gives) != found;

	for (uint64_t left = found; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(left);

		changed |= row->v[i] != values->v[i];
		row->v[i] = values->v[i];
	}
	row->present = (row->present & ~gives) | found;
	if (changed)
		row->changed = now;
}

void mote_cgroup_set_fill(const struct mote_cgroup_set *set, struct mote_fill *fill)
{
	*fill = (struct mote_fill){ .size = set->max,
				    .fill = rows_in_use(set),
				    .peak = set->peak,
				    .dropped = set->dropped };
}

void mote_cgroup_other_clear(struct mote_cgroup_set *set)
{
	set->sum = (struct mote_cgroup_values){ 0 };
}

void mote_cgroup_other_add(struct mote_cgroup_set *set, uint64_t gives,
			   const struct mote_cgroup_values *values)
{
	for (uint64_t left = values->present & gives; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(left);

		set->sum.v[i] += values->v[i];
		set->sum.present |= 1ull << i;
	}
}

void mote_cgroup_other_end(struct mote_cgroup_set *set, uint64_t now)
{
	struct mote_cgroup_row *row = &set->rows[set->max];

	_Static_assert(sizeof(row->v) == sizeof(set->sum.v), "parse_cgroup.h");
	memcpy(row->v, set->sum.v, sizeof(row->v));
	row->present = set->sum.present;
	mote_cgroup_other_done(set, now);
}

/* A limit of several is no limit of their sum, and what moved in the rest cannot be told. */
void mote_cgroup_other_done(struct mote_cgroup_set *set, uint64_t now)
{
	struct mote_cgroup_row *row = &set->rows[set->max];

	row->present &= ~MOTE_CGROUP_LIMITS;
	row->node = MOTE_CGROUP_NONE;
	if (set->others || row->changed)
		row->changed = now;
}
