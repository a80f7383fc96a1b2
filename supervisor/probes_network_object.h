/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * bpf/net.bpf.c is built into one object for each set; programs, maps and variables have the same
 * names in all, so that who loads one need not know which. Variables are found by name, as their
 * place may differ.
 */
#ifndef MOTE_PROBES_NETWORK_OBJECT_H
#define MOTE_PROBES_NETWORK_OBJECT_H

#include <stddef.h>

#include "probes_network_choice.h"

struct bpf_object;

/*
 * Opens the object of a set, built for kernels of this version; `btf`: file with the kernel's BTF,
 * "" for the kernel's own. 0 or a negative errno; bpf_object__close() closes it.
 */
int mote_net_object_open(enum mote_net_set set, unsigned int version, const char *btf,
			 struct bpf_object **object);

/* Sets a variable of .rodata, before the object is loaded. -ENOENT, or -EINVAL: another size. */
int mote_net_object_set(struct bpf_object *object, const char *name, const void *value,
			size_t size);

/* The images are not read again. */
void mote_net_object_forget(void);

#endif
