// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/net/dev and the rule of its `total` row: leaf devices only (B10), never falling, whatever
 * comes, goes, starts anew or changes its place.
 */
#include "parse_test.h"

#define HEADER                                                                                     \
	"Inter-|   Receive                                                |  Transmit\n"           \
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs " \
	"drop fifo colls carrier compressed\n"

static const char netdev[] = HEADER
	"    lo:    3267      29    0    0    0     0          0         0     3267      29    0    0    0     0       0          0\n"
	"  eth0: 26279936     704    1    2    3     4          5         6    35021     433    7    8    9    10      11         12\n"
	"   br0:     500       5    0    0    0     0          0         0      600       6    0    0    0     0       0          0\n"
	"wlp3s0:18446744073709551615 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

/* Names in `leaves` are leaves, those in `unknown` not known yet. */
struct places {
	const char *leaves, *unknown;
};

static int is_leaf(void *ctx, const char *name)
{
	const struct places *places = ctx;

	if (places->unknown && strstr(places->unknown, name))
		return -1;
	return strstr(places->leaves, name) != NULL;
}

static struct mote_table *table;
static uint64_t now;

static int setup(void **state)
{
	table = mote_table_new(MOTE_STREAM_NETDEV, 16, 16);
	now = 0;
	return !table;
}

static int teardown(void **state)
{
	mote_table_free(table);
	return 0;
}

/* A sample of devices `a`, `b` with these received bytes (NULL: the device is not there). */
static void sample(const char *a, const char *b, const char *leaves, const char *unknown)
{
	struct places places = { leaves, unknown };
	char text[1024], *end = text;

	end += sprintf(end, HEADER);
	if (a)
		end += sprintf(end, "  dev_a: %s 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", a);
	if (b)
		sprintf(end, "  dev_b: %s 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", b);
	assert_int_equal(mote_parse_netdev(check_text(text), table, ++now, is_leaf, &places), 0);
}

static uint64_t total(void)
{
	return value_of(table, "total", NETDEV_RX_BYTES);
}

static void all_columns(void **state)
{
	static const uint64_t want[] = { 26279936, 704, 1, 2, 3, 4,  5,  6,
					 35021,    433, 7, 8, 9, 10, 11, 12 };
	struct places places = { "eth0", NULL };

	assert_int_equal(mote_parse_netdev(check_text(netdev), table, 1, is_leaf, &places), 0);
	for (unsigned int i = 0; i < 16; i++) {
		assert_int_equal(value_of(table, "eth0", NETDEV_RX_BYTES + i), want[i]);
		assert_int_equal(value_of(table, "total", NETDEV_RX_BYTES + i), want[i]);
	}
	assert_int_equal(value_of(table, "eth0", NETDEV_LEAF), 1);
	assert_int_equal(value_of(table, "br0", NETDEV_LEAF), 0);
	assert_true(is_absent(table, "total", NETDEV_LEAF));
	/* a wide number stands right after the colon */
	assert_true(value_of(table, "wlp3s0", NETDEV_RX_BYTES) == UINT64_MAX);
	assert_int_equal(value_of(table, "wlp3s0", NETDEV_RX_PACKETS), 1);
}

static void odd_names_and_lines(void **state)
{
	static const char text[] = HEADER "a|b-%.@:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n"
					  " \xff\xc3: 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
					  " short: 1 2 3\n"
					  " two words: 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
					  " : 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
					  " total: 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
					  " a|b-%.@: 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
	struct places places = { "a|b-%.@ total", NULL };

	for (uint64_t t = 1; t < 3; t++)
		assert_int_equal(mote_parse_netdev(check_text(text), table, t, is_leaf, &places),
				 0);
	assert_true(check_unchanged(table, 2));
	assert_int_equal(value_of(table, "a|b-%.@", NETDEV_RX_BYTES), 1);
	assert_int_equal(value_of(table, "a|b-%.@", NETDEV_TX_COMPRESSED), 16);
	assert_int_equal(value_of(table, "\xff\xc3", NETDEV_RX_BYTES), 1);
	assert_null(check_find(table, "short"));
	assert_null(check_find(table, "two"));
	assert_int_equal(total(), 1);
}

static void the_first_sample_counts_in_full(void **state)
{
	sample("1000", "200", "dev_a", NULL);
	assert_int_equal(total(), 1000);
	sample("1010", "900", "dev_a", NULL);
	assert_int_equal(total(), 1010);
	assert_int_equal(value_of(table, "dev_b", NETDEV_RX_BYTES), 900);
}

static void a_later_device_counts_from_where_it_is_first_seen(void **state)
{
	sample("1000", NULL, "dev_a dev_b", NULL);
	sample("1000", "5000", "dev_a dev_b", NULL);
	assert_int_equal(total(), 1000);
	sample("1000", "5007", "dev_a dev_b", NULL);
	assert_int_equal(total(), 1007);
}

static void a_device_that_goes_leaves_its_bytes(void **state)
{
	sample("1000", "500", "dev_a dev_b", NULL);
	sample("1000", NULL, "dev_a dev_b", NULL);
	assert_int_equal(total(), 1500);
	sample("1001", "3", "dev_a dev_b", NULL);
	assert_int_equal(total(), 1501);
	sample("1001", "5", "dev_a dev_b", NULL);
	assert_int_equal(total(), 1503);
	assert_int_equal(value_of(table, "dev_b", NETDEV_RX_BYTES), 5);
	assert_int_equal(mote_row_get(mote_table_totals(table), NETDEV_RX_BYTES), 500);
}

static void a_device_that_starts_anew(void **state)
{
	sample("1000", NULL, "dev_a", NULL);
	sample("0", NULL, "dev_a", NULL);
	assert_int_equal(total(), 1000);
	sample("10", NULL, "dev_a", NULL);
	assert_int_equal(total(), 1010);
	sample("9", NULL, "dev_a", NULL);
	assert_int_equal(total(), 1010);
}

static void a_place_that_is_known_late(void **state)
{
	/* there from the start: in full, once it is known for a leaf */
	sample("1000", "70", "dev_a dev_b", "dev_a dev_b");
	assert_int_equal(total(), 0);
	assert_true(is_absent(table, "dev_a", NETDEV_LEAF));
	sample("1001", "71", "dev_a dev_b", "dev_b");
	assert_int_equal(total(), 1001);
	sample("1003", "72", "dev_a", NULL);
	assert_int_equal(total(), 1003);
	/* known once: `not known` is a passing failure to look it up */
	sample("1005", "73", "dev_a", "dev_a");
	assert_int_equal(total(), 1005);
	assert_int_equal(value_of(table, "dev_a", NETDEV_LEAF), 1);
}

/* What a cut first text does not list is no later device. */
static void a_first_sample_that_is_cut(void **state)
{
	struct places places = { "dev_a dev_b", NULL };
	static const char cut[] = HEADER "dev_a: 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
					 "dev_b: 50";

	assert_int_equal(mote_parse_netdev(check_text(cut), table, ++now, is_leaf, &places),
			 -EBADMSG);
	assert_int_equal(total(), 1000);
	sample("1001", "500", "dev_a dev_b", NULL);
	assert_int_equal(total(), 1501);
}

static void a_place_that_changes(void **state)
{
	sample("1000", "200", "dev_a", NULL);
	sample("1010", "210", "dev_a dev_b", NULL); /* dev_b counts what it did in this tick */
	assert_int_equal(total(), 1020);
	sample("1020", "220", "dev_b", NULL);
	assert_int_equal(total(), 1030);
	sample("1030", "230", "dev_b", NULL);
	assert_int_equal(total(), 1040);
}

static void foreign_text_is_refused(void **state)
{
	struct places places = { "", NULL };

	sample("1", NULL, "dev_a", NULL);
	assert_int_equal(mote_parse_netdev(check_text("8 0 sda 1\n"), table, ++now, is_leaf,
					   &places),
			 -EBADMSG);
	assert_int_equal(mote_parse_netdev((struct mote_text){ NULL, 0 }, table, ++now, is_leaf,
					   &places),
			 -EBADMSG);
	assert_int_equal(value_of(table, "dev_a", NETDEV_RX_BYTES), 1);
}

static int parse_eth0(struct mote_text text, struct mote_table *t, uint64_t time)
{
	struct places places = { "eth0", NULL };

	return mote_parse_netdev(text, t, time, is_leaf, &places);
}

static void cut_anywhere(void **state)
{
	check_cuts(parse_eth0, MOTE_STREAM_NETDEV, netdev, false);
}

/* The total equals a model's sum under random devices, values, restarts and places. */
static void equals_a_model(void **state)
{
	uint64_t raw[2] = { 500, 100 }, want = 0, late = 0;
	bool there[2] = { false, false };

	srand(2);
	for (int i = 0; i < 2000; i++) {
		bool leaf[2] = { rand() % 4 != 0, rand() % 4 != 0 };
		bool is[2] = { rand() % 8 != 0, rand() % 8 != 0 };
		char text[2][24], leaves[16] = "";

		for (int d = 0; d < 2; d++) {
			uint64_t more = rand() % 50;

			if (is[d] && there[d] && rand() % 10 == 0)
				raw[d] = 0; /* anew: no more than half of a few samples' */
			else
				raw[d] += more;
			if (is[d] && leaf[d] && i == 0)
				want += raw[d];
			else if (is[d] && leaf[d] && there[d] && raw[d])
				want += more;
			else if (is[d] && !there[d] && i)
				late++;
			there[d] = is[d];
			snprintf(text[d], sizeof(text[d]), "%lu", (unsigned long)raw[d]);
			if (leaf[d])
				strcat(leaves, d ? "dev_b " : "dev_a ");
		}
		sample(is[0] ? text[0] : NULL, is[1] ? text[1] : NULL, leaves, NULL);
		assert_int_equal(total(), want);
	}
	assert_true(want > 10000 && late > 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_columns),
		TEST(odd_names_and_lines),
		TEST(the_first_sample_counts_in_full),
		TEST(a_later_device_counts_from_where_it_is_first_seen),
		TEST(a_device_that_goes_leaves_its_bytes),
		TEST(a_device_that_starts_anew),
		TEST(a_place_that_is_known_late),
		TEST(a_first_sample_that_is_cut),
		TEST(a_place_that_changes),
		TEST(foreign_text_is_refused),
		TEST(cut_anywhere),
		TEST(equals_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
