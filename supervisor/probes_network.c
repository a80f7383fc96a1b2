// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Tries the sets of the plan, best first, and in each the hooks of each event, until one works; a
 * set that leaves an event without a hook is taken only if none does better. What was chosen,
 * and why not what is better, goes into the tiers.
 */
#include "probes_network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes_network_impl.h"
#include "probes_network_object.h"
#include "probes_network_search.h"
#include "probes_trampoline.h"

/* The best pick of a set that counts as much as `level`; goes on where it was left. */
static bool try_set(struct mote_probes_network *network,
		    const struct mote_probes_network_config *cfg, struct mote_net_search *search,
		    enum mote_net_level level)
{
	struct mote_net_failure failure;

	while (mote_net_search_meets(search, level)) {
		if (!mote_net_load(&network->load, cfg, &search->pick, &failure))
			return true;
		if (!mote_net_search_failed(search, cfg->features, &failure))
			return false;
	}
	return false;
}

/* A trial is cheaper than programs that load, which takes the verifier, and do not attach. */
static void try_trampoline(struct mote_net_search *search, const struct mote_features *features)
{
	const char *function = mote_net_programs[MOTE_NET_RELEASE_SOCK].target;
	struct mote_net_failure failure;
	int err = mote_probes_try_trampoline(function);

	if (!err)
		return;
	mote_net_fail_attach(&failure, search->pick.set, MOTE_NET_RELEASE_SOCK, err);
	mote_net_search_failed(search, features, &failure);
}

/* The index of the set that is loaded in the end, or -1. */
static int choose(struct mote_probes_network *network, const struct mote_probes_network_config *cfg,
		  const struct mote_net_plan *plan, struct mote_net_search *searches)
{
	for (unsigned int i = 0; i < plan->nsets; i++) {
		mote_net_search_begin(&searches[i], plan->set[i], cfg->options, cfg->features);
		if (plan->set[i] == MOTE_NET_SET_FENTRY)
			try_trampoline(&searches[i], cfg->features);
	}
	for (int level = 0; level < MOTE_NET_LEVELS; level++) {
		for (unsigned int i = 0; i < plan->nsets; i++) {
			if (try_set(network, cfg, &searches[i], (enum mote_net_level)level))
				return (int)i;
		}
	}
	return -1;
}

/* The set is what counts bytes; a tracepoint beside it is no other set. */
static const char *choice_of(const struct mote_net_pick *pick)
{
	static const char *const names[MOTE_NET_SETS] = {
		[MOTE_NET_SET_FENTRY] = "fentry",
		[MOTE_NET_SET_KPROBE] = "kprobe",
	};

	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++) {
		if (pick->hook[i] && pick->hook[i]->sets == 1u << pick->set)
			return names[pick->set];
	}
	return "tracepoint";
}

/* Why it is not the first set that counts, or tracepoints only; "" if all is as it should be. */
static const char *why_not_first(const struct mote_net_search *searches, int best)
{
	const struct mote_net_search *s = &searches[best];

	if (best > 0)
		return searches[0].last;
	if (strcmp(choice_of(&s->pick), "tracepoint") != 0)
		return "";
	return s->reason[MOTE_NET_TCP][0] && s->pick.hook[MOTE_NET_TCP]
		       ? s->reason[MOTE_NET_TCP]
		       : s->reason[MOTE_NET_UDP_RECV];
}

static void say_set(struct mote_tiers *tiers, const struct mote_net_plan *plan,
		    const struct mote_net_search *searches, int best)
{
	const char *why = why_not_first(searches, best);

	mote_tiers_add(tiers, "network", choice_of(&searches[best].pick), "%s%s%s", plan->reason,
		       plan->reason[0] && why[0] ? "; " : "", why);
}

/* What is left to say of an event, if the set's reason is its reason, too. */
static const char *own_reason(const struct mote_net_search *searches, int best,
			      enum mote_net_event event)
{
	const char *reason = searches[best].reason[event];

	return strcmp(reason, why_not_first(searches, best)) != 0 ? reason
	       : reason[0]                                        ? "as the tier network says"
								  : "";
}

static void say_event(struct mote_probes_network *network, struct mote_tiers *tiers,
		      enum mote_net_event event, const char *full, const char *reason)
{
	struct mote_network_maps *maps = &network->load.maps;
	const struct mote_net_hook *hook = network->pick.hook[event];
	bool found_out = event == MOTE_NET_DESTROY && !hook && maps->udp;

	snprintf(network->why[event], sizeof(network->why[event]), "%s", full);
	maps->has[event] = hook;
	maps->why[event] = hook ? hook->name : network->why[event];
	mote_tiers_add(tiers, mote_net_tier(event),
		       hook        ? hook->name
		       : found_out ? "iter/udp"
				   : "none",
		       "%s%s%s", reason, reason[0] && hook && hook->note ? "; " : "",
		       hook && hook->note ? hook->note : "");
}

static void say_all(struct mote_probes_network *network, struct mote_tiers *tiers,
		    const struct mote_net_plan *plan, const struct mote_net_search *searches,
		    int best)
{
	network->pick = searches[best].pick;
	say_set(tiers, plan, searches, best);
	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++)
		say_event(network, tiers, i, searches[best].reason[i],
			  own_reason(searches, best, i));
}

int mote_probes_network_open(const struct mote_probes_network_config *cfg, struct mote_tiers *tiers,
			     struct mote_probes_network **out)
{
	struct mote_probes_network *network = calloc(1, sizeof(*network));
	struct mote_net_search searches[MOTE_NET_SETS] = { 0 };
	const char *refused = mote_net_refused(cfg->options, cfg->features);
	struct mote_net_plan plan;
	int best;

	if (!network)
		return -ENOMEM;
	*out = network;
	network->options = cfg->options;
	if (refused) {
		mote_tiers_add(tiers, "network", "none", "%s", refused);
		return 0;
	}
	mote_net_plan(&plan, cfg->options->mote_probes, cfg->features);
	best = choose(network, cfg, &plan, searches);
	network->loaded = best >= 0;
	if (network->loaded)
		say_all(network, tiers, &plan, searches, best);
	else
		mote_tiers_add(tiers, "network", "none", "%s", searches[plan.nsets - 1].last);
	mote_net_object_forget();
	return 0;
}

void mote_probes_network_close(struct mote_probes_network *network)
{
	if (!network)
		return;
	if (network->loaded)
		mote_net_unload(&network->load);
	free(network);
}

const struct mote_network_maps *mote_probes_network_maps(const struct mote_probes_network *network)
{
	return network && network->loaded ? &network->load.maps : NULL;
}
