// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The process stream. */
#include "process_impl.h"

#include <string.h>

#include "task.h"

/* One value of a row: nil unless its bit is set. */
static void pack_value(msgpack_packer *pk, uint64_t present, unsigned int field, uint64_t value)
{
	if (present >> field & 1)
		msgpack_pack_uint64(pk, value);
	else
		msgpack_pack_nil(pk);
}

static void pack_signed(msgpack_packer *pk, uint64_t present, unsigned int field, int64_t value)
{
	if (present >> field & 1)
		msgpack_pack_int64(pk, value);
	else
		msgpack_pack_nil(pk);
}

static void pack_texts(const struct mote_process *process, const struct mote_task *task,
		       uint64_t present, msgpack_packer *pk)
{
	struct mote_text_entry entry;

	mote_pack_text(pk, task->comm, strnlen(task->comm, sizeof(task->comm)));
	mote_process_get_text(process, task, &entry);
	if (entry.has_argv && entry.argv_len && present >> PROCESS_ARGV & 1)
		mote_pack_list(pk, entry.argv, entry.argv_len);
	else
		msgpack_pack_nil(pk);
	if (entry.has_exe && entry.exe_len && present >> PROCESS_EXE & 1)
		mote_pack_text(pk, entry.exe, entry.exe_len);
	else
		msgpack_pack_nil(pk);
}

static uint64_t present_of(const struct mote_process *process, const struct mote_task *task)
{
	uint64_t present = ~0ull;

	if (task->present) {
		present = task->present | 1ull << PROCESS_ARGV | 1ull << PROCESS_EXE;
	} else {
		if (!(task->flags & MOTE_TASK_HAS_FDS))
			present &= ~(1ull << PROCESS_FDS);
		if (!(task->flags & MOTE_TASK_HAS_RSS))
			present &= ~(1ull << PROCESS_RSS | 1ull << PROCESS_SHARED);
	}
	return present & ~process->absent;
}

static void pack_row(const struct mote_process *process, struct mote_task *task, msgpack_packer *pk)
{
	uint64_t present = present_of(process, task), counters[MOTE_COUNTERS] = { 0 };

	_Static_assert(PROCESS__FIELDS == 37 && PROCESS_UTIME == 11 && PROCESS_RCHAR == 20 &&
			       PROCESS_FDS == 31 && PROCESS_EXE == 36,
		       "pack_row follows schema.def");
	mote_process_counters(task, counters);
	msgpack_pack_array(pk, PROCESS__FIELDS);
	msgpack_pack_uint32(pk, task->pid);
	msgpack_pack_uint64(pk, task->start / MOTE_NS_PER_TICK);
	pack_value(pk, present, PROCESS_PPID, task->ppid);
	pack_value(pk, present, PROCESS_UID, task->uid);
	pack_value(pk, present, PROCESS_GID, task->gid);
	pack_value(pk, present, PROCESS_SESSION, task->session);
	pack_value(pk, present, PROCESS_TTY, task->tty);
	mote_pack_text(pk, &task->state, 1);
	pack_signed(pk, present, PROCESS_NICE, task->nice);
	pack_signed(pk, present, PROCESS_PRIORITY, task->priority);
	pack_value(pk, present, PROCESS_THREADS, task->threads);
	for (unsigned int i = PROCESS_UTIME; i <= PROCESS_MAJFLT; i++)
		pack_value(pk, present, i, counters[i - MOTE_COUNTER_FIRST]);
	pack_value(pk, present, PROCESS_VSIZE, task->vsize);
	pack_value(pk, present, PROCESS_RSS, task->rss);
	pack_value(pk, present, PROCESS_SHARED, task->shared);
	for (unsigned int i = PROCESS_RCHAR; i <= PROCESS_RUN_DELAY; i++)
		pack_value(pk, present, i, counters[i - MOTE_COUNTER_FIRST]);
	pack_value(pk, present, PROCESS_FDS, task->fds);
	pack_value(pk, present, PROCESS_CGROUP_ID, task->cgroup_id);
	pack_signed(pk, present, PROCESS_OOM_SCORE_ADJ, task->oom_score_adj);
	pack_texts(process, task, present, pk);
}

/* The cursor is a pid, so that a keyframe can go on after other samples. */
static bool process_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	struct mote_process *process = ctx;
	const struct mote_process_ref *refs = process->refs[process->current];

	for (unsigned int i = mote_process_lower_bound(process, *cursor);
	     i < process->n[process->current]; i++) {
		if (refs[i].changed <= since)
			continue;
		*cursor = (uint64_t)refs[i].pid + 1;
		pack_row(process, task_of(process, &refs[i]), pk);
		return true;
	}
	return false;
}

static const struct mote_process_ended *ended_at(const struct mote_process *process,
						 uint64_t number)
{
	return &process->ended[number % process->ended_max];
}

/* The number of the first key that ended after `since`. */
static uint64_t first_ended(const struct mote_process *process, uint64_t since)
{
	uint64_t number = process->ended_total;

	while (process->ended_total - number < process->ended_n &&
	       ended_at(process, number - 1)->time > since)
		number--;
	return number;
}

/* The cursor is the number of the next key, counted from 1, so that it holds across samples. */
static bool process_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_process *process = ctx;
	uint64_t oldest = process->ended_total - process->ended_n;
	uint64_t number = *cursor ? *cursor - 1 : first_ended(process, since);
	const struct mote_process_ended *ended;

	if (number < oldest)
		number = oldest; /* forgot() tells that some are missing */
	if (number >= process->ended_total)
		return false;
	ended = ended_at(process, number);
	*cursor = number + 2;
	msgpack_pack_array(pk, 2);
	msgpack_pack_uint32(pk, ended->pid);
	msgpack_pack_uint64(pk, ended->start / MOTE_NS_PER_TICK);
	return true;
}

static void process_totals(void *ctx, msgpack_packer *pk)
{
	const struct mote_process *process = ctx;
	const struct mote_stream *stream = &mote_streams[MOTE_STREAM_PROCESS];

	msgpack_pack_array(pk, PROCESS__FIELDS);
	for (unsigned int i = 0; i < PROCESS__FIELDS; i++) {
		if (stream->fields[i].kind == MOTE_COUNTER && !(process->absent >> i & 1))
			msgpack_pack_uint64(pk, process->totals[i - MOTE_COUNTER_FIRST]);
		else
			msgpack_pack_nil(pk);
	}
}

static bool process_forgot(void *ctx, uint64_t since)
{
	return ((const struct mote_process *)ctx)->forgot > since;
}

const struct mote_source_ops mote_process_source = {
	.row = process_row,
	.ended = process_ended,
	.totals = process_totals,
	.forgot = process_forgot,
	.epoch = NULL,
};
