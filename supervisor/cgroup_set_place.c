// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Who of the set of known cgroups has a row, see cgroup_set.h. A cgroup that is added after the
 * table of rows is full is summed in `other`, if none of those above it is: what that one has
 * includes what is below, and so would a sum of both; only what is not so is summed of all.
 */
#include "cgroup_filter.h"
#include "cgroup_set_impl.h"

/* Whether this one, or one above it, is summed in `other`. */
static bool is_summed(const struct mote_cgroup_set *set, uint32_t node)
{
	for (uint32_t i = node; i != MOTE_CGROUP_NONE; i = mote_cgroup_set_above(set, i)) {
		if (set->nodes[i].shown && set->nodes[i].row >= set->max)
			return true;
	}
	return false;
}

static uint32_t row_of_others(const struct mote_cgroup_set *set, bool part)
{
	return set->max + part;
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
		uint32_t row = mote_cgroup_set_take_row(set);

		begin_row(set, row, node, now);
		return row;
	}
	count_dropped(set);
	return row_of_others(set, is_summed(set, mote_cgroup_set_above(set, node)));
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
	node = mote_cgroup_set_make_node(set, id, parent, name, now);
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
		mote_cgroup_set_make_room(set, id);
	up = parent ? mote_cgroup_set_find(set, parent) : NULL;

	if (slot) {
		slot->seen = seen;
		return true;
	}
	if (!id || (parent && !up))
		return false;
	slot = mote_cgroup_set_free_slot(set, id);
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
		mote_cgroup_set_keep_dead(set, slot);
	else
		mote_cgroup_set_free_slot_at(set, slot);
}

static uint32_t free_rows(const struct mote_cgroup_set *set)
{
	return set->max - mote_cgroup_set_rows_in_use(set);
}

static void put_row(struct mote_cgroup_set *set, uint32_t node, uint32_t row)
{
	set->nodes[node].row = row;
	mote_cgroup_set_find_any(set, set->nodes[node].id)->row = row;
}

/* Who is above another comes before it, where levels go. */
static void give_rows(struct mote_cgroup_set *set, uint32_t level, uint64_t now)
{
	for (uint32_t i = 0; i < set->fresh_node && free_rows(set); i++) {
		const struct mote_cgroup_node *n = &set->nodes[i];
		uint32_t row;

		if (!n->id || !n->shown || n->level != level || n->row < set->max)
			continue;
		row = mote_cgroup_set_take_row(set);
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
			put_row(set, i,
				row_of_others(set, is_summed(set, mote_cgroup_set_above(set, i))));
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
	return nameless && mote_cgroup_set_has_nodes(set) && forget_nameless(set, now);
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
		if (!slot->id || mote_cgroup_set_is_dead(set, slot) || slot->seen >= seen ||
		    !known_before(set, slot, born))
			i++;
		else
			remove_slot(set, slot, now);
	}
}
