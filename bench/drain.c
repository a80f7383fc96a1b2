// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * drain ROUNDS: what it costs to take what changed in the kernel's counters, in ns, as the minimum
 * over ROUNDS of a table of 8,192. `slots` is mote's: marks and counters in mapped memory, by
 * slots.c. `batch` takes the same numbers from a hash by BPF_MAP_LOOKUP_AND_DELETE_BATCH, which
 * loses what is added meanwhile. Prints a line of JSON for each number of changed keys; needs
 * CAP_BPF.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <bpf/bpf.h>

#include "bench_util.h"
#include "slots.h"

#define SLOTS 8192u

struct count {
	uint64_t bytes, events;
};

static struct mote_flow *flows;
static struct mote_slot_marks *marks;
static struct mote_slots *slots;
static uint64_t total, expected; /* bytes */

static int map_create(enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries,
		      uint32_t flags)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = flags);
	int fd = bpf_map_create(type, "drain", key, value, entries, &opts);

	if (fd < 0)
		bench_die("drain: cannot create a map: %s", strerror(errno));
	return fd;
}

/* Memory as programs write it. */
static void *mapped(uint32_t value, uint32_t entries)
{
	int fd = map_create(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), value, entries, BPF_F_MMAPABLE);
	size_t size = ((size_t)value * entries + 4095) & ~(size_t)4095;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		bench_die("drain: cannot map: %s", strerror(errno));
	return memory;
}

static void fold(void *ctx, uint32_t slot, bool first)
{
	struct mote_flow *flow = &flows[slot];
	const struct mote_traffic *now = &flow->traffic;

	total += now->sent - flow->seen.sent;
	flow->seen = *now;
	flow->changed = 1;
}

static void gone(void *ctx, uint32_t slot)
{
}

static void open_slots(void)
{
	static const struct mote_slots_ops ops = { fold, gone };
	static struct mote_slot_cpu cpu;
	static struct mote_reap reap;
	struct mote_slots_memory memory = {
		.table = MOTE_SLOTS_FLOWS,
		.stride = sizeof(*flows),
		.own = offsetof(struct mote_flow, state),
		.size = SLOTS,
		.reap = &reap,
		.cpus = &cpu,
		.ncpus = 1,
	};

	memory.slots = flows = mapped(sizeof(*flows), SLOTS);
	memory.marks = marks = mapped(sizeof(*marks), 1);
	if (mote_slots_new(&memory, &ops, NULL, &slots))
		bench_die("drain: no memory");
}

/* Spread over the table, as keys are that came and went. */
static uint32_t place(uint32_t i)
{
	return i * 2654435761u % SLOTS;
}

static void change_slots(uint32_t changed)
{
	for (uint32_t i = 0; i < changed; i++) {
		struct mote_flow *flow = &flows[place(i)];

		flow->slot.key = i + 1;
		flow->traffic.sent += i;
		flow->traffic.sent_calls++;
		marks->mark[place(i)] = 1;
		expected += i;
	}
}

static int64_t drain_slots(uint32_t changed)
{
	int64_t began, took;

	change_slots(changed);
	began = bench_clock(CLOCK_MONOTONIC);
	if (mote_slots_scan(slots) != changed)
		bench_die("drain: not every mark was seen");
	took = bench_clock(CLOCK_MONOTONIC) - began;
	if (total != expected)
		bench_die("drain: the sum is wrong");
	return took;
}

static int64_t drain_batch(int hash, uint32_t changed)
{
	static uint64_t keys[SLOTS];
	static struct count values[SLOTS];
	uint32_t batch, count = changed;
	uint64_t sum = 0;
	int64_t began, took;

	for (uint32_t i = 0; i < changed; i++) {
		keys[i] = i + 1;
		values[i] = (struct count){ i, 1 };
	}
	if (bpf_map_update_batch(hash, keys, values, &count, NULL))
		bench_die("drain: cannot fill the hash: %s", strerror(errno));
	count = SLOTS;
	began = bench_clock(CLOCK_MONOTONIC);
	if (bpf_map_lookup_and_delete_batch(hash, NULL, &batch, keys, values, &count, NULL) &&
	    errno != ENOENT)
		bench_die("drain: cannot take a batch: %s", strerror(errno));
	for (uint32_t i = 0; i < count; i++)
		sum += values[i].bytes;
	took = bench_clock(CLOCK_MONOTONIC) - began;
	if (count != changed || sum != (uint64_t)changed * (changed - 1) / 2)
		bench_die("drain: the batch is not what was put in");
	return took;
}

int main(int argc, char **argv)
{
	static const uint32_t changes[] = { 64, 1000, 4000 };
	int rounds = argc > 1 ? atoi(argv[1]) : 0;
	int hash;

	if (rounds < 1)
		bench_die("usage: drain ROUNDS");
	open_slots();
	hash = map_create(BPF_MAP_TYPE_HASH, sizeof(uint64_t), sizeof(struct count), SLOTS, 0);
	for (size_t c = 0; c < sizeof(changes) / sizeof(*changes); c++) {
		int64_t by_slots = INT64_MAX, by_batch = INT64_MAX;

		for (int i = 0; i < rounds; i++) {
			int64_t s = drain_slots(changes[c]), b = drain_batch(hash, changes[c]);

			by_slots = s < by_slots ? s : by_slots;
			by_batch = b < by_batch ? b : by_batch;
		}
		printf("{\"changed\": %u, \"slots_ns\": %lld, \"batch_ns\": %lld}\n", changes[c],
		       (long long)by_slots, (long long)by_batch);
	}
	return 0;
}
