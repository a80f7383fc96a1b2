/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * /proc/self/mountinfo to a bounded list of the mounts that have space to tell of: no pseudo
 * filesystems, and none that a path does not lead to because another mount covers it.
 */
#ifndef MOTE_PARSE_MOUNTS_H
#define MOTE_PARSE_MOUNTS_H

#include "parse.h"

/* What statfs() said; whoever calls it fills this in. */
struct mote_space {
	bool known;         /* it came back without an error */
	bool sized, inoded; /* it has a size, a number of inodes: 0 stands for "none such" */
	bool read_only;
	uint64_t size, free, available, inodes, inodes_free;
};

struct mote_mount {
	uint32_t id, parent; /* not given to another mount while a call on this one lasts */
	uint64_t device_id;  /* of the superblock, major << 32 | minor */
	uint32_t point, device, type; /* offsets in `text`, each ends with NUL */
	bool local;  /* its statfs() reads memory of this machine and so cannot hang on another */
	bool hidden; /* the parser's own */
	struct mote_space space;
};

struct mote_mounts {
	unsigned int used, max;
	uint32_t text_used, text_max;
	unsigned int turned_away; /* mounts that did not fit */
	struct mote_mount *mounts;
	char *text;
};

/* Allocates and touches all it will ever use; NULL without memory. */
struct mote_mounts *mote_mounts_new(unsigned int max);
void mote_mounts_free(struct mote_mounts *list);

void mote_mounts_clear(struct mote_mounts *list);
/* Both were made with the same `max`. */
void mote_mounts_copy(struct mote_mounts *to, const struct mote_mounts *from);

/*
 * Adds one line, without its newline; 0, or -EBADMSG if it is not a line of mountinfo. A line that
 * was cut behind the device is good enough. Of mounts on one point the last wins; it also ends
 * those below it that it covers.
 */
int mote_mounts_add(struct mote_mounts *list, struct mote_text line);

/* Adds the whole lines of `text`, passing over bad ones; returns how many bytes those were. */
size_t mote_mounts_parse(struct mote_mounts *list, struct mote_text text);

#endif
