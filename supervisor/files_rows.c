// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The rows of the stream file: those in use that changed, then the last rows of what ended since,
 * then the keys of these as ended. A row's cursor is its slot plus 1; from ENDED on it is the
 * ring's.
 */
#include <stdio.h>
#include <string.h>

#include "files_impl.h"
#include "parse.h"

#define ENDED (1ull << 63)

static void pack_text(msgpack_packer *pk, const char *text, size_t len)
{
	msgpack_pack_str(pk, len);
	msgpack_pack_str_body(pk, text, len);
}

static void pack_nils(msgpack_packer *pk, unsigned int n)
{
	while (n--)
		msgpack_pack_nil(pk);
}

void mote_files_pack_key(msgpack_packer *pk, uint32_t tgid, uint64_t start, uint32_t dev,
			 uint64_t ino, uint32_t generation)
{
	char device[24];
	int len = snprintf(device, sizeof(device), "%u:%u", dev >> 20, dev & 0xfffff);

	msgpack_pack_uint32(pk, tgid);
	msgpack_pack_uint64(pk, start / MOTE_NS_PER_TICK);
	pack_text(pk, device, (size_t)len);
	msgpack_pack_uint64(pk, ino);
	msgpack_pack_uint32(pk, generation);
}

static void pack_key(msgpack_packer *pk, const struct mote_access *a)
{
	mote_files_pack_key(pk, a->tgid, a->start, a->dev, a->ino, a->generation);
}

static void pack_path(msgpack_packer *pk, const struct mote_path *path)
{
	static const char *const names[] = { "cut", "deleted", "detached" };
	char text[2 * MOTE_PATH_MAX];
	unsigned int len = mote_files_path(path, text, sizeof(text));

	if (!len) {
		pack_nils(pk, 2);
		return;
	}
	pack_text(pk, text, len);
	len = 0;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (path->flags >> i & 1)
			len += (unsigned int)snprintf(text + len, sizeof(text) - len, "%s%s",
						      len ? " " : "", names[i]);
	}
	pack_text(pk, text, len);
}

static void pack_if(msgpack_packer *pk, bool known, uint64_t value)
{
	if (known)
		msgpack_pack_uint64(pk, value);
	else
		msgpack_pack_nil(pk);
}

static void pack_moved(const struct mote_files *files, msgpack_packer *pk,
		       const struct mote_moved *moved)
{
	bool reads = files->options->file_track_read, writes = files->options->file_track_write;

	pack_if(pk, reads, moved->read);
	pack_if(pk, writes, moved->written);
	pack_if(pk, reads, moved->reads);
	pack_if(pk, writes, moved->writes);
}

static void pack_row(const struct mote_files *files, msgpack_packer *pk,
		     const struct mote_access *a, const struct mote_path *path)
{
	_Static_assert(FILE__FIELDS == 11 && FILE_PATH == 5 && FILE_BYTES_READ == 7,
		       "pack_row follows schema.def");
	msgpack_pack_array(pk, FILE__FIELDS);
	pack_key(pk, a);
	pack_path(pk, path);
	pack_moved(files, pk, &a->seen);
}

static uint32_t next_changed(const struct mote_files *files, uint32_t slot, uint64_t since)
{
	for (; slot < files->maps->size; slot++) {
		if (files->blocks[slot >> BLOCK_SHIFT] <= since)
			slot |= (1u << BLOCK_SHIFT) - 1;
		else if (files->maps->accesses[slot].changed > since)
			break;
	}
	return slot;
}

static bool file_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_files *files = ctx;
	const struct files_ended *record;
	uint64_t at = *cursor & ~ENDED;

	if (!(*cursor & ENDED)) {
		uint32_t slot = next_changed(files, (uint32_t)at, since);

		if (slot < files->maps->size) {
			pack_row(files, pk, &files->maps->accesses[slot],
				 &files->maps->paths[slot]);
			*cursor = (uint64_t)slot + 1;
			return true;
		}
		at = 0;
	}
	record = since ? mote_ended_next(&files->ended, since, &at) : NULL;
	if (!record)
		return false;
	*cursor = at | ENDED;
	pack_row(files, pk, &record->access, &record->path);
	return true;
}

static bool file_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_files *files = ctx;
	const struct files_ended *record = mote_ended_next(&files->ended, since, cursor);

	if (!record)
		return false;
	msgpack_pack_array(pk, 5);
	pack_key(pk, &record->access);
	return true;
}

static void file_totals(void *ctx, msgpack_packer *pk)
{
	const struct mote_files *files = ctx;

	msgpack_pack_array(pk, FILE__FIELDS);
	pack_nils(pk, FILE_BYTES_READ);
	pack_moved(files, pk, &files->totals);
}

static bool file_forgot(void *ctx, uint64_t since)
{
	return ((const struct mote_files *)ctx)->ended.forgot > since;
}

const struct mote_source_ops mote_file_source = {
	.row = file_row,
	.ended = file_ended,
	.totals = file_totals,
	.forgot = file_forgot,
};
