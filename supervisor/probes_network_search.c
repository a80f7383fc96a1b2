// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A failure moves at least one event on in its list, or leaves a program out, so that the search
 * ends.
 */
#include "probes_network_search.h"

#include <errno.h>
#include <stdio.h>

static void note(struct mote_net_search *s, enum mote_net_event event, const char *reason)
{
	if (!s->reason[event][0])
		snprintf(s->reason[event], sizeof(s->reason[event]), "%s", reason);
	snprintf(s->last, sizeof(s->last), "%s", reason);
}

/* The hook at the event's place in its list, or the next that may be tried. */
static void settle(struct mote_net_search *s, enum mote_net_event event,
		   const struct mote_features *features)
{
	const char *unfit = NULL;

	for (; s->at[event] < s->n[event]; s->at[event]++) {
		unfit = mote_net_unfit(s->hooks[event][s->at[event]], features);
		if (!unfit)
			break;
		note(s, event, unfit);
	}
	s->pick.hook[event] = s->at[event] < s->n[event] ? s->hooks[event][s->at[event]] : NULL;
}

void mote_net_search_begin(struct mote_net_search *s, enum mote_net_set set,
			   const struct mote_options *options, const struct mote_features *features)
{
	*s = (struct mote_net_search){ .pick = { .set = set } };
	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++) {
		const char *unwanted = mote_net_unwanted(options, i);

		if (unwanted) {
			note(s, i, unwanted);
			continue;
		}
		s->n[i] = mote_net_hooks(set, i, features->version, s->hooks[i]);
		settle(s, i, features);
	}
}

bool mote_net_search_meets(const struct mote_net_search *s, enum mote_net_level level)
{
	unsigned int bytes = 0;

	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++) {
		bool counts_bytes = i <= MOTE_NET_UDP_RECV;

		bytes += counts_bytes && s->pick.hook[i];
		if (s->n[i] && !s->pick.hook[i] &&
		    (level == MOTE_NET_ALL || (level == MOTE_NET_BYTES && counts_bytes)))
			return false;
	}
	return bytes && !s->dead;
}

static void next(struct mote_net_search *s, enum mote_net_event event,
		 const struct mote_features *features, const char *reason)
{
	note(s, event, reason);
	s->at[event]++;
	settle(s, event, features);
}

/* A kernel that does not attach one trampoline attaches none. */
static bool no_trampolines(const struct mote_net_search *s, const struct mote_net_failure *failure)
{
	enum mote_net_way way = mote_net_programs[failure->program].way;

	return s->pick.set == MOTE_NET_SET_FENTRY &&
	       (way == MOTE_NET_ENTRY || way == MOTE_NET_EXIT) &&
	       (failure->err == -MOTE_ENOTSUPP || failure->err == -EPERM);
}

/* Not needed for the rest: functions that may be missing, and iterators but `reap`. */
static bool leave_out(struct mote_net_search *s, const struct mote_net_failure *failure)
{
	const struct mote_net_program *program = &mote_net_programs[failure->program];
	bool absent = failure->err == -ENOENT || failure->err == -ESRCH;

	if (program->way == MOTE_NET_ITERATOR ? failure->program == MOTE_NET_REAP_RUN
					      : program->need == MOTE_NET_ALWAYS || !absent)
		return false;
	s->pick.without |= MOTE_NET_BIT(failure->program);
	return true;
}

bool mote_net_search_failed(struct mote_net_search *s, const struct mote_features *features,
			    const struct mote_net_failure *failure)
{
	bool all, moved = false;

	snprintf(s->last, sizeof(s->last), "%s", failure->reason);
	if (failure->program >= 0 && leave_out(s, failure))
		return true;
	if (failure->program < 0 || mote_net_programs[failure->program].way == MOTE_NET_ITERATOR) {
		s->dead = true;
		return false;
	}
	all = no_trampolines(s, failure);
	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++) {
		while (s->pick.hook[i] &&
		       (s->pick.hook[i]->programs & MOTE_NET_BIT(failure->program) ||
			(all && s->pick.hook[i]->sets == 1u << MOTE_NET_SET_FENTRY))) {
			next(s, i, features, failure->reason);
			moved = true;
			if (!all)
				break;
		}
	}
	return moved;
}
