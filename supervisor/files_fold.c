// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Adding up, see files.h: what an access has more than at the sample before goes to its row and to
 * the sum. Of a slot's memory the last part is ours (abi_file.h) and 0 in a slot that is not in
 * use, as `gone` leaves it.
 *
 * An access ends when its process has ended; or, if slots are few, when no thread was at it for a
 * while. It gets another slot when it comes back, and its row begins at 0 again: what it had is in
 * the totals of ended rows.
 */
#include <stddef.h>
#include <string.h>

#include "files_impl.h"

#define IDLE_NS       (10 * NS_PER_S)
#define IDLE_NS_LEAST NS_PER_S

static struct mote_access *access_at(const struct mote_files *files, uint32_t slot)
{
	return &files->maps->accesses[slot];
}

void mote_moved_add(struct mote_moved *to, const struct mote_moved *from)
{
	to->read += from->read;
	to->written += from->written;
	to->reads += from->reads;
	to->writes += from->writes;
}

/* Two numbers that are never above the truth, and what was shown: the largest. */
static uint64_t largest(uint64_t shown, const uint64_t *moved, uint64_t walked)
{
	uint64_t now = __atomic_load_n(moved, __ATOMIC_RELAXED);

	now = now > walked ? now : walked;
	return now > shown ? now : shown;
}

/* What came since the last time. */
static struct mote_moved take(struct mote_access *a)
{
	const struct mote_moved *s = &a->settled, *p = &a->pending;
	struct mote_moved now = {
		.read = largest(a->seen.read, &a->moved.read, s->read + p->read),
		.written = largest(a->seen.written, &a->moved.written, s->written + p->written),
		.reads = largest(a->seen.reads, &a->moved.reads, s->reads + p->reads),
		.writes = largest(a->seen.writes, &a->moved.writes, s->writes + p->writes),
	};
	struct mote_moved more = {
		.read = now.read - a->seen.read,
		.written = now.written - a->seen.written,
		.reads = now.reads - a->seen.reads,
		.writes = now.writes - a->seen.writes,
	};

	a->seen = now;
	return more;
}

static bool any(const struct mote_moved *moved)
{
	return moved->read | moved->written | moved->reads | moved->writes;
}

static bool same_key(const struct mote_access *a, const struct mote_access *b)
{
	return a->ino == b->ino && a->tgid == b->tgid && a->start == b->start && a->dev == b->dev &&
	       a->generation == b->generation;
}

/* Clients must not be told that a key ended which is there again. */
static void forget_end(struct mote_files *files, const struct mote_access *a)
{
	struct files_ended *record;

	for (uint32_t i = 0; (record = mote_ended_at(&files->ended, i)); i++) {
		if (same_key(&record->access, a))
			record->at.time = 0;
	}
}

static void fold(void *ctx, uint32_t slot, bool first)
{
	struct mote_files *files = ctx;
	struct mote_access *a = access_at(files, slot);
	struct mote_moved more = take(a);

	a->touched = files->now;
	if (first) {
		a->flags_own = OWN_ASK;
		forget_end(files, a);
	}
	if (files->filter.any && a->flags_own & OWN_ASK)
		mote_files_judge(files, slot);
	if (a->flags_own & OWN_EXCLUDED) {
		mote_moved_add(&files->excluded, &more);
		return;
	}
	files->rows += !a->changed;
	if (!any(&more) && a->changed)
		return;
	a->changed = files->now;
	files->blocks[slot >> BLOCK_SHIFT] = files->now;
	mote_moved_add(&files->sum, &more);
#ifdef MOTE_MUTANT_FILE_CLEAR /* broken on purpose: what was read is cleared */
	a->moved = a->seen = (struct mote_moved){ 0 };
#endif
}

static void gone(void *ctx, uint32_t slot)
{
	struct mote_files *files = ctx;
	struct mote_access *a = access_at(files, slot);
	struct mote_path *path = &files->maps->paths[slot];
	struct files_ended *record;
	uint32_t state = a->state;

	if (a->changed) {
		record = mote_ended_add(&files->ended, files->now);
		record->access = *a;
		record->path = *path;
		mote_moved_add(&files->totals, &a->seen);
		files->rows--;
	}
	path->len = path->flags = 0;
	memset(&a->moved, 0, sizeof(*a) - offsetof(struct mote_access, moved));
	a->state = state;
}

const struct mote_slots_ops mote_files_ops = { .fold = fold, .gone = gone };

/* What ended */

static uint64_t in_use(const struct mote_files *files)
{
	struct mote_slots_stats stats;

	mote_slots_stats(files->slots, files->now, &stats);
	return stats.fill.fill - stats.waiting;
}

bool mote_files_crowded(const struct mote_files *files)
{
	return in_use(files) > files->maps->size / 4 * 3;
}

/* Part of the slots at a time while there is room: a process that has ended is in no hurry. */
void mote_files_end_dead(struct mote_files *files, uint64_t tasks)
{
	uint32_t size = files->maps->size, n = mote_files_crowded(files) ? size : size / 4 + 1;

	if (!files->process || !mote_process_whole(files->process))
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t slot = files->checked;
		const struct mote_access *a = access_at(files, slot);

		files->checked = slot + 1 < size ? slot + 1 : 0;
		if (a->touched && a->tgid && a->touched + files->patience < tasks &&
		    !mote_process_lives(files->process, a->tgid, a->start))
			mote_slots_end(files->slots, slot);
	}
}

/*
 * Slots that a thread is at are marked by each walk, so that they were touched just now. What a
 * thread moves that came there since is in `other`, if the slot is gone when it leaves.
 */
void mote_files_end_idle(struct mote_files *files)
{
	uint64_t used = in_use(files);
	uint32_t size = files->maps->size;
	uint64_t idle = used > size / 8 * 7 ? IDLE_NS_LEAST : IDLE_NS;

	for (uint32_t i = 0; i < size && used > size / 8 * 5; i++) {
		uint32_t slot = files->hand;
		const struct mote_access *a = access_at(files, slot);

		files->hand = slot + 1 < size ? slot + 1 : 0;
		if (!a->touched || a->touched + idle > files->now)
			continue;
		mote_slots_end(files->slots, slot);
		used--;
	}
}
