// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Processes from the BPF task iterator: one open, read and close a sample, whose programs write
 * the records to memory that both sides map. It owns nothing but its place in the chain.
 */
#include "tasks_iter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "task.h"

#define SLOT_TASKS 0

struct tasks_iter {
	struct mote_tasks base;
	struct mote_probes_iterator *iterator;
	struct mote_file file;
	uint64_t walk; /* the number of the walk that was pushed */
	bool pushed;
	struct mote_fill processes, threads;
};

static struct tasks_iter *iter_of(struct mote_tasks *tasks)
{
	return (struct tasks_iter *)tasks;
}

static unsigned int iter_push(struct mote_tasks *tasks, struct mote_engine *engine,
			      unsigned int half, uint32_t index, unsigned int room)
{
	struct tasks_iter *iter = iter_of(tasks);

	iter->pushed = !iter->pushed;
	if (!iter->pushed)
		return 0;
	iter->iterator->ctl->half = half;
	iter->walk = iter->iterator->ctl->begun + 1;
	return mote_file_push(&iter->file, engine, index);
}

static void iter_complete(struct mote_tasks *tasks, uint32_t step, int res)
{
	mote_file_complete(&iter_of(tasks)->file, step, res);
}

static void account(struct mote_fill *fill, uint64_t n, uint64_t lost)
{
	fill->fill = n;
	fill->dropped += lost;
	if (n > fill->peak)
		fill->peak = n;
}

static int iter_finish(struct mote_tasks *tasks, unsigned int half)
{
	struct tasks_iter *iter = iter_of(tasks);
	const struct mote_ctl *ctl = iter->iterator->ctl;

	iter->pushed = false;
	mote_file_text(&iter->file);
	if (iter->file.error)
		return iter->file.error;
	if (__atomic_load_n(&ctl->done, __ATOMIC_ACQUIRE) < iter->walk)
		return -EAGAIN;
	account(&iter->processes, ctl->tasks, ctl->tasks_lost);
	tasks->cut = ctl->tasks_lost > 0;
	account(&iter->threads, ctl->threads, ctl->threads_lost);
	mote_task_sort(tasks->half[half], ctl->tasks);
	mote_task_add_threads(tasks->half[half], ctl->tasks, iter->iterator->threads, ctl->threads);
	return (int)ctl->tasks;
}

static void iter_fill(const struct mote_tasks *tasks, struct mote_fill *processes,
		      struct mote_fill *threads)
{
	const struct tasks_iter *iter = (const struct tasks_iter *)tasks;

	*processes = iter->processes;
	*threads = iter->threads;
}

static void iter_close(struct mote_tasks *tasks)
{
	mote_file_close(&iter_of(tasks)->file);
	free(tasks);
}

static const struct mote_tasks_ops iter_ops = {
	.name = "iterator",
	.push = iter_push,
	.complete = iter_complete,
	.finish = iter_finish,
	.born = NULL,
	.fill = iter_fill,
	.close = iter_close,
};

int mote_tasks_iter_open(struct mote_probes_iterator *iterator, bool direct,
			 struct mote_tasks **out)
{
	struct tasks_iter *iter = calloc(1, sizeof(*iter));
	int err;

	if (!iter)
		return -ENOMEM;
	err = mote_file_open_iterator(&iter->file, iterator->dirfd, iterator->tasks, SLOT_TASKS,
				      direct);
	if (err) {
		free(iter);
		return err;
	}
	iter->base = (struct mote_tasks){ .ops = &iter_ops,
					  .half = { iterator->half[0], iterator->half[1] },
					  .max = iterator->processes };
	/* Under lockdown=confidentiality memory is not read; the records' flags say what is known.
	 */
	if (!iterator->idents)
		iter->base.absent |= 1ull << PROCESS_EXE;
	iter->iterator = iterator;
	iter->processes.size = iterator->processes;
	iter->threads.size = iterator->nthreads;
	*out = &iter->base;
	return 0;
}
