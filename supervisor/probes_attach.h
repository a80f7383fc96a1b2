/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attaching, pinning and sizing: what all parts of the probes share. Each function returns 0 or a
 * negative errno.
 */
#ifndef MOTE_PROBES_ATTACH_H
#define MOTE_PROBES_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bpf_link;
struct bpf_program;

/* To the classic tracepoint `category`/`name`; -ENOENT, -ENODEV: see mote_probes_tracepoint(). */
int mote_probes_attach_tracepoint(struct bpf_program *program, const char *category,
				  const char *name, bool may_mount, struct bpf_link **link);

/* To the tracepoint, or probe made in tracefs, whose id that is. */
int mote_probes_attach_id(struct bpf_program *program, int id, struct bpf_link **link);

/*
 * As `name` in the bpffs `dirfd`, for its owner to read: the loop opens iterators by name,
 * unprivileged, which bpf() would not let it do. `uid` (uid_t)-1: it stays ours.
 */
int mote_probes_pin(struct bpf_link *link, int dirfd, const char *name, uid_t uid, gid_t gid);

size_t mote_probes_whole_pages(size_t len);

/*
 * Maps `len` bytes of a BPF map from the offset `at` on, shared, every page made, so that none
 * faults later. `len` is whole pages.
 */
int mote_probes_map(int fd, int prot, off_t at, size_t len, void **out);

/* An object file that is part of this program was read and is not read again. */
void mote_probes_forget_image(const void *image, size_t size);

#endif
