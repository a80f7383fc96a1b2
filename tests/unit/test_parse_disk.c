// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/diskstats of 14, 18 and 20 columns; partitions told apart, once a device; devices that
 * come, go and are replaced.
 */
#include "parse_test.h"

static const char disks_5_10[] =
	" 259       0 nvme0n1 33328 9392 2444634 7177 22885 8171 996024 3253 1 5412 10767 5436 53 146920 294 1201 41\n"
	" 259       1 nvme0n1p1 100 0 800 7 0 0 0 0 0 5 7 0 0 0 0 0 0\n"
	" 254       0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11\n"
	"   8       0 sda 1 2 3 4 5 6 7 8 0 10 11 12 13 14 15\n";

struct asked {
	unsigned int times;
	char last[32];
};

static bool is_partition(void *ctx, unsigned int major, unsigned int minor, const char *name)
{
	struct asked *asked = ctx;

	asked->times++;
	snprintf(asked->last, sizeof(asked->last), "%s %u:%u", name, major, minor);
	return minor != 0;
}

static int parse(struct mote_text text, struct mote_table *disk, uint64_t now)
{
	struct asked asked = { 0 };

	return mote_parse_diskstats(text, disk, now, is_partition, &asked);
}

static struct mote_table *disk_table(void)
{
	return mote_table_new(MOTE_STREAM_DISK, 16, 32);
}

static void all_columns(void **state)
{
	static const uint64_t want[] = { 33328,
					 9392,
					 2444634ull * 512,
					 7177,
					 22885,
					 8171,
					 996024ull * 512,
					 3253,
					 1,
					 5412,
					 10767,
					 5436,
					 53,
					 146920 * 512,
					 294,
					 1201,
					 41 };
	struct mote_table *disk = disk_table();

	assert_int_equal(parse(check_text(disks_5_10), disk, 1), 0);
	for (unsigned int i = 0; i < 17; i++)
		assert_int_equal(value_of(disk, "nvme0n1", DISK_READS + i), want[i]);
	assert_int_equal(value_of(disk, "nvme0n1p1", DISK_MAJOR), 259);
	assert_int_equal(value_of(disk, "nvme0n1p1", DISK_MINOR), 1);
	assert_int_equal(value_of(disk, "nvme0n1p1", DISK_PARTITION), 1);
	assert_int_equal(value_of(disk, "nvme0n1", DISK_PARTITION), 0);
	mote_table_free(disk);
}

static void older_kernels_have_fewer_columns(void **state)
{
	struct mote_table *disk = disk_table();

	assert_int_equal(parse(check_text(disks_5_10), disk, 1), 0);
	assert_int_equal(value_of(disk, "cciss/c0d0", DISK_WEIGHTED_IO_TIME), 11);
	assert_true(is_absent(disk, "cciss/c0d0", DISK_DISCARDS));
	assert_int_equal(value_of(disk, "sda", DISK_DISCARD_TIME), 15);
	assert_true(is_absent(disk, "sda", DISK_FLUSHES));
	mote_table_free(disk);
}

static void a_partition_is_asked_for_once(void **state)
{
	struct mote_table *disk = disk_table();
	struct asked asked = { 0 };

	for (uint64_t now = 1; now < 5; now++) {
		assert_int_equal(mote_parse_diskstats(check_text(disks_5_10), disk, now,
						      is_partition, &asked),
				 0);
	}
	assert_int_equal(asked.times, 4);
	assert_true(check_unchanged(disk, 4));
	/* another device of the same name */
	assert_int_equal(mote_parse_diskstats(check_text(
						      "   8      17 sda 1 2 3 4 5 6 7 8 0 10 11\n"),
					      disk, 6, is_partition, &asked),
			 0);
	assert_int_equal(asked.times, 5);
	assert_string_equal(asked.last, "sda 8:17");
	assert_int_equal(value_of(disk, "sda", DISK_PARTITION), 1);
	mote_table_free(disk);
}

static void devices_come_go_and_are_replaced(void **state)
{
	struct mote_table *disk = disk_table();
	unsigned int cursor = 0;

	assert_int_equal(parse(check_text("8 0 sda 900 0 0 0 0 0 0 0 0 0 0\n"), disk, 1), 0);
	assert_int_equal(parse(check_text("8 0 sda 10 0 0 0 0 0 0 0 0 0 0\n"
					  "8 16 sdb 5 0 0 0 0 0 0 0 0 0 0\n"),
			       disk, 2),
			 0);
	assert_int_equal(value_of(disk, "sda", DISK_READS), 900);
	assert_int_equal(parse(check_text("8 0 sda 12 0 0 0 0 0 0 0 0 0 0\n"), disk, 3), 0);
	assert_int_equal(value_of(disk, "sda", DISK_READS), 902);
	assert_string_equal(mote_table_ended(disk, 2, &cursor), "sdb");
	assert_int_equal(mote_row_get(mote_table_totals(disk), DISK_READS), 5);
	/* a host without disks */
	assert_int_equal(parse((struct mote_text){ NULL, 0 }, disk, 4), 0);
	assert_null(mote_table_next(disk, NULL));
	assert_int_equal(mote_row_get(mote_table_totals(disk), DISK_READS), 907);
	mote_table_free(disk);
}

/* Times are 32 bits of ms in the kernel: the value goes on where they wrap. */
static void a_32_bit_time_wraps(void **state)
{
	struct mote_table *disk = disk_table();

	parse(check_text("8 0 sda 1 0 0 4294967290 0 0 0 0 0 0 0\n"), disk, 1);
	parse(check_text("8 0 sda 1 0 0 4 0 0 0 0 0 0 0\n"), disk, 2);
	assert_int_equal(value_of(disk, "sda", DISK_READ_TIME), 4294967290);
	parse(check_text("8 0 sda 1 0 0 14 0 0 0 0 0 0 0\n"), disk, 3);
	assert_int_equal(value_of(disk, "sda", DISK_READ_TIME), 4294967300);
	mote_table_free(disk);
}

static void odd_lines(void **state)
{
	static const char text[] = "8 0 sda 1 2 3 4 5 6 7 8 -9 10 11 12 13 14 15 16 17 18 19 20\n"
				   "8 1 sda1 1 2 3 4\n"
				   "header line\n"
				   "8 0 sda 100 2 3 4 5 6 7 8 9 10 11\n"
				   "8 2 sda2 1 2 18446744073709551615 4 5 6 7 8 9 10 11\n";
	struct mote_table *disk = disk_table();

	for (uint64_t now = 1; now < 3; now++)
		assert_int_equal(parse(check_text(text), disk, now), 0);
	assert_true(check_unchanged(disk, 2));
	assert_int_equal(value_of(disk, "sda", DISK_READS), 1);
	assert_int_equal(value_of(disk, "sda", DISK_IN_FLIGHT), 0);
	assert_int_equal(value_of(disk, "sda", DISK_FLUSH_TIME), 17);
	assert_null(check_find(disk, "sda1"));
	assert_true(is_absent(disk, "sda2", DISK_READ_BYTES)); /* does not fit in bytes */
	assert_int_equal(parse(check_text("cpu 1 2 3\n"), disk, 3), -EBADMSG);
	assert_int_equal(value_of(disk, "sda", DISK_READS), 1);
	mote_table_free(disk);
}

static void cut_anywhere(void **state)
{
	check_cuts(parse, MOTE_STREAM_DISK, disks_5_10, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_columns),
		cmocka_unit_test(older_kernels_have_fewer_columns),
		cmocka_unit_test(a_partition_is_asked_for_once),
		cmocka_unit_test(devices_come_go_and_are_replaced),
		cmocka_unit_test(a_32_bit_time_wraps),
		cmocka_unit_test(odd_lines),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
