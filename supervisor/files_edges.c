// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Edges between files and sockets, and the rows of the stream edge: slots as in files_fold.c. An
 * edge ends with its process or its socket; or, if slots are few, when nothing moved over it for a
 * while.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "files_impl.h"

#define IDLE_NS (5 * NS_PER_S)
#define ENDED   (1ull << 63)

static struct mote_edge *edge_at(const struct mote_files *files, uint32_t slot)
{
	return &files->maps->edges[slot];
}

static void add(struct mote_edge_bytes *to, const struct mote_edge_bytes *from)
{
	to->sent += from->sent;
	to->received += from->received;
	to->sends += from->sends;
	to->receives += from->receives;
}

static bool same_key(const struct mote_edge *a, const struct mote_edge *b)
{
	return a->socket == b->socket && a->kind == b->kind && a->ino == b->ino &&
	       a->tgid == b->tgid && a->start == b->start && a->dev == b->dev &&
	       a->generation == b->generation;
}

static void forget_end(struct mote_files *files, const struct mote_edge *edge)
{
	struct files_ended_edge *record;

	for (uint32_t i = 0; (record = mote_ended_at(&files->edges.ended, i)); i++) {
		if (same_key(&record->edge, edge))
			record->at.time = 0;
	}
}

static void fold(void *ctx, uint32_t slot, bool first)
{
	struct mote_files *files = ctx;
	struct mote_edge *edge = edge_at(files, slot);
	struct mote_edge_bytes now = {
		__atomic_load_n(&edge->sent, __ATOMIC_RELAXED),
		__atomic_load_n(&edge->received, __ATOMIC_RELAXED),
		__atomic_load_n(&edge->sends, __ATOMIC_RELAXED),
		__atomic_load_n(&edge->receives, __ATOMIC_RELAXED),
	};

	if (first)
		forget_end(files, edge);
	edge->touched = files->now;
	if (!first && !memcmp(&edge->seen, &now, sizeof(now)))
		return;
	edge->seen = now;
	edge->changed = files->now;
}

static void gone(void *ctx, uint32_t slot)
{
	struct mote_files *files = ctx;
	struct mote_edge *edge = edge_at(files, slot);
	struct files_ended_edge *record = mote_ended_add(&files->edges.ended, files->now);
	uint32_t state = edge->state;

	record->edge = *edge;
	add(&files->edges.totals, &edge->seen);
	memset(&edge->sent, 0, sizeof(*edge) - offsetof(struct mote_edge, sent));
	edge->state = state;
}

static const struct mote_slots_ops ops = { .fold = fold, .gone = gone };

int mote_files_edges_open(struct mote_files *files)
{
	const struct mote_file_maps *maps = files->maps;
	const struct mote_slots_memory memory = {
		.table = (enum mote_slot_table)MOTE_FILE_EDGES,
		.slots = maps->edges,
		.stride = sizeof(struct mote_edge),
		.own = offsetof(struct mote_edge, state),
		.size = maps->nedges,
		.marks = maps->edge_marks,
		.reap = &maps->reaps[MOTE_FILE_EDGES],
		.cpus = maps->cpus,
		.ncpus = maps->ncpus,
	};
	int err;

	if (!maps->nedges || !files->network)
		return 0;
	err = mote_ended_new(&files->edges.ended, files->options->tables_ended_files,
			     sizeof(struct files_ended_edge));
	return err ?: mote_slots_new(&memory, &ops, files, &files->edges.slots);
}

void mote_files_edges_close(struct mote_files *files)
{
	mote_ended_free(&files->edges.ended);
	mote_slots_free(files->edges.slots);
}

static bool socket_is_there(const struct mote_files *files, uint64_t id)
{
	uint32_t slot = MOTE_SOCKET_SLOT(id);
	const struct mote_socket *socket = &files->network->sockets[slot];

	if (id < MOTE_SLOTS_MAX) /* of sockets that had no room */
		return true;
	return slot < files->network->nsockets && MOTE_SOCKET_ID(slot, socket->slot.gen) == id &&
	       !__atomic_load_n(&socket->closed, __ATOMIC_RELAXED);
}

static bool is_over(const struct mote_files *files, const struct mote_edge *edge)
{
	return !socket_is_there(files, edge->socket) ||
	       (edge->touched + files->patience + NS_PER_S < files->now && files->process &&
		mote_process_whole(files->process) &&
		!mote_process_lives(files->process, edge->tgid, edge->start));
}

void mote_files_edges_sample(struct mote_files *files)
{
	struct files_edges *edges = &files->edges;
	struct mote_slots_stats stats;
	uint64_t idle;

	mote_slots_scan(edges->slots);
	mote_slots_stats(edges->slots, files->now, &stats);
	idle = stats.fill.fill - stats.waiting > stats.fill.size / 4 * 3 ? IDLE_NS : UINT64_MAX;
	for (uint32_t slot = 0; stats.fill.fill && slot < files->maps->nedges; slot++) {
		const struct mote_edge *edge = edge_at(files, slot);

		if (edge->touched && (files->now - edge->touched > idle || is_over(files, edge)))
			mote_slots_end(edges->slots, slot);
	}
}

/* Rows */

static void pack_edge_key(msgpack_packer *pk, const struct mote_edge *edge)
{
	const char *how = edge->kind == MOTE_EDGE_SENDFILE ? "sendfile"
			  : edge->kind == MOTE_EDGE_SPLICE ? "splice"
							   : "credit";

	msgpack_pack_uint64(pk, edge->socket);
	mote_files_pack_key(pk, edge->tgid, edge->start, edge->dev, edge->ino, edge->generation);
	msgpack_pack_str(pk, strlen(how));
	msgpack_pack_str_body(pk, how, strlen(how));
}

static void pack_if(msgpack_packer *pk, bool counted, uint64_t n)
{
	if (counted)
		msgpack_pack_uint64(pk, n);
	else
		msgpack_pack_nil(pk);
}

static void pack_bytes(msgpack_packer *pk, const struct mote_files *files,
		       const struct mote_edge_bytes *bytes)
{
	bool reads = files->options->file_track_read, writes = files->options->file_track_write;

	pack_if(pk, reads, bytes->sent);
	pack_if(pk, writes, bytes->received);
	pack_if(pk, reads, bytes->sends);
	pack_if(pk, writes, bytes->receives);
}

static void pack_edge(msgpack_packer *pk, const struct mote_files *files,
		      const struct mote_edge *edge)
{
	_Static_assert(EDGE__FIELDS == 11 && EDGE_HOW == 6 && EDGE_BYTES_SENT == 7,
		       "pack_edge follows schema.def");
	msgpack_pack_array(pk, EDGE__FIELDS);
	pack_edge_key(pk, edge);
	pack_bytes(pk, files, &edge->seen);
}

static bool edge_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_files *files = ctx;
	const struct files_ended_edge *record;
	uint64_t at = *cursor & ~ENDED;

	if (!(*cursor & ENDED)) {
		while (at < files->maps->nedges && edge_at(files, (uint32_t)at)->changed <= since)
			at++;
		if (at < files->maps->nedges) {
			pack_edge(pk, files, edge_at(files, (uint32_t)at));
			*cursor = at + 1;
			return true;
		}
		at = 0;
	}
	record = since ? mote_ended_next(&files->edges.ended, since, &at) : NULL;
	if (!record)
		return false;
	*cursor = at | ENDED;
	pack_edge(pk, files, &record->edge);
	return true;
}

static bool edge_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_files *files = ctx;
	const struct files_ended_edge *record = mote_ended_next(&files->edges.ended, since, cursor);

	if (!record)
		return false;
	msgpack_pack_array(pk, EDGE_BYTES_SENT);
	pack_edge_key(pk, &record->edge);
	return true;
}

static void edge_totals(void *ctx, msgpack_packer *pk)
{
	const struct mote_files *files = ctx;

	msgpack_pack_array(pk, EDGE__FIELDS);
	for (int i = 0; i < EDGE_BYTES_SENT; i++)
		msgpack_pack_nil(pk);
	pack_bytes(pk, files, &files->edges.totals);
}

static bool edge_forgot(void *ctx, uint64_t since)
{
	return ((const struct mote_files *)ctx)->edges.ended.forgot > since;
}

const struct mote_source_ops mote_edge_source = {
	.row = edge_row,
	.ended = edge_ended,
	.totals = edge_totals,
	.forgot = edge_forgot,
};
