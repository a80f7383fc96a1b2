// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* /proc/loadavg and the pressure files, as kernels before 5.13, before 6.1 and of today have them.
 */
#include "parse_test.h"

static double float_of(const struct mote_table *table, const char *key, unsigned int field)
{
	uint64_t bits = value_of(table, key, field);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static void loadavg(void **state)
{
	struct mote_table *load = mote_table_new(MOTE_STREAM_LOAD, 1, 2);

	assert_int_equal(mote_parse_loadavg(check_text("0.52 1.07 120.99 3/1088 5510\n"), load, 1),
			 0);
	assert_true(float_of(load, "", LOAD_LOAD1) == 0.52);
	assert_true(float_of(load, "", LOAD_LOAD5) == 1.07);
	assert_true(float_of(load, "", LOAD_LOAD15) == 120.99);
	assert_int_equal(value_of(load, "", LOAD_RUNNABLE), 3);
	assert_int_equal(value_of(load, "", LOAD_TASKS), 1088);
	assert_int_equal(value_of(load, "", LOAD_LAST_PID), 5510);
	assert_int_equal(mote_parse_loadavg(check_text("0 1.5 2.125 x 9 new\n"), load, 2), 0);
	assert_true(float_of(load, "", LOAD_LOAD15) == 2.125);
	assert_true(is_absent(load, "", LOAD_RUNNABLE));
	mote_table_free(load);
}

static void loadavg_refused(void **state)
{
	static const char *const bad[] = {
		"", "\n", "0.1 0.2\n", "a b c\n", "0.1 0.2 0.3x\n", "-1 0 0\n", "0.1 0.2 0.3 1/2 3"
	};
	struct mote_table *load = mote_table_new(MOTE_STREAM_LOAD, 1, 2);

	assert_int_equal(mote_parse_loadavg(check_text("1.00 2.00 3.00 4/5 6\n"), load, 1), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(mote_parse_loadavg(check_text(bad[i]), load, i + 2), -EBADMSG);
		assert_true(check_unchanged(load, i + 2));
	}
	mote_table_free(load);
}

static const char psi_cpu_5_10[] = "some avg10=1.84 avg60=0.79 avg300=0.22 total=4780544\n";
static const char psi_cpu[] = "some avg10=1.84 avg60=0.79 avg300=0.22 total=4780544\n"
			      "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
static const char psi_io[] = "some avg10=0.66 avg60=0.15 avg300=0.09 total=2999096\n"
			     "full avg10=0.53 avg60=0.12 avg300=0.08 total=2855065\n";
static const char psi_irq[] = "full avg10=0.01 avg60=0.02 avg300=0.03 total=77\n";

static int parse(const char *cpu, const char *memory, const char *io, const char *irq,
		 struct mote_table *pressure, uint64_t now)
{
	struct mote_text text[MOTE_PRESSURES] = { check_text(cpu), check_text(memory),
						  check_text(io), check_text(irq) };

	return mote_parse_pressure(text, pressure, now);
}

static void pressure_of_today(void **state)
{
	struct mote_table *pressure = mote_table_new(MOTE_STREAM_PRESSURE, 4, 16);

	assert_int_equal(parse(psi_cpu, psi_cpu, psi_io, psi_irq, pressure, 1), 0);
	assert_true(float_of(pressure, "cpu", PRESSURE_SOME_AVG10) == 1.84);
	assert_true(float_of(pressure, "io", PRESSURE_FULL_AVG300) == 0.08);
	assert_int_equal(value_of(pressure, "io", PRESSURE_SOME_TOTAL), 2999096);
	assert_int_equal(value_of(pressure, "io", PRESSURE_FULL_TOTAL), 2855065);
	assert_int_equal(value_of(pressure, "irq", PRESSURE_FULL_TOTAL), 77);
	assert_true(float_of(pressure, "irq", PRESSURE_FULL_AVG60) == 0.02);
	assert_true(is_absent(pressure, "irq", PRESSURE_SOME_TOTAL));
	assert_int_equal(value_of(pressure, "cpu", PRESSURE_FULL_TOTAL), 0);
	mote_table_free(pressure);
}

static void pressure_of_5_10(void **state)
{
	struct mote_table *pressure = mote_table_new(MOTE_STREAM_PRESSURE, 4, 16);

	assert_int_equal(parse(psi_cpu_5_10, psi_io, psi_io, "", pressure, 1), 0);
	assert_true(is_absent(pressure, "cpu", PRESSURE_FULL_TOTAL));
	assert_int_equal(value_of(pressure, "cpu", PRESSURE_SOME_TOTAL), 4780544);
	assert_null(check_find(pressure, "irq"));
	assert_int_equal(parse("", "", "", "", pressure, 2), 0);
	assert_null(mote_table_next(pressure, NULL));
	mote_table_free(pressure);
}

static void pressure_odd_lines(void **state)
{
	static const char odd[] = "most avg10=1.00 total=5\n"
				  "some avg10=0.50 avg20=9.99 avg60=x total=3 later=1\n"
				  "some avg10=0.75 total=99\n"
				  "full\n";
	struct mote_table *pressure = mote_table_new(MOTE_STREAM_PRESSURE, 4, 16);

	for (uint64_t now = 1; now < 3; now++)
		assert_int_equal(parse(odd, "", "", "", pressure, now), 0);
	assert_true(check_unchanged(pressure, 2));
	assert_true(float_of(pressure, "cpu", PRESSURE_SOME_AVG10) == 0.5);
	assert_true(is_absent(pressure, "cpu", PRESSURE_SOME_AVG60));
	assert_int_equal(value_of(pressure, "cpu", PRESSURE_SOME_TOTAL), 3);
	assert_int_equal(parse("nothing known\n", "", "", "", pressure, 3), -EBADMSG);
	assert_int_equal(value_of(pressure, "cpu", PRESSURE_SOME_TOTAL), 3);
	mote_table_free(pressure);
}

static int parse_cpu_only(struct mote_text text, struct mote_table *table, uint64_t now)
{
	struct mote_text texts[MOTE_PRESSURES] = { text };

	return mote_parse_pressure(texts, table, now);
}

static void cut_anywhere(void **state)
{
	check_cuts(parse_cpu_only, MOTE_STREAM_PRESSURE, psi_io, false);
	check_cuts(mote_parse_loadavg, MOTE_STREAM_LOAD, "0.52 1.07 120.99 3/1088 5510\n", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loadavg),
		cmocka_unit_test(loadavg_refused),
		cmocka_unit_test(pressure_of_today),
		cmocka_unit_test(pressure_of_5_10),
		cmocka_unit_test(pressure_odd_lines),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
