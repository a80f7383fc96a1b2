// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Whether ticks wait for files of cgroupfs, see cgroup_budget.h. */
#include "cgroup_budget.h"

#define NS_PER_S 1000000000ull
#define SPAN_MIN (60 * NS_PER_S)
#define SPAN_MAX (64 * SPAN_MIN)

bool mote_cgroup_budget_is_apart(const struct mote_cgroup_budget *budget, uint64_t now)
{
	return budget->span && now < budget->since + budget->span;
}

/* No better: it went well for less time than it was left alone for. */
static uint64_t next_span(const struct mote_cgroup_budget *budget, uint64_t now)
{
	if (!budget->span || now >= budget->since + 2 * budget->span)
		return SPAN_MIN;
	return budget->span < SPAN_MAX ? 2 * budget->span : SPAN_MAX;
}

bool mote_cgroup_budget_exceeds(struct mote_cgroup_budget *budget, uint64_t began, uint64_t now)
{
	if (now < began + budget->limit)
		return false;
	if (mote_cgroup_budget_is_apart(budget, now))
		return true;
	budget->span = next_span(budget, now);
	budget->since = now;
	return true;
}
