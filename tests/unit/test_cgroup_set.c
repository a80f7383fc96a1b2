// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The set of known cgroups: the tree, names, rows, filters, what finds no room, and what ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cgroup_filter.h"
#include "cgroup_set.h"

static struct mote_options options;
static struct mote_cgroup_set set;

static int begin(void **state)
{
	mote_options_default(&options);
	options.tables_cgroups = 16;
	return mote_cgroup_set_open(&set, &options, NULL, NULL);
}

static int end(void **state)
{
	mote_cgroup_set_close(&set);
	return 0;
}

static bool add(uint64_t id, uint64_t parent, const char *name, uint64_t now)
{
	return mote_cgroup_set_add(&set, id, parent, (struct mote_text){ name, strlen(name) }, now,
				   now);
}

static const char *path_of(uint64_t id)
{
	static char path[MOTE_CGROUP_PATH];
	const struct mote_cgroup_slot *slot = mote_cgroup_set_find(&set, id);
	uint32_t len;

	assert_non_null(slot);
	len = mote_cgroup_set_path(&set, slot->node, path, sizeof(path) - 1);
	path[len] = '\0';
	return path;
}

static uint32_t row_of(uint64_t id)
{
	const struct mote_cgroup_slot *slot = mote_cgroup_set_find(&set, id);

	assert_non_null(slot);
	return slot->row;
}

static void paths(void **state)
{
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	assert_true(add(1, 0, "", 5));
	assert_true(add(2, 1, "system.slice", 5));
	assert_true(add(3, 2, name, 5));
	assert_false(add(5, 4, "orphan", 5));
	assert_string_equal(path_of(1), "/");
	assert_string_equal(path_of(2), "/system.slice");
	assert_int_equal(strlen(path_of(3)), 13 + 1 + 255);
	assert_true(add(2, 1, "system.slice", 6));
	assert_int_equal(mote_cgroup_set_find(&set, 2)->seen, 6);
	mote_cgroup_set_remove(&set, 3, 7);
	assert_null(mote_cgroup_set_find(&set, 3));
	assert_int_equal(set.known, 2);
	/* all of the name's room is there again */
	for (unsigned int i = 0; i < 1000; i++) {
		assert_true(add(100 + i, 2, name, 8));
		mote_cgroup_set_remove(&set, 100 + i, 9);
	}
}

/* A cgroup whose parent is gone and whose place another has shows no strange path. */
static void parent_gone(void **state)
{
	add(1, 0, "", 1);
	add(2, 1, "a", 1);
	add(3, 2, "b", 1);
	mote_cgroup_set_remove(&set, 2, 2);
	assert_null(mote_cgroup_set_find(&set, 2));
	/* it has its name as long as events may tell of it */
	assert_string_equal(path_of(3), "/a/b");
	assert_int_equal(mote_cgroup_set_node(&set, 2), 1);
	mote_cgroup_set_bury(&set);
	assert_int_equal(mote_cgroup_set_node(&set, 2), MOTE_CGROUP_NONE);
	add(4, 3, "c", 2);
	assert_string_equal(path_of(3), "/b");
	assert_string_equal(path_of(4), "/b/c");
}

static void no_room(void **state)
{
	struct mote_fill fill;
	char name[16];

	add(1, 0, "", 1);
	for (unsigned int i = 2; i <= 16; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		assert_true(add(i, 1, name, 1));
		assert_true(row_of(i) < 16);
	}
	assert_true(add(17, 1, "more", 1));
	assert_int_equal(row_of(17), 16);
	/* a part of `more`, which is summed as it is; and so is what is below it, at any level */
	assert_true(add(18, 17, "part", 1));
	assert_int_equal(row_of(18), 17);
	assert_true(add(21, 18, "part", 1));
	assert_int_equal(row_of(21), 17);
	assert_true(add(22, 21, "part", 1));
	assert_int_equal(row_of(22), 17);
	assert_true(add(19, 2, "below", 1));
	assert_int_equal(row_of(19), 16);
	mote_cgroup_set_fill(&set, &fill);
	assert_int_equal(fill.fill, 16);
	assert_int_equal(fill.peak, 16);
	assert_int_equal(fill.dropped, 5);
	assert_int_equal(set.others, 5);
	/* nodes end, too: the rest has no name, and is known all the same */
	for (unsigned int i = 0; i < 20; i++)
		assert_true(add(100 + i, 1, "x", 1));
	assert_int_equal(mote_cgroup_set_find(&set, 119)->node, MOTE_CGROUP_NONE);
	assert_int_equal(row_of(119), 16);
	assert_true(add(120, 119, "x", 1) && add(121, 22, "x", 1));
	assert_int_equal(row_of(120), 17);
	assert_int_equal(row_of(121), 17);
	mote_cgroup_set_remove(&set, 121, 2);
	mote_cgroup_set_remove(&set, 120, 2);
	for (unsigned int i = 0; i < 20; i++)
		mote_cgroup_set_remove(&set, 100 + i, 2);
	assert_int_equal(set.others, 5);
	mote_cgroup_set_remove(&set, 2, 2);
	assert_true(add(20, 1, "new", 3));
	assert_true(row_of(20) < 16);
}

static uint64_t pseudo(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 20;
}

static uint64_t some_id(unsigned int i)
{
	return 2 + ((uint64_t)i << (i % 3 ? 0 : 32));
}

/* Against a plain list of what is there. */
static void index_holds(void **state)
{
	enum { IDS = 300, MOST = 128 };
	bool there[IDS] = { false };
	uint64_t seed = 7;

	add(1, 0, "", 1);
	for (unsigned int round = 0; round < 20000; round++) {
		unsigned int i = (unsigned int)(pseudo(&seed) % IDS);

		if (there[i])
			mote_cgroup_set_remove(&set, some_id(i), round);
		else if (set.known < MOST)
			assert_true(add(some_id(i), 1, "x", round));
		else
			continue;
		there[i] = !there[i];
		for (unsigned int k = 0; k < IDS; k++)
			assert_int_equal(there[k], mote_cgroup_set_find(&set, some_id(k)) != NULL);
	}
	for (unsigned int k = 0; k < IDS; k++)
		mote_cgroup_set_remove(&set, some_id(k), 1);
	mote_cgroup_set_remove(&set, 1, 1);
	mote_cgroup_set_bury(&set);
	assert_int_equal(set.known, 0);
	assert_int_equal(set.used_nodes, 0);
	assert_int_equal(set.nfree, set.fresh_row);
	for (uint32_t i = 0; i <= set.mask; i++)
		assert_int_equal(set.index[i].id, 0);
}

/* What a listing did not have goes, but not what came after it began. */
static void sweep(void **state)
{
	add(1, 0, "", 10);
	add(2, 1, "gone", 10);
	add(3, 1, "stays", 10);
	add(1, 0, "", 20);
	add(3, 1, "stays", 20);
	mote_cgroup_set_add(&set, 4, 1, (struct mote_text){ "new", 3 }, 25, 30);
	mote_cgroup_set_sweep(&set, 20, 20, 40);
	assert_null(mote_cgroup_set_find(&set, 2));
	assert_non_null(mote_cgroup_set_find(&set, 1));
	assert_non_null(mote_cgroup_set_find(&set, 3));
	assert_non_null(mote_cgroup_set_find(&set, 4));
}

static void values(void **state)
{
	struct mote_cgroup_values v = { .present = 3, .v = { 10, 20 } };
	struct mote_cgroup_row *row;

	add(1, 0, "", 1);
	row = &set.rows[row_of(1)];
	mote_cgroup_row_take(row, 7, &v, 5);
	assert_int_equal(row->changed, 5);
	mote_cgroup_row_take(row, 7, &v, 6);
	assert_int_equal(row->changed, 5);
	v.v[1] = 21;
	mote_cgroup_row_take(row, 2, &v, 7);
	assert_int_equal(row->changed, 7);
	v.present = 1;
	mote_cgroup_row_take(row, 3, &v, 8);
	assert_int_equal(row->present, 1);
	assert_int_equal(row->changed, 8);
	mote_cgroup_set_remove(&set, 1, 9);
	assert_int_equal(set.totals.v[0], 10);
	assert_int_equal(set.totals.present, 1);
}

/* More ended than are remembered: who missed them must be given a keyframe. */
static void ended(void **state)
{
	uint64_t cursor = 0;
	unsigned int n = 0;
	msgpack_sbuffer buf;
	msgpack_packer pk;

	msgpack_sbuffer_init(&buf);
	msgpack_packer_init(&pk, &buf, msgpack_sbuffer_write);
	add(1, 0, "", 1);
	for (unsigned int i = 0; i < 64; i++) {
		add(100 + i, 1, "x", 2);
		mote_cgroup_set_remove(&set, 100 + i, 10 + i);
	}
	assert_false(mote_cgroup_source.forgot(&set, 2));
	while (mote_cgroup_source.ended(&set, 40, &cursor, &pk))
		n++;
	assert_int_equal(n, 33);
	add(200, 1, "x", 2);
	mote_cgroup_set_remove(&set, 200, 100);
	assert_true(mote_cgroup_source.forgot(&set, 2));
	assert_false(mote_cgroup_source.forgot(&set, 10));
	msgpack_sbuffer_destroy(&buf);
}

static bool matches(const char *patterns, const char *path)
{
	return mote_cgroup_matches(patterns, (struct mote_text){ path, strlen(path) });
}

static void patterns(void **state)
{
	assert_true(matches("/system.slice", "/system.slice"));
	assert_true(matches("/system.slice", "/system.slice/a.service"));
	assert_false(matches("/system.slice", "/system.slicer"));
	assert_false(matches("/system", "/system.slice"));
	assert_true(matches("/a /b*", "/bc"));
	assert_true(matches("*.scope", "/x/docker-1.scope/below"));
	assert_true(matches("*docker-?.scope", "/x/docker-1.scope"));
	assert_false(matches("*docker-?.scope", "/x/docker-12.scope"));
	assert_false(matches("", "/a"));
	assert_false(matches("  ", "/a"));
	assert_true(matches("*a*b*c", "/xaxbxabc"));
	assert_false(matches("*a*b*c", "/xaxbxabd"));
}

static void filters(void **state)
{
	strcpy(options.cgroup_include, "/kubepods* /system.slice");
	strcpy(options.cgroup_exclude, "*/secret*");
	options.cgroup_depth = 2;
	add(1, 0, "", 1);
	add(2, 1, "system.slice", 1);
	add(3, 2, "a.service", 1);
	add(4, 3, "deep", 1);
	add(5, 2, "secret.service", 1);
	add(6, 1, "user.slice", 1);
	assert_int_equal(row_of(1), MOTE_CGROUP_NONE);
	assert_true(row_of(2) < 16 && row_of(3) < 16);
	assert_int_equal(row_of(4), MOTE_CGROUP_NONE);
	assert_int_equal(row_of(5), MOTE_CGROUP_NONE);
	assert_int_equal(row_of(6), MOTE_CGROUP_NONE);
	assert_int_equal(set.dropped, 0);
}

/* Rows that become free are given to those that had none. */
static void rows_become_free(void **state)
{
	uint64_t dropped;
	char name[16];

	add(1, 0, "", 1);
	for (unsigned int i = 2; i <= 16; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		add(i, 1, name, 1);
	}
	add(17, 1, "more", 1);
	add(18, 17, "part", 1);
	add(19, 18, "of", 1);
	mote_cgroup_set_reseat(&set, true, 2);
	assert_int_equal(row_of(17), 16);
	mote_cgroup_set_remove(&set, 2, 2);
	mote_cgroup_set_reseat(&set, true, 3);
	assert_true(row_of(17) < 16);
	assert_int_equal(set.rows[row_of(17)].node, mote_cgroup_set_node(&set, 17));
	assert_int_equal(set.rows[row_of(17)].changed, 3);
	assert_int_equal(row_of(18), 16);
	assert_int_equal(row_of(19), 17);
	assert_int_equal(set.others, 2);
	for (unsigned int i = 3; i < 9; i++)
		mote_cgroup_set_remove(&set, i, 4);
	mote_cgroup_set_reseat(&set, true, 5);
	assert_true(row_of(18) < 16 && row_of(19) < 16);
	assert_int_equal(set.others, 0);
	/* those without a name are told of anew, from above, and were counted already */
	for (unsigned int i = 0; i < 30; i++)
		add(100 + i, 1, "x", 6);
	for (unsigned int i = 0; i < 20; i++)
		add(200 + i, 129 + (i > 0 ? 70 + i : 0), "below", 6);
	dropped = set.dropped;
	assert_int_equal(row_of(129), 16);
	assert_int_equal(row_of(200), 17);
	assert_int_equal(mote_cgroup_set_find(&set, 129)->node, MOTE_CGROUP_NONE);
	for (unsigned int i = 0; i < 25; i++)
		mote_cgroup_set_remove(&set, 100 + i, 7);
	mote_cgroup_set_bury(&set);
	mote_cgroup_set_reseat(&set, true, 8);
	assert_null(mote_cgroup_set_find(&set, 129));
	assert_null(mote_cgroup_set_find(&set, 219));
	assert_true(add(129, 1, "x", 9));
	for (unsigned int i = 0; i < 20; i++)
		assert_true(add(200 + i, 129 + (i > 0 ? 70 + i : 0), "below", 9));
	assert_true(row_of(129) < 16 && row_of(200) < 16);
	assert_int_equal(row_of(219), 17);
	assert_int_equal(set.dropped, dropped);
}

/* Those that there is not even a place for are counted once. */
static void unplaced(void **state)
{
	mote_cgroup_set_unplaced(&set, 5);
	mote_cgroup_set_unplaced(&set, 5);
	mote_cgroup_set_unplaced(&set, 7);
	mote_cgroup_set_unplaced(&set, 0);
	assert_int_equal(set.dropped, 7);
}

/* What is hidden takes no room from what is not, whoever comes first. */
static void hidden_takes_no_room(void **state)
{
	strcpy(options.cgroup_include, "/kubepods* /a?/b");
	options.cgroup_depth = 3;
	add(1, 0, "", 1);
	add(2, 1, "user.slice", 1);
	for (unsigned int i = 0; i < 40; i++)
		assert_true(add(100 + i, 2, "session.scope", 1));
	add(3, 1, "kubepods", 1);
	for (unsigned int i = 0; i < 12; i++)
		assert_true(add(200 + i, 3, "pod", 1));
	add(4, 1, "ax", 1);
	add(5, 4, "b", 1);
	add(6, 5, "c", 1);
	for (unsigned int i = 0; i < 40; i++)
		assert_true(add(300 + i, 6, "too deep", 1));
	for (unsigned int i = 0; i < 12; i++)
		assert_true(row_of(200 + i) < 16);
	assert_string_equal(path_of(6), "/ax/b/c");
	assert_true(row_of(3) < 16 && row_of(5) < 16 && row_of(6) < 16);
	assert_int_equal(row_of(4), MOTE_CGROUP_NONE);
	assert_int_equal(row_of(139), MOTE_CGROUP_NONE);
	assert_int_equal(row_of(339), MOTE_CGROUP_NONE);
	assert_int_equal(set.dropped, 0);
	assert_int_equal(set.others, 0);
	/* and what is shown is summed, whether it has a name or not */
	add(7, 1, "kubepods.slice", 1);
	for (unsigned int i = 0; i < 40; i++)
		assert_true(add(400 + i, 1, "kubepods-pod", 1));
	assert_int_equal(mote_cgroup_set_find(&set, 439)->node, MOTE_CGROUP_NONE);
	assert_int_equal(row_of(439), 16);
	assert_true(add(500, 1, "user-2.slice", 1));
	assert_int_equal(row_of(500), MOTE_CGROUP_NONE);
}

static bool below(const char *path, unsigned int level)
{
	return mote_cgroup_shown_below(&options, (struct mote_text){ path, strlen(path) }, level);
}

static void may_be_shown_below(void **state)
{
	strcpy(options.cgroup_include, "/a/b/c /d*/e /f/?/g");
	strcpy(options.cgroup_exclude, "/dx");
	assert_true(below("/", 0));
	assert_true(below("/a", 1) && below("/a/b", 2));
	assert_false(below("/a/c", 2) || below("/ab", 1) || below("/b", 1));
	assert_true(below("/d", 1) && below("/dy/z", 2));
	assert_false(below("/dx", 1) || below("/dx/y", 2));
	assert_true(below("/f/x", 2));
	assert_false(below("/f/xx", 2));
	options.cgroup_depth = 2;
	assert_true(below("/a", 1));
	assert_false(below("/a/b", 2));
	strcpy(options.cgroup_include, "*/z");
	options.cgroup_depth = 0;
	assert_true(below("/any/where", 2));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(paths),
		TEST(parent_gone),
		TEST(no_room),
		TEST(index_holds),
		TEST(sweep),
		TEST(values),
		TEST(ended),
		TEST(patterns),
		TEST(filters),
		TEST(hidden_takes_no_room),
		TEST(may_be_shown_below),
		TEST(rows_become_free),
		TEST(unplaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
