// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/stat: CPUs that go and come back (P6), counters that go backwards (P5), columns that are
 * missing or new, and the kernel row with uptime and file-nr.
 */
#include "parse_test.h"

#define TICK MOTE_NS_PER_TICK

/* Linux 6.1, CPU 2 and 5 to 7 of 8 offline */
static const char stat_6_1[] =
	"cpu  1816 12 1937 217072 339 0 65 10 4 2\n"
	"cpu0 646 0 675 109258 7 0 15 3 0 0\n"
	"cpu1 1170 12 1261 107813 331 1 50 7 4 2\n"
	"cpu3 3 0 1 100 1 0 0 0 0 0\n"
	"cpu4 4 0 1 100 1 0 0 0 0 0\n"
	"intr 176148 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 15 0 0 0 0 221 39 0 30\n"
	"ctxt 343272\n"
	"btime 1796036088\n"
	"processes 5507\n"
	"procs_running 1\n"
	"procs_blocked 2\n"
	"softirq 123248 1 14780 4 934 56534 5 2 28009 6 22985\n";

static struct mote_text none;

static struct mote_table *cpu_table(void)
{
	return mote_table_new(MOTE_STREAM_CPU, 16, 16);
}

static void all_states_in_ns(void **state)
{
	static const uint64_t want[] = { 1170, 12, 1261, 107813, 331, 1, 50, 7, 4, 2 };
	struct mote_table *cpu = cpu_table();

	assert_int_equal(mote_parse_stat_cpu(check_text(stat_6_1), cpu, 1), 0);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(value_of(cpu, "1", CPU_USER + i), want[i] * TICK);
	assert_int_equal(value_of(cpu, "total", CPU_IDLE), 217072 * TICK);
	assert_int_equal(value_of(cpu, "total", CPU_ONLINE), 4);
	assert_int_equal(value_of(cpu, "3", CPU_ONLINE), 1);
	assert_null(check_find(cpu, "2"));
	mote_table_free(cpu);
}

static void cpus_go_and_come_back(void **state)
{
	static const char away[] = "cpu  10 0 0 0 0 0 0 0 0 0\ncpu0 10 0 0 0 0 0 0 0 0 0\nintr 1\n";
	static const char both[] = "cpu  20 0 0 0 0 0 0 0 0 0\ncpu0 11 0 0 0 0 0 0 0 0 0\n"
				   "cpu1 9 0 0 0 0 0 0 0 0 0\nintr 1\n";
	struct mote_table *cpu = cpu_table();

	assert_int_equal(mote_parse_stat_cpu(check_text(both), cpu, 1), 0);
	assert_int_equal(mote_parse_stat_cpu(check_text(away), cpu, 2), 0);
	assert_int_equal(value_of(cpu, "1", CPU_ONLINE), 0);
	assert_int_equal(value_of(cpu, "1", CPU_USER), 9 * TICK);
	assert_int_equal(value_of(cpu, "total", CPU_ONLINE), 1);
	assert_int_equal(mote_parse_stat_cpu(check_text(away), cpu, 3), 0);
	assert_true(check_unchanged(cpu, 3));
	assert_int_equal(mote_parse_stat_cpu(check_text(both), cpu, 4), 0);
	assert_int_equal(value_of(cpu, "1", CPU_ONLINE), 1);
	assert_int_equal(value_of(cpu, "total", CPU_ONLINE), 2);
	assert_null(mote_table_totals(cpu));
	mote_table_free(cpu);
}

static void idle_goes_backwards(void **state)
{
	static const struct {
		const char *text;
		uint64_t idle;
	} steps[] = {
		{ "cpu  0 0 0 1000 50\nintr 1\n", 1000 }, { "cpu  0 0 0 999 49\nintr 1\n", 1000 },
		{ "cpu  0 0 0 1001 51\nintr 1\n", 1001 }, { "cpu  0 0 0 40 2\nintr 1\n", 1001 },
		{ "cpu  0 0 0 41 3\nintr 1\n", 1002 },
	};
	struct mote_table *cpu = cpu_table();

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert_int_equal(mote_parse_stat_cpu(check_text(steps[i].text), cpu, i + 1), 0);
		assert_int_equal(value_of(cpu, "total", CPU_IDLE), steps[i].idle * TICK);
	}
	mote_table_free(cpu);
}

static void columns_missing_new_and_odd(void **state)
{
	struct mote_table *cpu = cpu_table();
	static const char text[] = "cpu  1 2 3 4 5 6 7 8\n"
				   "cpu0 1 2 3 4 5 6 7 8 9 10 11 12\n"
				   "cpu1 1 -2 x3 4 99999999999999999999999 18446744073709551615 7\n"
				   "cpux 1 2 3\n"
				   "cpu0 77 77\n"
				   "cpu_new_thing 4\n"
				   "page 1 2\n";

	assert_int_equal(mote_parse_stat_cpu(check_text(text), cpu, 1), 0);
	assert_int_equal(value_of(cpu, "total", CPU_STEAL), 8 * TICK);
	assert_true(is_absent(cpu, "total", CPU_GUEST));
	assert_int_equal(value_of(cpu, "0", CPU_USER), 1 * TICK);
	assert_int_equal(value_of(cpu, "0", CPU_GUEST_NICE), 10 * TICK);
	assert_int_equal(value_of(cpu, "1", CPU_NICE), 0);
	assert_true(is_absent(cpu, "1", CPU_SYSTEM));
	assert_int_equal(value_of(cpu, "1", CPU_IDLE), 4 * TICK);
	assert_true(is_absent(cpu, "1", CPU_IOWAIT)); /* does not fit */
	assert_true(is_absent(cpu, "1", CPU_IRQ));    /* does not fit in ns */
	assert_int_equal(value_of(cpu, "1", CPU_SOFTIRQ), 7 * TICK);
	assert_int_equal(value_of(cpu, "total", CPU_ONLINE), 2);
	mote_table_free(cpu);
}

static void foreign_text_is_refused(void **state)
{
	struct mote_table *cpu = cpu_table(), *kernel = mote_table_new(MOTE_STREAM_KERNEL, 1, 16);

	assert_int_equal(mote_parse_stat_cpu(check_text(stat_6_1), cpu, 1), 0);
	assert_int_equal(mote_parse_stat_cpu(none, cpu, 2), -EBADMSG);
	assert_int_equal(mote_parse_stat_cpu(check_text("MemTotal: 1 kB\n"), cpu, 3), -EBADMSG);
	assert_int_equal(value_of(cpu, "3", CPU_ONLINE), 1);
	assert_int_equal(mote_parse_kernel(none, none, 0, kernel, 1), -EBADMSG);
	mote_table_free(cpu);
	mote_table_free(kernel);
}

static void a_full_table_keeps_the_total(void **state)
{
	struct mote_table *cpu = mote_table_new(MOTE_STREAM_CPU, 2, 16);
	struct mote_fill fill;

	assert_int_equal(mote_parse_stat_cpu(check_text(stat_6_1), cpu, 1), 0);
	mote_table_fill(cpu, &fill);
	assert_int_equal(fill.dropped, 3);
	assert_int_equal(value_of(cpu, "total", CPU_USER), 1816 * TICK);
	mote_table_free(cpu);
}

static void kernel_row(void **state)
{
	struct mote_table *kernel = mote_table_new(MOTE_STREAM_KERNEL, 1, 16);
	static const uint64_t softirqs[] = {
		123248, 1, 14780, 4, 934, 56534, 5, 2, 28009, 6, 22985
	};

	assert_int_equal(mote_parse_kernel(check_text(stat_6_1),
					   check_text("486\t0\t9223372036854775807\n"), 1108550,
					   kernel, 1),
			 0);
	assert_int_equal(value_of(kernel, "", KERNEL_INTERRUPTS), 176148);
	assert_int_equal(value_of(kernel, "", KERNEL_CONTEXT_SWITCHES), 343272);
	assert_int_equal(value_of(kernel, "", KERNEL_BOOT_TIME), 1796036088);
	assert_int_equal(value_of(kernel, "", KERNEL_FORKS), 5507);
	assert_int_equal(value_of(kernel, "", KERNEL_PROCS_RUNNING), 1);
	assert_int_equal(value_of(kernel, "", KERNEL_PROCS_BLOCKED), 2);
	for (unsigned int i = 0; i < 11; i++)
		assert_int_equal(value_of(kernel, "", KERNEL_SOFTIRQS + i), softirqs[i]);
	assert_int_equal(value_of(kernel, "", KERNEL_UPTIME), 1108550);
	assert_int_equal(value_of(kernel, "", KERNEL_FILE_HANDLES), 486);
	assert_int_equal(value_of(kernel, "", KERNEL_FILE_HANDLES_MAX), INT64_MAX);
	mote_table_free(kernel);
}

static void kernel_row_without_file_nr(void **state)
{
	struct mote_table *kernel = mote_table_new(MOTE_STREAM_KERNEL, 1, 16);

	assert_int_equal(mote_parse_kernel(check_text(stat_6_1), none, 5, kernel, 1), 0);
	assert_true(is_absent(kernel, "", KERNEL_FILE_HANDLES));
	/* cut: refused, and what it says already stays */
	assert_int_equal(mote_parse_kernel(check_text(stat_6_1), check_text("12"), 6, kernel, 2),
			 -EBADMSG);
	assert_true(is_absent(kernel, "", KERNEL_FILE_HANDLES));
	assert_int_equal(value_of(kernel, "", KERNEL_UPTIME), 6);
	assert_int_equal(value_of(kernel, "", KERNEL_FORKS), 5507);
	mote_table_free(kernel);
}

static int parse_kernel_only(struct mote_text text, struct mote_table *table, uint64_t now)
{
	return mote_parse_kernel(text, none, 1, table, now);
}

static void cut_anywhere(void **state)
{
	/* a cut after the CPU lines is no matter to the CPUs */
	check_cuts(mote_parse_stat_cpu, MOTE_STREAM_CPU, stat_6_1, true);
	check_cuts(parse_kernel_only, MOTE_STREAM_KERNEL, stat_6_1, false);
}

static void a_cut_among_the_cpus_is_refused(void **state)
{
	struct mote_table *cpu = cpu_table();
	size_t cpus = strstr(stat_6_1, "intr") - stat_6_1;

	assert_int_equal(mote_parse_stat_cpu(check_text(stat_6_1), cpu, 1), 0);
	for (size_t cut = 0; cut <= cpus; cut++) {
		struct mote_text text = { stat_6_1, cut };

		assert_int_equal(mote_parse_stat_cpu(text, cpu, cut + 2), -EBADMSG);
		assert_true(check_unchanged(cpu, cut + 2));
	}
	mote_table_free(cpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_states_in_ns),
		cmocka_unit_test(cpus_go_and_come_back),
		cmocka_unit_test(idle_goes_backwards),
		cmocka_unit_test(columns_missing_new_and_odd),
		cmocka_unit_test(foreign_text_is_refused),
		cmocka_unit_test(a_full_table_keeps_the_total),
		cmocka_unit_test(kernel_row),
		cmocka_unit_test(kernel_row_without_file_nr),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(a_cut_among_the_cpus_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
