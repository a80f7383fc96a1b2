// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Which hooks are tried on which kernel, in which order: what docs/HOOKS.md says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probes_network_choice.h"

#define VERSION(major, minor) ((major) << 8 | (minor))

static struct mote_features kernel(unsigned int version, bool preemptible)
{
	struct mote_features f = {
		.version = version,
		.btf = "/sys/kernel/btf/vmlinux",
		.kprobes = true,
		.tracepoints = true,
		.preempt = { preemptible, "lazy", "somewhere" },
	};

	return f;
}

static struct mote_options everything(void)
{
	struct mote_options o = {
		.network_tcp = true,
		.network_udp = true,
		.network_ipv4 = true,
		.network_ipv6 = true,
	};

	return o;
}

static void plans_fentry_where_it_is_exact(void **state)
{
	struct mote_features f = kernel(VERSION(6, 12), false);
	struct mote_net_plan plan;

	mote_net_plan(&plan, MOTE_PROBES_AUTO, &f);
	assert_int_equal(plan.nsets, 2);
	assert_int_equal(plan.set[0], MOTE_NET_SET_FENTRY);
	assert_int_equal(plan.set[1], MOTE_NET_SET_KPROBE);
	assert_string_equal(plan.reason, "");
}

static void plans_kprobe_where_programs_are_preempted(void **state)
{
	struct mote_features f = kernel(VERSION(6, 18), true);
	struct mote_net_plan plan;

	mote_net_plan(&plan, MOTE_PROBES_AUTO, &f);
	assert_int_equal(plan.nsets, 1);
	assert_int_equal(plan.set[0], MOTE_NET_SET_KPROBE);
	assert_non_null(strstr(plan.reason, "preempts BPF programs (lazy, from somewhere)"));
}

static void plans_kprobe_without_btf(void **state)
{
	struct mote_features f = kernel(VERSION(5, 10), false);
	struct mote_net_plan plan;

	f.btf[0] = '\0';
	mote_net_plan(&plan, MOTE_PROBES_AUTO, &f);
	assert_int_equal(plan.nsets, 1);
	assert_int_equal(plan.set[0], MOTE_NET_SET_KPROBE);
	assert_non_null(strstr(plan.reason, "BTF"));
}

static void plans_what_is_forced(void **state)
{
	struct mote_features f = kernel(VERSION(7, 3), true);
	struct mote_net_plan plan;

	mote_net_plan(&plan, MOTE_PROBES_FENTRY, &f);
	assert_int_equal(plan.nsets, 1);
	assert_int_equal(plan.set[0], MOTE_NET_SET_FENTRY);
	assert_non_null(strstr(plan.reason, "bytes are lost"));
	f.preempt.preemptible = false;
	mote_net_plan(&plan, MOTE_PROBES_FENTRY, &f);
	assert_string_equal(plan.reason, "");
	mote_net_plan(&plan, MOTE_PROBES_KPROBE, &f);
	assert_int_equal(plan.nsets, 1);
	assert_int_equal(plan.set[0], MOTE_NET_SET_KPROBE);
	mote_net_plan(&plan, MOTE_PROBES_NONE, &f);
	assert_int_equal(plan.nsets, 0);
}

static void orders_hooks(void **state)
{
	static const struct {
		enum mote_net_set set;
		unsigned int version;
		enum mote_net_event event;
		const char *names[MOTE_NET_HOOKS_MAX + 1];
	} cases[] = {
		{ MOTE_NET_SET_FENTRY, VERSION(5, 10), MOTE_NET_TCP, { "fentry/release_sock" } },
		{ MOTE_NET_SET_FENTRY,
		  VERSION(6, 12),
		  MOTE_NET_TCP,
		  { "fentry/release_sock", "tp/sock_send_length" } },
		{ MOTE_NET_SET_KPROBE, VERSION(6, 2), MOTE_NET_TCP, { "kprobe/release_sock" } },
		{ MOTE_NET_SET_KPROBE,
		  VERSION(6, 3),
		  MOTE_NET_TCP,
		  { "kprobe/release_sock", "tp/sock_send_length" } },
		{ MOTE_NET_SET_FENTRY, VERSION(6, 1), MOTE_NET_UDP_SEND, { "fexit/udp_sendmsg" } },
		{ MOTE_NET_SET_FENTRY,
		  VERSION(6, 3),
		  MOTE_NET_UDP_SEND,
		  { "tp/sock_send_length", "fexit/udp_sendmsg" } },
		{ MOTE_NET_SET_KPROBE,
		  VERSION(5, 10),
		  MOTE_NET_UDP_SEND,
		  { "kretprobe/udp_sendmsg", "kretprobe/udp_sendmsg" } },
		{ MOTE_NET_SET_KPROBE,
		  VERSION(7, 3),
		  MOTE_NET_UDP_SEND,
		  { "tp/sock_send_length", "kretprobe/udp_sendmsg", "kretprobe/udp_sendmsg" } },
		{ MOTE_NET_SET_KPROBE,
		  VERSION(7, 3),
		  MOTE_NET_UDP_RECV,
		  { "kprobe/skb_consume_udp", "tp/sock_recv_length" } },
		{ MOTE_NET_SET_FENTRY,
		  VERSION(5, 10),
		  MOTE_NET_UDP_RECV,
		  { "fentry/skb_consume_udp" } },
		{ MOTE_NET_SET_KPROBE,
		  VERSION(5, 10),
		  MOTE_NET_STATE,
		  { "tp/inet_sock_set_state" } },
		{ MOTE_NET_SET_FENTRY,
		  VERSION(5, 10),
		  MOTE_NET_DESTROY,
		  { "fentry/sk_common_release" } },
	};
	const struct mote_net_hook *hooks[MOTE_NET_HOOKS_MAX];
	unsigned int n, i;

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		n = mote_net_hooks(cases[c].set, cases[c].event, cases[c].version, hooks);
		for (i = 0; cases[c].names[i]; i++) {
			if (i >= n || strcmp(hooks[i]->name, cases[c].names[i]) != 0)
				fail_msg("case %zu, hook %u: %s", c, i,
					 i < n ? hooks[i]->name : "none");
		}
		if (i != n)
			fail_msg("case %zu: %u hooks", c, n);
	}
}

/* The return probe that holds many comes before the one that does not, and only that one loses. */
static void prefers_the_return_probe_that_holds(void **state)
{
	const struct mote_net_hook *hooks[MOTE_NET_HOOKS_MAX];

	assert_int_equal(mote_net_hooks(MOTE_NET_SET_KPROBE, MOTE_NET_UDP_SEND, VERSION(5, 10),
					hooks),
			 2);
	assert_int_equal(hooks[0]->held, 512);
	assert_null(hooks[0]->note);
	assert_int_equal(hooks[1]->held, 0);
	assert_non_null(hooks[1]->note);
}

static void leaves_out_what_is_off(void **state)
{
	struct mote_options o = everything();
	const struct mote_net_hook *hooks[MOTE_NET_HOOKS_MAX];
	unsigned int v6 =
		MOTE_NET_BIT(MOTE_NET_UDPV6_SENDMSG) | MOTE_NET_BIT(MOTE_NET_UDPV6_SENDMSG_RET);

	mote_net_hooks(MOTE_NET_SET_KPROBE, MOTE_NET_UDP_SEND, VERSION(5, 10), hooks);
	assert_int_equal(mote_net_hook_programs(hooks[0], &o) & v6, v6);
	o.network_ipv6 = false;
	assert_int_equal(mote_net_hook_programs(hooks[0], &o) & v6, 0);
	assert_int_not_equal(mote_net_hook_programs(hooks[0], &o), 0);

	for (int e = 0; e < MOTE_NET_EVENTS; e++)
		assert_null(mote_net_unwanted(&o, e));
	o.network_udp = false;
	assert_null(mote_net_unwanted(&o, MOTE_NET_TCP));
	assert_null(mote_net_unwanted(&o, MOTE_NET_STATE));
	assert_non_null(mote_net_unwanted(&o, MOTE_NET_UDP_SEND));
	assert_non_null(mote_net_unwanted(&o, MOTE_NET_UDP_RECV));
	assert_non_null(mote_net_unwanted(&o, MOTE_NET_DESTROY));
	o = everything();
	o.network_tcp = false;
	assert_non_null(mote_net_unwanted(&o, MOTE_NET_TCP));
	assert_non_null(mote_net_unwanted(&o, MOTE_NET_STATE));
	assert_null(mote_net_unwanted(&o, MOTE_NET_UDP_SEND));
}

static void refuses_with_a_reason(void **state)
{
	struct mote_options o = everything();
	struct mote_features f = kernel(VERSION(6, 1), false);

	assert_null(mote_net_refused(&o, &f));
	f.lockdown = MOTE_LOCKDOWN_INTEGRITY;
	assert_null(mote_net_refused(&o, &f));
	f.lockdown = MOTE_LOCKDOWN_CONFIDENTIALITY;
	assert_non_null(strstr(mote_net_refused(&o, &f), "confidentiality"));
	f = kernel(VERSION(6, 1), false);
	f.pid_namespace = true;
	assert_non_null(strstr(mote_net_refused(&o, &f), "pid namespace"));
	f.pid_namespace = false;
	o.mote_probes = MOTE_PROBES_NONE;
	assert_string_equal(mote_net_refused(&o, &f), "probes = none");
	o = everything();
	o.network_tcp = o.network_udp = false;
	assert_non_null(mote_net_refused(&o, &f));
	o = everything();
	o.network_ipv4 = o.network_ipv6 = false;
	assert_non_null(mote_net_refused(&o, &f));
	o.network_ipv6 = true;
	assert_null(mote_net_refused(&o, &f));
}

static void knows_what_cannot_work(void **state)
{
	struct mote_features f = kernel(VERSION(6, 18), true);
	const struct mote_net_hook *hooks[MOTE_NET_HOOKS_MAX];

	assert_int_equal(mote_net_hooks(MOTE_NET_SET_KPROBE, MOTE_NET_TCP, f.version, hooks), 2);
	assert_null(mote_net_unfit(hooks[0], &f));
	assert_null(mote_net_unfit(hooks[1], &f));
	f.kprobes = false;
	assert_non_null(strstr(mote_net_unfit(hooks[0], &f), "CONFIG_KPROBE_EVENTS"));
	assert_null(mote_net_unfit(hooks[1], &f));
	f.tracepoints = false;
	assert_non_null(mote_net_unfit(hooks[1], &f));
}

/* Two hooks of an event would count it twice. */
static void has_one_program_for_each_target(void **state)
{
	for (int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		assert_non_null(mote_net_programs[i].name);
		assert_non_null(mote_net_programs[i].target);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(mote_net_programs[i].name,
						mote_net_programs[j].name);
	}
}

static void names_tiers(void **state)
{
	for (int i = 0; i < MOTE_NET_EVENTS; i++) {
		assert_non_null(mote_net_tier(i));
		assert_true(strlen(mote_net_tier(i)) < sizeof(((struct mote_tier *)0)->name));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(mote_net_tier(i), mote_net_tier(j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_fentry_where_it_is_exact),
		cmocka_unit_test(plans_kprobe_where_programs_are_preempted),
		cmocka_unit_test(plans_kprobe_without_btf),
		cmocka_unit_test(plans_what_is_forced),
		cmocka_unit_test(orders_hooks),
		cmocka_unit_test(prefers_the_return_probe_that_holds),
		cmocka_unit_test(leaves_out_what_is_off),
		cmocka_unit_test(refuses_with_a_reason),
		cmocka_unit_test(knows_what_cannot_work),
		cmocka_unit_test(has_one_program_for_each_target),
		cmocka_unit_test(names_tiers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
