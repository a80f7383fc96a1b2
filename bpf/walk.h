/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Kernel functions for going through tasks: the open-coded iterator came last, in 6.7
 * (c68a78ffe2cb; used from 6.8 on, see probes_walk.c). They are in a header and an object of their
 * own, as libbpf wants the kernel's BTF for an object that names a kernel function, even if no
 * program that calls it is loaded.
 */
#ifndef MOTE_WALK_H
#define MOTE_WALK_H

#include "kernel.h"

struct bpf_iter_task {
	u64 opaque[3];
};

/* kernel/bpf/task_iter.c */
#define BPF_TASK_ITER_ALL_PROCS    0
#define BPF_TASK_ITER_PROC_THREADS 2

extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;
extern struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

#endif
