/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which hooks may count on a kernel, and in which order they are tried: tables, and what follows
 * from them and from what is known of the host. Nothing is loaded here; docs/HOOKS.md says why the
 * tables are as they are.
 */
#ifndef MOTE_PROBES_NETWORK_CHOICE_H
#define MOTE_PROBES_NETWORK_CHOICE_H

#include <stdbool.h>

#include "host_features.h"
#include "options.h"
#include "probes_network.h"

/* The two objects of bpf/net.bpf.c. */
enum mote_net_set {
	MOTE_NET_SET_FENTRY,
	MOTE_NET_SET_KPROBE,
	MOTE_NET_SETS,
};

/* How a program is attached; entry and exit by a trampoline or a kprobe, as its object has it. */
enum mote_net_way { MOTE_NET_ENTRY, MOTE_NET_EXIT, MOTE_NET_TRACEPOINT, MOTE_NET_ITERATOR };

enum mote_net_program_id {
	MOTE_NET_RELEASE_SOCK,
	MOTE_NET_SKB_CONSUME_UDP,
	MOTE_NET_UDP_SENDMSG,
	MOTE_NET_UDPV6_SENDMSG,
	MOTE_NET_UDP_SENDMSG_RET,
	MOTE_NET_UDPV6_SENDMSG_RET,
	MOTE_NET_UDP_SENDPAGE,
	MOTE_NET_UDP_SENDPAGE_RET,
	MOTE_NET_SEND_LENGTH,
	MOTE_NET_RECV_LENGTH,
	MOTE_NET_SET_STATE,
	MOTE_NET_DESTROY_SOCK,
	MOTE_NET_DESTRUCT,
	MOTE_NET_REAP_RUN,
	MOTE_NET_ITER_TCP,
	MOTE_NET_ITER_UDP,
	MOTE_NET_ITER_OWNERS,
	MOTE_NET_PROGRAMS,
};

/* Bits of mote_net_program_id. */
#define MOTE_NET_BIT(program) (1u << (program))

/* Why a function may be missing without harm: it is a module's, or older kernels' only. */
enum mote_net_need { MOTE_NET_ALWAYS, MOTE_NET_IPV6, MOTE_NET_OLD };

struct mote_net_program {
	const char *name; /* in both objects */
	enum mote_net_way way;
	const char *target; /* function, or CATEGORY/NAME of a tracepoint; "" for iterators */
	enum mote_net_need need;
};

extern const struct mote_net_program mote_net_programs[MOTE_NET_PROGRAMS];

/* One way to see an event. */
struct mote_net_hook {
	const char *name; /* as the tier has it */
	enum mote_net_event event;
	unsigned int sets;     /* bits: the objects that it can be in */
	unsigned int programs; /* bits of mote_net_program_id */
	unsigned int since;    /* no kernel before this version has it: major << 8 | minor */
	unsigned int held;     /* calls that can wait in it at a time; 0: as many as there are */
	const char *note;      /* what it does not see; NULL: nothing */
};

/* How many hooks an event has at most in one set. */
#define MOTE_NET_HOOKS_MAX 4

/* The sets to try, best first. */
struct mote_net_plan {
	enum mote_net_set set[MOTE_NET_SETS];
	unsigned int nsets;
	char reason[160]; /* why the first is not fentry; "" if it is */
};

void mote_net_plan(struct mote_net_plan *plan, enum mote_probes_choice choice,
		   const struct mote_features *features);

/* Why nothing is to be loaded at all; NULL if something is. */
const char *mote_net_refused(const struct mote_options *options,
			     const struct mote_features *features);

/* Why this event is not to be counted; NULL if it is. */
const char *mote_net_unwanted(const struct mote_options *options, enum mote_net_event event);

/* Best first: the hooks that this set has for an event on kernels of this version; how many. */
unsigned int mote_net_hooks(enum mote_net_set set, enum mote_net_event event, unsigned int version,
			    const struct mote_net_hook *hooks[MOTE_NET_HOOKS_MAX]);

/* Why this one cannot work here, as can be seen without trying; NULL: try. */
const char *mote_net_unfit(const struct mote_net_hook *hook, const struct mote_features *features);

/* The hook's programs that these options ask for. */
unsigned int mote_net_hook_programs(const struct mote_net_hook *hook,
				    const struct mote_options *options);

/* The name of an event's tier. */
const char *mote_net_tier(enum mote_net_event event);

#endif
