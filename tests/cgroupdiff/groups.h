/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the parts of tests/helpers/cgroupdiff.c share: the cgroups that it makes, and their rows. */
#ifndef CGROUPDIFF_GROUPS_H
#define CGROUPDIFF_GROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "text.h"

#define TOP "mote-diff"

struct group {
	char path[160]; /* after the root, without its first slash; "" is the root */
	uint64_t id;
	struct values before, row, after;
	bool given;
};

extern struct group *groups;
extern unsigned int ngroups;
extern struct mounts mounts;

void nap(unsigned int ms);
void bail(const char *what) __attribute__((noreturn));

/* groups.c */
void groups_mount(const char *version); /* 1, 2 or hybrid: privately, where nothing is */
void groups_make(unsigned int n);
void groups_add(const char *path);
/* In each hierarchy that is in use. */
void groups_each(void (*what)(const char *dir, const char *path), const char *path);
void groups_make_dir(const char *dir, const char *path); /* which may have others below */
void groups_make_leaf(const char *dir, const char *path);
void groups_remove_dir(const char *dir, const char *path);
void groups_join(const char *dir, const char *path);
void groups_limit(const char *dir, const char *path);
bool groups_put(const char *dir, const char *name, const char *text);
void groups_keep(pid_t child); /* it is killed at the end */
void groups_clean(void);

/* compare.c: how many values are wrong, and which, if not `quiet`. */
unsigned int compare(bool by_iterator, bool quiet);

/* moted.c */
struct mote_client;
pid_t moted_start(const char *path, const char *source, const char *budget);
struct mote_client *moted_connect(void);
/* What the tier `cgroups` says; all tiers of cgroups are printed. */
const char *moted_tier(struct mote_client *client);
bool moted_poll(struct mote_client *client); /* fills the rows */

#endif
