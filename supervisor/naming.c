// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Names of processes, see naming.h. Command lines are read in batches: with direct descriptors one
 * chain of opens, reads and closes, which keeps one worker; else one process at a time, each step
 * pushed when the one before has come back. A read that hangs keeps its batch and a worker of the
 * ring: a process whose mmap lock is held can do that for hours. The second batch is for that case,
 * and is used if there is a worker left beside it for the tick's own reads; it passes over the
 * process that hangs. With two that hang, others without a name wait.
 */
#include "naming.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "parse.h"
#include "tag.h"
#include "task.h"

#define SLOT_IDENTS 1
#define SLOT_ARGV   40 /* and up; below are the host's files */
#define READS_FIRST 16
#define SLOT_END    64 /* and up: cgroup_files_round.c's */
#define READS_MAX   (SLOT_END - SLOT_ARGV)
#define WORKERS     3 /* for two batches: each may keep one, and the tick needs one */

struct argv_read {
	int fd;
	uint32_t pid, exec_id;
	uint64_t start;
	int len; /* of what was read, or negative errno */
	bool done;
	char path[32];
	char buf[MOTE_ARGV_MAX];
};

/* Reads that are under way together. */
struct batch {
	unsigned int size;       /* most reads; 0: it is not to be used */
	unsigned int n, pending; /* processes, completions to come */
	bool slow;               /* it has outlived a tick */
	struct argv_read *reads;
};

struct mote_naming {
	struct mote_engine *engine;
	struct mote_probes_iterator *iterator;
	struct mote_process *process;
	struct mote_file idents;
	bool asked, pushed; /* bits are set in the iterator's map; its operations are under way */
	unsigned int argv_bytes;
	struct batch batches[2];
	uint32_t from; /* cursor of the search for processes without a command line */
	struct argv_read reads[READS_MAX];
};

static unsigned int less(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static void open_batches(struct mote_naming *naming, const struct mote_options *options)
{
	bool direct = mote_engine_direct(naming->engine);
	unsigned int most = direct ? (unsigned int)options->process_argv_reads : 1;

	naming->batches[0].reads = naming->reads;
	naming->batches[0].size = less(most, READS_FIRST);
	naming->batches[1].reads = naming->reads + READS_FIRST;
	if (options->loop_workers >= WORKERS)
		naming->batches[1].size = less(most, READS_MAX - READS_FIRST);
}

int mote_naming_open(const struct mote_options *options, struct mote_engine *engine,
		     struct mote_probes_iterator *iterator, struct mote_process *process,
		     struct mote_naming **out)
{
	struct mote_naming *naming = malloc(sizeof(*naming));
	int err = 0;

	if (!naming)
		return -ENOMEM;
	memset(naming, 0, sizeof(*naming));
	naming->engine = engine;
	naming->process = process;
	naming->idents.fd = -1;
	naming->argv_bytes = (unsigned int)options->process_argv_bytes;
	open_batches(naming, options);
	if (iterator && iterator->idents) {
		naming->iterator = iterator;
		err = mote_file_open_iterator(&naming->idents, iterator->dirfd, iterator->idents,
					      SLOT_IDENTS, mote_engine_direct(engine));
	}
	if (err) {
		free(naming);
		return err;
	}
	*out = naming;
	return 0;
}

void mote_naming_close(struct mote_naming *naming)
{
	if (!naming)
		return;
	mote_file_close(&naming->idents);
	free(naming);
}

static uint64_t *want_word(struct mote_naming *naming, uint32_t pid)
{
	return &naming->iterator->want->bits[pid % MOTE_IDENT_BITS / 64];
}

static void ask_exe(struct mote_naming *naming)
{
	struct mote_task *task;
	uint32_t from = 0;
	unsigned int n = 0;

	while (n < MOTE_IDENTS && (task = mote_process_wants_exe(naming->process, &from))) {
		*want_word(naming, task->pid) |= 1ull << (task->pid % 64);
		n++;
	}
	naming->asked = n > 0;
}

/* Pushes one step; `link` to what comes next in the batch. */
static void push_argv(struct mote_naming *naming, struct batch *batch, struct argv_read *read,
		      enum mote_op op, bool link)
{
	uint32_t index = (uint32_t)(read - naming->reads);
	bool direct = mote_engine_direct(naming->engine);
	struct mote_sqe sqe = {
		.tag = mote_tag(MOTE_TAG_ARGV, index, op),
		.op = op,
		.flags = MOTE_SQE_ASYNC | MOTE_SQE_MAY_BLOCK | (link ? MOTE_SQE_LINK : 0),
		.fd = op == MOTE_OP_OPEN ? AT_FDCWD : read->fd,
		.slot = direct ? SLOT_ARGV + (int)index : -1,
		.path = read->path,
		.buf = read->buf,
		.len = naming->argv_bytes,
	};

	if (direct && op != MOTE_OP_OPEN) {
		sqe.fd = sqe.slot;
		sqe.flags |= MOTE_SQE_SLOT;
	}
	mote_engine_push(naming->engine, &sqe);
	batch->pending++;
}

static void push_batch(struct mote_naming *naming, struct batch *batch)
{
	bool direct = mote_engine_direct(naming->engine);

	batch->slow = false;
	for (unsigned int i = 0; i < batch->n; i++) {
		push_argv(naming, batch, &batch->reads[i], MOTE_OP_OPEN, direct);
		if (!direct)
			continue;
		push_argv(naming, batch, &batch->reads[i], MOTE_OP_READ, true);
		push_argv(naming, batch, &batch->reads[i], MOTE_OP_CLOSE, i + 1 < batch->n);
	}
}

/* Whether another batch hangs at this process. */
static bool hangs_at(const struct mote_naming *naming, const struct mote_task *task)
{
	for (unsigned int b = 0; b < 2; b++) {
		const struct batch *batch = &naming->batches[b];
		unsigned int i = 0;

		while (i < batch->n && batch->reads[i].done)
			i++;
		if (batch->pending && i < batch->n && batch->reads[i].pid == task->pid &&
		    batch->reads[i].start == task->start)
			return true;
	}
	return false;
}

static void ask_argv(struct mote_naming *naming, struct batch *batch)
{
	struct mote_task *task;

	batch->n = 0;
	while (batch->n < batch->size && mote_engine_room(naming->engine) >= 3 * (batch->n + 1) &&
	       (task = mote_process_wants_argv(naming->process, &naming->from))) {
		struct argv_read *read = &batch->reads[batch->n];

		if (hangs_at(naming, task))
			continue;
		*read = (struct argv_read){ .pid = task->pid,
					    .start = task->start,
					    .exec_id = task->exec_id };
		snprintf(read->path, sizeof(read->path), "/proc/%u/cmdline", task->pid);
		batch->n++;
	}
	push_batch(naming, batch);
}

void mote_naming_ask(struct mote_naming *naming)
{
	struct batch *first = &naming->batches[0], *second = &naming->batches[1];

	if (naming->iterator)
		ask_exe(naming);
	naming->from = 0; /* those that are new since may be anywhere */
	if (second->pending)
		second->slow = true;
	else if (first->pending && first->slow)
		ask_argv(naming, second);
	if (first->pending)
		first->slow = true;
	else
		ask_argv(naming, first);
}

unsigned int mote_naming_soon(const struct mote_naming *naming)
{
	unsigned int n = 0;

	for (unsigned int b = 0; b < 2; b++)
		n += naming->batches[b].slow ? 0 : naming->batches[b].pending;
	return n;
}

unsigned int mote_naming_push(struct mote_naming *naming, uint32_t index)
{
	if (!naming->asked)
		return 0;
	naming->asked = false;
	naming->pushed = true;
	return mote_file_push(&naming->idents, naming->engine, index);
}

void mote_naming_complete(struct mote_naming *naming, uint32_t step, int res)
{
	mote_file_complete(&naming->idents, step, res);
}

void mote_naming_take(struct mote_naming *naming, uint64_t now)
{
	const struct mote_ctl *ctl;
	char path[MOTE_EXE_MAX + 16];

	if (!naming->pushed)
		return;
	naming->pushed = false;
	mote_file_text(&naming->idents);
	ctl = naming->iterator->ctl;
	memset(naming->iterator->want, 0, sizeof(*naming->iterator->want));
	if (naming->idents.error || ctl->idents_done != ctl->idents_begun)
		return;
	for (unsigned int i = 0; i < ctl->idents; i++) {
		const struct mote_ident *ident = &naming->iterator->ident[i];
		unsigned int len = mote_task_exe(ident->exe, ident->exe_len, ident->exe_flags, path,
						 sizeof(path));

		mote_process_give_exe(naming->process, ident->pid, ident->start, ident->exec_id,
				      path, len, now);
	}
}

static void argv_done(struct mote_naming *naming, struct argv_read *read, uint64_t now)
{
	read->done = true;
	/* Nothing to read, or not for us: it has none, and is not asked again. */
	mote_process_give_argv(naming->process, read->pid, read->start, read->exec_id, read->buf,
			       read->len > 0 ? (uint32_t)read->len : 0, now);
}

void mote_naming_argv(struct mote_naming *naming, const struct mote_cqe *cqe, uint64_t now)
{
	struct argv_read *read = &naming->reads[mote_tag_index(cqe->tag) % READS_MAX];
	struct batch *batch = &naming->batches[read >= naming->batches[1].reads];
	bool direct = mote_engine_direct(naming->engine);
	enum mote_op op = (enum mote_op)mote_tag_generation(cqe->tag);

	batch->pending--;
	if (op == MOTE_OP_OPEN) {
		read->fd = cqe->res;
		read->len = cqe->res;
	} else if (op == MOTE_OP_READ && read->len >= 0) {
		read->len = cqe->res;
	}
	if (op == MOTE_OP_CLOSE || (op == MOTE_OP_OPEN && !direct && cqe->res < 0))
		argv_done(naming, read, now);
	else if (!direct)
		push_argv(naming, batch, read, op == MOTE_OP_OPEN ? MOTE_OP_READ : MOTE_OP_CLOSE,
			  false);
	/* The second goes on only as long as the first hangs. */
	if (!batch->pending && (batch == &naming->batches[0] || naming->batches[0].pending))
		ask_argv(naming, batch);
}
