// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Counts what getpriority() is called with, into slots as net.bpf.c does, and sits where it is
 * most inconvenient: the writer and the reaper of the slots' stress test.
 *
 * Classic syscall tracepoints lose nothing up to 6.x. On 7.x they run preemptible, and are skipped
 * where another task was preempted inside; a kprobe on the same function is not.
 */
#include "maps.h"
#include "filler.h"

char _license[] SEC("license") = "Dual BSD/GPL";

SEC(".rodata.config") const volatile struct filler_config filler_config;

static __always_inline void stall_at(u32 where);
#define SLOT_POINT(where)  stall_at(where)
#define SLOT_FAILS()       (filler_config.failures && (bpf_get_prandom_u32() & 3) == 0)
#define SLOT_MUTANT(which) (filler_config.mutant == MUTANT_##which)
#include "slots.h"

#define SLOTS 1024 /* the loader may set another size */

ARRAY(counters, struct filler_counter, SLOTS);

ARRAY(counter_marks, struct mote_slot_marks_line, MOTE_MARKS_LINES(SLOTS));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SLOTS);
	__type(key, u64);
	__type(value, u64);
} counter_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, SLOTS);
	__uint(value_size, sizeof(u32));
} counter_free SEC(".maps");

#define PLACES 65536
ARRAY(places, u32, PLACES); /* where a key was last; keys share them, and overwrite each other */

ARRAY(cpus, struct mote_slot_cpu, 1); /* possible CPUs */

ARRAY(reap_list, struct mote_reap, 1);

ARRAY(filler_stats, struct filler_stats, 1);

#define TABLE                                                                       \
	{                                                                           \
		.index = &counter_index, .free = &counter_free, .slots = &counters, \
		.marks = &counter_marks, .table = MOTE_SLOTS_FLOWS,                 \
	}

/* Global functions are verified once, and not at each call. */
__attribute__((noinline)) int spin(u64 end)
{
	for (int i = 0; i < 100; i++)
		if (bpf_ktime_get_ns() >= end)
			return 1;
	return 0;
}

__attribute__((noinline)) int stall(u32 where)
{
	u32 zero = 0, random = bpf_get_prandom_u32();
	/* more often where a key can be deleted and its element reused meanwhile */
	bool often = (where >= 2 && where <= 4) || where == 7;
	u32 mask = often ? filler_config.stall_mask >> 4 : filler_config.stall_mask;
	struct filler_stats *stats = bpf_map_lookup_elem(&filler_stats, &zero);
	u64 us = random >> 29 ? (random >> 20) % 40 : filler_config.stall_us;
	u64 end = bpf_ktime_get_ns() + us * 1000;

	if (!stats || (random & mask))
		return 0;
	__sync_fetch_and_add(&stats->stalls, 1);
	for (int i = 0; i < 10000; i++)
		if (spin(end))
			return 1;
	return 0;
}

static __always_inline void stall_at(u32 where)
{
	if (filler_config.stall_mask)
		stall(where);
}

static __always_inline struct filler_counter *recall(const struct slots *table,
						     struct mote_slot_cpu *cpu, u64 key, u32 *slot)
{
	u32 at = key % PLACES, zero = 0;
	u32 *place = bpf_map_lookup_elem(&places, &at);
	struct filler_stats *stats = bpf_map_lookup_elem(&filler_stats, &zero);
	struct filler_counter *counter;

	if (!place || !stats)
		return NULL;
	counter = slots_recall(table, key, *(volatile u32 *)place, slot);
	if (counter) {
		__sync_fetch_and_add(&stats->recalled, 1);
		return counter;
	}
	counter = slots_get(table, cpu, key, slot, NULL, NULL);
	if (counter)
		*(volatile u32 *)place = SLOT_PLACE(*slot, counter->slot.gen);
	return counter;
}

static __always_inline void count(u64 key, u64 bytes)
{
	const struct slots table = TABLE;
	struct mote_slot_cpu *cpu = slots_enter(&cpus);
	struct filler_counter *counter;
	u32 slot = 0;

	if (!cpu)
		return;
	counter = filler_config.recall ? recall(&table, cpu, key, &slot)
				       : slots_get(&table, cpu, key, &slot, NULL, NULL);
	if (counter) {
		SLOT_POINT(3);
		if (SLOT_MUTANT(MARK_FIRST)) {
			slots_mark(&table, slot);
			SLOT_POINT(3);
		}
		__sync_fetch_and_add(&counter->bytes, bytes);
		SLOT_ADD(counter->events, 1);
		if (!SLOT_MUTANT(MARK_FIRST))
			slots_mark(&table, slot);
	} else {
		__sync_fetch_and_add(&cpu->other[0].sent, bytes);
		__sync_fetch_and_add(&cpu->other[0].sent_calls, 1);
	}
	slots_exit(cpu);
}

static __always_inline bool ours(void)
{
	return bpf_get_current_pid_tgid() >> 32 == filler_config.tgid;
}

/* /sys/kernel/tracing/events/syscalls/sys_enter_getpriority/format */
struct sys_enter {
	u64 entry;
	u64 number;
	u64 args[2];
};

SEC("?tracepoint")
int filler_tracepoint(struct sys_enter *ctx)
{
	u64 event = ctx->args[1];

	if (ctx->args[0] == FILLER_MAGIC && ours())
		count((u32)event, event >> 32);
	return 0;
}

/* A system call's function has one argument, the caller's registers: arch's asm/ptrace.h. */
#ifdef __TARGET_ARCH_x86
struct registers {
	u64 others[13];
	u64 si, di;
};
#	define SYSCALL   "__x64_sys_getpriority"
#	define FIRST(r)  ((r)->di)
#	define SECOND(r) ((r)->si)
#else
struct registers {
	u64 x[31];
};
#	define SYSCALL   "__arm64_sys_getpriority"
#	define FIRST(r)  ((r)->x[0])
#	define SECOND(r) ((r)->x[1])
#endif

SEC("?kprobe/" SYSCALL)
int filler_kprobe(struct registers *ctx)
{
	struct registers *caller = (void *)FIRST(ctx);
	u64 which = 0, event = 0;

	if (!ours() || bpf_probe_read_kernel(&which, sizeof(which), &FIRST(caller)) ||
	    bpf_probe_read_kernel(&event, sizeof(event), &SECOND(caller)))
		return 0;
	if (which == FILLER_MAGIC)
		count((u32)event, event >> 32);
	return 0;
}

__attribute__((noinline)) int filler_reap_entry(u32 i)
{
	const struct slots table = TABLE;
	u32 zero = 0;
	struct mote_reap *list = bpf_map_lookup_elem(&reap_list, &zero);

	return list ? slots_reap(&table, list, i) : 0;
}

SEC("?iter/task")
int filler_reap(struct bpf_iter__task *ctx)
{
	u32 zero = 0;
	struct mote_reap *list;

	if (!ctx->task || !slots_pass(ctx->meta))
		return 0;
	for (u32 i = 0; i < MOTE_REAP && filler_reap_entry(i); i++)
		;
	list = bpf_map_lookup_elem(&reap_list, &zero);
	if (list)
		slots_reaped(list);
	return 0;
}
