// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The log of cgroups, see cgroup_log.h. Room is given back when both readers are done with it. The
 * thread's records of a listing are in it, too: the stream passes them over.
 */
#include "cgroup_log.h"

#include <string.h>

const struct mote_cgroup_event *mote_cgroup_log_next(struct mote_cgroup_log *log)
{
	uint64_t fill = log->ring ? mote_ringbuf_fill(log->ring) : 0;
	uint32_t len;

	if (!log->ring)
		return NULL;
	if (fill > log->ring->peak)
		log->ring->peak = fill;
	return mote_ringbuf_next(log->ring, &log->seen, &len);
}

bool mote_cgroup_log_told(const struct mote_cgroup_log *log)
{
	return !log->ring || __atomic_load_n(log->ring->consumer, __ATOMIC_RELAXED) >= log->seen;
}

bool mote_cgroup_log_has_more(const struct mote_cgroup_log *log)
{
	return log->ring && __atomic_load_n(log->ring->producer, __ATOMIC_ACQUIRE) > log->seen;
}

void mote_cgroup_log_fill(const struct mote_cgroup_log *log, struct mote_fill *fill)
{
	uint64_t now = log->ring ? mote_ringbuf_fill(log->ring) : 0;

	*fill = (struct mote_fill){ 0 };
	if (!log->ring)
		return;
	fill->size = log->ring->size;
	fill->fill = now;
	fill->peak = now > log->ring->peak ? now : log->ring->peak;
	fill->dropped = log->dropped ? __atomic_load_n(log->dropped, __ATOMIC_RELAXED) : 0;
}

/* Of the parent, as far as that is known, and the name. */
static void pack_path(msgpack_packer *pk, const struct mote_cgroup_set *set,
		      const struct mote_cgroup_event *event)
{
	uint32_t parent = mote_cgroup_set_node(set, event->parent);
	char path[MOTE_CGROUP_PATH];
	uint32_t len = 0;

	if (parent != MOTE_CGROUP_NONE)
		len = mote_cgroup_set_path_below(set, parent,
						 (struct mote_text){ event->name, event->name_len },
						 path, sizeof(path));
	if (len)
		mote_pack_text(pk, path, len);
	else
		msgpack_pack_nil(pk);
}

static void pack_id(msgpack_packer *pk, uint64_t id)
{
	if (id)
		msgpack_pack_uint64(pk, id);
	else
		msgpack_pack_nil(pk);
}

static void pack(const struct mote_cgroup_log *log, const struct mote_cgroup_event *event,
		 msgpack_packer *pk)
{
	_Static_assert(CGROUP_EVENT__FIELDS == 6, "pack follows schema.def");
	msgpack_pack_array(pk, CGROUP_EVENT__FIELDS);
	if (event->kind == MOTE_CGROUP_MKDIR)
		mote_pack_text(pk, "created", 7);
	else
		mote_pack_text(pk, "removed", 7);
	msgpack_pack_uint64(pk, event->time);
	pack_id(pk, event->id);
	pack_id(pk, event->parent);
	mote_pack_text(pk, event->name, event->name_len);
	pack_path(pk, log->set, event);
}

static bool is_event(const struct mote_cgroup_event *event)
{
	return event->kind == MOTE_CGROUP_MKDIR || event->kind == MOTE_CGROUP_RMDIR;
}

/* A keyframe (`since` 0) is empty. The cursor is the position. */
static bool row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_cgroup_log *log = ctx;
	const struct mote_cgroup_event *event;
	uint64_t position = *cursor;
	uint32_t len;

	while (since && log->ring && position < log->seen) {
		event = mote_ringbuf_next(log->ring, &position, &len);
		if (!event || position > log->seen)
			return false;
		*cursor = position;
		if (!is_event(event))
			continue;
		pack(log, event, pk);
		return true;
	}
	return false;
}

static uint64_t head(void *ctx)
{
	return ((const struct mote_cgroup_log *)ctx)->seen;
}

static void trim(void *ctx, uint64_t cursor)
{
	const struct mote_cgroup_log *log = ctx;

	if (log->ring)
		__atomic_store_n(log->ring->consumer, cursor, __ATOMIC_RELEASE);
}

/* Half of it may be kept for those who read. */
static bool patient(void *ctx)
{
	const struct mote_cgroup_log *log = ctx;

	return log->ring && mote_ringbuf_fill(log->ring) < log->ring->size / 2;
}

const struct mote_source_ops mote_cgroup_event_source = {
	.row = row,
	.ended = mote_source_no_more,
	.totals = mote_source_no_totals,
	.forgot = mote_source_remembers,
	.epoch = NULL,
	.head = head,
	.trim = trim,
	.patient = patient,
};
