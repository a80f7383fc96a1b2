// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The frame encoder. Arrays of rows are written with the largest header (array 32) whose count is
 * filled in afterwards, as how many rows changed is known only when they are written.
 */
#include "frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* The lengths of numbers, for which a call of memcpy() is most of the work. */
static void copy(char *to, const char *from, size_t len)
{
	switch (len) {
	case 1:
		*to = *from;
		break;
	case 2:
		memcpy(to, from, 2);
		break;
	case 3:
		memcpy(to, from, 3);
		break;
	case 5:
		memcpy(to, from, 5);
		break;
	case 9:
		memcpy(to, from, 9);
		break;
	default:
		memcpy(to, from, len);
	}
}

static int writer_write(void *data, const char *buf, size_t len)
{
	struct mote_writer *writer = data;

	if (writer->full || len > writer->size - writer->len) {
		writer->full = true;
		return 0;
	}
	copy(writer->buf + writer->len, buf, len);
	writer->len += (uint32_t)len;
	return 0;
}

void mote_writer_init(struct mote_writer *writer, msgpack_packer *pk, char *buf, uint32_t size)
{
	*writer = (struct mote_writer){ .buf = buf, .size = size };
	msgpack_packer_init(pk, writer, writer_write);
}

void mote_frame_header(char *buf, uint32_t len, enum mote_frame_type type, uint16_t flags,
		       uint32_t stream, uint64_t sequence, uint64_t time)
{
	struct mote_frame_header header = {
		.magic = htole32(MOTE_MAGIC),
		.version = MOTE_PROTOCOL_VERSION,
		.type = (uint8_t)type,
		.flags = htole16(flags),
		.length = htole32(len - (uint32_t)sizeof(header)),
		.stream = htole32(stream),
		.sequence = htole64(sequence),
		.time = htole64(time),
	};

	memcpy(buf, &header, sizeof(header));
}

/* So many bytes of ASCII there are for certain: the most of text. */
static size_t ascii(const unsigned char *s, size_t len)
{
	uint64_t word;

	if (len < sizeof(word))
		return s[0] < 0x80;
	memcpy(&word, s, sizeof(word));
	return word & 0x8080808080808080ull ? s[0] < 0x80 : sizeof(word);
}

/* The length of a UTF-8 sequence that starts at `s`, 0 if it is none (RFC 3629). */
static size_t utf8_sequence(const unsigned char *s, size_t len)
{
	size_t n = s[0] < 0x80   ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;

	if (n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static bool is_utf8(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	while (len) {
		size_t n = ascii(s, len);

		if (!n)
			n = utf8_sequence(s, len);
		if (!n)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

void mote_pack_text(msgpack_packer *pk, const char *text, size_t len)
{
	if (is_utf8(text, len)) {
		msgpack_pack_str(pk, len);
		msgpack_pack_str_body(pk, text, len);
	} else {
		msgpack_pack_bin(pk, len);
		msgpack_pack_bin_body(pk, text, len);
	}
}

void mote_pack_word(msgpack_packer *pk, const char *word)
{
	mote_pack_text(pk, word, strlen(word));
}

void mote_pack_known(msgpack_packer *pk, bool known, uint64_t value)
{
	if (known)
		msgpack_pack_uint64(pk, value);
	else
		msgpack_pack_nil(pk);
}

void mote_pack_list(msgpack_packer *pk, const char *text, size_t len)
{
	size_t n = 0, at = 0;

	for (size_t i = 0; i < len; i++)
		n += !text[i] || i + 1 == len;
	msgpack_pack_array(pk, n);
	while (at < len) {
		size_t item = strnlen(text + at, len - at);

		mote_pack_text(pk, text + at, item);
		at += item + 1;
	}
}

/* An array whose count is not known yet; returns where it begins. */
static uint32_t array_begin(struct mote_writer *writer, msgpack_packer *pk)
{
	uint32_t at = writer->len;

	msgpack_pack_array(pk, UINT32_MAX);
	return at;
}

static void array_end(struct mote_writer *writer, uint32_t at, uint32_t count)
{
	uint32_t n = htobe32(count);

	memcpy(writer->buf + at + 1, &n, sizeof(n));
}

typedef bool (*pack_next)(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk);

/*
 * Packs what `next` gives until there is no more (true) or the frame is full (false); leaves
 * `keep` bytes for what must follow. `empty`: the frame has nothing else.
 */
static bool pack_all(struct mote_writer *writer, msgpack_packer *pk, pack_next next,
		     const struct mote_update *update, uint64_t *cursor, uint32_t keep, bool empty)
{
	uint32_t at = array_begin(writer, pk), count = 0, size = writer->size;
	bool more = true;

	writer->size -= keep;
	while (more) {
		uint64_t from = *cursor;
		uint32_t len = writer->len;

		more = next(update->source->ctx, update->since, cursor, pk);
		if (writer->full) {
			writer->full = false;
			writer->len = len;
			/* One that fits no frame is passed over, else it would come for ever. */
			if (count || !empty)
				*cursor = from;
			break;
		}
		count += more;
	}
	writer->size = size;
	array_end(writer, at, count);
	return !more;
}

/* Most that ended totals take: a u64 is 9 bytes, a stream has at most 64 fields. */
#define TOTALS_MAX  (64 * 9 + 8)
#define EMPTY_ARRAY 5

static void resume(const struct mote_update *update, struct mote_progress *progress,
		   uint16_t *flags)
{
	const struct mote_source *source = update->source;
	uint64_t epoch = source->ops->epoch ? source->ops->epoch(source->ctx) : 0;

	if (progress->begun && progress->epoch != epoch)
		*progress = (struct mote_progress){ 0 }; /* rows have moved: start again */
	if (!progress->begun)
		*flags = update->flags;
	progress->begun = true;
	progress->epoch = epoch;
}

uint32_t mote_frame_data(char *buf, uint32_t size, const struct mote_update *update,
			 struct mote_progress *progress, bool *done)
{
	const struct mote_source_ops *ops = update->source->ops;
	struct mote_writer writer;
	msgpack_packer pk;
	uint16_t flags = 0;
	bool empty;

	resume(update, progress, &flags);
	mote_writer_init(&writer, &pk, buf, size);
	writer.len = sizeof(struct mote_frame_header);
	msgpack_pack_array(&pk, 4);
	msgpack_pack_uint32(&pk, update->interval_ms);
	empty = progress->in_ended; /* its rows are in the frames before */
	if (!progress->in_ended) {
		progress->in_ended = pack_all(&writer, &pk, ops->row, update, &progress->cursor,
					      2 * EMPTY_ARRAY + TOTALS_MAX, true);
	} else {
		msgpack_pack_array(&pk, 0);
	}
	/* A keyframe lists what there is; nothing of before is left to end. */
	*done = progress->in_ended;
	if (progress->in_ended && !(update->flags & MOTE_FRAME_KEY))
		*done = pack_all(&writer, &pk, ops->ended, update, &progress->ended, TOTALS_MAX,
				 empty);
	else
		msgpack_pack_array(&pk, 0);
	if (*done)
		ops->totals(update->source->ctx, &pk);
	else
		msgpack_pack_nil(&pk);
	if (!*done)
		flags |= MOTE_FRAME_MORE;
	if (update->flags & MOTE_FRAME_KEY)
		flags |= MOTE_FRAME_KEY_PART;
	mote_frame_header(buf, writer.len, MOTE_FRAME_DATA, flags, (uint32_t)update->stream,
			  update->sequence, update->time);
	return writer.len;
}

uint32_t mote_frame_dropped(char *buf, uint32_t size, uint64_t frames, uint64_t bytes,
			    uint64_t time)
{
	struct mote_writer writer;
	msgpack_packer pk;

	mote_writer_init(&writer, &pk, buf, size);
	writer.len = sizeof(struct mote_frame_header);
	msgpack_pack_array(&pk, 2);
	msgpack_pack_uint64(&pk, frames);
	msgpack_pack_uint64(&pk, bytes);
	mote_frame_header(buf, writer.len, MOTE_FRAME_DROPPED, 0, 0, 0, time);
	return writer.len;
}

uint32_t mote_frame_reply(char *buf, uint32_t size, int code, const char *text, uint64_t time)
{
	struct mote_writer writer;
	msgpack_packer pk;

	mote_writer_init(&writer, &pk, buf, size);
	writer.len = sizeof(struct mote_frame_header);
	msgpack_pack_array(&pk, 2);
	msgpack_pack_int(&pk, code);
	mote_pack_text(&pk, text, strlen(text));
	mote_frame_header(buf, writer.len, MOTE_FRAME_REPLY, 0, 0, 0, time);
	return writer.len;
}

static void pack_field(const struct mote_table *table, const struct mote_row *row, unsigned int i,
		       msgpack_packer *pk)
{
	double f64;

	if (!mote_row_has(row, i)) {
		msgpack_pack_nil(pk);
		return;
	}
	switch (mote_streams[mote_table_stream(table)].fields[i].type) {
	case MOTE_U64:
		msgpack_pack_uint64(pk, mote_row_get(row, i));
		break;
	case MOTE_I64:
		msgpack_pack_int64(pk, (int64_t)mote_row_get(row, i));
		break;
	case MOTE_F64:
		f64 = mote_row_get_f64(row, i);
		msgpack_pack_double(pk, f64);
		break;
	case MOTE_STR:
	case MOTE_LIST:
		mote_pack_text(pk, mote_row_get_str(table, row, i),
			       strlen(mote_row_get_str(table, row, i)));
		break;
	}
}

static void pack_row(const struct mote_table *table, const struct mote_row *row, msgpack_packer *pk)
{
	unsigned int n = mote_streams[mote_table_stream(table)].nfields;

	msgpack_pack_array(pk, n);
	for (unsigned int i = 0; i < n; i++)
		pack_field(table, row, i, pk);
}

static bool table_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_table *table = ctx;
	const struct mote_row *row = (const struct mote_row *)(uintptr_t)*cursor;

	do
		row = mote_table_next(table, row);
	while (row && mote_row_changed(row) <= since);
	if (!row)
		return false;
	*cursor = (uintptr_t)row;
	pack_row(table, row, pk);
	return true;
}

static bool table_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	unsigned int at = (unsigned int)*cursor;
	const char *key = mote_table_ended(ctx, since, &at);

	if (!key)
		return false;
	*cursor = at;
	msgpack_pack_array(pk, 1);
	mote_pack_text(pk, key, strlen(key));
	return true;
}

static void table_totals(void *ctx, msgpack_packer *pk)
{
	const struct mote_row *row = mote_table_totals(ctx);

	if (row)
		pack_row(ctx, row, pk);
	else
		msgpack_pack_nil(pk);
}

static bool table_forgot(void *ctx, uint64_t since)
{
	return mote_table_forgot(ctx, since);
}

static uint64_t table_epoch(void *ctx)
{
	return mote_table_epoch(ctx);
}

const struct mote_source_ops mote_table_source = {
	.row = table_row,
	.ended = table_ended,
	.totals = table_totals,
	.forgot = table_forgot,
	.epoch = table_epoch,
};

bool mote_source_no_more(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	return false;
}

void mote_source_no_totals(void *ctx, msgpack_packer *pk)
{
	msgpack_pack_nil(pk);
}

bool mote_source_remembers(void *ctx, uint64_t since)
{
	return false;
}

const struct mote_source_ops mote_empty_source = {
	.row = mote_source_no_more,
	.ended = mote_source_no_more,
	.totals = mote_source_no_totals,
	.forgot = mote_source_remembers,
};
