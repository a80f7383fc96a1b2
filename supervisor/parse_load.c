// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/loadavg and /proc/pressure. A kernel without PSI has no pressure files, one before 5.13
 * no `full` line for cpu, one before 6.1 no irq, which has a `full` line only.
 */
#include "scan.h"

#include <assert.h>

/* Decimals kept of an average (kernels show two), and what 1 is then. */
#define DECIMALS 6
#define ONE      1e6

/* `1/88`: runnable and all tasks */
static void parse_tasks(struct mote_text word, struct mote_table *load, struct mote_row *row)
{
	struct mote_scan pair = mote_scan_text(word);
	uint64_t runnable, tasks;

	if (!mote_text_u64(mote_scan_until(&pair, '/'), &runnable) || !mote_scan_u64(&pair, &tasks))
		return;
	mote_row_set(load, row, LOAD_RUNNABLE, runnable);
	mote_row_set(load, row, LOAD_TASKS, tasks);
}

/* `0.00 0.01 0.05 1/88 5510`: averages, tasks, last pid */
int mote_parse_loadavg(struct mote_text loadavg, struct mote_table *load, uint64_t now)
{
	struct mote_scan text = mote_scan_text(loadavg), line;
	uint64_t averages[3], pid;

	if (!mote_scan_line(&text, &line))
		return -EBADMSG;
	for (unsigned int i = 0; i < 3; i++) {
		if (!mote_text_fixed(mote_scan_word(&line), DECIMALS, &averages[i]))
			return -EBADMSG;
	}
	mote_table_begin(load, now);
	struct mote_row *row = mote_table_row(load, NULL, 0);
	for (unsigned int i = 0; i < 3; i++)
		mote_row_set_f64(load, row, LOAD_LOAD1 + i, averages[i] / ONE);
	parse_tasks(mote_scan_word(&line), load, row);
	if (mote_scan_u64(&line, &pid))
		mote_row_set(load, row, LOAD_LAST_PID, pid);
	return mote_scan_finish(load, true);
}

static const char *const pressure_names[] = { "avg10=", "avg60=", "avg300=", "total=" };
static const char *const resources[MOTE_PRESSURES] = { "cpu", "memory", "io", "irq" };

#define PRESSURE_COLUMNS (PRESSURE_SOME_TOTAL - PRESSURE_SOME_AVG10 + 1)
static_assert(PRESSURE_COLUMNS == 4 && PRESSURE_FULL_TOTAL - PRESSURE_FULL_AVG10 == 3,
	      "pressure fields stand in the order of pressure_names");

/* `avg10=1.84` or `total=4780544`, the latter in us; `first` is the field of avg10 */
static void parse_pressure_value(struct mote_text word, struct mote_table *pressure,
				 struct mote_row *row, unsigned int first, uint64_t *taken)
{
	for (unsigned int i = 0; i < PRESSURE_COLUMNS; i++) {
		size_t len = strlen(pressure_names[i]);
		uint64_t v;

		if (word.len < len || memcmp(word.data, pressure_names[i], len) != 0)
			continue;
		struct mote_text number = { word.data + len, word.len - len };
		bool total = i == PRESSURE_COLUMNS - 1;
		if (!mote_text_fixed(number, total ? 0 : DECIMALS, &v) ||
		    !mote_scan_take(taken, first + i))
			return;
		if (total)
			mote_row_set(pressure, row, first + i, v);
		else
			mote_row_set_f64(pressure, row, first + i, v / ONE);
		return;
	}
}

/* `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`; false for a line of another kind */
static bool parse_pressure_line(struct mote_scan *line, struct mote_table *pressure,
				struct mote_row *row, uint64_t *taken)
{
	struct mote_text word = mote_scan_word(line);
	unsigned int first;

	if (mote_text_is(word, "some"))
		first = PRESSURE_SOME_AVG10;
	else if (mote_text_is(word, "full"))
		first = PRESSURE_FULL_AVG10;
	else
		return false;
	while ((word = mote_scan_word(line)).len)
		parse_pressure_value(word, pressure, row, first, taken);
	return true;
}

static bool parse_pressure_file(struct mote_text file, const char *resource,
				struct mote_table *pressure)
{
	struct mote_scan text = mote_scan_text(file), line;
	struct mote_row *row = mote_table_row(pressure, resource, strlen(resource));
	unsigned int known = 0;
	uint64_t taken = 0;

	if (!row)
		return true; /* the table is full: it counted that */
	while (mote_scan_line(&text, &line))
		known += parse_pressure_line(&line, pressure, row, &taken);
	return known && mote_scan_done(&text);
}

int mote_parse_pressure(const struct mote_text text[MOTE_PRESSURES], struct mote_table *pressure,
			uint64_t now)
{
	bool whole = true;

	mote_table_begin(pressure, now);
	for (unsigned int i = 0; i < MOTE_PRESSURES; i++) {
		if (text[i].len)
			whole &= parse_pressure_file(text[i], resources[i], pressure);
	}
	return mote_scan_finish(pressure, whole);
}
