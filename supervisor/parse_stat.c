// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/stat: the CPUs and the kernel's own counters, with the uptime and file-nr. An offline
 * CPU is not listed; its row stays with the values it had and `online` 0, so that sums over CPUs
 * do not fall. The kernel itself lets idle and iowait go backwards (fs/proc/stat.c adds the time
 * since the last idle entry without a lock); the table's counter rule hides that.
 */
#include "scan.h"

#include <assert.h>

#define CPU_COLUMNS (CPU_GUEST_NICE - CPU_USER + 1)
static_assert(CPU_COLUMNS == 10, "CPU fields stand in the order of /proc/stat");
static_assert(KERNEL_SOFTIRQ_RCU - KERNEL_SOFTIRQS == 10,
	      "softirq fields stand in the order of /proc/stat, their sum first");

static void set_offline(struct mote_table *cpu, struct mote_row *row)
{
	mote_row_set(cpu, row, CPU_ONLINE, 0);
}

static struct mote_row *parse_cpu(struct mote_scan *line, struct mote_text key,
				  struct mote_table *cpu)
{
	struct mote_row *row = mote_table_row(cpu, key.data, key.len);
	uint64_t ticks;

	if (!row)
		return NULL;
	for (unsigned int i = 0; i < CPU_COLUMNS && !mote_scan_done(line); i++) {
		if (mote_scan_u64(line, &ticks))
			mote_scan_set(cpu, row, CPU_USER + i, ticks, MOTE_NS_PER_TICK);
	}
	return row;
}

/* The part of a name of the first column after `cpu`; data NULL for another line. */
static struct mote_text cpu_number(struct mote_text name)
{
	if (name.len < 3 || memcmp(name.data, "cpu", 3) != 0)
		return (struct mote_text){ NULL, 0 };
	return (struct mote_text){ name.data + 3, name.len - 3 };
}

int mote_parse_stat_cpu(struct mote_text stat, struct mote_table *cpu, uint64_t now)
{
	struct mote_scan text = mote_scan_text(stat), line;
	struct mote_row *total = NULL, *row;
	uint64_t online = 0, number;
	bool whole = false;

	mote_table_begin(cpu, now);
	while (mote_scan_line(&text, &line)) {
		struct mote_text key = cpu_number(mote_scan_word(&line));

		if (!key.data) {
			/* other lines follow the CPUs' on every kernel: none is missing */
			whole = total != NULL;
			break;
		} else if (key.len == 0) {
			row = parse_cpu(&line, (struct mote_text){ "total", 5 }, cpu);
			total = total ? total : row;
		} else if (mote_text_u64(key, &number) &&
			   (row = parse_cpu(&line, key, cpu)) != NULL) {
			mote_row_set(cpu, row, CPU_ONLINE, 1);
			online++;
		}
	}
	if (whole) {
		mote_row_set(cpu, total, CPU_ONLINE, online);
		mote_table_keep(cpu, set_offline);
	}
	return mote_scan_finish(cpu, whole);
}

struct stat_line {
	const char *name;
	unsigned int field, columns;
};

static const struct stat_line stat_lines[] = {
	{ "intr", KERNEL_INTERRUPTS, 1 }, /* the sum; a column for each interrupt follows */
	{ "ctxt", KERNEL_CONTEXT_SWITCHES, 1 },
	{ "btime", KERNEL_BOOT_TIME, 1 },
	{ "processes", KERNEL_FORKS, 1 },
	{ "procs_running", KERNEL_PROCS_RUNNING, 1 },
	{ "procs_blocked", KERNEL_PROCS_BLOCKED, 1 },
	{ "softirq", KERNEL_SOFTIRQS, 11 },
};

static bool parse_stat_line(struct mote_scan *line, struct mote_table *kernel, struct mote_row *row,
			    uint64_t *taken)
{
	struct mote_text name = mote_scan_word(line);
	uint64_t v;

	for (size_t i = 0; i < sizeof(stat_lines) / sizeof(stat_lines[0]); i++) {
		const struct stat_line *known = &stat_lines[i];

		if (!mote_text_is(name, known->name) || !mote_scan_take(taken, known->field))
			continue;
		for (unsigned int c = 0; c < known->columns && !mote_scan_done(line); c++) {
			if (mote_scan_u64(line, &v))
				mote_row_set(kernel, row, known->field + c, v);
		}
		return true;
	}
	return false;
}

/* `486 0 2466165`: allocated, always 0, the most there may be */
static bool parse_file_nr(struct mote_text file_nr, struct mote_table *kernel, struct mote_row *row)
{
	struct mote_scan text = mote_scan_text(file_nr), line;
	uint64_t used, zero, max;

	if (!file_nr.len)
		return true;
	if (!mote_scan_line(&text, &line) || !mote_scan_u64(&line, &used) ||
	    !mote_scan_u64(&line, &zero) || !mote_scan_u64(&line, &max))
		return false;
	mote_row_set(kernel, row, KERNEL_FILE_HANDLES, used);
	mote_row_set(kernel, row, KERNEL_FILE_HANDLES_MAX, max);
	return true;
}

int mote_parse_kernel(struct mote_text stat, struct mote_text file_nr, uint64_t uptime,
		      struct mote_table *kernel, uint64_t now)
{
	struct mote_scan text = mote_scan_text(stat), line;
	unsigned int known = 0;
	uint64_t taken = 0;
	bool whole;

	mote_table_begin(kernel, now);
	struct mote_row *row = mote_table_row(kernel, NULL, 0);
	while (mote_scan_line(&text, &line))
		known += parse_stat_line(&line, kernel, row, &taken);
	whole = known && mote_scan_done(&text);
	mote_row_set(kernel, row, KERNEL_UPTIME, uptime);
	whole &= parse_file_nr(file_nr, kernel, row);
	return mote_scan_finish(kernel, whole);
}
