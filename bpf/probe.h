/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One source for both sets of entry points:
 * ENTRY(program, function, arguments...), EXIT(program, function, ret, arguments...)
 */
#ifndef MOTE_BPF_PROBE_H
#define MOTE_BPF_PROBE_H

#include "kernel.h"

#include <bpf/bpf_tracing.h>

#if defined(MOTE_FENTRY)
#	define ENTRY(name, fn, ...) \
		SEC("?fentry/" #fn)  \
		int BPF_PROG(name, ##__VA_ARGS__)
#	define EXIT(name, fn, ret, ...) \
		SEC("?fexit/" #fn)       \
		int BPF_PROG(name, __VA_ARGS__, ret)
/* For functions that take numbers: to the verifier an argument is a pointer, until it is copied. */
#	define ADDRESS(pointer)                                                     \
		({                                                                   \
			u64 pointer_ = (u64)(pointer), number_ = 0;                  \
                                                                                     \
			bpf_probe_read_kernel(&number_, sizeof(number_), &pointer_); \
			number_;                                                     \
		})
#elif defined(MOTE_KPROBE)
#	define ENTRY(name, fn, ...) \
		SEC("?kprobe/" #fn)  \
		int BPF_KPROBE(name, ##__VA_ARGS__)
#	define EXIT(name, fn, ret, ...) \
		SEC("?kretprobe/" #fn)   \
		int BPF_KRETPROBE(name, ret)
#	define ADDRESS(pointer) ((u64)(pointer))
#else
#	error "build with -DMOTE_FENTRY or -DMOTE_KPROBE"
#endif

#endif
