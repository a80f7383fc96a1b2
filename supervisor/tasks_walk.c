// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Processes from the walk of the kernel's list: one open, read and close a sample, whose program
 * writes records of those that changed, and references to all, to memory that both sides map. This
 * side says which record of a pair is current, and keeps the pairs that no process has. It owns its
 * place in the chain.
 */
#include "tasks_walk.h"

#include <errno.h>
#include <stdlib.h>

#include "file.h"

#define SLOT_TASKS 0

struct tasks_walk {
	struct mote_tasks base;
	struct mote_walk_ctl *ctl;
	struct mote_pair *pairs;
	struct mote_file file;
	uint64_t walk; /* the number of the walk that was pushed */
	bool pushed;
	bool lost; /* a walk: the pairs are to be counted anew */
	struct mote_fill processes;
};

static struct tasks_walk *walk_of(struct mote_tasks *tasks)
{
	return (struct tasks_walk *)tasks;
}

static void walk_release(struct mote_tasks *tasks, uint32_t place)
{
	struct tasks_walk *t = walk_of(tasks);

	t->pairs[place].seen = 0;
	if (t->ctl->free < tasks->max)
		t->pairs[t->ctl->free++].free = place;
}

/* What mote_pair.seen is of a walk; never what it is of none. */
static uint32_t seen_of(uint64_t walk)
{
	return walk % 0x7fffffff + 1;
}

/*
 * A walk that was not taken, because it could not be read to its end or was not ours, may have
 * given pairs to processes that were gone before the next. All that no process has are free. Only
 * when the last walk was taken do the pairs that it saw name all of them.
 */
static void recount_pairs(struct tasks_walk *t)
{
	t->lost = false;
	t->ctl->free = 0;
	for (unsigned int i = t->base.max; i-- > 0;) {
		if (t->pairs[i].seen != seen_of(t->ctl->taken))
			walk_release(&t->base, i);
	}
}

static unsigned int walk_push(struct mote_tasks *tasks, struct mote_engine *engine,
			      unsigned int half, uint32_t index, unsigned int room)
{
	struct tasks_walk *t = walk_of(tasks);

	t->pushed = !t->pushed;
	if (!t->pushed)
		return 0;
	if (t->ctl->begun != t->ctl->taken)
		t->lost = true;
	else if (t->lost)
		recount_pairs(t);
	t->walk = t->ctl->begun + 1;
	return mote_file_push(&t->file, engine, index);
}

static void walk_complete(struct mote_tasks *tasks, uint32_t step, int res)
{
	mote_file_complete(&walk_of(tasks)->file, step, res);
}

/* What was written becomes current. */
static void take(struct tasks_walk *t, uint64_t walk)
{
	t->base.same = t->ctl->moved <= t->ctl->taken;
	t->base.seen = seen_of(walk);
	for (unsigned int i = 0; i < t->ctl->tasks; i++) {
		struct mote_pair *pair = &t->pairs[t->base.found[i].pair & ~MOTE_REF_WRITTEN];

		pair->side ^= t->base.found[i].pair & MOTE_REF_WRITTEN ? 1 : 0;
		pair->seen = t->base.seen;
	}
	t->ctl->taken = walk;
}

static int walk_finish(struct mote_tasks *tasks, unsigned int half)
{
	struct tasks_walk *t = walk_of(tasks);
	uint64_t done = __atomic_load_n(&t->ctl->done, __ATOMIC_ACQUIRE);
	struct mote_fill *fill = &t->processes;

	t->pushed = false;
	mote_file_text(&t->file);
	if (done < t->walk)
		return t->file.error ? t->file.error : -EAGAIN;
	take(t, done);
	fill->fill = t->ctl->tasks;
	fill->peak = fill->fill > fill->peak ? fill->fill : fill->peak;
	fill->dropped += t->ctl->tasks_lost;
	t->base.cut = t->ctl->tasks_lost > 0;
	return (int)t->ctl->tasks;
}

static void walk_fill(const struct mote_tasks *tasks, struct mote_fill *processes,
		      struct mote_fill *threads)
{
	*processes = ((const struct tasks_walk *)tasks)->processes;
	*threads = (struct mote_fill){ 0 };
}

static void walk_close(struct mote_tasks *tasks)
{
	struct tasks_walk *t = walk_of(tasks);

	mote_file_close(&t->file);
	free(t);
}

static const struct mote_tasks_ops walk_ops = {
	.name = "list",
	.push = walk_push,
	.complete = walk_complete,
	.finish = walk_finish,
	.born = NULL,
	.release = walk_release,
	.fill = walk_fill,
	.close = walk_close,
};

int mote_tasks_walk_open(struct mote_probes_iterator *iterator, bool direct,
			 struct mote_tasks **out)
{
	struct tasks_walk *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->base = (struct mote_tasks){ .ops = &walk_ops,
				       .half = { iterator->half[0], iterator->half[1] },
				       .max = iterator->processes };
	if (!iterator->idents)
		t->base.absent |= 1ull << PROCESS_EXE;
	t->ctl = iterator->walk_ctl;
	t->pairs = iterator->pairs;
	t->base.pairs = t->pairs;
	t->base.found = iterator->refs;
	t->processes.size = iterator->processes;
	t->file.fd = -1;
	err = mote_file_open_iterator(&t->file, iterator->dirfd, iterator->tasks, SLOT_TASKS,
				      direct);
	if (err) {
		walk_close(&t->base);
		return err;
	}
	recount_pairs(t);
	*out = &t->base;
	return 0;
}
