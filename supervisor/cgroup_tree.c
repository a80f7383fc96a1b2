// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The tree of watched directories, see cgroup_tree.h. Two chained hash tables over one array;
 * nothing fails but for want of room.
 */
#include "cgroup_tree.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lazy.h"

#define NONE MOTE_CGROUP_NO_DIR

/* Its pages are touched as they come into use: it is a thread's, which may fault. */
int mote_cgroup_tree_open(struct mote_cgroup_tree *tree, uint32_t dirs)
{
	uint32_t size = 64;

	while (size < dirs)
		size *= 2;
	*tree = (struct mote_cgroup_tree){ .n = dirs, .mask = size - 1, .free = NONE };
	tree->dirs = mote_lazy_alloc(dirs * sizeof(*tree->dirs));
	tree->by_name = malloc(size * sizeof(uint32_t));
	tree->by_wd = malloc(size * sizeof(uint32_t));
	if (!tree->dirs || !tree->by_name || !tree->by_wd ||
	    mote_cgroup_names_open(&tree->names, 4 * dirs)) {
		mote_cgroup_tree_close(tree);
		return -ENOMEM;
	}
	memset(tree->by_name, 0xff, size * sizeof(uint32_t));
	memset(tree->by_wd, 0xff, size * sizeof(uint32_t));
	return 0;
}

void mote_cgroup_tree_close(struct mote_cgroup_tree *tree)
{
	mote_lazy_free(tree->dirs, tree->n * sizeof(*tree->dirs));
	free(tree->by_name);
	free(tree->by_wd);
	mote_cgroup_names_close(&tree->names);
	*tree = (struct mote_cgroup_tree){ 0 };
}

static uint32_t *name_head(const struct mote_cgroup_tree *tree, uint32_t parent, const char *name,
			   size_t len)
{
	uint32_t hash = 2166136261u ^ parent; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619u;
	return &tree->by_name[(hash ^ hash >> 15) & tree->mask];
}

static uint32_t *wd_head(const struct mote_cgroup_tree *tree, int wd)
{
	return &tree->by_wd[(uint32_t)wd & tree->mask];
}

static size_t copy_name(const struct mote_cgroup_tree *tree, uint32_t dir, char name[256])
{
	mote_cgroup_names_copy(&tree->names, tree->dirs[dir].name, name);
	return mote_cgroup_names_len(&tree->names, tree->dirs[dir].name);
}

uint32_t mote_cgroup_tree_find(const struct mote_cgroup_tree *tree, uint32_t parent,
			       const char *name)
{
	size_t len = strlen(name);
	char other[256];
	uint32_t i = *name_head(tree, parent, name, len);

	while (i != NONE && (tree->dirs[i].parent != parent || copy_name(tree, i, other) != len ||
			     memcmp(other, name, len)))
		i = tree->dirs[i].next_name;
	return i;
}

uint32_t mote_cgroup_tree_find_wd(const struct mote_cgroup_tree *tree, int wd)
{
	uint32_t i = *wd_head(tree, wd);

	while (i != NONE && tree->dirs[i].wd != wd)
		i = tree->dirs[i].next_wd;
	return i;
}

uint32_t mote_cgroup_tree_add(struct mote_cgroup_tree *tree, uint32_t parent, const char *name,
			      uint64_t id)
{
	bool fresh = tree->free == NONE;
	uint32_t i = fresh ? tree->fresh : tree->free, handle, *head;
	size_t len = strlen(name);

	if (i >= tree->n)
		return NONE;
	handle = mote_cgroup_names_put(&tree->names, name, (uint32_t)len);
	if (!handle)
		return NONE;
	head = name_head(tree, parent, name, len);
	if (fresh)
		tree->fresh++;
	else
		tree->free = tree->dirs[i].next_name;
	tree->dirs[i] = (struct mote_cgroup_dir){
		.id = id,
		.parent = parent,
		.name = handle,
		.level = parent == NONE ? 0 : tree->dirs[parent].level + 1,
		.wd = -1,
		.next_name = *head,
		.next_wd = NONE,
	};
	*head = i;
	tree->used++;
	return i;
}

void mote_cgroup_tree_set_wd(struct mote_cgroup_tree *tree, uint32_t dir, int wd)
{
	uint32_t *head = wd_head(tree, wd);

	tree->dirs[dir].wd = wd;
	tree->dirs[dir].next_wd = *head;
	*head = dir;
}

void mote_cgroup_tree_remove(struct mote_cgroup_tree *tree, uint32_t dir)
{
	struct mote_cgroup_dir *d = &tree->dirs[dir];
	char name[256];
	size_t len = copy_name(tree, dir, name);
	uint32_t *link = name_head(tree, d->parent, name, len);

	while (*link != dir)
		link = &tree->dirs[*link].next_name;
	*link = d->next_name;
	if (d->wd >= 0) {
		link = wd_head(tree, d->wd);
		while (*link != dir)
			link = &tree->dirs[*link].next_wd;
		*link = d->next_wd;
	}
	mote_cgroup_names_drop(&tree->names, d->name);
	*d = (struct mote_cgroup_dir){ .wd = -1, .next_name = tree->free };
	tree->free = dir;
	tree->used--;
}

int mote_cgroup_tree_path(const struct mote_cgroup_tree *tree, uint32_t dir, const char *root,
			  char *buf, uint32_t size)
{
	uint32_t len = (uint32_t)strlen(root), at;

	for (uint32_t i = dir; tree->dirs[i].parent != NONE; i = tree->dirs[i].parent)
		len += 1 + mote_cgroup_names_len(&tree->names, tree->dirs[i].name);
	if (len >= size)
		return -ENAMETOOLONG;
	buf[at = len] = '\0';
	for (uint32_t i = dir; tree->dirs[i].parent != NONE; i = tree->dirs[i].parent) {
		at -= mote_cgroup_names_len(&tree->names, tree->dirs[i].name);
		mote_cgroup_names_copy(&tree->names, tree->dirs[i].name, buf + at);
		buf[--at] = '/';
	}
	memcpy(buf, root, at);
	return 0;
}
