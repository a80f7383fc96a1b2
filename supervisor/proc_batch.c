// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Operations on /proc/PID files, see proc_batch.h. Each is linked to the next, and goes to a
 * worker at once: /proc files would be poll-armed and tried again many times otherwise.
 */
#include "proc_batch.h"

#include <string.h>

#include "tag.h"

void mote_proc_batch_begin(struct mote_proc_batch *batch, struct mote_engine *engine,
			   uint32_t index, unsigned int room)
{
	batch->engine = engine;
	batch->index = index;
	batch->room = room < MOTE_PROC_STEPS ? room : MOTE_PROC_STEPS;
	batch->n = 0;
	batch->text_used = 0;
}

bool mote_proc_batch_fits(const struct mote_proc_batch *batch, unsigned int steps, size_t text)
{
	return steps <= batch->room - batch->n && text <= MOTE_PROC_TEXT - batch->text_used;
}

static struct mote_proc_step *add(struct mote_proc_batch *batch, struct mote_sqe *sqe,
				  enum mote_op op)
{
	struct mote_proc_step *step = &batch->steps[batch->n];

	step->op = sqe->op = op;
	sqe->tag = mote_tag(MOTE_TAG_FILE, batch->index, batch->n++);
	sqe->flags = MOTE_SQE_ASYNC;
	return step;
}

unsigned int mote_proc_digits(char *to, uint32_t v)
{
	char digits[10];
	unsigned int n = 0, len = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (n)
		to[len++] = digits[--n];
	return len;
}

void mote_proc_batch_open(struct mote_proc_batch *batch, uint32_t proc, uint32_t pid,
			  enum mote_proc_file file)
{
	struct mote_sqe sqe = { .fd = batch->proc, .slot = -1 };
	struct mote_proc_step *step = add(batch, &sqe, MOTE_OP_OPEN);
	unsigned int len = mote_proc_digits(step->path, pid);

	step->proc = proc;
	step->file = file;
	step->path[len] = '/';
	strcpy(step->path + len + 1, mote_proc_file_names[file]);
	sqe.path = step->path;
	mote_engine_push(batch->engine, &sqe);
}

void mote_proc_batch_read(struct mote_proc_batch *batch, uint32_t proc, int fd,
			  enum mote_proc_file file, uint32_t size)
{
	char *text = batch->text + batch->text_used;
	struct mote_sqe sqe = { .fd = fd, .slot = -1, .buf = text, .len = size };
	struct mote_proc_step *step = add(batch, &sqe, MOTE_OP_READ);

	step->proc = proc;
	step->file = file;
	step->text = text;
	batch->text_used += size;
	mote_engine_push(batch->engine, &sqe);
}

void mote_proc_batch_close(struct mote_proc_batch *batch, int fd)
{
	struct mote_sqe sqe = { .fd = fd, .slot = -1 };

	add(batch, &sqe, MOTE_OP_CLOSE);
	mote_engine_push(batch->engine, &sqe);
}
