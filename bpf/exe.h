/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The path of a file as mounts and dentries give it: names from the file up to the root of the
 * mount namespace, as mote_task_exe() takes them. All by probe_read: nothing need hold the file.
 *
 * There is one function and one map for each that includes this and defines EXE_NAME(name); its
 * constant EXE_NAME(probe_read) is false where lockdown refuses the reads.
 */
#ifndef MOTE_EXE_H
#define MOTE_EXE_H

#include "kernel.h"
#include "compat.h"
#include "abi.h"

#ifndef EXE_NAME
#	define EXE_NAME(name) exe_##name
const volatile bool exe_probe_read = true;
#endif

#define EXE_COMPONENTS 40 /* names and mounts passed on the way to the root */
#define EXE_NAME_MAX   (MOTE_EXE_MAX / 2)

/* Where it is on the way up, and what it has of the path. */
struct exe_walk {
	u64 dentry, mnt; /* addresses */
	u32 len, flags;
	char names[MOTE_EXE_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct exe_walk);
} EXE_NAME(walks) SEC(".maps");

static __always_inline struct exe_walk *exe_walk(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&EXE_NAME(walks), &zero);
}

/* The root of a mount: on to what it is mounted on; 0: it is the root of all. */
static __always_inline int exe_cross(struct exe_walk *w, const struct vfsmount *mnt)
{
	struct mount *m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
	struct mount *parent = BPF_CORE_READ(m, mnt_parent);

	if (parent == m) {
		w->flags &= ~MOTE_EXE_CUT;
		return 0;
	}
	w->dentry = (u64)BPF_CORE_READ(m, mnt_mountpoint);
	w->mnt = (u64)parent + bpf_core_field_offset(struct mount, mnt);
	return 1;
}

/*
 * One name, or one mount; 0: there is no more. A global function is looked at by the verifier once,
 * and not in each turn of the loop.
 */
__attribute__((noinline)) int EXE_NAME(step)(void)
{
	struct exe_walk *w = exe_walk();
	const struct vfsmount *mnt;
	const struct dentry *d, *up;
	u64 at;
	long n;

	if (!w || !EXE_NAME(probe_read))
		return 0;
	d = (const void *)w->dentry;
	mnt = (const void *)w->mnt;
	up = BPF_CORE_READ(d, d_parent);
	if (d == BPF_CORE_READ(mnt, mnt_root))
		return exe_cross(w, mnt);
	if (w->len > EXE_NAME_MAX - 1)
		return 0;
	at = compat_bounded(w->len, EXE_NAME_MAX - 1);
	n = bpf_probe_read_kernel_str(w->names + at, EXE_NAME_MAX, BPF_CORE_READ(d, d_name.name));
	if (n < 1 || n >= EXE_NAME_MAX) /* failed, or cut */
		return 0;
	w->len += n;
	if (up == d) {
		w->flags = (w->flags & ~MOTE_EXE_CUT) | MOTE_EXE_DETACHED;
		return 0;
	}
	w->dentry = (u64)up;
	return 1;
}

static __always_inline struct exe_walk *exe_path(const struct file *file)
{
	const struct dentry *d = BPF_CORE_READ(file, f_path.dentry);
	struct exe_walk *w = exe_walk();

	if (!w)
		return NULL;
	w->dentry = (u64)d;
	w->mnt = (u64)BPF_CORE_READ(file, f_path.mnt);
	w->len = 0;
	w->flags = MOTE_EXE_CUT;
	if (!BPF_CORE_READ(d, d_hash.pprev))
		w->flags |= MOTE_EXE_DELETED;
	for (int i = 0; i < EXE_COMPONENTS && EXE_NAME(step)(); i++)
		;
	return w;
}

#endif
