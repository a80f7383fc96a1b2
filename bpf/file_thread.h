/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which file a thread is at: what the file programs keep of it, and the network's programs read,
 * who have the same maps (probes_edge.h).
 */
#ifndef MOTE_BPF_FILE_THREAD_H
#define MOTE_BPF_FILE_THREAD_H

#include "kernel.h"
#include "abi_file.h"
#include "maps.h"
#include "slots.h"

/* User space sets the sizes. */
ARRAY(file_slots, struct mote_access, 64);
ARRAY(file_cpus, struct mote_slot_cpu, 1);
ARRAY(file_ctl, struct mote_file_ctl, 1);

/* Where a thread's bytes go: SLOT_PLACE() of a slot, or one of these; slots 0 and 1 are not used.
 */
#define NOWHERE 0 /* no regular file, or one that is not counted */
#define OTHER   1 /* a file without a slot */

/* The file that a thread is at in one direction. */
struct file_side {
	u64 base; /* ioac.rchar or wchar when it came there */
	u64 file; /* file_identity(), LOOK_AGAIN or up to SEVERAL; 0: at none */
	u32 place;
	u32 calls; /* syscr or syscw when it came there, the lower half */
};

enum { READ, WRITE };

/*
 * `file` from 2 up to here: since the thread came there it makes one call that the kernel counts so
 * many times, see file_copy() in file.bpf.c. No file_identity() is as small, but by chance.
 */
#define SEVERAL    15
#define LOOK_AGAIN 1 /* in any case, at the next call */

enum {
	SENDFILE_CALLED = 1,
	SENDFILE_MAY_READ, /* the kernel has looked at the file, and at what it sends to next */
	SENDFILE_SENDS,
};

struct file_thread {
	struct file_side side[2];
	u64 kernels;   /* the file that the kernel is about to read or write for itself */
	u32 splice[2]; /* places, while it is in splice() */
	u32 tid;

	/* Credit (edge.h). */
	u32 before;      /* the file that it was at before */
	u32 before_left; /* bytes of that, read and not sent */
	u32 pipe_moved;  /* bytes that its splice() has put into or taken from a pipe by now */
	s64 sent;        /* of what it has read of the file it is at: bytes that were sent */
	u64 written;     /* of the file it writes to: bytes that were looked at */
	u64 socket;      /* what it received from last */
	u64 socket_left; /* bytes received of that, and not written */
	u32 sendfile;    /* how far it is in it, SENDFILE_*, in the call with this number */
	u32 sendfile_call;
	u64 pipe_in;  /* while it is in splice(): the pipe that it puts into */
	u64 pipe_out; /* and the one that it takes from */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct file_thread);
} file_threads SEC(".maps");

static __always_inline struct mote_file_ctl *file_control(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&file_ctl, &zero);
}

/* A thread that was not seen before is at no file. NULL: there is no room. */
static __always_inline struct file_thread *file_thread_new(u32 tid)
{
	static const struct file_thread fresh; /* not on the stack: there is no room for it */
	bool made = !(int)bpf_map_update_elem(&file_threads, &tid, &fresh, BPF_NOEXIST);
	struct file_thread *t = bpf_map_lookup_elem(&file_threads, &tid);
	struct mote_file_ctl *ctl = file_control();

	if (t)
		t->tid = tid;
	if (ctl && made)
		__sync_fetch_and_add(&ctl->threads, 1);
	else if (ctl)
		__sync_fetch_and_add(&ctl->no_thread, 1);
	return t;
}

static __always_inline struct mote_slot_cpu *file_cpu(void)
{
	u32 number = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&file_cpus, &number);
}

/*
 * The slot at a place, if that is still the same: see slots_recall(). NULL: it has been taken away
 * meanwhile.
 */
static __always_inline struct mote_access *file_at(u32 place, u32 *slot)
{
	struct mote_access *a;
	u64 life; /* gen, and in the upper half `left` */

	*slot = place & (MOTE_SLOTS_MAX - 1);
	a = bpf_map_lookup_elem(&file_slots, slot);
	if (!a)
		return NULL;
	life = *(volatile u64 *)&a->slot.gen;
	return life >> 32 || SLOT_PLACE(*slot, (u32)life) != place ? NULL : a;
}

/* An inode's memory can be another's by now, and a number that of another file. */
static __always_inline u64 file_identity(const struct inode *inode)
{
	u64 number = mote_mix((u64)inode, BPF_CORE_READ(inode, i_ino));

	return mote_mix(number, BPF_CORE_READ(inode, i_generation)) | 1;
}

/* What the kernel has counted of a task by now, in one direction. */
struct file_count {
	u64 bytes, calls;
};

static __always_inline void load_count(struct file_count *count, const struct task_struct *task,
				       int side)
{
	if (side == READ) {
		count->bytes = BPF_CORE_READ(task, ioac.rchar);
		count->calls = BPF_CORE_READ(task, ioac.syscr);
	} else {
		count->bytes = BPF_CORE_READ(task, ioac.wchar);
		count->calls = BPF_CORE_READ(task, ioac.syscw);
	}
}

static __always_inline bool is_several(const struct file_side *s)
{
	return s->file - 2 <= SEVERAL - 2;
}

/* What a thread has moved since it came to its file, of what the kernel has counted. */
static __always_inline void file_since(struct file_count *since, const struct file_side *s,
				       const struct file_count *count)
{
	since->bytes = count->bytes - s->base;
	since->calls = (u32)count->calls - s->calls;
	if (is_several(s) && since->calls == s->file) {
		since->bytes /= s->file;
		since->calls = 1;
	}
}

static __always_inline u64 file_bytes_since(const struct file_side *s,
					    const struct task_struct *task, int side)
{
	struct file_count since, count = {};

	if (is_several(s)) {
		load_count(&count, task, side);
		file_since(&since, s, &count);
		return since.bytes;
	}
	return (side == READ ? BPF_CORE_READ(task, ioac.rchar) : BPF_CORE_READ(task, ioac.wchar)) -
	       s->base;
}

#endif
