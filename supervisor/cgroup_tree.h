/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directories that the watching thread knows: by the one above and the name, and by inotify's
 * number. All memory is there from the start.
 */
#ifndef MOTE_CGROUP_TREE_H
#define MOTE_CGROUP_TREE_H

#include <stdint.h>

#include "cgroup_names.h"

#define MOTE_CGROUP_NO_DIR 0xffffffffu

struct mote_cgroup_dir {
	uint64_t id;   /* 0: it was gone before it could be looked at */
	uint64_t seen; /* the last listing that had it */
	uint32_t parent, name, level;
	int wd;                      /* -1: not watched */
	uint32_t next_name, next_wd; /* of the same hash; of free ones next_name */
};

struct mote_cgroup_tree {
	struct mote_cgroup_dir *dirs;
	uint32_t *by_name, *by_wd;
	uint32_t n, mask, used;
	uint32_t free;  /* a list of those that were given back */
	uint32_t fresh; /* from here on they have never been in use: names of 0 */
	struct mote_cgroup_names names;
};

int mote_cgroup_tree_open(struct mote_cgroup_tree *tree, uint32_t dirs); /* 0 or -ENOMEM */
void mote_cgroup_tree_close(struct mote_cgroup_tree *tree);

/* MOTE_CGROUP_NO_DIR: not there. */
uint32_t mote_cgroup_tree_find(const struct mote_cgroup_tree *tree, uint32_t parent,
			       const char *name);
uint32_t mote_cgroup_tree_find_wd(const struct mote_cgroup_tree *tree, int wd);
/* MOTE_CGROUP_NO_DIR: no room. The root has no parent and no name. */
uint32_t mote_cgroup_tree_add(struct mote_cgroup_tree *tree, uint32_t parent, const char *name,
			      uint64_t id);
void mote_cgroup_tree_set_wd(struct mote_cgroup_tree *tree, uint32_t dir, int wd);
/* What is below it must be gone before. */
void mote_cgroup_tree_remove(struct mote_cgroup_tree *tree, uint32_t dir);
/* Its path after `root` to `buf`, ended by NUL; -ENAMETOOLONG if it does not fit. */
int mote_cgroup_tree_path(const struct mote_cgroup_tree *tree, uint32_t dir, const char *root,
			  char *buf, uint32_t size);

#endif
