/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A kernel file that is read each time its collector is due. Most are kept open and read at
 * offset 0 by one operation. A seq_file longer than a page gives one page a read, and an iterator
 * cannot be rewound: these are opened, read to their end and closed in one chain. One that is held
 * (mote_file_hold()) stays open, and is read in strides that are a line less than a page, each of
 * which it fills but for the last: so the next begins where the kernel stands already.
 */
#ifndef MOTE_FILE_H
#define MOTE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "parse.h"

#define MOTE_FILE_READS_MAX 32

struct mote_file {
	const char *path;
	char *name; /* an iterator's: its path */
	int dirfd;  /* AT_FDCWD */
	int fd;     /* -1: not open */
	int slot;   /* of a direct descriptor, where the file is opened anew each time */
	bool reopen, direct;
	bool held;          /* in the slot, to be read without a worker */
	bool paged;         /* held, and read in strides */
	bool tried;         /* that way was refused: by a worker from now on */
	unsigned int reads; /* operations a sample, at most if it is paged */
	unsigned int pushed;
	unsigned int spare; /* reads that the buffer has room for once the text outgrows a page */
	bool grown;         /* it has: the next sample opens it anew */
	char *buf;
	uint32_t size, stride; /* `stride` bytes of the buffer for each read */
	uint32_t near;         /* a text longer than this may be two pages tomorrow */
	uint32_t len;          /* of the text, after the last completion */
	uint32_t last;         /* of the last text that could be read */
	uint32_t peak;
	int error; /* of this sample: negative errno */
	bool cut;  /* this sample: there was, or may be, more than the reads took */
	int results[MOTE_FILE_READS_MAX];
};

/*
 * Opens the file, reads it once to learn its size and allocates the buffer, with room to grow.
 * `slot` is used if the file must be opened anew. -ENOENT and others leave a file that gives an
 * empty text for ever.
 */
int mote_file_open(struct mote_file *file, const char *path, int slot, bool direct);
/* An iterator: read once a sample, into a few bytes. The name is copied. */
int mote_file_open_iterator(struct mote_file *file, int dirfd, const char *name, int slot,
			    bool direct);
/*
 * Makes room for a text of lines that may grow to `bytes`: a seq_file gives a page a read, so one
 * that comes near to it is opened anew and read to its end from the next sample on. -ENOMEM.
 */
int mote_file_reserve(struct mote_file *file, uint32_t bytes);
/* Lets a ring read it without a worker, if it can. Before the loop only. */
void mote_file_hold(struct mote_file *file, struct mote_engine *engine);
void mote_file_close(struct mote_file *file);

/* Operations that a sample takes. */
unsigned int mote_file_ops(const struct mote_file *file);
/* Pushes them, each linked to what comes next, tagged MOTE_TAG_FILE with `index`. */
unsigned int mote_file_push(struct mote_file *file, struct mote_engine *engine, uint32_t index);
/* A completion; `step` is the tag's generation. */
void mote_file_complete(struct mote_file *file, uint32_t step, int res);
/*
 * After the last: the text. Empty if it could not be read. One that is cut ends within a line, for
 * parsers to see it.
 */
struct mote_text mote_file_text(struct mote_file *file);

#endif
