/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of directories, in chained blocks of one allocation. A handle is the number of the first
 * block and 1, 0 stands for none.
 */
#ifndef MOTE_CGROUP_NAMES_H
#define MOTE_CGROUP_NAMES_H

#include <stdint.h>

struct mote_cgroup_names {
	struct mote_cgroup_block *blocks;
	uint32_t n;
	uint32_t free;  /* a list of blocks that were given back: number and 1 */
	uint32_t fresh; /* blocks from here on have never been in use */
};

int mote_cgroup_names_open(struct mote_cgroup_names *names, uint32_t blocks); /* 0 or -ENOMEM */
void mote_cgroup_names_close(struct mote_cgroup_names *names);

/* The handle, or 0 if there is no room. At most 255 bytes are kept. */
uint32_t mote_cgroup_names_put(struct mote_cgroup_names *names, const char *name, uint32_t len);
void mote_cgroup_names_drop(struct mote_cgroup_names *names, uint32_t handle);
uint32_t mote_cgroup_names_len(const struct mote_cgroup_names *names, uint32_t handle);
/* Writes all of it to `to`, without a NUL. */
void mote_cgroup_names_copy(const struct mote_cgroup_names *names, uint32_t handle, char *to);

#endif
