/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Edges: which file's bytes left by which socket, and which socket's bytes went into which file
 * (docs/ATTRIBUTION.md has the rule, and why). The network's programs call edge_moved() for what
 * they count; the file programs say where a thread turns.
 *
 * Within sendfile() and splice() it is certain. Else it is by credit: what a thread has read of a
 * file it can send, and what it has received it can write, each byte once.
 */
#ifndef MOTE_BPF_EDGE_H
#define MOTE_BPF_EDGE_H

#include "compat.h"
#include "file_thread.h"

const volatile bool edges_wanted = false;
const volatile bool edges_by_credit = true;

ARRAY(edge_slots, struct mote_edge, 64);
ARRAY(edge_marks, struct mote_slot_marks_line, 1);

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

#define FROM_FILE 0x100 /* sent over the socket; else received */

/*
 * Between enter and exit of file_cpus. `what`: MOTE_EDGE_*, and FROM_FILE. Global, for the verifier
 * to look at it once, and not at each place that calls it. Where edges are not wanted nothing below
 * the first lines of these functions is there: not even the maps are.
 */
__noinline int edge_add(u64 socket, u32 place, u32 what, u64 bytes)
{
	struct edge_fill fill = { .socket = socket, .kind = what & 0xff };
	struct mote_slot_cpu *cpu;
	struct mote_access *a;
	struct mote_edge *e;
	u32 slot = 0;

	if (!edges_wanted || place <= OTHER || !bytes)
		return 0;
	cpu = file_cpu();
	a = file_at(place, &slot);
	if (!a || !cpu)
		return 0;
	fill.access = a;
	e = slots_get(EDGES, cpu, mote_mix(mote_mix(a->slot.key, socket), what & 0xff) | 1, &slot,
		      edge_fill, &fill);
	if (!e || !is_edge_of(e, &fill))
		return 0;
	if (what & FROM_FILE) {
		__sync_fetch_and_add(&e->sent, bytes);
		SLOT_ADD(e->sends, 1);
	} else {
		__sync_fetch_and_add(&e->received, bytes);
		SLOT_ADD(e->receives, 1);
	}
	slots_mark(EDGES, slot);
	return 0;
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
 * What splice() has put into a pipe, in that order: of files, by their places, of sockets, by their
 * numbers, and of what is neither (NOWHERE). Edges of it are certain, so there are none where more
 * can have happened than is seen here: where another thread splices into or out of the pipe, where
 * it holds what splice() did not put there, or more sources than are kept. That lasts until a
 * thread comes to it and it is empty.
 */
#define PIPE_PARTS 4  /* a power of two */
#define PIPE_LOOK  32 /* buffers: what a pipe with more of them holds is not compared */

struct pipe_part {
	u64 source;
	u64 put, taken; /* bytes */
	u64 of_socket;
};

struct pipe {
	struct pipe_part part[PIPE_PARTS];
	u32 last, first;
	u32 tid; /* whose splice() found it empty; 0: nobody's did */
	u32 lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 128);
	__type(key, u64);
	__type(value, struct pipe);
} edge_pipes SEC(".maps");

static __always_inline u64 pipe_key(const struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	return mote_mix((u64)inode, BPF_CORE_READ(inode, i_ino)) | 1;
}

static __always_inline struct pipe_part *pipe_part(struct pipe *pipe, u32 number)
{
	return &pipe->part[compat_bounded(number, PIPE_PARTS - 1)];
}

/* All that was put in is out again. */
static __always_inline bool pipe_drained(struct pipe *pipe)
{
	const struct pipe_part *part = pipe_part(pipe, pipe->last);

	return pipe->first == pipe->last && part->put == part->taken;
}

/* Does it hold what was put in by splice(), and not taken out? */
static __always_inline bool pipe_agrees(const struct pipe *pipe, const struct pipe_inode_info *info,
					u32 head, u32 tail)
{
	u32 mask = BPF_CORE_READ(info, ring_size) - 1;
	const struct pipe_buffer *bufs = BPF_CORE_READ(info, bufs);
	u64 known = 0, held = 0;

	if (head - tail > PIPE_LOOK)
		return true;
	for (int i = 0; i < PIPE_PARTS; i++)
		known += pipe->part[i].put - pipe->part[i].taken;
	for (int i = 0; i < PIPE_LOOK && tail != head; i++, tail++)
		held += BPF_CORE_READ((const struct pipe_buffer
					       *)((u64)bufs +
						  (u64)(tail & mask) *
							  bpf_core_type_size(struct pipe_buffer)),
				      len);
	return known == held;
}

/* The calling thread is about to splice into or out of it. */
static __noinline __attribute__((unused)) int pipe_begin(u64 key, u64 address)
{
	const struct pipe_inode_info *info = (const struct pipe_inode_info *)address;
	u32 head = BPF_CORE_READ(info, head), tail = BPF_CORE_READ(info, tail);
	static const struct pipe fresh; /* not on the stack: there is no room for it */
	struct pipe *pipe = bpf_map_lookup_elem(&edge_pipes, &key);
	u32 tid = (u32)bpf_get_current_pid_tgid();

	if (!pipe) {
		(void)bpf_map_update_elem(&edge_pipes, &key, &fresh, BPF_NOEXIST);
		pipe = bpf_map_lookup_elem(&edge_pipes, &key);
	}
	if (!pipe)
		return 0;
	if (head != tail) {
		if (pipe->tid != tid || pipe_drained(pipe) || !pipe_agrees(pipe, info, head, tail))
			pipe->lost = 1;
		return 0;
	}
	for (int i = 0; i < PIPE_PARTS; i++)
		pipe->part[i].put = pipe->part[i].taken = 0;
	pipe->first = pipe->last;
	pipe->tid = tid;
	pipe->lost = 0;
	return 0;
}

/* To the thread that alone uses it. */
static __always_inline bool pipe_known(struct pipe *pipe)
{
	if (pipe->tid != (u32)bpf_get_current_pid_tgid())
		pipe->lost = 1;
	return !pipe->lost;
}

__noinline int pipe_put(u64 key, u64 source, u64 of_socket, u64 bytes)
{
	struct pipe_part *part;
	struct pipe *pipe;

	if (!edges_wanted || !bytes)
		return 0;
	pipe = bpf_map_lookup_elem(&edge_pipes, &key);
	if (!pipe)
		return 0;
	if (!pipe_known(pipe))
		return 0;
	if (!pipe_drained(pipe)) {
		part = pipe_part(pipe, pipe->last);
		if (part->source == source && part->of_socket == of_socket) {
			part->put += bytes;
			return 0;
		}
		if (pipe->last - pipe->first >= PIPE_PARTS - 1) {
			pipe->lost = 1;
			return 0;
		}
		pipe->last++;
	}
	part = pipe_part(pipe, pipe->last);
	part->source = source;
	part->of_socket = of_socket;
	part->put = bytes;
	part->taken = 0;
	return 0;
}

/* The next bytes of one source, at most `bytes`; 0: there are none. */
static __always_inline u64 pipe_take(struct pipe *pipe, u64 bytes, struct pipe_part *from)
{
	struct pipe_part *part = pipe_part(pipe, pipe->first);
	u64 n;

	if (part->put == part->taken && pipe->first != pipe->last) {
		pipe->first++;
		part = pipe_part(pipe, pipe->first);
	}
	n = least(bytes, part->put - part->taken);
	part->taken += n;
	from->source = part->source;
	from->of_socket = part->of_socket;
	return n;
}

/*
 * `bytes` came out of a pipe, into a socket (`place` NOWHERE), into the file at `place`, or
 * elsewhere (OTHER): edges are from a file to a socket and the other way.
 */
__noinline int pipe_out(u64 key, u64 socket, u32 place, u64 bytes)
{
	struct pipe_part from = {};
	struct pipe *pipe;

	if (!edges_wanted)
		return 0;
	pipe = bpf_map_lookup_elem(&edge_pipes, &key);
	if (!pipe)
		return 0;
	if (!pipe_known(pipe))
		return 0;
	for (int i = 0; bytes && i < PIPE_PARTS; i++) {
		u64 n = pipe_take(pipe, bytes, &from);

		bytes -= n;
		if (place == NOWHERE && !from.of_socket)
			edge_add(socket, from.source, MOTE_EDGE_SPLICE | FROM_FILE, n);
		else if (place != NOWHERE && from.of_socket)
			edge_add(from.source, place, MOTE_EDGE_SPLICE, n);
	}
	if (bytes)
		pipe->lost = 1;
	return 0;
}

/*
 * `bytes` went out over a socket. In sendfile(): of the file that it reads of, for certain. They
 * will be in rchar when it returns, and must not be sent again by credit.
 */
static __always_inline void edge_sent(struct file_thread *t, const struct task_struct *task,
				      u64 socket, u64 bytes)
{
	const struct file_side *s = &t->side[READ];
	s64 left;
	u64 part;

	if (t->sendfile == SENDFILE_SENDS && t->sendfile_call == reading_call(task)) {
		edge_add(socket, s->place, MOTE_EDGE_SENDFILE | FROM_FILE, bytes);
		t->sent += bytes;
		return;
	}
	t->sendfile = 0;
	if (t->pipe_out) {
		t->pipe_moved += bytes;
		pipe_out(t->pipe_out, socket, NOWHERE, bytes);
		return;
	}
	if (!edges_by_credit)
		return;
	left = s->place > OTHER ? (s64)file_bytes_since(s, task, READ) - t->sent : 0;
	part = left > 0 ? least(bytes, left) : 0;
	edge_add(socket, s->place, MOTE_EDGE_CREDIT | FROM_FILE, part);
	t->sent += part;
	part = least(bytes - part, t->before_left);
	edge_add(socket, t->before, MOTE_EDGE_CREDIT | FROM_FILE, part);
	t->before_left -= part;
}

/*
 * What has been written since it was looked at last is of what was received before. `since`: since
 * the thread came to the file.
 */
static __always_inline void edge_written(struct file_thread *t, u64 since)
{
	const struct file_side *s = &t->side[WRITE];
	u64 more = since - t->written, part = least(more, t->socket_left);

	if ((s64)more <= 0)
		return;
	t->written += more;
	if (s->place <= OTHER || !part)
		return;
	edge_add(t->socket, s->place, MOTE_EDGE_CREDIT, part);
	t->socket_left -= part;
}

/* A thread turns to another file, at `place`. A function of its own for its stack. */
static __noinline __attribute__((unused)) int
edge_turn(struct file_thread *t, const struct file_count *count, int side, u32 place)
{
	const struct file_side *s = &t->side[side];
	struct file_count since;
	s64 left;

	file_since(&since, s, count);
	if (side == WRITE) {
		edge_written(t, since.bytes);
		t->written = 0;
		return 0;
	}
	left = s->place > OTHER ? (s64)since.bytes - t->sent : 0;
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

/* Who has not touched a file yet: bytes of files come first, where threads' places are few. */
static __always_inline struct file_thread *edge_thread(u32 tid)
{
	const struct mote_file_ctl *ctl = file_control();

	return ctl && ctl->threads < ctl->edge_threads ? file_thread_new(tid) : NULL;
}

/* Global, as edge_add() is. */
__noinline int edge_moved(u64 socket, u64 sent, u64 received)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct mote_slot_cpu *cpu;
	struct file_thread *t;

	if (!edges_wanted)
		return 0;
	t = bpf_map_lookup_elem(&file_threads, &tid);
	if (!t && received && edges_by_credit)
		t = edge_thread(tid);
	cpu = t ? slots_enter(&file_cpus) : NULL;
	if (!cpu)
		return 0;
	if (sent)
		edge_sent(t, task, socket, sent);
	if (received && t->pipe_in) {
		t->pipe_moved += received;
		pipe_put(t->pipe_in, socket, true, received);
	} else if (received && edges_by_credit) {
		edge_written(t, file_bytes_since(&t->side[WRITE], task, WRITE));
		t->socket_left = t->socket == socket ? t->socket_left + received : received;
		t->socket = socket;
	}
	slots_exit(cpu);
	return 0;
}

#endif
