// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * mountinfo: the fields, octal, what is left out, mounts that cover others, bounds, and text that
 * is cut or foreign.
 */
#include "parse_mounts.h"
#include "parse_test.h"

static struct mote_mounts *parse(unsigned int max, const char *text)
{
	struct mote_mounts *list = mote_mounts_new(max);

	assert_non_null(list);
	assert_int_equal(mote_mounts_parse(list, check_text(text)), strlen(text));
	return list;
}

static const char *point(const struct mote_mounts *list, unsigned int i)
{
	assert_true(i < list->used);
	return list->text + list->mounts[i].point;
}

/* The mount points in their order, parted by blanks. */
static void check_points(unsigned int max, const char *text, const char *expected)
{
	struct mote_mounts *list = parse(max, text);
	char points[256] = "";

	for (unsigned int i = 0; i < list->used; i++) {
		if (i)
			strcat(points, " ");
		strcat(points, point(list, i));
	}
	assert_string_equal(points, expected);
	mote_mounts_free(list);
}

static void fields(void **state)
{
	struct mote_mounts *list =
		parse(4, "27 1 254:7 / / rw,relatime - ext4 /dev/vda rw,discard\n"
			 "36 27 0:41 /sub /mnt/data ro shared:1 master:2 propagate_from:3 - nfs4 "
			 "server:/export rw\n");
	const struct mote_mount *mount = &list->mounts[1];

	assert_int_equal(list->used, 2);
	assert_string_equal(point(list, 0), "/");
	assert_string_equal(list->text + list->mounts[0].device, "/dev/vda");
	assert_string_equal(list->text + list->mounts[0].type, "ext4");
	assert_true(list->mounts[0].device_id == (254ull << 32 | 7));
	assert_true(list->mounts[0].local);
	assert_int_equal(mount->id, 36);
	assert_int_equal(mount->parent, 27);
	assert_true(mount->device_id == 41);
	assert_string_equal(point(list, 1), "/mnt/data");
	assert_string_equal(list->text + mount->device, "server:/export");
	assert_string_equal(list->text + mount->type, "nfs4");
	assert_false(mount->local);
	assert_false(mount->space.known);
	mote_mounts_free(list);
}

static void octal(void **state)
{
	struct mote_mounts *list =
		parse(4,
		      "36 1 8:1 / /a\\040b\\011c\\012d\\134e\\04\\9 rw - xfs /dev/my\\040disk rw\n"
		      "37 1 8:2 / /caf\\303\\251 rw - xfs x rw\n");

	assert_string_equal(point(list, 0), "/a b\tc\nd\\e\\04\\9");
	assert_string_equal(list->text + list->mounts[0].device, "/dev/my disk");
	assert_string_equal(point(list, 1), "/caf\303\251");
	mote_mounts_free(list);
}

static void empty_device(void **state)
{
	struct mote_mounts *list = parse(4, "64 63 0:40 / /tmp/x rw,relatime - tmpfs  rw\n");

	assert_int_equal(list->used, 1);
	assert_string_equal(list->text + list->mounts[0].device, "");
	mote_mounts_free(list);
}

static void pseudo_types_are_left_out(void **state)
{
	check_points(8,
		     "22 27 0:21 / /proc rw - proc proc rw\n"
		     "23 27 0:22 / /sys rw - sysfs sysfs rw\n"
		     "24 27 0:6 / /dev rw - devtmpfs devtmpfs rw\n"
		     "26 24 0:24 / /dev/pts rw - devpts devpts rw\n"
		     "27 1 254:0 / / rw - overlay overlay rw,lowerdir=/a:/b\n"
		     "28 23 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		     "29 27 0:31 / /run rw - tmpfs tmpfs rw\n"
		     "30 27 0:32 / /home/u/.gvfs rw - fuse.gvfsd-fuse gvfsd-fuse rw\n"
		     "31 27 0:33 / /data rw - fuse.sshfs h:/ rw\n",
		     "/dev / /run /data");
}

static void the_last_on_a_point_wins(void **state)
{
	struct mote_mounts *list = parse(4, "30 1 8:1 / /m rw - xfs one rw\n"
					    "31 30 8:2 / /m rw - xfs two rw\n");

	assert_int_equal(list->used, 1);
	assert_string_equal(list->text + list->mounts[0].device, "two");
	mote_mounts_free(list);
	/* a pseudo filesystem covers as well */
	check_points(4,
		     "30 1 8:1 / /m rw - xfs one rw\n"
		     "31 30 0:9 / /m rw - proc proc rw\n",
		     "");
	/* the one below comes later: its child on the same point has it covered */
	list = parse(4, "31 30 8:2 / /m rw - xfs two rw\n"
			"30 1 8:1 / /m rw - xfs one rw\n");
	assert_int_equal(list->used, 1);
	assert_string_equal(list->text + list->mounts[0].device, "two");
	mote_mounts_free(list);
}

static void covered_from_above(void **state)
{
	/* as a kernel shows it: c was mounted on /x when a was there with b below it */
	check_points(8,
		     "60 1 8:1 / / rw - ext4 r rw\n"
		     "63 60 0:39 / /x rw - tmpfs a rw\n"
		     "64 63 0:40 / /x/b rw - tmpfs b rw\n"
		     "66 64 0:42 / /x/b/d rw - tmpfs d rw\n"
		     "67 60 0:43 / /xy rw - tmpfs e rw\n"
		     "65 63 0:41 / /x rw - tmpfs c rw\n",
		     "/ /xy /x");
	/* a root that came by pivot_root() stands behind its children and covers none of them */
	check_points(8,
		     "24 27 0:6 / /dev rw - tmpfs d rw\n"
		     "25 24 0:7 / /dev/shm rw - tmpfs s rw\n"
		     "27 1 8:1 / / rw - ext4 r rw\n",
		     "/dev /dev/shm /");
	/* but one that was mounted over the root's children does */
	check_points(8,
		     "27 1 8:1 / / rw - ext4 r rw\n"
		     "24 27 0:6 / /dev rw - tmpfs d rw\n"
		     "25 24 0:7 / /dev/shm rw - tmpfs s rw\n"
		     "30 27 8:2 / / rw - ext4 o rw\n",
		     "/");
}

static void what_does_not_fit_is_counted(void **state)
{
	struct mote_mounts *list = parse(2, "1 0 8:1 / /a rw - xfs a rw\n"
					    "2 0 8:2 / /b rw - xfs b rw\n"
					    "3 0 8:3 / /c rw - xfs c rw\n"
					    "4 0 8:3 / /d rw - proc c rw\n"
					    "5 2 8:5 / /b rw - xfs again rw\n");

	assert_int_equal(list->used, 2);
	assert_int_equal(list->turned_away, 1); /* c; d has no space and b made room for itself */
	assert_string_equal(list->text + list->mounts[1].device, "again");
	mote_mounts_clear(list);
	assert_int_equal(list->used + list->turned_away + list->text_used, 0);
	mote_mounts_free(list);
}

static void text_is_bounded(void **state)
{
	struct mote_mounts *list = mote_mounts_new(64);
	unsigned int lines = 0;
	char line[4300];

	do {
		int n = snprintf(line, sizeof(line), "%u 0 8:%u / /%04u%04000d rw - xfs dev rw",
				 lines, lines, lines, 0);
		assert_int_equal(mote_mounts_add(list, (struct mote_text){ line, n }), 0);
		lines++;
	} while (lines < 64);
	assert_true(list->used >= 4);
	assert_int_equal(list->used + list->turned_away, 64);
	assert_true(list->text_used <= list->text_max);
	/* a short one still fits, and a copy holds the same */
	struct mote_mounts *copy = mote_mounts_new(64);
	mote_mounts_copy(copy, list);
	assert_int_equal(copy->used, list->used);
	assert_int_equal(copy->turned_away, list->turned_away);
	assert_string_equal(point(copy, 3), point(list, 3));
	mote_mounts_free(copy);
	mote_mounts_free(list);
}

static void foreign_lines_are_passed_over(void **state)
{
	static const char *const bad[] = {
		"",
		"x 1 8:1 / /a rw - xfs a rw",
		"1 0 8 / /a rw - xfs a rw",
		"1 0 8:x / /a rw - xfs a rw",
		"1 0 8:1 /  rw - xfs a rw",
		"1 0 8:1 / /a rw xfs a rw",
		"1 0 8:1 / /a rw - xfs",
		"1 0 8:1 / /a rw - ",
		"99999999999 0 8:1 / /a rw - xfs a rw",
	};
	struct mote_mounts *list = mote_mounts_new(4);

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(mote_mounts_add(list, check_text(bad[i])), -EBADMSG);
	assert_int_equal(list->used, 0);
	/* cut behind the device: good enough */
	assert_int_equal(mote_mounts_add(list, check_text("1 0 8:1 / /a rw - xfs a")), 0);
	assert_int_equal(list->used, 1);
	mote_mounts_free(list);
}

static void cut_anywhere(void **state)
{
	static const char whole[] = "27 1 254:7 / / rw - ext4 /dev/vda rw\n"
				    "36 27 0:41 / /m\\040x ro shared:1 - nfs4 s:/e rw\n";
	const size_t first = strchr(whole, '\n') + 1 - whole;

	for (size_t cut = 0; cut < sizeof(whole); cut++) {
		struct mote_mounts *list = mote_mounts_new(4);
		char *copy = check_copy(whole, cut);
		size_t lines = (cut >= first) + (cut >= sizeof(whole) - 1);

		assert_int_equal(mote_mounts_parse(list, (struct mote_text){ copy, cut }),
				 lines == 0   ? 0
				 : lines == 1 ? first
					      : sizeof(whole) - 1);
		assert_int_equal(list->used, lines);
		free(copy);
		mote_mounts_free(list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),
		cmocka_unit_test(octal),
		cmocka_unit_test(empty_device),
		cmocka_unit_test(pseudo_types_are_left_out),
		cmocka_unit_test(the_last_on_a_point_wins),
		cmocka_unit_test(covered_from_above),
		cmocka_unit_test(what_does_not_fit_is_counted),
		cmocka_unit_test(text_is_bounded),
		cmocka_unit_test(foreign_lines_are_passed_over),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
