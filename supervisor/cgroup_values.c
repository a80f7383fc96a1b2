// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The values of rows, and of `other`, see cgroup_set.h. */
#include <string.h>

#include "cgroup_set_impl.h"

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
				    .fill = mote_cgroup_set_rows_in_use(set),
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
