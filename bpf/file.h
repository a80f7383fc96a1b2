/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the file programs share: maps, which file a thread is at, and the slot of a process and a
 * file. Kernel memory is read by BPF_CORE_READ only, so that one logic serves both sets.
 *
 * The kernel itself adds what each call returned to the task's ioac. A program at the entry of a
 * call only says which file the coming bytes belong to: the thread is at that file, until it turns
 * to another. Nothing has to be seen of a return, and nothing is held while a call waits.
 */
#ifndef MOTE_BPF_FILE_H
#define MOTE_BPF_FILE_H

#include "kernel.h"
#include "compat.h"
#include "abi_file.h"
#include "maps.h"
#include "slots.h"
#include "edge.h"
#include "file_path.h"

const volatile bool file_reads = true, file_writes = true;
const volatile bool file_filters = false; /* user space decides on what is excluded */

/* User space sets the sizes. */
ARRAY(file_paths, struct mote_path, 64);
ARRAY(file_marks, struct mote_slot_marks_line, 1);
ARRAY(file_reap, struct mote_reap, MOTE_FILE_TABLES);
ARRAY(file_verdicts, struct mote_file_verdicts, 1);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, u64);
} file_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 64);
	__uint(value_size, sizeof(u32));
} file_free SEC(".maps");

#define FILES                                                                \
	(&(struct slots){ &file_index, &file_free, &file_slots, &file_marks, \
			  (enum mote_slot_table)MOTE_FILE_ACCESSES })

/* Of the calling thread; NULL: it has none, and `make` was not asked for or there is no room. */
static __always_inline struct file_thread *file_thread(bool make)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct file_thread *t = bpf_map_lookup_elem(&file_threads, &tid);

	return t || !make ? t : file_thread_new(tid);
}

/*
 * Files whose text the kernel makes when it is read, and which are no storage of anybody. By the
 * numbers of include/uapi/linux/magic.h.
 */
static __always_inline bool is_made_up(unsigned long magic)
{
	switch ((u32)magic) {
	case 0x9fa0:     /* proc */
	case 0x62656572: /* sysfs */
	case 0x63677270: /* cgroup2 */
	case 0x27e0eb:   /* cgroup */
	case 0x74726163: /* tracefs */
	case 0x64626720: /* debugfs */
	case 0x73636673: /* securityfs */
	case 0xf97cff8c: /* selinuxfs */
	case 0x62656570: /* configfs */
	case 0xcafe4a11: /* bpf */
	case 0xde5e81e4: /* efivarfs */
	case 0x6165676c: /* pstore */
	case 0x42494e4d: /* binfmt_misc */
	case 0x65735543: /* fuse's control */
		return true;
	}
	return false;
}

/* A process and a file. */
struct file_key {
	u64 start, ino;
	u32 tgid, dev, generation, pad0;
};

static __always_inline bool is_slot_of(const struct mote_access *a, const struct file_key *k)
{
	return a->ino == k->ino && a->dev == k->dev && a->generation == k->generation &&
	       a->tgid == k->tgid && a->start == k->start;
}

static __always_inline bool decided(u64 key)
{
	u32 zero = 0;
	struct mote_file_verdicts *v = bpf_map_lookup_elem(&file_verdicts, &zero);

	return v && v->key[MOTE_VERDICT_AT(key) & (MOTE_VERDICTS - 1)] == key;
}

struct file_fill {
	const struct file_key *key;
	const struct task_struct *task;
	bool fresh;
};

static __always_inline void file_fill(void *slot, void *arg)
{
	struct file_fill *fill = arg;
	const struct task_struct *task = fill->task;
	struct mote_access *a = slot;

	a->tgid = fill->key->tgid;
	a->dev = fill->key->dev;
	a->start = fill->key->start;
	a->ino = fill->key->ino;
	a->generation = fill->key->generation;
	BPF_CORE_READ_INTO(&a->comm, task, group_leader, comm);
	fill->fresh = true;
}

/*
 * A mount that only the kernel can reach (MNT_NS_INTERNAL, an error pointer): overlayfs copies a
 * file from the layer below in its own.
 */
static __always_inline bool is_internal(const struct file *file)
{
	struct vfsmount *vm = BPF_CORE_READ(file, f_path.mnt);
	struct mount *m = (void *)vm - bpf_core_field_offset(struct mount, mnt);

	return (s64)BPF_CORE_READ(m, mnt_ns) < 0 && (s64)BPF_CORE_READ(m, mnt_ns) >= -4095;
}

/* False: it is none that is counted. A kernel thread works for somebody, or for the kernel. */
static __always_inline bool load_key(struct file_key *k, const struct file *file,
				     struct task_struct *task)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG ||
	    is_made_up(BPF_CORE_READ(sb, s_magic)) || is_internal(file))
		return false;
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		task = compat_works_for(task);
	k->tgid = task ? BPF_CORE_READ(task, tgid) : 0;
	k->start = task ? BPF_CORE_READ(task, group_leader, start_boottime) : 0;
	k->dev = BPF_CORE_READ(sb, s_dev);
	k->ino = BPF_CORE_READ(inode, i_ino);
	k->generation = BPF_CORE_READ(inode, i_generation);
	k->pad0 = 0;
	return true;
}

__noinline int file_path(u32 slot, u64 file, u64 task)
{
	struct mote_path *path = bpf_map_lookup_elem(&file_paths, &slot);

	if (path)
		path_load(path, file, task);
	return 0;
}

/*
 * The place of a file and of the process of a task; a new one gets its path. To be called between
 * enter and exit. A function of its own, that takes numbers: the verifier looks at it once.
 */
__noinline int file_place(u64 file, u64 task)
{
	struct mote_slot_cpu *cpu = file_cpu();
	struct file_key key;
	struct file_fill fill = { .key = &key, .task = (const struct task_struct *)task };
	struct mote_file_ctl *ctl;
	struct mote_access *a;
	u32 slot = 0;
	u64 hash, process;

	if (!cpu || !load_key(&key, (const struct file *)file, (struct task_struct *)task))
		return NOWHERE;
	process = mote_process_key(key.tgid, key.start);
	hash = mote_access_key(process, key.dev, key.ino, key.generation);
	if (file_filters &&
	    (decided(process) || decided(mote_access_key(0, key.dev, key.ino, key.generation))))
		return OTHER;
	a = slots_get(FILES, cpu, hash, &slot, file_fill, &fill);
	if (!a)
		return OTHER;
	if (fill.fresh)
		file_path(slot, file, task);
	if (is_slot_of(a, &key)) {
		slots_mark(FILES, slot);
		return (int)SLOT_PLACE(slot, a->slot.gen);
	}
	ctl = file_control();
	if (ctl)
		__sync_fetch_and_add(&ctl->collided, 1);
	return OTHER;
}

static __always_inline void add_other(int side, u64 bytes, u64 calls)
{
	struct mote_slot_cpu *cpu = file_cpu();

	if (!cpu)
		return;
	if (side == READ) {
		__sync_fetch_and_add(&cpu->other[0].received, bytes);
		__sync_fetch_and_add(&cpu->other[0].received_calls, calls);
	} else {
		__sync_fetch_and_add(&cpu->other[0].sent, bytes);
		__sync_fetch_and_add(&cpu->other[0].sent_calls, calls);
	}
}

/* Between enter and exit. */
static __always_inline void file_add(u32 place, int side, u64 bytes, u64 calls)
{
	struct mote_access *a;
	struct mote_file_ctl *ctl;
	u32 slot = 0;

	if (place == NOWHERE || !(bytes | calls))
		return;
	a = place == OTHER ? NULL : file_at(place, &slot);
	if (!a) {
		add_other(side, bytes, calls);
		ctl = place == OTHER ? NULL : file_control();
		if (ctl)
			__sync_fetch_and_add(&ctl->late, 1);
		return;
	}
	if (side == READ) {
		__sync_fetch_and_add(&a->moved.read, bytes);
		SLOT_ADD(a->moved.reads, calls);
	} else {
		__sync_fetch_and_add(&a->moved.written, bytes);
		SLOT_ADD(a->moved.writes, calls);
	}
	slots_mark(FILES, slot);
}

/*
 * What has come since the thread turned to its file; it is nowhere then. A thread's number may be
 * another's by now.
 */
static __always_inline void file_settle(struct file_side *s, const struct file_count *count,
					int side)
{
	u32 place = s->place;
	struct file_count since;

	/* First: a walk that looks now must not add what gets into the slot below. */
	*(volatile u32 *)&s->place = NOWHERE;
	if (count->bytes >= s->base) {
		file_since(&since, s, count);
		file_add(place, side, since.bytes, since.calls);
	}
	s->base = count->bytes;
	s->calls = (u32)count->calls;
}

/* Both sides of a thread that leaves its files. */
static __always_inline void file_leave(struct file_thread *t, const struct task_struct *task,
				       int side)
{
	struct file_side *s = &t->side[side];
	struct file_count count;

	load_count(&count, task, side);
	if (edges_wanted)
		edge_turn(t, &count, side, NOWHERE);
	file_settle(s, &count, side);
	s->file = 0;
}

#endif
