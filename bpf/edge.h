/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Edges: which file's bytes left by which socket, and which socket's bytes went into which file
 * (docs/ATTRIBUTION.md has the rule, and why). The network's programs call edge_moved() for what
 * they count; the file programs say where a thread turns.
 *
 * Within sendfile() it is certain. Else it is by credit: what a thread has read of a file it can
 * send, and what it has received it can write, each byte once.
 */
#ifndef MOTE_BPF_EDGE_H
#define MOTE_BPF_EDGE_H

#include "file_thread.h"

const volatile bool edges_wanted = false;
const volatile bool edges_by_credit = true;

ARRAY(edge_slots, struct mote_edge, 64);
ARRAY(edge_marks, struct mote_slot_marks, 1);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, u64);
} edge_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 64);
	__uint(value_size, sizeof(u32));
} edge_free SEC(".maps");

#define EDGES                                                                \
	(&(struct slots){ &edge_index, &edge_free, &edge_slots, &edge_marks, \
			  (enum mote_slot_table)MOTE_FILE_EDGES })

struct edge_fill {
	const struct mote_access *access;
	u64 socket;
	u32 kind;
};

static __always_inline void edge_fill(void *slot, void *arg)
{
	const struct edge_fill *fill = arg;
	struct mote_edge *e = slot;

	e->socket = fill->socket;
	e->tgid = fill->access->tgid;
	e->start = fill->access->start;
	e->dev = fill->access->dev;
	e->ino = fill->access->ino;
	e->generation = fill->access->generation;
	e->kind = fill->kind;
}

static __always_inline bool is_edge_of(const struct mote_edge *e, const struct edge_fill *fill)
{
	const struct mote_access *a = fill->access;

	return e->socket == fill->socket && e->kind == fill->kind && e->ino == a->ino &&
	       e->dev == a->dev && e->generation == a->generation && e->tgid == a->tgid &&
	       e->start == a->start;
}

/* Between enter and exit of file_cpus. `from_file`: sent over the socket; else received. */
static __always_inline void edge_add(struct mote_slot_cpu *cpu, u64 socket, u32 place, u32 kind,
				     bool from_file, u64 bytes)
{
	u32 slot = 0;
	struct mote_access *a = place <= OTHER ? NULL : file_at(place, &slot);
	struct edge_fill fill = { .access = a, .socket = socket, .kind = kind };
	struct mote_edge *e;

	if (!a || !bytes)
		return;
	e = slots_get(EDGES, cpu, mote_mix(mote_mix(a->slot.key, socket), kind) | 1, &slot,
		      edge_fill, &fill);
	if (!e || !is_edge_of(e, &fill))
		return;
	if (from_file) {
		__sync_fetch_and_add(&e->sent, bytes);
		SLOT_ADD(e->sends, 1);
	} else {
		__sync_fetch_and_add(&e->received, bytes);
		SLOT_ADD(e->receives, 1);
	}
	slots_mark(EDGES, slot);
}

static __always_inline u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* The number of the call that a thread is in: it grows at the end of each that reads. */
static __always_inline u32 reading_call(const struct task_struct *task)
{
	return (u32)BPF_CORE_READ(task, ioac.syscr);
}

/*
 * `bytes` went out over a socket. In sendfile(): of the file that it reads of, for certain. They
 * will be in rchar when it returns, and must not be sent again by credit.
 */
static __always_inline void edge_sent(struct mote_slot_cpu *cpu, struct file_thread *t,
				      const struct task_struct *task, u64 socket, u64 bytes)
{
	const struct file_side *s = &t->side[READ];
	s64 left;
	u64 part;

	if (t->sendfile && t->sendfile_call == reading_call(task)) {
		edge_add(cpu, socket, s->place, MOTE_EDGE_SENDFILE, true, bytes);
		t->sent += bytes;
		return;
	}
	t->sendfile = 0;
	if (!edges_by_credit)
		return;
	left = s->place > OTHER ? (s64)(BPF_CORE_READ(task, ioac.rchar) - s->base) - t->sent : 0;
	part = left > 0 ? least(bytes, left) : 0;
	edge_add(cpu, socket, s->place, MOTE_EDGE_CREDIT, true, part);
	t->sent += part;
	part = least(bytes - part, t->before_left);
	edge_add(cpu, socket, t->before, MOTE_EDGE_CREDIT, true, part);
	t->before_left -= part;
}

/* What has been written since it was looked at last is of what was received before. */
static __always_inline void edge_written(struct mote_slot_cpu *cpu, struct file_thread *t,
					 u64 written)
{
	const struct file_side *s = &t->side[WRITE];
	u64 more = written - s->base - t->written, part = least(more, t->socket_left);

	if ((s64)more <= 0)
		return;
	t->written += more;
	if (s->place <= OTHER || !part)
		return;
	edge_add(cpu, t->socket, s->place, MOTE_EDGE_CREDIT, false, part);
	t->socket_left -= part;
}

/* A thread turns to another file, at `place`. A function of its own for its stack. */
static __noinline __attribute__((unused)) int
edge_turn(struct file_thread *t, const struct file_count *count, int side, u32 place)
{
	struct mote_slot_cpu *cpu = file_cpu();
	const struct file_side *s = &t->side[side];
	s64 left;

	if (side == WRITE) {
		if (cpu)
			edge_written(cpu, t, count->bytes);
		t->written = 0;
		return 0;
	}
	left = s->place > OTHER ? (s64)(count->bytes - s->base) - t->sent : 0;
	if (left < 0)
		left = 0;
	if (left > 0xffffffffll)
		left = 0xffffffffll;
	t->sent = 0;
	if (place > OTHER && place == t->before) { /* back: what was left of it is there again */
		t->sent = -(s64)t->before_left;
		t->before_left = 0;
	}
	if (left) {
		t->before = s->place;
		t->before_left = left;
	}
	return 0;
}

static __noinline __attribute__((unused)) int edge_moved(u64 socket, u64 sent, u64 received)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct file_thread *t = bpf_map_lookup_elem(&file_threads, &tid);
	struct mote_slot_cpu *cpu;

	if (!t && received && edges_by_credit)
		t = file_thread_new(tid);
	cpu = t ? slots_enter(&file_cpus) : NULL;
	if (!cpu)
		return 0;
	if (sent)
		edge_sent(cpu, t, task, socket, sent);
	if (received && edges_by_credit) {
		edge_written(cpu, t, BPF_CORE_READ(task, ioac.wchar));
		t->socket_left = t->socket == socket ? t->socket_left + received : received;
		t->socket = socket;
	}
	slots_exit(cpu);
	return 0;
}

#endif
