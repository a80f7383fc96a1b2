// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Runs that the kernel left out, from texts of fdinfo. */
#include "network_fixture.h"
#include "network_impl.h"

#define FIRST_PROGRAM (100u + NETWORK_FILES)

static const char told[] = "pos:\t0\nflags:\t02000002\nprog_type:\t26\nrun_cnt:\t0\n"
			   "recursion_misses:\t41\nverified_insns:\t96\n";
static const char untold[] = "pos:\t0\nflags:\t02000002\nprog_type:\t26\nrun_cnt:\t0\n";

/* Completes the reads of two programs' texts; returns how many there were. */
static unsigned int read_texts(struct fixture *f, const char *a, const char *b)
{
	unsigned int n = 0;

	f->now += 250 * MS;
	mote_network_push(f->network, &f->engine.base, 100, f->now, true);
	while (f->engine.n) {
		struct mote_sqe sqe = fake_take(&f->engine, 0);
		uint32_t file = mote_tag_index(sqe.tag);
		const char *text = file == FIRST_PROGRAM ? a : b;
		size_t len = strlen(text);

		if (file < FIRST_PROGRAM) {
			mote_network_complete(f->network, file - 100, 0, 0);
			continue;
		}
		assert_true(len <= sqe.len);
		memcpy(sqe.buf, text, len);
		mote_network_complete(f->network, file - 100, 0, len ? (int)len : -EIO);
		n++;
	}
	mote_network_sample(f->network, 0, f->now);
	return n;
}

static struct mote_network_stats stats_of(struct fixture *f)
{
	struct mote_network_stats stats;

	mote_network_stats(f->network, f->now, &stats);
	return stats;
}

static void misses_are_summed_now_and_then(void **state)
{
	struct fixture *f = fixture_new(64, 64);

	/* Any descriptors: what they tell is made here. */
	f->maps.programs[0] = f->maps.programs[1] = f->dirfd;
	f->maps.nprograms = 2;
	fixture_open(f);
	assert_false(stats_of(f).has_misses);
	assert_int_equal(read_texts(f, told, told), 2);
	assert_true(stats_of(f).has_misses);
	assert_int_equal(stats_of(f).misses, 82);
	assert_int_equal(read_texts(f, told, told), 0); /* not before 10 s are over */
	f->now += 10 * S;
	assert_int_equal(read_texts(f, told, untold), 2);
	assert_false(stats_of(f).has_misses); /* before 5.12 */
	f->now += 10 * S;
	assert_int_equal(read_texts(f, "", told), 2);
	assert_false(stats_of(f).has_misses);
	fixture_free(f);
}

/* As on 5.10: nothing of the programs, and the return probes between those of others. */
static void return_probes_tell_what_they_missed(void **state)
{
	static const char profile[] =
		"  other                                                 5               7\n"
		"  mote_12_udp_sendmsg                                  72            2808\n"
		"  mote_12_udpv6_sendmsg                                 3               2\n";
	struct fixture *f = fixture_new(64, 64);

	f->maps.programs[0] = f->dirfd;
	f->maps.nprograms = 1;
	f->maps.profile = f->dirfd;
	f->maps.kretprobes[0] = "mote_12_udp_sendmsg";
	f->maps.kretprobes[1] = "mote_12_udpv6_sendmsg";
	f->maps.nkretprobes = 2;
	fixture_open(f);
	assert_int_equal(read_texts(f, untold, profile), 2);
	assert_true(stats_of(f).has_misses);
	assert_int_equal(stats_of(f).misses, 2810);
	f->now += 10 * S;
	assert_int_equal(read_texts(f, told, profile), 2);
	assert_int_equal(stats_of(f).misses, 2851);
	f->now += 10 * S;
	assert_int_equal(read_texts(f, untold, "  other 5 7\n"), 2);
	assert_false(stats_of(f).has_misses);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misses_are_summed_now_and_then),
		cmocka_unit_test(return_probes_tell_what_they_missed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
