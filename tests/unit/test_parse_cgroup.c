// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Texts of cgroupfs, of both versions, as kernels write them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "parse_cgroup.h"
#include "parse_check.h"

#define BIT(value) (1ull << MOTE_CGROUP_##value)

static const struct mote_cgroup_file *file_of(unsigned int version, const char *name)
{
	unsigned int n;
	const struct mote_cgroup_file *files = mote_cgroup_files(version, &n);

	for (unsigned int i = 0; i < n; i++) {
		if (!strcmp(files[i].name, name))
			return &files[i];
	}
	fail_msg("no file %s", name);
	return NULL;
}

static int parse(unsigned int version, const char *name, const char *text,
		 struct mote_cgroup_values *values)
{
	size_t len = strlen(text);
	char *copy = check_copy(text, len);
	int err =
		mote_parse_cgroup(file_of(version, name), (struct mote_text){ copy, len }, values);

	free(copy);
	return err;
}

/* {value, what it should be}, ended by MOTE_CGROUP_VALUES; nothing else is present. */
struct want {
	unsigned int value;
	uint64_t v;
};
#define END                           \
	{                             \
		MOTE_CGROUP_VALUES, 0 \
	}

static void expect(unsigned int version, const char *name, const char *text,
		   const struct want *want)
{
	struct mote_cgroup_values values = { 0 };
	uint64_t present = 0;

	assert_int_equal(parse(version, name, text, &values), 0);
	for (; want->value < MOTE_CGROUP_VALUES; want++) {
		present |= 1ull << want->value;
		if (values.v[want->value] != want->v)
			fail_msg("%s: value %u is %llu", name, want->value,
				 (unsigned long long)values.v[want->value]);
	}
	assert_int_equal(values.present, present);
	assert_int_equal(values.present & ~file_of(version, name)->gives, 0);
}

#define EXPECT(version, name, text, ...) \
	expect(version, name, text, (const struct want[]){ __VA_ARGS__, END })

static void version_2(void **state)
{
	EXPECT(2, "cpu.stat",
	       "usage_usec 5000001\nuser_usec 3\nsystem_usec 4\nnice_usec 0\nnr_periods 7\n"
	       "nr_throttled 2\nthrottled_usec 9\nnr_bursts 0\nburst_usec 0\n",
	       { MOTE_CGROUP_CPU_USAGE, 5000001000 }, { MOTE_CGROUP_CPU_USER, 3000 },
	       { MOTE_CGROUP_CPU_SYSTEM, 4000 }, { MOTE_CGROUP_CPU_PERIODS, 7 },
	       { MOTE_CGROUP_CPU_THROTTLED, 2 }, { MOTE_CGROUP_CPU_THROTTLED_TIME, 9000 });
	EXPECT(2, "cpu.stat", "usage_usec 1\nuser_usec 1\nsystem_usec 0\n",
	       { MOTE_CGROUP_CPU_USAGE, 1000 }, { MOTE_CGROUP_CPU_USER, 1000 },
	       { MOTE_CGROUP_CPU_SYSTEM, 0 });
	EXPECT(2, "memory.stat",
	       "anon 4096\nfile 8192\nkernel 3\nkernel_stack 1\nshmem 5\nfile_dirty 6\n"
	       "inactive_file 7\nslab 8\npgfault 9\nworkingset_refault_anon 10\npgscan 11\n"
	       "pgscan_kswapd 99\n",
	       { MOTE_CGROUP_ANON, 4096 }, { MOTE_CGROUP_FILE, 8192 }, { MOTE_CGROUP_KERNEL, 3 },
	       { MOTE_CGROUP_SHMEM, 5 }, { MOTE_CGROUP_FILE_DIRTY, 6 },
	       { MOTE_CGROUP_INACTIVE_FILE, 7 }, { MOTE_CGROUP_SLAB, 8 },
	       { MOTE_CGROUP_PGFAULT, 9 }, { MOTE_CGROUP_REFAULT_ANON, 10 },
	       { MOTE_CGROUP_PGSCAN, 11 });
	EXPECT(2, "memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n",
	       { MOTE_CGROUP_LOW, 1 }, { MOTE_CGROUP_HIGH, 2 }, { MOTE_CGROUP_MAX, 3 },
	       { MOTE_CGROUP_OOM, 4 }, { MOTE_CGROUP_OOM_KILL, 5 });
	EXPECT(2, "memory.events.local", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 5\n",
	       { MOTE_CGROUP_LOCAL_LOW, 0 }, { MOTE_CGROUP_LOCAL_HIGH, 0 },
	       { MOTE_CGROUP_LOCAL_MAX, 0 }, { MOTE_CGROUP_LOCAL_OOM, 0 },
	       { MOTE_CGROUP_LOCAL_OOM_KILL, 5 });
	EXPECT(2, "cgroup.stat", "nr_descendants 3\nnr_subsys_cpu 1\nnr_dying_descendants 2\n",
	       { MOTE_CGROUP_DESCENDANTS, 3 }, { MOTE_CGROUP_DYING, 2 });
	EXPECT(2, "memory.max", "1048576\n", { MOTE_CGROUP_MEMORY_MAX, 1048576 });
	EXPECT(2, "cpu.max", "150000 100000\n", { MOTE_CGROUP_CPU_QUOTA, 150000000 },
	       { MOTE_CGROUP_CPU_PERIOD, 100000000 });
	EXPECT(2, "cpu.max", "max 100000\n", { MOTE_CGROUP_CPU_PERIOD, 100000000 });
	EXPECT(2, "io.stat",
	       "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n259:0 \n"
	       "8:16 rbytes=10 wbytes=20 rios=30 wios=40 dbytes=0 dios=0 cost.usage=7\n",
	       { MOTE_CGROUP_IO_READ_BYTES, 11 }, { MOTE_CGROUP_IO_WRITE_BYTES, 22 },
	       { MOTE_CGROUP_IO_READS, 33 }, { MOTE_CGROUP_IO_WRITES, 44 });
	EXPECT(2, "io.stat", "", { MOTE_CGROUP_IO_READ_BYTES, 0 },
	       { MOTE_CGROUP_IO_WRITE_BYTES, 0 }, { MOTE_CGROUP_IO_READS, 0 },
	       { MOTE_CGROUP_IO_WRITES, 0 });
	EXPECT(2, "memory.pressure",
	       "some avg10=0.00 avg60=1.00 avg300=0.10 total=123\n"
	       "full avg10=0.00 avg60=0.00 avg300=0.00 total=45\n",
	       { MOTE_CGROUP_MEMORY_SOME, 123 }, { MOTE_CGROUP_MEMORY_FULL, 45 });
	EXPECT(2, "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=6\n",
	       { MOTE_CGROUP_CPU_SOME, 6 });
	EXPECT(2, "cgroup.procs", "1\n22\n333\n", { MOTE_CGROUP_PROCESSES, 3 });
	EXPECT(2, "cgroup.freeze", "1\n", { MOTE_CGROUP_FROZEN, 1 });
}

static void version_1(void **state)
{
	EXPECT(1, "cpuacct.usage", "123456789\n", { MOTE_CGROUP_CPU_USAGE, 123456789 });
	EXPECT(1, "cpuacct.stat", "user 3\nsystem 4\n", { MOTE_CGROUP_CPU_USER, 30000000 },
	       { MOTE_CGROUP_CPU_SYSTEM, 40000000 });
	EXPECT(1, "cpu.stat", "nr_periods 1\nnr_throttled 2\nthrottled_time 3\n",
	       { MOTE_CGROUP_CPU_PERIODS, 1 }, { MOTE_CGROUP_CPU_THROTTLED, 2 },
	       { MOTE_CGROUP_CPU_THROTTLED_TIME, 3 });
	EXPECT(1, "cpu.shares", "1024\n", { MOTE_CGROUP_CPU_WEIGHT, 100 });
	EXPECT(1, "cpu.shares", "2\n", { MOTE_CGROUP_CPU_WEIGHT, 0 });
	EXPECT(1, "cpu.cfs_quota_us", "50000\n", { MOTE_CGROUP_CPU_QUOTA, 50000000 });
	EXPECT(1, "memory.limit_in_bytes", "4096\n", { MOTE_CGROUP_MEMORY_MAX, 4096 });
	EXPECT(1, "memory.stat", "cache 1\nrss 2\ntotal_cache 10\ntotal_rss 20\ntotal_pgfault 30\n",
	       { MOTE_CGROUP_FILE, 10 }, { MOTE_CGROUP_ANON, 20 }, { MOTE_CGROUP_PGFAULT, 30 });
	EXPECT(1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
	       { MOTE_CGROUP_LOCAL_OOM_KILL, 3 });
	EXPECT(1, "blkio.throttle.io_service_bytes_recursive",
	       "8:0 Read 1\n8:0 Write 2\n8:0 Sync 3\n8:0 Total 3\n8:16 Read 10\nTotal 13\n",
	       { MOTE_CGROUP_IO_READ_BYTES, 11 }, { MOTE_CGROUP_IO_WRITE_BYTES, 2 });
	EXPECT(1, "freezer.self_freezing", "0\n", { MOTE_CGROUP_FROZEN, 0 });
	EXPECT(1, "freezer.self_freezing", "1\n", { MOTE_CGROUP_FROZEN, 1 });
}

/* What has no limit has none, and what it was before is gone. */
static void no_limit(void **state)
{
	static const struct {
		unsigned int version;
		const char *name, *text;
		uint64_t bit;
	} rows[] = {
		{ 2, "memory.max", "max\n", BIT(MEMORY_MAX) },
		{ 2, "pids.max", "max\n", BIT(PIDS_MAX) },
		{ 2, "cpu.max", "max 100000\n", BIT(CPU_QUOTA) },
		{ 1, "memory.limit_in_bytes", "9223372036854771712\n", BIT(MEMORY_MAX) },
		{ 1, "memory.limit_in_bytes", "9223372036854710272\n", BIT(MEMORY_MAX) },
		{ 1, "cpu.cfs_quota_us", "-1\n", BIT(CPU_QUOTA) },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mote_cgroup_values values = { .present = ~0ull };

		assert_int_equal(parse(rows[i].version, rows[i].name, rows[i].text, &values), 0);
		assert_false(values.present & rows[i].bit);
	}
}

/* A text cut anywhere within a line is refused, or its last line left out. */
static void cuts(void **state)
{
	static const char text[] = "usage_usec 11\nuser_usec 22\nsystem_usec 33\n";
	const struct mote_cgroup_file *file = file_of(2, "cpu.stat");

	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		struct mote_cgroup_values values = { .present = BIT(CPU_USAGE) };
		char *copy = check_copy(text, len);
		int err = mote_parse_cgroup(file, (struct mote_text){ copy, len }, &values);

		free(copy);
		assert_int_equal(err, len && text[len - 1] != '\n' ? -EBADMSG : 0);
		if (err)
			assert_int_equal(values.present, BIT(CPU_USAGE));
	}
}

static void nonsense(void **state)
{
	struct mote_cgroup_values values = { .present = BIT(MEMORY_CURRENT) };

	assert_int_equal(parse(2, "memory.current", "x\n", &values), -EBADMSG);
	assert_int_equal(parse(2, "memory.current", "", &values), -EBADMSG);
	assert_int_equal(parse(2, "memory.current", "-1\n", &values), -EBADMSG);
	assert_int_equal(parse(2, "cpu.max", "max\n", &values), -EBADMSG);
	assert_int_equal(parse(1, "cpu.shares", "99999999999\n", &values), -EBADMSG);
	assert_int_equal(values.present, BIT(MEMORY_CURRENT));
	/* too large for ns: absent */
	assert_int_equal(parse(2, "cpu.stat", "usage_usec 18446744073709551615\n", &values), 0);
	assert_false(values.present & BIT(CPU_USAGE));
}

/* Every value but those that only the walk has comes from one file, or two that part it. */
static void every_value(void **state)
{
	unsigned int n;
	const struct mote_cgroup_file *files = mote_cgroup_files(2, &n);
	uint64_t gives = 0;

	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(gives & files[i].gives, 0);
		gives |= files[i].gives;
	}
	assert_int_equal(gives, (1ull << MOTE_CGROUP_VALUES) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_2), cmocka_unit_test(version_1),
		cmocka_unit_test(no_limit),  cmocka_unit_test(cuts),
		cmocka_unit_test(nonsense),  cmocka_unit_test(every_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
