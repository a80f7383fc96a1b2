/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether the kernel attaches trampolines (fentry, fexit): it can have BTF, load such a program and
 * then refuse to attach it, as arm64 does up to 6.3. So a program that does nothing is attached and
 * taken away again.
 */
#ifndef MOTE_PROBES_TRAMPOLINE_H
#define MOTE_PROBES_TRAMPOLINE_H

/* To the entry of a function of the kernel. 0, or a negative errno: -ESRCH no such function. */
int mote_probes_try_trampoline(const char *function);

#endif
