/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The path of a file as its process sees it: up the dentries and mounts to the process's root, so
 * that bind mounts, overlayfs and containers give what readlink(/proc/PID/fd/N) does. Bounded; what
 * is beyond is missing at the beginning. Nothing holds a rename off meanwhile: a path can be torn.
 */
#ifndef MOTE_BPF_FILE_PATH_H
#define MOTE_BPF_FILE_PATH_H

#include "kernel.h"
#include "abi_file.h"
#include "compat.h"

/* Names and mounts passed. */
#define PATH_STEPS 40
#define PATH_MASK  (MOTE_PATH_MAX - 1)

/*
 * One name more than is kept may begin at the last byte. `end` is here, where the verifier does not
 * follow what it can be: two counters in registers are a million states on 5.10.
 */
struct path_scratch {
	u64 end;
	char names[2 * MOTE_PATH_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct path_scratch);
} file_scratch SEC(".maps");

/* False: there was no more room, or it could not be read. */
static __always_inline bool take_name(struct path_scratch *scratch, const struct dentry *d)
{
	u64 end = *(volatile u64 *)&scratch->end;
	long n;

	if (end >= MOTE_PATH_MAX)
		return false;
	n = bpf_probe_read_kernel_str(scratch->names + compat_bounded(end, PATH_MASK),
				      MOTE_PATH_MAX, BPF_CORE_READ(d, d_name.name));
	if (n < 1)
		return false;
	*(volatile u64 *)&scratch->end = end + n;
	return true;
}

static __always_inline u32 walk_up(struct path_scratch *scratch, const struct file *file,
				   const struct task_struct *task)
{
	struct dentry *d = BPF_CORE_READ(file, f_path.dentry), *up;
	struct vfsmount *vm = BPF_CORE_READ(file, f_path.mnt);
	struct dentry *root = BPF_CORE_READ(task, fs, root.dentry);
	struct vfsmount *root_mount = BPF_CORE_READ(task, fs, root.mnt);
	u32 deleted = BPF_CORE_READ(d, d_hash.pprev) ? 0 : MOTE_PATH_DELETED;

	for (int i = 0; i < PATH_STEPS; i++) {
		if (d == root && vm == root_mount)
			return deleted;
		up = BPF_CORE_READ(d, d_parent);
		if (d == BPF_CORE_READ(vm, mnt_root)) {
			struct mount *m = (void *)vm - bpf_core_field_offset(struct mount, mnt);
			struct mount *parent = BPF_CORE_READ(m, mnt_parent);

			if (parent == m) /* the namespace's root: it is outside of a chroot */
				return deleted;
			d = BPF_CORE_READ(m, mnt_mountpoint);
			vm = (void *)parent + bpf_core_field_offset(struct mount, mnt);
			continue;
		}
		if (!take_name(scratch, d))
			break;
		if (up == d)
			return deleted | MOTE_PATH_DETACHED;
		d = up;
	}
	return deleted | MOTE_PATH_CUT;
}

/* Into the memory beside a slot that is new. */
static __always_inline void path_load(struct mote_path *path, u64 file, u64 task)
{
	u32 zero = 0;
	struct path_scratch *scratch = bpf_map_lookup_elem(&file_scratch, &zero);
	u32 flags;

	if (!scratch)
		return;
	scratch->end = 0;
	flags = walk_up(scratch, (const struct file *)file, (const struct task_struct *)task);
	bpf_probe_read_kernel(path->names, MOTE_PATH_MAX, scratch->names);
	path->flags = scratch->end > MOTE_PATH_MAX ? flags | MOTE_PATH_CUT : flags;
	path->len = scratch->end > MOTE_PATH_MAX ? MOTE_PATH_MAX : scratch->end;
}

#endif
