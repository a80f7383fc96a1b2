// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The ordered tables of hooks. A hook that is left out of the tables is off; no event is ever
 * counted by two.
 */
#include "probes_network_choice.h"

#include <assert.h>
#include <stdio.h>

#define VERSION(major, minor) ((major) << 8 | (minor))
#define FENTRY                (1u << MOTE_NET_SET_FENTRY)
#define KPROBE                (1u << MOTE_NET_SET_KPROBE)
#define BOTH                  (FENTRY | KPROBE)
#define B(program)            MOTE_NET_BIT(MOTE_NET_##program)
#define UDP_ENTRIES           (B(UDP_SENDMSG) | B(UDPV6_SENDMSG) | B(UDP_SENDPAGE))
#define UDP_RETURNS           (B(UDP_SENDMSG_RET) | B(UDPV6_SENDMSG_RET) | B(UDP_SENDPAGE_RET))

const struct mote_net_program mote_net_programs[MOTE_NET_PROGRAMS] = {
	[MOTE_NET_RELEASE_SOCK] = { "net_release_sock", MOTE_NET_ENTRY, "release_sock",
				    MOTE_NET_ALWAYS },
	[MOTE_NET_SKB_CONSUME_UDP] = { "net_skb_consume_udp", MOTE_NET_ENTRY, "skb_consume_udp",
				       MOTE_NET_ALWAYS },
	[MOTE_NET_UDP_SENDMSG] = { "net_udp_sendmsg", MOTE_NET_ENTRY, "udp_sendmsg",
				   MOTE_NET_ALWAYS },
	[MOTE_NET_UDPV6_SENDMSG] = { "net_udpv6_sendmsg", MOTE_NET_ENTRY, "udpv6_sendmsg",
				     MOTE_NET_IPV6 },
	[MOTE_NET_UDP_SENDMSG_RET] = { "net_udp_sendmsg_ret", MOTE_NET_EXIT, "udp_sendmsg",
				       MOTE_NET_ALWAYS },
	[MOTE_NET_UDPV6_SENDMSG_RET] = { "net_udpv6_sendmsg_ret", MOTE_NET_EXIT, "udpv6_sendmsg",
					 MOTE_NET_IPV6 },
	[MOTE_NET_UDP_SENDPAGE] = { "net_udp_sendpage", MOTE_NET_ENTRY, "udp_sendpage",
				    MOTE_NET_OLD },
	[MOTE_NET_UDP_SENDPAGE_RET] = { "net_udp_sendpage_ret", MOTE_NET_EXIT, "udp_sendpage",
					MOTE_NET_OLD },
	[MOTE_NET_SEND_LENGTH] = { "net_send_length", MOTE_NET_TRACEPOINT, "sock/sock_send_length",
				   MOTE_NET_ALWAYS },
	[MOTE_NET_RECV_LENGTH] = { "net_recv_length", MOTE_NET_TRACEPOINT, "sock/sock_recv_length",
				   MOTE_NET_ALWAYS },
	[MOTE_NET_SET_STATE] = { "net_set_state", MOTE_NET_TRACEPOINT, "sock/inet_sock_set_state",
				 MOTE_NET_ALWAYS },
	[MOTE_NET_DESTROY_SOCK] = { "net_destroy", MOTE_NET_TRACEPOINT, "tcp/tcp_destroy_sock",
				    MOTE_NET_ALWAYS },
	[MOTE_NET_DESTRUCT] = { "net_destruct", MOTE_NET_ENTRY, "sk_common_release",
				MOTE_NET_ALWAYS },
	[MOTE_NET_REAP_RUN] = { "net_reap_run", MOTE_NET_ITERATOR, "", MOTE_NET_ALWAYS },
	[MOTE_NET_ITER_TCP] = { "net_tcp", MOTE_NET_ITERATOR, "", MOTE_NET_ALWAYS },
	[MOTE_NET_ITER_UDP] = { "net_udp", MOTE_NET_ITERATOR, "", MOTE_NET_ALWAYS },
	[MOTE_NET_ITER_OWNERS] = { "net_owners", MOTE_NET_ITERATOR, "", MOTE_NET_ALWAYS },
};

/*
 * In the order of preference within an event. Classic tracepoints are not preempted, and so exact
 * on every kernel; a return probe comes last, as it holds something for each call that waits.
 */
static const struct mote_net_hook hooks[] = {
	{ "fentry/release_sock", MOTE_NET_TCP, FENTRY, B(RELEASE_SOCK), 0, 0, NULL },
	{ "kprobe/release_sock", MOTE_NET_TCP, KPROBE, B(RELEASE_SOCK), 0, 0, NULL },
	{ "tp/sock_send_length", MOTE_NET_TCP, BOTH, B(SEND_LENGTH) | B(RECV_LENGTH), VERSION(6, 3),
	  0, "bytes that splice() takes from a socket have no process" },

	{ "tp/sock_send_length", MOTE_NET_UDP_SEND, BOTH, B(SEND_LENGTH), VERSION(6, 3), 0, NULL },
	{ "fexit/udp_sendmsg", MOTE_NET_UDP_SEND, FENTRY, UDP_RETURNS | B(UDP_SENDPAGE), 0, 0,
	  NULL },
	{ "kretprobe/udp_sendmsg", MOTE_NET_UDP_SEND, KPROBE, UDP_ENTRIES | UDP_RETURNS, 0, 512,
	  NULL },
	{ "kretprobe/udp_sendmsg", MOTE_NET_UDP_SEND, KPROBE, UDP_ENTRIES | UDP_RETURNS, 0, 0,
	  "without tracefs, so few calls can wait in it at a time: what more of them send is missed" },

	{ "fentry/skb_consume_udp", MOTE_NET_UDP_RECV, FENTRY, B(SKB_CONSUME_UDP), 0, 0, NULL },
	{ "kprobe/skb_consume_udp", MOTE_NET_UDP_RECV, KPROBE, B(SKB_CONSUME_UDP), 0, 0, NULL },
	{ "tp/sock_recv_length", MOTE_NET_UDP_RECV, BOTH, B(RECV_LENGTH), VERSION(6, 3), 0, NULL },

	{ "tp/inet_sock_set_state", MOTE_NET_STATE, BOTH, B(SET_STATE) | B(DESTROY_SOCK), 0, 0,
	  NULL },

	{ "fentry/sk_common_release", MOTE_NET_DESTROY, FENTRY, B(DESTRUCT), 0, 0, NULL },
	{ "kprobe/sk_common_release", MOTE_NET_DESTROY, KPROBE, B(DESTRUCT), 0, 0, NULL },
};

static const char *const tiers[MOTE_NET_EVENTS] = {
	[MOTE_NET_TCP] = "network_tcp",           [MOTE_NET_UDP_SEND] = "network_udp_send",
	[MOTE_NET_UDP_RECV] = "network_udp_recv", [MOTE_NET_STATE] = "network_state",
	[MOTE_NET_DESTROY] = "network_destroy",
};

static_assert(MOTE_NET_PROGRAMS <= 32, "programs are bits of an unsigned int");

const char *mote_net_tier(enum mote_net_event event)
{
	return tiers[event];
}

static void plan_auto(struct mote_net_plan *plan, const struct mote_features *features)
{
	if (!*features->btf)
		snprintf(plan->reason, sizeof(plan->reason), "fentry needs the kernel's BTF");
	else if (features->preempt.preemptible)
		snprintf(plan->reason, sizeof(plan->reason),
			 "this kernel preempts BPF programs (%s, from %s): fentry would lose bytes",
			 features->preempt.model, features->preempt.source);
	else
		plan->set[plan->nsets++] = MOTE_NET_SET_FENTRY;
	plan->set[plan->nsets++] = MOTE_NET_SET_KPROBE;
}

void mote_net_plan(struct mote_net_plan *plan, enum mote_probes_choice choice,
		   const struct mote_features *features)
{
	*plan = (struct mote_net_plan){ .nsets = 0 };
	if (choice == MOTE_PROBES_AUTO) {
		plan_auto(plan, features);
		return;
	}
	plan->nsets = choice == MOTE_PROBES_NONE ? 0 : 1;
	plan->set[0] = choice == MOTE_PROBES_FENTRY ? MOTE_NET_SET_FENTRY : MOTE_NET_SET_KPROBE;
	if (choice == MOTE_PROBES_FENTRY && features->preempt.preemptible)
		snprintf(plan->reason, sizeof(plan->reason),
			 "probes = fentry; this kernel preempts BPF programs (%s): bytes are lost",
			 features->preempt.model);
	else if (choice == MOTE_PROBES_KPROBE)
		snprintf(plan->reason, sizeof(plan->reason), "probes = kprobe");
}

const char *mote_net_refused(const struct mote_options *options,
			     const struct mote_features *features)
{
	if (options->mote_probes == MOTE_PROBES_NONE)
		return "probes = none";
	if (!options->network_tcp && !options->network_udp)
		return "[network] tcp and udp are off";
	if (!options->network_ipv4 && !options->network_ipv6)
		return "[network] ipv4 and ipv6 are off";
	if (features->pid_namespace)
		return "in a pid namespace of its own: BPF would give the host's pids";
	if (features->lockdown == MOTE_LOCKDOWN_CONFIDENTIALITY)
		return "lockdown=confidentiality: BPF programs may not read kernel memory";
	return NULL;
}

const char *mote_net_unwanted(const struct mote_options *options, enum mote_net_event event)
{
	switch (event) {
	case MOTE_NET_TCP:
	case MOTE_NET_STATE:
		return options->network_tcp ? NULL : "[network] tcp = off";
	case MOTE_NET_UDP_SEND:
	case MOTE_NET_UDP_RECV:
	case MOTE_NET_DESTROY:
		return options->network_udp ? NULL : "[network] udp = off";
	default:
		return "no such event";
	}
}

unsigned int mote_net_hooks(enum mote_net_set set, enum mote_net_event event, unsigned int version,
			    const struct mote_net_hook *out[MOTE_NET_HOOKS_MAX])
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
		if (hooks[i].event == event && hooks[i].sets >> set & 1 &&
		    hooks[i].since <= version && n < MOTE_NET_HOOKS_MAX)
			out[n++] = &hooks[i];
	}
	return n;
}

const char *mote_net_unfit(const struct mote_net_hook *hook, const struct mote_features *features)
{
	if (hook->sets == KPROBE && !features->kprobes)
		return "the kernel has no kprobe event source (CONFIG_KPROBE_EVENTS)";
	if (hook->sets == FENTRY && !*features->btf)
		return "the kernel has no BTF";
	if (hook->sets == BOTH && !features->tracepoints)
		return "the kernel has no tracepoint event source (CONFIG_TRACEPOINTS)";
	return NULL;
}

unsigned int mote_net_hook_programs(const struct mote_net_hook *hook,
				    const struct mote_options *options)
{
	unsigned int programs = hook->programs;

	for (unsigned int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		if (mote_net_programs[i].need == MOTE_NET_IPV6 && !options->network_ipv6)
			programs &= ~MOTE_NET_BIT(i);
	}
	return programs;
}
