/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What cgroup_set.c, which has the index and the nodes, _place.c and cgroup_values.c share. */
#ifndef MOTE_CGROUP_SET_IMPL_H
#define MOTE_CGROUP_SET_IMPL_H

#include "cgroup_set.h"

uint32_t mote_cgroup_set_rows_in_use(const struct mote_cgroup_set *set);
uint32_t mote_cgroup_set_take_row(struct mote_cgroup_set *set);
/* One that ended too, as long as its name is kept. */
struct mote_cgroup_slot *mote_cgroup_set_find_any(const struct mote_cgroup_set *set, uint64_t id);
bool mote_cgroup_set_is_dead(const struct mote_cgroup_set *set,
			     const struct mote_cgroup_slot *slot);
struct mote_cgroup_slot *mote_cgroup_set_free_slot(const struct mote_cgroup_set *set, uint64_t id);
void mote_cgroup_set_free_slot_at(struct mote_cgroup_set *set, struct mote_cgroup_slot *slot);
void mote_cgroup_set_keep_dead(struct mote_cgroup_set *set, struct mote_cgroup_slot *slot);
bool mote_cgroup_set_has_nodes(const struct mote_cgroup_set *set);
void mote_cgroup_set_make_room(struct mote_cgroup_set *set, uint64_t id);
uint32_t mote_cgroup_set_make_node(struct mote_cgroup_set *set, uint64_t id, uint32_t parent,
				   struct mote_text name, uint64_t now);
uint32_t mote_cgroup_set_above(const struct mote_cgroup_set *set, uint32_t node);

#endif
