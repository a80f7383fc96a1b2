// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/meminfo and /proc/vmstat of several kernels: lines that one kernel has and another has
 * not, in the order they are in, out of order and twice.
 */
#include "parse_test.h"

/* Linux 5.10, arm64 with CMA; the lines of zswap and others are not there yet */
static const char meminfo_5_10[] = "MemTotal:        8040200 kB\n"
				   "MemFree:          284096 kB\n"
				   "MemAvailable:    5513260 kB\n"
				   "Buffers:          178048 kB\n"
				   "Cached:          4813884 kB\n"
				   "SwapCached:           12 kB\n"
				   "Active:          2301480 kB\n"
				   "Inactive:        4410344 kB\n"
				   "Active(anon):       1548 kB\n"
				   "Inactive(anon):  1724144 kB\n"
				   "Active(file):    2299932 kB\n"
				   "Inactive(file):  2686200 kB\n"
				   "Unevictable:       13472 kB\n"
				   "Mlocked:           12508 kB\n"
				   "SwapTotal:       2097148 kB\n"
				   "SwapFree:        2090000 kB\n"
				   "Dirty:              3992 kB\n"
				   "Writeback:            64 kB\n"
				   "AnonPages:       1721232 kB\n"
				   "KernelStack:       14600 kB\n"
				   "ShadowCallStack:    3652 kB\n"
				   "PageTables:        20960 kB\n"
				   "NFS_Unstable:          0 kB\n"
				   "VmallocTotal:   135290290112 kB\n"
				   "Percpu:             2000 kB\n"
				   "CmaTotal:          65536 kB\n"
				   "CmaFree:           63488 kB\n"
				   "HugePages_Total:     512\n"
				   "HugePages_Free:      500\n"
				   "HugePages_Rsvd:        3\n"
				   "HugePages_Surp:        1\n"
				   "Hugepagesize:       2048 kB\n"
				   "Hugetlb:         1048576 kB\n";

/* Linux 7.0, x86-64 */
static const char meminfo_7_0[] = "MemTotal:       24683652 kB\n"
				  "MemFree:        24392040 kB\n"
				  "MemAvailable:   24349072 kB\n"
				  "SwapTotal:             0 kB\n"
				  "SwapFree:              0 kB\n"
				  "Zswap:               100 kB\n"
				  "Zswapped:            400 kB\n"
				  "Dirty:              3992 kB\n"
				  "KReclaimable:      87412 kB\n"
				  "PageTables:         2096 kB\n"
				  "SecPageTables:        16 kB\n"
				  "FilePmdMapped:         0 kB\n"
				  "Unaccepted:         4096 kB\n"
				  "Balloon:            1024 kB\n"
				  "HugePages_Total:       0\n"
				  "DirectMap4k:       26624 kB\n"
				  "DirectMap2M:     2070528 kB\n"
				  "DirectMap1G:    25165824 kB\n";

static const char vmstat_6_1[] = "nr_free_pages 6098010\n"
				 "nr_zone_inactive_anon 1786\n"
				 "numa_hit 1239302\n"
				 "numa_miss 0\n"
				 "nr_dirtied 183838\n"
				 "workingset_nodes 12\n"
				 "workingset_refault_anon 7\n"
				 "workingset_refault_file 8812\n"
				 "workingset_activate_anon 0\n"
				 "pgpgin 1222317\n"
				 "pgpgout 498012\n"
				 "pswpin 3\n"
				 "pswpout 4\n"
				 "pgalloc_dma 0\n"
				 "allocstall_dma32 1\n"
				 "allocstall_normal 2\n"
				 "allocstall_movable 3\n"
				 "pgfree 3302020\n"
				 "pgactivate 31802\n"
				 "pgdeactivate 11\n"
				 "pglazyfree 0\n"
				 "pgfault 2209012\n"
				 "pgmajfault 1201\n"
				 "pgrefill 12\n"
				 "pgscan_kswapd 13\n"
				 "pgscan_direct 14\n"
				 "pgsteal_kswapd 15\n"
				 "pgsteal_direct 16\n"
				 "pginodesteal 17\n"
				 "slabs_scanned 18\n"
				 "compact_stall 19\n"
				 "thp_fault_alloc 20\n"
				 "thp_collapse_alloc 21\n"
				 "numa_hint_faults 22\n"
				 "numa_pages_migrated 23\n"
				 "oom_kill 24\n"
				 "nr_unstable 0\n";

static struct mote_table *memory_table(void)
{
	return mote_table_new(MOTE_STREAM_MEMORY, 1, 2);
}

static void kib_become_bytes_and_pages_stay(void **state)
{
	struct mote_table *memory = memory_table();

	assert_int_equal(mote_parse_meminfo(check_text(meminfo_5_10), memory, 1), 0);
	assert_int_equal(value_of(memory, "", MEMORY_MEM_TOTAL), 8040200ull * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_INACTIVE_FILE), 2686200ull * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_VMALLOC_TOTAL), 135290290112ull * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_HUGEPAGES_TOTAL), 512);
	assert_int_equal(value_of(memory, "", MEMORY_HUGEPAGES_SURP), 1);
	assert_int_equal(value_of(memory, "", MEMORY_HUGEPAGESIZE), 2048 * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_CMA_FREE), 63488 * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_SHADOW_CALL_STACK), 3652 * 1024);
	assert_true(is_absent(memory, "", MEMORY_ZSWAP));
	assert_true(is_absent(memory, "", MEMORY_DIRECT_MAP_4K));
	mote_table_free(memory);
}

static void lines_of_later_kernels(void **state)
{
	struct mote_table *memory = memory_table();

	assert_int_equal(mote_parse_meminfo(check_text(meminfo_7_0), memory, 1), 0);
	assert_int_equal(value_of(memory, "", MEMORY_ZSWAPPED), 400 * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_SEC_PAGE_TABLES), 16 * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_UNACCEPTED), 4096 * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_BALLOON), 1024 * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_DIRECT_MAP_1G), 25165824ull * 1024);
	assert_int_equal(value_of(memory, "", MEMORY_SWAP_TOTAL), 0);
	assert_true(is_absent(memory, "", MEMORY_CMA_TOTAL));
	mote_table_free(memory);
}

static void unknown_odd_and_double_lines(void **state)
{
	struct mote_table *memory = memory_table();
	static const char text[] = "NewThing:  12 kB\n"
				   "MemFree:   5 kB\n"
				   "\n"
				   ":  7 kB\n"
				   "MemTotal:   99 kB\n"
				   "MemTotal:   1 kB\n"
				   "Dirty:      18446744073709551615 kB\n"
				   "Mapped:     -3 kB\n"
				   "Shmem:      x kB\n"
				   "Cached      4 kB\n"
				   "Slab:4 kB extra\n";

	for (uint64_t now = 1; now < 3; now++) {
		assert_int_equal(mote_parse_meminfo(check_text(text), memory, now), 0);
		assert_int_equal(value_of(memory, "", MEMORY_MEM_TOTAL), 99 * 1024);
		assert_int_equal(value_of(memory, "", MEMORY_MEM_FREE), 5 * 1024);
		assert_int_equal(value_of(memory, "", MEMORY_MAPPED), 0);
		assert_int_equal(value_of(memory, "", MEMORY_SLAB), 4 * 1024);
		assert_true(is_absent(memory, "", MEMORY_DIRTY));
		assert_true(is_absent(memory, "", MEMORY_SHMEM));
		assert_true(is_absent(memory, "", MEMORY_CACHED));
	}
	assert_true(check_unchanged(memory, 2));
	mote_table_free(memory);
}

/* The numbers 1 to 24 stand in the order of the file, for all that is not measured above. */
static void every_vmstat_field(void **state)
{
	struct mote_table *vm = mote_table_new(MOTE_STREAM_VM, 1, 2);

	assert_int_equal(mote_parse_vmstat(check_text(vmstat_6_1), vm, 1), 0);
	for (unsigned int i = 0; i < VM__FIELDS; i++)
		assert_false(is_absent(vm, "", i));
	assert_int_equal(value_of(vm, "", VM_PGPGIN), 1222317);
	assert_int_equal(value_of(vm, "", VM_PGFAULT), 2209012);
	assert_int_equal(value_of(vm, "", VM_WORKINGSET_REFAULT_ANON), 7);
	assert_int_equal(value_of(vm, "", VM_PGREFILL), 12);
	assert_int_equal(value_of(vm, "", VM_PGSTEAL_DIRECT), 16);
	assert_int_equal(value_of(vm, "", VM_NUMA_PAGES_MIGRATED), 23);
	assert_int_equal(value_of(vm, "", VM_OOM_KILL), 24);
	mote_table_free(vm);
}

static void numbers_of_64_bits_and_more(void **state)
{
	static const char text[] = "pgpgin 18446744073709551615\n"
				   "pgpgout 18446744073709551616\n"
				   "pswpin 184467440737095516150\n"
				   "pswpout 00000000000000000000000007\n"
				   "pgfault 36893488147419103233\n";
	struct mote_table *vm = mote_table_new(MOTE_STREAM_VM, 1, 2);

	assert_int_equal(mote_parse_vmstat(check_text(text), vm, 1), 0);
	assert_true(value_of(vm, "", VM_PGPGIN) == UINT64_MAX);
	assert_true(is_absent(vm, "", VM_PGPGOUT));
	assert_true(is_absent(vm, "", VM_PSWPIN));
	assert_int_equal(value_of(vm, "", VM_PSWPOUT), 7);
	assert_true(is_absent(vm, "", VM_PGFAULT));
	mote_table_free(vm);
}

/* The second time, too, when the table knows how long the text was. */
static void a_last_line_without_an_end(void **state)
{
	struct mote_table *vm = mote_table_new(MOTE_STREAM_VM, 1, 2);

	for (uint64_t now = 1; now < 4; now++)
		assert_int_equal(mote_parse_vmstat(check_text("pgpgin 1\nunknown 2"), vm, now),
				 -EBADMSG);
	mote_table_free(vm);
}

static void foreign_text_is_refused(void **state)
{
	struct mote_table *memory = memory_table(), *vm = mote_table_new(MOTE_STREAM_VM, 1, 2);
	struct mote_text none = { NULL, 0 };

	assert_int_equal(mote_parse_meminfo(none, memory, 1), -EBADMSG);
	assert_int_equal(mote_parse_vmstat(none, vm, 1), -EBADMSG);
	assert_int_equal(mote_parse_meminfo(check_text(meminfo_7_0), memory, 2), 0);
	assert_int_equal(mote_parse_meminfo(check_text(vmstat_6_1), memory, 3), -EBADMSG);
	assert_int_equal(mote_parse_vmstat(check_text(meminfo_7_0), vm, 4), -EBADMSG);
	assert_true(check_unchanged(memory, 3));
	mote_table_free(memory);
	mote_table_free(vm);
}

static void same_rows(const struct mote_table *a, const struct mote_table *b)
{
	const struct mote_row *x = mote_table_next(a, NULL), *y = mote_table_next(b, NULL);

	for (unsigned int i = 0; i < VM__FIELDS; i++) {
		assert_int_equal(mote_row_has(x, i), mote_row_has(y, i));
		if (mote_row_has(x, i))
			assert_int_equal(mote_row_get(x, i), mote_row_get(y, i));
	}
}

/*
 * Lines move from sample to sample as numbers grow, come and go: what a table says that knows where
 * they were is what a new one says.
 */
static void lines_that_move(void **state)
{
	static const char *const texts[] = {
		"nr_free_pages 10\npgpgin 5\nunknown 1\npgpgout 6\nx 7\n",
		"nr_free_pages 9\npgpgin 1000\nunknown 1\npgpgout 60000\nx 7\n",
		"nr_free_pages 9\npgpgin 1000\nunknown 10000000\npgpgout 70000\nx 7\ny 8\n",
		"pgpgin 2000\npgpgin 7\npgpgout 80000\n",
		"pgpgout 90000\npgpgin 2001\n",
		"pgpgin 2002\nunknown 1\npgpgout2 5\npswpin 3\n",
		"pgpgin 2003\nunknown 1\npgpgout 90001\npswpin 3\n",
		"pgpgin 2004\nunknown--1pgpgout 90001\npgpgout 90002\npswpin 4\npgfault 1\n",
		"nr_free_pages 10\npgpgin 2005\nunknown 1\npgpgout 90003\nx 7\n",
	};
	const unsigned int n = sizeof(texts) / sizeof(texts[0]);

	for (unsigned int i = 0; i < n * n; i++) {
		struct mote_table *old = mote_table_new(MOTE_STREAM_VM, 1, 2);
		struct mote_table *fresh = mote_table_new(MOTE_STREAM_VM, 1, 2);
		size_t len = strlen(texts[i % n]);
		char *copy = check_copy(texts[i % n], len);

		mote_parse_vmstat(check_text(texts[i / n]), old, 1);
		/* Counters do not fall: the second table must have seen the first text, too. */
		mote_parse_vmstat(check_text(texts[i / n]), fresh, 1);
		*mote_table_notes(fresh) = (struct mote_notes){ 0 };
		assert_int_equal(mote_parse_vmstat((struct mote_text){ copy, len }, old, 2), 0);
		assert_int_equal(mote_parse_vmstat(check_text(texts[i % n]), fresh, 2), 0);
		same_rows(old, fresh);
		free(copy);
		mote_table_free(old);
		mote_table_free(fresh);
	}
}

static void cut_anywhere(void **state)
{
	check_cuts(mote_parse_meminfo, MOTE_STREAM_MEMORY, meminfo_5_10, false);
	check_cuts(mote_parse_vmstat, MOTE_STREAM_VM, vmstat_6_1, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kib_become_bytes_and_pages_stay),
		cmocka_unit_test(lines_of_later_kernels),
		cmocka_unit_test(unknown_odd_and_double_lines),
		cmocka_unit_test(every_vmstat_field),
		cmocka_unit_test(numbers_of_64_bits_and_more),
		cmocka_unit_test(a_last_line_without_an_end),
		cmocka_unit_test(foreign_text_is_refused),
		cmocka_unit_test(lines_that_move),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
