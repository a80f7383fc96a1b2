// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Parsers of cgroupfs, see parse_cgroup.h. Where version 1 has another unit or another sum, it is
 * turned into what version 2 shows; what it does not have stays absent.
 */
#include "parse_cgroup.h"

#include <errno.h>

#include "scan.h"

#define BIT(value)  (1ull << MOTE_CGROUP_##value)
#define NS_PER_US   1000ull
#define NS_PER_TICK 10000000ull /* USER_HZ is 100 everywhere */
#define SHARES      1024ull     /* of version 1: those of weight 100 */

static void set(struct mote_cgroup_values *values, unsigned int value, uint64_t v, uint64_t unit)
{
	if (__builtin_mul_overflow(v, unit, &v))
		return;
	values->v[value] = v;
	values->present |= 1ull << value;
}

/* A line `NAME NUMBER`. */
struct key {
	const char *name;
	uint8_t value;
	uint64_t unit;
};

static const struct key *find_key(const struct key *keys, struct mote_text name)
{
	while (keys->name && !mote_text_is(name, keys->name))
		keys++;
	return keys->name ? keys : NULL;
}

/* Lines that nobody asked for are passed over; of two of the same name the first counts. */
static int parse_keys(const struct mote_cgroup_file *file, struct mote_text text,
		      struct mote_cgroup_values *values)
{
	struct mote_scan scan = mote_scan_text(text), line;
	uint64_t taken = 0, v;

	while (mote_scan_line(&scan, &line)) {
		const struct key *key = find_key(file->arg, mote_scan_word(&line));

		if (key && mote_scan_take(&taken, key->value) && mote_scan_u64(&line, &v))
			set(values, key->value, v, key->unit);
	}
	return mote_scan_done(&scan) ? 0 : -EBADMSG;
}

/* A number in a line of its own; `max` leaves it absent. */
static int parse_number(const struct mote_cgroup_file *file, struct mote_text text,
			struct mote_cgroup_values *values)
{
	const struct key *key = file->arg;
	struct mote_scan scan = mote_scan_text(text), line;
	struct mote_text word;
	uint64_t v;

	if (!mote_scan_line(&scan, &line))
		return -EBADMSG;
	word = mote_scan_word(&line);
	if (mote_text_is(word, "max"))
		return 0;
	if (!mote_text_u64(word, &v))
		return -EBADMSG;
	set(values, key->value, v, key->unit);
	return 0;
}

/* Version 1 shows the largest number of whole pages where there is no limit. */
static int parse_limit(const struct mote_cgroup_file *file, struct mote_text text,
		       struct mote_cgroup_values *values)
{
	const struct key *key = file->arg;
	int err = parse_number(file, text, values);

	if (!err && values->v[key->value] >= INT64_MAX / 65536 * 65536)
		values->present &= ~(1ull << key->value);
	return err;
}

/* `QUOTA PERIOD` in us. */
static int parse_cpu_max(const struct mote_cgroup_file *file, struct mote_text text,
			 struct mote_cgroup_values *values)
{
	struct mote_scan scan = mote_scan_text(text), line;
	struct mote_text quota;
	uint64_t v, period;
	bool limited;

	if (!mote_scan_line(&scan, &line))
		return -EBADMSG;
	quota = mote_scan_word(&line);
	limited = !mote_text_is(quota, "max");
	if ((limited && !mote_text_u64(quota, &v)) || !mote_scan_u64(&line, &period))
		return -EBADMSG;
	if (limited)
		set(values, MOTE_CGROUP_CPU_QUOTA, v, NS_PER_US);
	set(values, MOTE_CGROUP_CPU_PERIOD, period, NS_PER_US);
	return 0;
}

/* Version 1: -1 is no limit. */
static int parse_cfs_quota(const struct mote_cgroup_file *file, struct mote_text text,
			   struct mote_cgroup_values *values)
{
	struct mote_scan scan = mote_scan_text(text), line;
	int64_t v;

	if (!mote_scan_line(&scan, &line) || !mote_text_s64(mote_scan_word(&line), &v))
		return -EBADMSG;
	if (v >= 0)
		set(values, MOTE_CGROUP_CPU_QUOTA, (uint64_t)v, NS_PER_US);
	return 0;
}

/* As the kernel itself turns shares into a weight: sched_weight_to_cgroup(), cpu_weight_read_u64().
 */
static int parse_shares(const struct mote_cgroup_file *file, struct mote_text text,
			struct mote_cgroup_values *values)
{
	struct mote_scan scan = mote_scan_text(text), line;
	uint64_t v;

	if (!mote_scan_line(&scan, &line) || !mote_scan_u64(&line, &v) || v > UINT32_MAX)
		return -EBADMSG;
	set(values, MOTE_CGROUP_CPU_WEIGHT, (v * 100 + SHARES / 2) / SHARES, 1);
	return 0;
}

/* `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same of `full`. */
static int parse_pressure(const struct mote_cgroup_file *file, struct mote_text text,
			  struct mote_cgroup_values *values)
{
	const struct key *key = file->arg;
	struct mote_scan scan = mote_scan_text(text), line;

	while (mote_scan_line(&scan, &line)) {
		struct mote_text word = mote_scan_word(&line);
		unsigned int full = mote_text_is(word, "full");
		uint64_t v;

		if (!full && !mote_text_is(word, "some"))
			continue;
		while ((word = mote_scan_word(&line)).len) {
			if (word.len > 6 && !memcmp(word.data, "total=", 6) &&
			    mote_text_u64((struct mote_text){ word.data + 6, word.len - 6 }, &v))
				set(values, key->value + full, v, key->unit);
		}
	}
	return mote_scan_done(&scan) ? 0 : -EBADMSG;
}

static void add(struct mote_cgroup_values *values, unsigned int value, uint64_t v)
{
	if (__builtin_add_overflow(values->v[value], v, &values->v[value]))
		values->v[value] = UINT64_MAX;
}

static void begin_io(struct mote_cgroup_values *values, uint64_t gives)
{
	for (uint64_t left = gives; left; left &= left - 1)
		values->v[__builtin_ctzll(left)] = 0;
	values->present |= gives;
}

/* `8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6`; a device without any may have its name
 * only. */
static int parse_io_stat(const struct mote_cgroup_file *file, struct mote_text text,
			 struct mote_cgroup_values *values)
{
	struct mote_scan scan = mote_scan_text(text), line;

	begin_io(values, file->gives);
	while (mote_scan_line(&scan, &line)) {
		struct mote_text word;

		mote_scan_word(&line); /* the device */
		while ((word = mote_scan_word(&line)).len) {
			struct mote_scan pair = mote_scan_text(word);
			const struct key *key = find_key(file->arg, mote_scan_until(&pair, '='));
			struct mote_text number = { pair.at, (size_t)(pair.end - pair.at) };
			uint64_t v;

			if (key && mote_text_u64(number, &v))
				add(values, key->value, v);
		}
	}
	return mote_scan_done(&scan) ? 0 : -EBADMSG;
}

/* Version 1: `8:0 Read 123`, and a line `Total 123` at the end. */
static int parse_blkio(const struct mote_cgroup_file *file, struct mote_text text,
		       struct mote_cgroup_values *values)
{
	struct mote_scan scan = mote_scan_text(text), line;
	uint64_t v;

	begin_io(values, file->gives);
	while (mote_scan_line(&scan, &line)) {
		const struct key *key;

		mote_scan_word(&line);
		key = find_key(file->arg, mote_scan_word(&line));
		if (key && mote_scan_u64(&line, &v))
			add(values, key->value, v);
	}
	return mote_scan_done(&scan) ? 0 : -EBADMSG;
}

static int parse_lines(const struct mote_cgroup_file *file, struct mote_text text,
		       struct mote_cgroup_values *values)
{
	const struct key *key = file->arg;

	set(values, key->value, mote_parse_cgroup_lines(text), 1);
	return 0;
}

uint64_t mote_parse_cgroup_lines(struct mote_text text)
{
	uint64_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += text.data[i] == '\n';
	return n;
}

#define KEYS(name, ...) static const struct key name[] = { __VA_ARGS__, { NULL, 0, 0 } }
#define K(name, value, unit)                    \
	{                                       \
		name, MOTE_CGROUP_##value, unit \
	}

KEYS(cpu_stat, K("usage_usec", CPU_USAGE, NS_PER_US), K("user_usec", CPU_USER, NS_PER_US),
     K("system_usec", CPU_SYSTEM, NS_PER_US), K("nr_periods", CPU_PERIODS, 1),
     K("nr_throttled", CPU_THROTTLED, 1), K("throttled_usec", CPU_THROTTLED_TIME, NS_PER_US));
KEYS(memory_stat, K("anon", ANON, 1), K("file", FILE, 1), K("shmem", SHMEM, 1),
     K("kernel", KERNEL, 1), K("slab", SLAB, 1), K("file_dirty", FILE_DIRTY, 1),
     K("file_writeback", FILE_WRITEBACK, 1), K("inactive_file", INACTIVE_FILE, 1),
     K("pgfault", PGFAULT, 1), K("pgmajfault", PGMAJFAULT, 1),
     K("workingset_refault_anon", REFAULT_ANON, 1), K("workingset_refault_file", REFAULT_FILE, 1),
     K("pgscan", PGSCAN, 1), K("pgsteal", PGSTEAL, 1));
KEYS(memory_events, K("low", LOW, 1), K("high", HIGH, 1), K("max", MAX, 1), K("oom", OOM, 1),
     K("oom_kill", OOM_KILL, 1));
KEYS(memory_local, K("low", LOCAL_LOW, 1), K("high", LOCAL_HIGH, 1), K("max", LOCAL_MAX, 1),
     K("oom", LOCAL_OOM, 1), K("oom_kill", LOCAL_OOM_KILL, 1));
KEYS(cgroup_stat, K("nr_descendants", DESCENDANTS, 1), K("nr_dying_descendants", DYING, 1));
KEYS(io_stat, K("rbytes", IO_READ_BYTES, 1), K("wbytes", IO_WRITE_BYTES, 1), K("rios", IO_READS, 1),
     K("wios", IO_WRITES, 1));

KEYS(v1_cpu_stat, K("nr_periods", CPU_PERIODS, 1), K("nr_throttled", CPU_THROTTLED, 1),
     K("throttled_time", CPU_THROTTLED_TIME, 1));
KEYS(v1_cpuacct, K("user", CPU_USER, NS_PER_TICK), K("system", CPU_SYSTEM, NS_PER_TICK));
/* total_: with all descendants, as version 2 has it. */
KEYS(v1_memory_stat, K("total_rss", ANON, 1), K("total_cache", FILE, 1), K("total_shmem", SHMEM, 1),
     K("total_dirty", FILE_DIRTY, 1), K("total_writeback", FILE_WRITEBACK, 1),
     K("total_inactive_file", INACTIVE_FILE, 1), K("total_pgfault", PGFAULT, 1),
     K("total_pgmajfault", PGMAJFAULT, 1), K("total_workingset_refault_anon", REFAULT_ANON, 1),
     K("total_workingset_refault_file", REFAULT_FILE, 1));
KEYS(v1_oom_control, K("oom_kill", LOCAL_OOM_KILL, 1));
KEYS(v1_bytes, K("Read", IO_READ_BYTES, 1), K("Write", IO_WRITE_BYTES, 1));
KEYS(v1_ops, K("Read", IO_READS, 1), K("Write", IO_WRITES, 1));

#define ONE(name, value, unit) static const struct key name = K("", value, unit)
ONE(memory_current, MEMORY_CURRENT, 1);
ONE(memory_peak, MEMORY_PEAK, 1);
ONE(memory_max, MEMORY_MAX, 1);
ONE(memory_high, MEMORY_HIGH, 1);
ONE(swap_current, SWAP_CURRENT, 1);
ONE(swap_max, SWAP_MAX, 1);
ONE(pids_current, PIDS_CURRENT, 1);
ONE(pids_max, PIDS_MAX, 1);
ONE(cpu_weight, CPU_WEIGHT, 1);
ONE(freeze, FROZEN, 1);
ONE(procs, PROCESSES, 1);
ONE(threads, THREADS, 1);
ONE(cpu_pressure, CPU_SOME, 1);
ONE(memory_pressure, MEMORY_SOME, 1);
ONE(io_pressure, IO_SOME, 1);
ONE(usage_ns, CPU_USAGE, 1);
ONE(cfs_period, CPU_PERIOD, NS_PER_US);
ONE(v1_kernel, KERNEL, 1);
ONE(v1_failcnt, LOCAL_MAX, 1);

#define GIVES_CPU  (BIT(CPU_PERIODS) | BIT(CPU_THROTTLED) | BIT(CPU_THROTTLED_TIME))
#define GIVES_TIME (BIT(CPU_USER) | BIT(CPU_SYSTEM))
#define GIVES_MEMORY                                                                      \
	(BIT(ANON) | BIT(FILE) | BIT(SHMEM) | BIT(KERNEL) | BIT(SLAB) | BIT(FILE_DIRTY) | \
	 BIT(FILE_WRITEBACK) | BIT(INACTIVE_FILE) | BIT(PGFAULT) | BIT(PGMAJFAULT) |      \
	 BIT(REFAULT_ANON) | BIT(REFAULT_FILE) | BIT(PGSCAN) | BIT(PGSTEAL))
#define GIVES_EVENTS (BIT(LOW) | BIT(HIGH) | BIT(MAX) | BIT(OOM) | BIT(OOM_KILL))
#define GIVES_LOCAL \
	(BIT(LOCAL_LOW) | BIT(LOCAL_HIGH) | BIT(LOCAL_MAX) | BIT(LOCAL_OOM) | BIT(LOCAL_OOM_KILL))
#define GIVES_BYTES (BIT(IO_READ_BYTES) | BIT(IO_WRITE_BYTES))
#define GIVES_OPS   (BIT(IO_READS) | BIT(IO_WRITES))

#define ROW(ctl, pace, name, bytes, gives, parse, arg)                                       \
	{                                                                                    \
		name, MOTE_CGROUP_##ctl, MOTE_CGROUP_##pace, bytes, false, gives, parse, arg \
	}
#define NUMBER(ctl, pace, name, value, arg) \
	ROW(ctl, pace, name, 32, BIT(value), parse_number, &(arg))
#define LINES(ctl, name, value, arg)                                                           \
	{                                                                                      \
		name, MOTE_CGROUP_##ctl, MOTE_CGROUP_SLOW, 512, true, BIT(value), parse_lines, \
			&(arg)                                                                 \
	}

static const struct mote_cgroup_file version2[] = {
	ROW(UNIFIED, HOT, "cpu.stat", 512, BIT(CPU_USAGE) | GIVES_TIME | GIVES_CPU, parse_keys,
	    cpu_stat),
	NUMBER(UNIFIED, HOT, "memory.current", MEMORY_CURRENT, memory_current),
	ROW(UNIFIED, HOT, "memory.stat", 2048, GIVES_MEMORY & ~BIT(CPU_USAGE), parse_keys,
	    memory_stat),
	NUMBER(UNIFIED, HOT, "pids.current", PIDS_CURRENT, pids_current),
	ROW(UNIFIED, SLOW, "memory.events", 128, GIVES_EVENTS, parse_keys, memory_events),
	ROW(UNIFIED, SLOW, "memory.events.local", 128, GIVES_LOCAL, parse_keys, memory_local),
	NUMBER(UNIFIED, SLOW, "memory.peak", MEMORY_PEAK, memory_peak),
	NUMBER(UNIFIED, SLOW, "memory.max", MEMORY_MAX, memory_max),
	NUMBER(UNIFIED, SLOW, "memory.high", MEMORY_HIGH, memory_high),
	NUMBER(UNIFIED, SLOW, "memory.swap.current", SWAP_CURRENT, swap_current),
	NUMBER(UNIFIED, SLOW, "memory.swap.max", SWAP_MAX, swap_max),
	ROW(UNIFIED, SLOW, "cpu.max", 64, BIT(CPU_QUOTA) | BIT(CPU_PERIOD), parse_cpu_max, NULL),
	NUMBER(UNIFIED, SLOW, "cpu.weight", CPU_WEIGHT, cpu_weight),
	NUMBER(UNIFIED, SLOW, "pids.max", PIDS_MAX, pids_max),
	NUMBER(UNIFIED, SLOW, "cgroup.freeze", FROZEN, freeze),
	ROW(UNIFIED, SLOW, "cgroup.stat", 512, BIT(DESCENDANTS) | BIT(DYING), parse_keys,
	    cgroup_stat),
	LINES(UNIFIED, "cgroup.threads", THREADS, threads),
	LINES(UNIFIED, "cgroup.procs", PROCESSES, procs),
	ROW(UNIFIED, SLOW, "io.stat", 512, GIVES_BYTES | GIVES_OPS, parse_io_stat, io_stat),
	ROW(UNIFIED, SLOW, "cpu.pressure", 256, BIT(CPU_SOME) | BIT(CPU_FULL), parse_pressure,
	    &cpu_pressure),
	ROW(UNIFIED, SLOW, "memory.pressure", 256, BIT(MEMORY_SOME) | BIT(MEMORY_FULL),
	    parse_pressure, &memory_pressure),
	ROW(UNIFIED, SLOW, "io.pressure", 256, BIT(IO_SOME) | BIT(IO_FULL), parse_pressure,
	    &io_pressure),
};

static const struct mote_cgroup_file version1[] = {
	NUMBER(CPUACCT, HOT, "cpuacct.usage", CPU_USAGE, usage_ns),
	ROW(CPUACCT, HOT, "cpuacct.stat", 128, GIVES_TIME, parse_keys, v1_cpuacct),
	ROW(CPU, HOT, "cpu.stat", 256, GIVES_CPU, parse_keys, v1_cpu_stat),
	NUMBER(MEMORY, HOT, "memory.usage_in_bytes", MEMORY_CURRENT, memory_current),
	ROW(MEMORY, HOT, "memory.stat", 2048,
	    GIVES_MEMORY & ~(BIT(KERNEL) | BIT(SLAB) | BIT(PGSCAN) | BIT(PGSTEAL)), parse_keys,
	    v1_memory_stat),
	NUMBER(PIDS, HOT, "pids.current", PIDS_CURRENT, pids_current),
	NUMBER(MEMORY, SLOW, "memory.max_usage_in_bytes", MEMORY_PEAK, memory_peak),
	ROW(MEMORY, SLOW, "memory.limit_in_bytes", 32, BIT(MEMORY_MAX), parse_limit, &memory_max),
	NUMBER(MEMORY, SLOW, "memory.kmem.usage_in_bytes", KERNEL, v1_kernel),
	NUMBER(MEMORY, SLOW, "memory.failcnt", LOCAL_MAX, v1_failcnt),
	ROW(MEMORY, SLOW, "memory.oom_control", 128, BIT(LOCAL_OOM_KILL), parse_keys,
	    v1_oom_control),
	ROW(CPU, SLOW, "cpu.cfs_quota_us", 32, BIT(CPU_QUOTA), parse_cfs_quota, NULL),
	NUMBER(CPU, SLOW, "cpu.cfs_period_us", CPU_PERIOD, cfs_period),
	ROW(CPU, SLOW, "cpu.shares", 32, BIT(CPU_WEIGHT), parse_shares, NULL),
	NUMBER(PIDS, SLOW, "pids.max", PIDS_MAX, pids_max),
	/* Not freezer.state: that of one whose parent is frozen says so, too. */
	NUMBER(FREEZER, SLOW, "freezer.self_freezing", FROZEN, freeze),
	ROW(BLKIO, SLOW, "blkio.throttle.io_service_bytes_recursive", 1024, GIVES_BYTES,
	    parse_blkio, v1_bytes),
	ROW(BLKIO, SLOW, "blkio.throttle.io_serviced_recursive", 1024, GIVES_OPS, parse_blkio,
	    v1_ops),
	LINES(MEMORY, "tasks", THREADS, threads),
	LINES(MEMORY, "cgroup.procs", PROCESSES, procs),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
_Static_assert(COUNT(version2) <= MOTE_CGROUP_FILES_MAX, "a file has a bit");
_Static_assert(COUNT(version1) <= MOTE_CGROUP_FILES_MAX, "a file has a bit");

const struct mote_cgroup_file *mote_cgroup_files(unsigned int version, unsigned int *n)
{
	*n = version == 1 ? COUNT(version1) : COUNT(version2);
	return version == 1 ? version1 : version2;
}

int mote_parse_cgroup(const struct mote_cgroup_file *file, struct mote_text text,
		      struct mote_cgroup_values *values)
{
	struct mote_cgroup_values found = { 0 };
	int err = file->parse(file, text, &found);

	if (err)
		return err;
	for (uint64_t left = found.present; left; left &= left - 1) {
		unsigned int value = (unsigned int)__builtin_ctzll(left);

		values->v[value] = found.v[value];
	}
	values->present = (values->present & ~file->gives) | found.present;
	return 0;
}
