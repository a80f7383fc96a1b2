/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations on /proc/PID files that are under way at a time, and the memory they need: paths
 * until a file is open, text until it is parsed. An operation is known by its number.
 */
#ifndef MOTE_PROC_BATCH_H
#define MOTE_PROC_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "proc_files.h"

/* Bounds of a batch; a larger room is not used up. */
#define MOTE_PROC_STEPS 1024
#define MOTE_PROC_TEXT  (512 * 1024)

struct mote_proc_step {
	enum mote_op op; /* OPEN, READ or CLOSE */
	enum mote_proc_file file;
	uint32_t proc; /* index in the pool */
	char path[24]; /* OPEN: PID/FILE */
	char *text;    /* READ */
};

struct mote_proc_batch {
	int proc; /* a descriptor of /proc */
	struct mote_engine *engine;
	uint32_t index; /* for the tags */
	unsigned int room, n;
	size_t text_used;
	struct mote_proc_step steps[MOTE_PROC_STEPS];
	char text[MOTE_PROC_TEXT];
};

/* Everything that an earlier batch asked for has completed. */
void mote_proc_batch_begin(struct mote_proc_batch *batch, struct mote_engine *engine,
			   uint32_t index, unsigned int room);
/* Whether that many operations and bytes of text fit. */
bool mote_proc_batch_fits(const struct mote_proc_batch *batch, unsigned int steps, size_t text);

/* These have been asked for with mote_proc_batch_fits(). */
void mote_proc_batch_open(struct mote_proc_batch *batch, uint32_t proc, uint32_t pid,
			  enum mote_proc_file file);
void mote_proc_batch_read(struct mote_proc_batch *batch, uint32_t proc, int fd,
			  enum mote_proc_file file, uint32_t size);
void mote_proc_batch_close(struct mote_proc_batch *batch, int fd);

/* `v` in decimal, without a NUL; returns how many digits, 10 at most. */
unsigned int mote_proc_digits(char *to, uint32_t v);

#endif
