// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The rows of the stream `cgroup`, see cgroup_set.h. What a path says is found when a row is
 * packed: it takes less than to keep it. The cursor is the number of a row, or of an ended key.
 */
#include "cgroup_identity.h"
#include "cgroup_set.h"

#include <string.h>

#define FIRST CGROUP_CPU_USAGE
_Static_assert(CGROUP__FIELDS - FIRST == MOTE_CGROUP_VALUES, "abi.h and schema.def");
_Static_assert(CGROUP_CPU_PERIOD - FIRST == MOTE_CGROUP_CPU_PERIOD, "abi.h and schema.def");
_Static_assert(CGROUP_SWAP_MAX - FIRST == MOTE_CGROUP_SWAP_MAX, "abi.h and schema.def");
_Static_assert(CGROUP_PGSTEAL - FIRST == MOTE_CGROUP_PGSTEAL, "abi.h and schema.def");
_Static_assert(CGROUP_OOM_KILL - FIRST == MOTE_CGROUP_OOM_KILL, "abi.h and schema.def");
_Static_assert(CGROUP_LOCAL_OOM_KILL - FIRST == MOTE_CGROUP_LOCAL_OOM_KILL, "abi.h, schema.def");
_Static_assert(CGROUP_FROZEN - FIRST == MOTE_CGROUP_FROZEN, "abi.h and schema.def");
_Static_assert(CGROUP_IO_WRITES - FIRST == MOTE_CGROUP_IO_WRITES, "abi.h and schema.def");

static void pack_or_nil(msgpack_packer *pk, const char *text, size_t len)
{
	if (len)
		mote_pack_text(pk, text, len);
	else
		msgpack_pack_nil(pk);
}

static void pack_identity(msgpack_packer *pk, const struct mote_cgroup_set *set, uint32_t node)
{
	struct mote_cgroup_identity identity;
	char path[MOTE_CGROUP_PATH];
	uint32_t len = mote_cgroup_set_path(set, node, path, sizeof(path));
	uint64_t parent = set->nodes[node].parent_id;

	mote_cgroup_identify((struct mote_text){ path, len }, &identity);
	pack_or_nil(pk, path, len);
	if (parent)
		msgpack_pack_uint64(pk, parent);
	else
		msgpack_pack_nil(pk);
	pack_or_nil(pk, identity.container.data, identity.container.len);
	pack_or_nil(pk, identity.runtime, identity.runtime ? strlen(identity.runtime) : 0);
	pack_or_nil(pk, identity.pod, strlen(identity.pod));
	pack_or_nil(pk, identity.unit.data, identity.unit.len);
}

static void pack_values(msgpack_packer *pk, uint64_t present, const uint64_t *v)
{
	for (unsigned int i = 0; i < MOTE_CGROUP_VALUES; i++) {
		if (present >> i & 1)
			msgpack_pack_uint64(pk, v[i]);
		else
			msgpack_pack_nil(pk);
	}
}

static void pack_nils(msgpack_packer *pk, unsigned int n)
{
	while (n--)
		msgpack_pack_nil(pk);
}

static void pack_row(const struct mote_cgroup_set *set, uint32_t at, msgpack_packer *pk)
{
	const struct mote_cgroup_row *row = &set->rows[at];

	_Static_assert(FIRST == 7, "pack_row follows schema.def");
	msgpack_pack_array(pk, CGROUP__FIELDS);
	if (at == set->max) {
		msgpack_pack_uint64(pk, 0);
		mote_pack_text(pk, "other", 5);
		pack_nils(pk, FIRST - 2);
	} else {
		msgpack_pack_uint64(pk, set->nodes[row->node].id);
		pack_identity(pk, set, row->node);
	}
	pack_values(pk, row->present, row->v);
}

static bool row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_cgroup_set *set = ctx;
	uint64_t at = *cursor;

	for (; at <= set->max; at++) {
		if (at == set->fresh_row && at < set->max)
			at = set->max; /* `other` */
		if (set->rows[at].changed > since)
			break;
	}
	if (at > set->max)
		return false;
	*cursor = at + 1;
	pack_row(set, (uint32_t)at, pk);
	return true;
}

/* Oldest first. */
static bool ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_cgroup_set *set = ctx;

	while (*cursor < set->ended_max) {
		const struct mote_cgroup_ended *one =
			&set->ended[(set->ended_at + (*cursor)++) % set->ended_max];

		if (one->time <= since)
			continue;
		msgpack_pack_array(pk, 1);
		msgpack_pack_uint64(pk, one->id);
		return true;
	}
	return false;
}

static void totals(void *ctx, msgpack_packer *pk)
{
	const struct mote_cgroup_set *set = ctx;

	if (!set->any_ended) {
		msgpack_pack_nil(pk);
		return;
	}
	msgpack_pack_array(pk, CGROUP__FIELDS);
	pack_nils(pk, FIRST);
	pack_values(pk, set->totals.present, set->totals.v);
}

static bool forgot(void *ctx, uint64_t since)
{
	return ((const struct mote_cgroup_set *)ctx)->forgot > since;
}

const struct mote_source_ops mote_cgroup_source = {
	.row = row,
	.ended = ended,
	.totals = totals,
	.forgot = forgot,
	/* A row that takes another's place is told of by the update of its time. */
	.epoch = NULL,
};
