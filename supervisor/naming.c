// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Names of processes, see naming.h. A command line takes an open, a read and a close; each is
 * pushed when the one before has come back, so that it works without direct descriptors too. A
 * read that hangs keeps its place; the process has no argv until it comes back.
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
#define READS_MAX   64
/* A process whose command line could not be read is asked again after this long. */
#define RETRY_NS 10000000000ull

struct argv_read {
	bool busy;
	int fd;
	uint32_t pid, exec_id;
	uint64_t start;
	int len; /* of what was read, or negative errno */
	char path[32];
	char buf[MOTE_ARGV_MAX];
};

struct mote_naming {
	struct mote_engine *engine;
	struct mote_probes_iterator *iterator;
	struct mote_process *process;
	struct mote_file idents;
	bool asked, pushed; /* bits are set in the iterator's map; its operations are under way */
	unsigned int argv_bytes, nreads;
	uint32_t from;      /* cursor of the search for processes without a command line */
	uint64_t round;     /* when the search last began */
	struct argv_read reads[READS_MAX];
};

int mote_naming_open(const struct mote_options *options, struct mote_engine *engine,
		     struct mote_probes_iterator *iterator, struct mote_process *process,
		     struct mote_naming **out)
{
	struct mote_naming *naming = malloc(sizeof(*naming));
	unsigned int most = mote_engine_blocking_max(engine);
	int err = 0;

	if (!naming)
		return -ENOMEM;
	memset(naming, 0, sizeof(*naming));
	naming->engine = engine;
	naming->process = process;
	naming->idents.fd = -1;
	naming->argv_bytes = (unsigned int)options->process_argv_bytes;
	naming->nreads = options->process_argv_reads < most ? options->process_argv_reads : most;
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

static void push_argv(struct mote_naming *naming, struct argv_read *read, enum mote_op op)
{
	struct mote_sqe sqe = {
		.tag = mote_tag(MOTE_TAG_ARGV, (uint32_t)(read - naming->reads), op),
		.op = op,
		.flags = MOTE_SQE_ASYNC | MOTE_SQE_MAY_BLOCK,
		.fd = op == MOTE_OP_OPEN ? AT_FDCWD : read->fd,
		.slot = -1,
		.path = read->path,
		.buf = read->buf,
		.len = naming->argv_bytes,
	};

	if (mote_engine_push(naming->engine, &sqe))
		read->busy = false;
}

/* The next process whose command line to ask for; begins anew when all were asked a while ago. */
static struct mote_task *next_argv(struct mote_naming *naming, uint64_t now)
{
	struct mote_task *task = mote_process_wants_argv(naming->process, &naming->from);

	if (!task && now - naming->round >= RETRY_NS) {
		naming->from = 0;
		naming->round = now;
		task = mote_process_wants_argv(naming->process, &naming->from);
	}
	return task;
}

static bool is_asked(const struct mote_naming *naming, const struct mote_task *task)
{
	for (unsigned int i = 0; i < naming->nreads; i++) {
		if (naming->reads[i].busy && naming->reads[i].pid == task->pid)
			return true;
	}
	return false;
}

static void ask_argv(struct mote_naming *naming, struct argv_read *read, uint64_t now)
{
	struct mote_task *task;

	do
		task = next_argv(naming, now);
	while (task && is_asked(naming, task));
	if (!task)
		return;
	*read = (struct argv_read){
		.busy = true, .pid = task->pid, .start = task->start, .exec_id = task->exec_id
	};
	snprintf(read->path, sizeof(read->path), "/proc/%u/cmdline", task->pid);
	push_argv(naming, read, MOTE_OP_OPEN);
}

void mote_naming_ask(struct mote_naming *naming, uint64_t now)
{
	if (naming->iterator)
		ask_exe(naming);
	for (unsigned int i = 0; i < naming->nreads; i++) {
		if (!naming->reads[i].busy)
			ask_argv(naming, &naming->reads[i], now);
	}
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
		unsigned int len = mote_task_exe(ident, path, sizeof(path));

		mote_process_give_exe(naming->process, ident->pid, ident->start, ident->exec_id, path,
				      len, now);
	}
}

static void argv_done(struct mote_naming *naming, struct argv_read *read, uint64_t now)
{
	read->busy = false;
	/* 0 bytes: it has none, or its memory is gone. */
	if (read->len >= 0)
		mote_process_give_argv(naming->process, read->pid, read->start, read->exec_id,
				       read->buf, (uint32_t)read->len, now);
	ask_argv(naming, read, now);
}

void mote_naming_argv(struct mote_naming *naming, const struct mote_cqe *cqe, uint64_t now)
{
	struct argv_read *read = &naming->reads[mote_tag_index(cqe->tag) % READS_MAX];

	switch (mote_tag_generation(cqe->tag)) {
	case MOTE_OP_OPEN:
		read->fd = cqe->res;
		read->len = cqe->res;
		if (cqe->res >= 0)
			push_argv(naming, read, MOTE_OP_READ);
		else
			argv_done(naming, read, now);
		break;
	case MOTE_OP_READ:
		read->len = cqe->res;
		push_argv(naming, read, MOTE_OP_CLOSE);
		break;
	default:
		argv_done(naming, read, now);
	}
}
