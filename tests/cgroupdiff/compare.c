// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Whether rows lie between two readings of the files. */
#include <inttypes.h>
#include <stdio.h>

#include "groups.h"

static const struct field *fields;
static unsigned int nfields;

static bool between(uint64_t v, uint64_t a, uint64_t b, uint64_t step)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;

	return v + step > low && v < high + step;
}

/*
 * User and system time of one that moves. cputime_adjust() (kernel/sched/cputime.c) splits the
 * exact sum by how many ticks met each, and holds neither to be less than what it has shown before,
 * which it keeps in cgroup.prev_cputime. Reading the text writes this, the iterator cannot: as the
 * share of ticks changes, a later text may show less of one of them than the walk computed in
 * between, and more of the other. The sum is bounded all the same.
 */
static uint64_t both_of(const struct values *values)
{
	return values->v[text_field("cpu_user")] + values->v[text_field("cpu_system")];
}

/*
 * Whether the row is right. A gauge that goes up and down may have been elsewhere in between: of
 * the busy ones it is looked at only whether it is there.
 */
static bool is_right(const struct group *group, unsigned int k, bool moves, bool by_iterator)
{
	bool before = group->before.present >> k & 1, after = group->after.present >> k & 1;
	bool given = group->row.present >> k & 1;

	if (before != after || given != before)
		return before != after;
	if (!given || (moves && !fields[k].counter))
		return true;
	if (by_iterator && moves && (k == text_field("cpu_user") || k == text_field("cpu_system")))
		return between(both_of(&group->row), both_of(&group->before),
			       both_of(&group->after), 2 * fields[k].step);
	return between(group->row.v[k], group->before.v[k], group->after.v[k], fields[k].step);
}

static void tell(const struct group *group, unsigned int k)
{
	printf("# /%s %s: %s%" PRIu64 ", text %s%" PRIu64 " and %" PRIu64 "\n", group->path,
	       fields[k].name, group->row.present >> k & 1 ? "" : "nil ", group->row.v[k],
	       group->before.present >> k & 1 ? "" : "nil ", group->before.v[k], group->after.v[k]);
}

static unsigned int compare_group(const struct group *group, bool moves, bool by_iterator,
				  bool quiet)
{
	unsigned int wrong = 0;

	for (unsigned int k = 0; k < nfields; k++) {
		if (is_right(group, k, moves, by_iterator))
			continue;
		if (++wrong <= 20 && !quiet)
			tell(group, k);
	}
	return wrong;
}

static bool differs(const struct group *group, const char *name)
{
	unsigned int k = text_field(name);

	return group->before.v[k] != group->after.v[k];
}

unsigned int compare(bool by_iterator, bool quiet)
{
	unsigned int wrong = 0;

	fields = text_fields(&nfields);
	for (unsigned int i = 0; i < ngroups; i++) {
		const struct group *group = &groups[i];
		bool moves = i < 2 || differs(group, "cpu_usage") || differs(group, "pgfault");

		if (group->given) {
			wrong += compare_group(group, moves, by_iterator, quiet || wrong > 20);
			continue;
		}
		wrong++;
		if (!quiet)
			printf("# no row of /%s\n", group->path);
	}
	return wrong;
}
