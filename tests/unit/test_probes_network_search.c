// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What is tried after what failed, with failures of kernels that are known. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probes_network_search.h"

#define VERSION(major, minor) ((major) << 8 | (minor))

static struct mote_options options = {
	.network_tcp = true,
	.network_udp = true,
	.network_ipv4 = true,
	.network_ipv6 = true,
};

static struct mote_features features;

static int setup(void **state)
{
	features = (struct mote_features){
		.version = VERSION(6, 12), .btf = "btf", .kprobes = true, .tracepoints = true
	};
	return 0;
}

static bool failed(struct mote_net_search *s, int program, int err, const char *reason)
{
	struct mote_net_failure failure = { .program = program, .err = err };

	snprintf(failure.reason, sizeof(failure.reason), "%s", reason);
	return mote_net_search_failed(s, &features, &failure);
}

#define assert_hook(s, event, text)                                     \
	do {                                                            \
		assert_non_null((s)->pick.hook[event]);                 \
		assert_string_equal((s)->pick.hook[event]->name, text); \
	} while (0)

static void begins_with_the_first(void **state)
{
	struct mote_net_search s;

	mote_net_search_begin(&s, MOTE_NET_SET_FENTRY, &options, &features);
	assert_true(mote_net_search_meets(&s, MOTE_NET_SOME));
	assert_true(mote_net_search_meets(&s, MOTE_NET_ALL));
	assert_hook(&s, MOTE_NET_TCP, "fentry/release_sock");
	assert_hook(&s, MOTE_NET_UDP_SEND, "tp/sock_send_length");
	assert_hook(&s, MOTE_NET_UDP_RECV, "fentry/skb_consume_udp");
	assert_hook(&s, MOTE_NET_STATE, "tp/inet_sock_set_state");
	assert_hook(&s, MOTE_NET_DESTROY, "fentry/sk_common_release");
	for (int i = 0; i < MOTE_NET_EVENTS; i++)
		assert_string_equal(s.reason[i], "");
}

/* arm64 5.10 and 6.1 load trampolines and do not attach them: nothing is left of the set there. */
static void gives_up_all_trampolines_at_once(void **state)
{
	struct mote_net_search s;

	features.version = VERSION(6, 1);
	mote_net_search_begin(&s, MOTE_NET_SET_FENTRY, &options, &features);
	assert_true(failed(&s, MOTE_NET_RELEASE_SOCK, -MOTE_ENOTSUPP, "not attached"));
	assert_false(mote_net_search_meets(&s, MOTE_NET_SOME));
	assert_false(mote_net_search_meets(&s, MOTE_NET_ALL));
	assert_false(mote_net_search_meets(&s, MOTE_NET_BYTES));
	assert_string_equal(s.reason[MOTE_NET_TCP], "not attached");
	assert_string_equal(s.reason[MOTE_NET_UDP_RECV], "not attached");
	assert_hook(&s, MOTE_NET_STATE, "tp/inet_sock_set_state");
}

static void falls_to_tracepoints_where_trampolines_are_refused(void **state)
{
	struct mote_net_search s;

	mote_net_search_begin(&s, MOTE_NET_SET_FENTRY, &options, &features);
	assert_true(failed(&s, MOTE_NET_SKB_CONSUME_UDP, -EPERM, "not permitted"));
	assert_true(mote_net_search_meets(&s, MOTE_NET_SOME));
	assert_hook(&s, MOTE_NET_TCP, "tp/sock_send_length");
	assert_hook(&s, MOTE_NET_UDP_RECV, "tp/sock_recv_length");
	assert_null(s.pick.hook[MOTE_NET_DESTROY]);
	assert_false(mote_net_search_meets(&s, MOTE_NET_ALL));
}

/* Of one function only: the others stay where they are. */
static void moves_one_event_on(void **state)
{
	struct mote_net_search s;

	mote_net_search_begin(&s, MOTE_NET_SET_KPROBE, &options, &features);
	assert_true(failed(&s, MOTE_NET_RELEASE_SOCK, -ENOENT, "no release_sock"));
	assert_hook(&s, MOTE_NET_TCP, "tp/sock_send_length");
	assert_hook(&s, MOTE_NET_UDP_RECV, "kprobe/skb_consume_udp");
	assert_string_equal(s.reason[MOTE_NET_TCP], "no release_sock");
	assert_string_equal(s.reason[MOTE_NET_UDP_RECV], "");
	assert_true(mote_net_search_meets(&s, MOTE_NET_ALL));
}

/* One program, two events: both leave it. */
static void moves_all_that_share_a_program(void **state)
{
	struct mote_net_search s;

	features.kprobes = false;
	mote_net_search_begin(&s, MOTE_NET_SET_KPROBE, &options, &features);
	assert_hook(&s, MOTE_NET_TCP, "tp/sock_send_length");
	assert_hook(&s, MOTE_NET_UDP_SEND, "tp/sock_send_length");
	assert_true(failed(&s, MOTE_NET_SEND_LENGTH, -ENOENT, "no tracepoint"));
	assert_null(s.pick.hook[MOTE_NET_TCP]);
	assert_null(s.pick.hook[MOTE_NET_UDP_SEND]);
	assert_hook(&s, MOTE_NET_UDP_RECV, "tp/sock_recv_length");
	/* The first reason stays: it is the one of the better hook. */
	assert_non_null(strstr(s.reason[MOTE_NET_TCP], "CONFIG_KPROBE_EVENTS"));
	assert_string_equal(s.reason[MOTE_NET_UDP_SEND], "no tracepoint");
}

static void falls_to_the_return_probe_that_loses(void **state)
{
	struct mote_net_search s;

	features.version = VERSION(5, 10);
	mote_net_search_begin(&s, MOTE_NET_SET_KPROBE, &options, &features);
	assert_int_equal(s.pick.hook[MOTE_NET_UDP_SEND]->held, 512);
	assert_true(failed(&s, MOTE_NET_UDP_SENDMSG_RET, -EACCES, "tracefs is read-only"));
	assert_hook(&s, MOTE_NET_UDP_SEND, "kretprobe/udp_sendmsg");
	assert_int_equal(s.pick.hook[MOTE_NET_UDP_SEND]->held, 0);
	assert_string_equal(s.reason[MOTE_NET_UDP_SEND], "tracefs is read-only");
	assert_true(failed(&s, MOTE_NET_UDP_SENDMSG_RET, -EACCES, "no return probes"));
	assert_null(s.pick.hook[MOTE_NET_UDP_SEND]);
	assert_false(failed(&s, MOTE_NET_UDP_SENDMSG_RET, -EACCES, "again"));
}

/* A kernel without IPv6 has no udpv6_sendmsg, and loses nothing by it. */
static void does_without_ipv6(void **state)
{
	struct mote_net_search s;

	features.version = VERSION(5, 10);
	mote_net_search_begin(&s, MOTE_NET_SET_KPROBE, &options, &features);
	assert_true(failed(&s, MOTE_NET_UDPV6_SENDMSG, -ENOENT, "no udpv6_sendmsg"));
	assert_int_equal(s.pick.hook[MOTE_NET_UDP_SEND]->held, 512);
	assert_int_equal(s.pick.without, MOTE_NET_BIT(MOTE_NET_UDPV6_SENDMSG));
	assert_string_equal(s.reason[MOTE_NET_UDP_SEND], "");
	/* But not without permission for it. */
	assert_true(failed(&s, MOTE_NET_UDPV6_SENDMSG_RET, -EACCES, "refused"));
	assert_int_equal(s.pick.hook[MOTE_NET_UDP_SEND]->held, 0);
}

static void does_without_iterators_but_reap(void **state)
{
	struct mote_net_search s;

	mote_net_search_begin(&s, MOTE_NET_SET_KPROBE, &options, &features);
	assert_true(failed(&s, MOTE_NET_ITER_TCP, -EINVAL, "no iter/tcp"));
	assert_int_equal(s.pick.without, MOTE_NET_BIT(MOTE_NET_ITER_TCP));
	assert_true(mote_net_search_meets(&s, MOTE_NET_ALL));
	assert_false(failed(&s, MOTE_NET_REAP_RUN, -EINVAL, "no iter/task"));
	assert_false(mote_net_search_meets(&s, MOTE_NET_SOME));
	mote_net_search_begin(&s, MOTE_NET_SET_KPROBE, &options, &features);
	assert_false(failed(&s, -1, -ENOMEM, "no memory"));
	assert_false(mote_net_search_meets(&s, MOTE_NET_SOME));
	assert_string_equal(s.last, "no memory");
}

static void knows_what_is_off(void **state)
{
	struct mote_options tcp = options;
	struct mote_net_search s;

	tcp.network_udp = false;
	mote_net_search_begin(&s, MOTE_NET_SET_KPROBE, &tcp, &features);
	assert_null(s.pick.hook[MOTE_NET_UDP_SEND]);
	assert_non_null(strstr(s.reason[MOTE_NET_UDP_SEND], "udp = off"));
	assert_true(mote_net_search_meets(&s, MOTE_NET_ALL));
	assert_true(mote_net_search_meets(&s, MOTE_NET_SOME));
}

static void tells_how_much_counts(void **state)
{
	struct mote_net_search s;

	mote_net_search_begin(&s, MOTE_NET_SET_KPROBE, &options, &features);
	assert_true(mote_net_search_meets(&s, MOTE_NET_ALL));
	s.pick.hook[MOTE_NET_DESTROY] = NULL;
	assert_false(mote_net_search_meets(&s, MOTE_NET_ALL));
	assert_true(mote_net_search_meets(&s, MOTE_NET_BYTES));
	s.pick.hook[MOTE_NET_TCP] = s.pick.hook[MOTE_NET_UDP_SEND] = NULL;
	assert_false(mote_net_search_meets(&s, MOTE_NET_BYTES));
	assert_true(mote_net_search_meets(&s, MOTE_NET_SOME));
	s.pick.hook[MOTE_NET_UDP_RECV] = NULL;
	assert_false(mote_net_search_meets(&s, MOTE_NET_SOME));
}

/* Whatever fails, in any order, it comes to an end. */
static void ends(void **state)
{
	for (unsigned int set = 0; set < MOTE_NET_SETS; set++) {
		for (unsigned int step = 1; step < MOTE_NET_PROGRAMS; step++) {
			struct mote_net_search s;
			unsigned int tries = 0, program = 0, refused = 0;

			mote_net_search_begin(&s, set, &options, &features);
			while (refused < MOTE_NET_PROGRAMS &&
			       mote_net_search_meets(&s, MOTE_NET_SOME)) {
				unsigned int used = 0;

				program = (program + step) % MOTE_NET_PROGRAMS;
				for (int e = 0; e < MOTE_NET_EVENTS; e++)
					used |= s.pick.hook[e] ? s.pick.hook[e]->programs : 0;
				if (used >> program & 1 && failed(&s, (int)program, -EACCES, "no"))
					refused = 0;
				else
					refused++;
				assert_true(++tries < 1000);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(begins_with_the_first, setup),
		cmocka_unit_test_setup(gives_up_all_trampolines_at_once, setup),
		cmocka_unit_test_setup(falls_to_tracepoints_where_trampolines_are_refused, setup),
		cmocka_unit_test_setup(moves_one_event_on, setup),
		cmocka_unit_test_setup(moves_all_that_share_a_program, setup),
		cmocka_unit_test_setup(falls_to_the_return_probe_that_loses, setup),
		cmocka_unit_test_setup(does_without_ipv6, setup),
		cmocka_unit_test_setup(does_without_iterators_but_reap, setup),
		cmocka_unit_test_setup(knows_what_is_off, setup),
		cmocka_unit_test_setup(tells_how_much_counts, setup),
		cmocka_unit_test_setup(ends, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
