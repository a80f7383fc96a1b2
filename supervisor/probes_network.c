// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Tries the sets of the plan, best first, and in each the hooks of each event, until one works; a
 * set that leaves an event without a hook is kept only if no other does better. What was chosen,
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

/* One set to the end of its lists. True: loaded. `reason`: of what made the set fail as a whole. */
static bool try_set(struct mote_probes_network *network,
		    const struct mote_probes_network_config *cfg, struct mote_net_search *search,
		    char *reason, size_t size)
{
	struct mote_net_failure failure;

	while (mote_net_search_useful(search)) {
		if (!mote_net_load(&network->load, cfg, &search->pick, &failure))
			return true;
		if (mote_net_search_failed(search, cfg->features, &failure))
			continue;
		snprintf(reason, size, "%s", failure.reason);
		return false;
	}
	snprintf(reason, size, "%s", search->last);
	return false;
}

struct attempt {
	struct mote_net_search search;
	unsigned int score; /* 0: nothing was loaded */
	char reason[160];
};

/* The attempt that is loaded in the end, or -1. */
static int choose(struct mote_probes_network *network, const struct mote_probes_network_config *cfg,
		  const struct mote_net_plan *plan, struct attempt *attempts)
{
	struct mote_net_failure failure;
	int best = -1, loaded = -1;

	for (int i = 0; i < (int)plan->nsets; i++) {
		struct attempt *a = &attempts[i];

		if (loaded >= 0)
			mote_net_unload(&network->load);
		loaded = -1;
		mote_net_search_begin(&a->search, plan->set[i], cfg->options, cfg->features);
		if (!try_set(network, cfg, &a->search, a->reason, sizeof(a->reason)))
			continue;
		loaded = i;
		a->score = mote_net_search_score(&a->search);
		if (best < 0 || a->score > attempts[best].score)
			best = i;
		if (mote_net_search_complete(&a->search))
			break;
	}
	if (best == loaded)
		return best;
	if (loaded >= 0)
		mote_net_unload(&network->load);
	return mote_net_load(&network->load, cfg, &attempts[best].search.pick, &failure) ? -1
											 : best;
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

/* Why the events' first hook is not the one that was taken; "" if it is, or it does not matter. */
static const char *why_not_first(const struct attempt *attempts, int best)
{
	if (best > 0)
		return attempts[0].reason[0] ? attempts[0].reason
					     : attempts[0].search.reason[MOTE_NET_TCP];
	if (strcmp(choice_of(&attempts[best].search.pick), "tracepoint") == 0)
		return attempts[best].search.reason[MOTE_NET_TCP][0]
			       ? attempts[best].search.reason[MOTE_NET_TCP]
			       : attempts[best].search.reason[MOTE_NET_UDP_RECV];
	return "";
}

static void say_set(struct mote_tiers *tiers, const struct mote_net_plan *plan,
		    const struct attempt *attempts, int best)
{
	const char *why = why_not_first(attempts, best);

	mote_tiers_add(tiers, "network", choice_of(&attempts[best].search.pick), "%s%s%s",
		       plan->reason, plan->reason[0] && why[0] ? "; " : "", why);
}

static void say_event(struct mote_probes_network *network, struct mote_tiers *tiers,
		      enum mote_net_event event, const char *reason)
{
	struct mote_network_maps *maps = &network->load.maps;
	const struct mote_net_hook *hook = network->pick.hook[event];
	bool found_out = event == MOTE_NET_DESTROY && !hook && maps->udp;

	snprintf(network->why[event], sizeof(network->why[event]), "%s", reason);
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
		    const struct mote_net_plan *plan, const struct attempt *attempts, int best)
{
	network->pick = attempts[best].search.pick;
	say_set(tiers, plan, attempts, best);
	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++)
		say_event(network, tiers, i, attempts[best].search.reason[i]);
}

int mote_probes_network_open(const struct mote_probes_network_config *cfg, struct mote_tiers *tiers,
			     struct mote_probes_network **out)
{
	struct mote_probes_network *network = calloc(1, sizeof(*network));
	struct attempt attempts[MOTE_NET_SETS] = { 0 };
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
	best = choose(network, cfg, &plan, attempts);
	network->loaded = best >= 0;
	if (network->loaded)
		say_all(network, tiers, &plan, attempts, best);
	else
		mote_tiers_add(tiers, "network", "none", "%s", attempts[plan.nsets - 1].reason);
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
