// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A failure moves at least one event on in its list, or leaves a program out, so that the search
 * ends.
 */
#include "probes_network_search.h"

#include <errno.h>
#include <stdio.h>

#define MOTE_ENOTSUPP 524 /* the kernel's own, in no header of user space */

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

bool mote_net_search_useful(const struct mote_net_search *s)
{
	return s->pick.hook[MOTE_NET_TCP] || s->pick.hook[MOTE_NET_UDP_SEND] ||
	       s->pick.hook[MOTE_NET_UDP_RECV];
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

/* Not needed for the rest: what is for IPv6 where there is none, and iterators but `reap`. */
static bool leave_out(struct mote_net_search *s, const struct mote_net_failure *failure)
{
	const struct mote_net_program *program = &mote_net_programs[failure->program];
	bool absent = failure->err == -ENOENT || failure->err == -ESRCH;

	if (program->way == MOTE_NET_ITERATOR ? failure->program == MOTE_NET_REAP_RUN
					      : !(program->ipv6 && absent))
		return false;
	s->pick.without |= MOTE_NET_BIT(failure->program);
	return true;
}

bool mote_net_search_failed(struct mote_net_search *s, const struct mote_features *features,
			    const struct mote_net_failure *failure)
{
	bool all, moved = false;

	if (failure->program < 0 || failure->program >= MOTE_NET_PROGRAMS)
		return false;
	if (leave_out(s, failure))
		return true;
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

unsigned int mote_net_search_score(const struct mote_net_search *s)
{
	unsigned int score = 0;

	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++) {
		if (s->pick.hook[i])
			score += i <= MOTE_NET_UDP_RECV ? MOTE_NET_EVENTS : 1;
	}
	return mote_net_search_useful(s) ? score : 0;
}

bool mote_net_search_complete(const struct mote_net_search *s)
{
	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++) {
		if (s->n[i] && !s->pick.hook[i])
			return false;
	}
	return true;
}
