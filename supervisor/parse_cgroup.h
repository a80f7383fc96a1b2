/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The text of cgroupfs, of both versions: a table of files, and what each gives. Pure functions.
 */
#ifndef MOTE_PARSE_CGROUP_H
#define MOTE_PARSE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "parse.h"

struct mote_cgroup_values {
	uint64_t present; /* bit MOTE_CGROUP_<VALUE> */
	uint64_t v[MOTE_CGROUP_VALUES];
};

enum mote_cgroup_controller {
	MOTE_CGROUP_UNIFIED, /* version 2: all of them */
	MOTE_CGROUP_CPU,
	MOTE_CGROUP_CPUACCT,
	MOTE_CGROUP_MEMORY,
	MOTE_CGROUP_PIDS,
	MOTE_CGROUP_BLKIO,
	MOTE_CGROUP_FREEZER,
	MOTE_CGROUP_CONTROLLERS
};

/* How often a file is read. */
enum mote_cgroup_pace {
	MOTE_CGROUP_HOT,  /* each sample */
	MOTE_CGROUP_SLOW, /* once in [cgroup] slow */
};

struct mote_cgroup_file;
struct mote_cgroup_file {
	const char *name;
	enum mote_cgroup_controller controller;
	enum mote_cgroup_pace pace;
	uint16_t bytes;    /* most that it usually has */
	bool counts_lines; /* its lines are counted, however many: see mote_parse_cgroup_lines() */
	uint64_t gives;    /* values, bits */
	int (*parse)(const struct mote_cgroup_file *file, struct mote_text text,
		     struct mote_cgroup_values *values);
	const void *arg; /* of `parse` */
};

/* The most of either version, so that a file has a bit in 32. */
#define MOTE_CGROUP_FILES_MAX 32

/* `version` 1 or 2. */
const struct mote_cgroup_file *mote_cgroup_files(unsigned int version, unsigned int *n);

/*
 * Sets what the text of the file gives, and what it does not have is absent then. A text that is
 * cut within a line or not understood is -EBADMSG, and changes nothing.
 */
int mote_parse_cgroup(const struct mote_cgroup_file *file, struct mote_text text,
		      struct mote_cgroup_values *values);
/* Of a file whose lines count: how many ends of lines there are in this piece of it. */
uint64_t mote_parse_cgroup_lines(struct mote_text text);

#endif
