// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The frame encoder with a source whose rows and keys have any size, at every size of frame: an
 * update's frames together have each row and each ended key once, in order, whatever just fits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frame.h"

#define MANY 200

struct source {
	unsigned int nrows, nended;
	uint32_t row_size[MANY], ended_size[MANY];
	unsigned int totals; /* bytes of it */
	uint64_t epoch;
};

static const char padding[8192];

static bool give(unsigned int n, const uint32_t *sizes, uint64_t *cursor, msgpack_packer *pk)
{
	if (*cursor >= n)
		return false;
	msgpack_pack_array(pk, 2);
	msgpack_pack_uint64(pk, *cursor);
	msgpack_pack_bin(pk, sizes[*cursor]);
	msgpack_pack_bin_body(pk, padding, sizes[*cursor]);
	(*cursor)++;
	return true;
}

static bool row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	struct source *source = ctx;

	return give(source->nrows, source->row_size, cursor, pk);
}

static bool ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	struct source *source = ctx;

	return give(source->nended, source->ended_size, cursor, pk);
}

static void totals(void *ctx, msgpack_packer *pk)
{
	struct source *source = ctx;

	msgpack_pack_bin(pk, source->totals);
	msgpack_pack_bin_body(pk, padding, source->totals);
}

static uint64_t epoch(void *ctx)
{
	return ((struct source *)ctx)->epoch;
}

static const struct mote_source_ops ops = {
	.row = row,
	.ended = ended,
	.totals = totals,
	.epoch = epoch,
};

/* What the frames of an update had. */
struct seen {
	unsigned int rows, ended, frames, keys, skipped;
	bool totals;
};

static unsigned int take_list(const msgpack_object *list, unsigned int expected,
			      unsigned int *skipped)
{
	for (uint32_t i = 0; i < list->via.array.size; i++) {
		uint64_t id = list->via.array.ptr[i].via.array.ptr[0].via.u64;

		assert_true(id >= expected);
		*skipped += (unsigned int)(id - expected);
		expected = (unsigned int)id + 1;
	}
	return expected;
}

static void take(struct seen *seen, const char *buf, uint32_t len, bool done)
{
	struct mote_frame_header header;
	msgpack_unpacked out;
	size_t at = 0;

	memcpy(&header, buf, sizeof(header));
	assert_int_equal(header.magic, MOTE_MAGIC);
	assert_int_equal(header.type, MOTE_FRAME_DATA);
	assert_int_equal(header.length, len - sizeof(header));
	assert_int_equal((header.flags & MOTE_FRAME_MORE) != 0, !done);
	seen->keys += (header.flags & MOTE_FRAME_KEY) != 0;
	msgpack_unpacked_init(&out);
	assert_int_equal(msgpack_unpack_next(&out, buf + sizeof(header), header.length, &at),
			 MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(at, header.length);
	assert_int_equal(out.data.via.array.size, 4);
	assert_int_equal(out.data.via.array.ptr[0].via.u64, 250);
	seen->rows = take_list(&out.data.via.array.ptr[1], seen->rows, &seen->skipped);
	seen->ended = take_list(&out.data.via.array.ptr[2], seen->ended, &seen->skipped);
	assert_int_equal(out.data.via.array.ptr[3].type != MSGPACK_OBJECT_NIL, done);
	seen->totals = done;
	seen->frames++;
	msgpack_unpacked_destroy(&out);
}

static struct mote_update update_of(const struct mote_source *source, uint16_t flags)
{
	return (struct mote_update){ .stream = MOTE_STREAM_PROCESS,
				     .source = source,
				     .since = 1,
				     .time = 77,
				     .sequence = 5,
				     .interval_ms = 250,
				     .flags = flags };
}

static struct seen encode(struct source *ctx, uint32_t size, uint16_t flags)
{
	struct mote_source source = { &ops, ctx };
	struct mote_update update = update_of(&source, flags);
	struct mote_progress progress = { 0 };
	struct seen seen = { 0 };
	bool done = false;

	while (!done) {
		char *buf = malloc(size); /* ASan sees what goes beyond */
		uint32_t len = mote_frame_data(buf, size, &update, &progress, &done);

		assert_true(len <= size);
		take(&seen, buf, len, done);
		free(buf);
		assert_true(seen.frames < 2 * MANY);
	}
	return seen;
}

static void fill(struct source *source, unsigned int nrows, unsigned int nended, uint32_t most)
{
	*source = (struct source){ .nrows = nrows, .nended = nended, .totals = 560 };
	for (unsigned int i = 0; i < MANY; i++) {
		source->row_size[i] = (uint32_t)rand() % most;
		source->ended_size[i] = (uint32_t)rand() % (most / 4 + 1);
	}
}

/* Every size of the last row, so that an ended key just fits behind it, or just does not. */
static void test_every_boundary(void **state)
{
	for (uint32_t last = 0; last < 1500; last++) {
		struct source source = { .nrows = 5, .nended = 9, .totals = 560 };
		struct seen seen;

		for (int i = 0; i < 9; i++)
			source.row_size[i] = 500;
		for (int i = 0; i < 9; i++)
			source.ended_size[i] = 30;
		source.row_size[4] = last;
		seen = encode(&source, 4096, 0);
		assert_int_equal(seen.rows, 5);
		assert_int_equal(seen.ended, 9);
		assert_int_equal(seen.skipped, 0);
		assert_true(seen.frames <= 2);
	}
}

static void test_random(void **state)
{
	struct source source;

	srand(1);
	for (int i = 0; i < 3000; i++) {
		unsigned int nrows = (unsigned int)rand() % MANY,
			     nended = (unsigned int)rand() % MANY;
		struct seen seen;

		fill(&source, nrows, nended, 1 + (uint32_t)rand() % 3000);
		seen = encode(&source, 4096 + (uint32_t)rand() % 5000, 0);
		assert_int_equal(seen.rows, nrows);
		assert_int_equal(seen.ended, nended);
		assert_int_equal(seen.skipped, 0);
		assert_int_equal(seen.keys, 0);
	}
}

/* A keyframe has no ended keys, and KEY on its first frame only. */
static void test_keyframe(void **state)
{
	struct source source;
	struct seen seen;

	fill(&source, MANY, 50, 500);
	seen = encode(&source, 4096, MOTE_FRAME_KEY);
	assert_int_equal(seen.rows, MANY);
	assert_int_equal(seen.ended, 0);
	assert_int_equal(seen.keys, 1);
	assert_true(seen.frames > 3);
	fill(&source, 0, 0, 10);
	seen = encode(&source, 4096, MOTE_FRAME_KEY);
	assert_int_equal(seen.frames, 1);
	assert_int_equal(seen.keys, 1);
}

/* A row that fits no frame is left out, and only that one. */
static void test_too_large_row(void **state)
{
	struct source source;
	struct seen seen;

	fill(&source, 20, 20, 100);
	source.row_size[0] = source.row_size[7] = source.row_size[18] = 5000;
	source.ended_size[3] = 6000;
	seen = encode(&source, 4096, 0);
	assert_int_equal(seen.rows, 20);
	assert_int_equal(seen.ended, 20);
	assert_int_equal(seen.skipped, 4);
	assert_true(seen.totals);
}

/* Rows moved between two frames: the keyframe begins again, and says so. */
static void test_epoch(void **state)
{
	struct source ctx;
	struct mote_source source = { &ops, &ctx };
	struct mote_update update = update_of(&source, MOTE_FRAME_KEY);
	struct mote_progress progress = { 0 };
	struct seen seen = { 0 };
	char buf[4096];
	bool done;
	uint32_t len;

	fill(&ctx, MANY, 0, 500);
	len = mote_frame_data(buf, sizeof(buf), &update, &progress, &done);
	take(&seen, buf, len, done);
	assert_false(done);
	ctx.epoch++;
	seen.rows = 0;
	while (!done) {
		len = mote_frame_data(buf, sizeof(buf), &update, &progress, &done);
		take(&seen, buf, len, done);
	}
	assert_int_equal(seen.rows, MANY);
	assert_int_equal(seen.keys, 2);
}

static msgpack_object_type packed_type(const char *text, size_t len)
{
	char buf[256];
	struct mote_writer writer;
	msgpack_packer pk;
	msgpack_unpacked out;
	msgpack_object_type type;

	mote_writer_init(&writer, &pk, buf, sizeof(buf));
	mote_pack_text(&pk, text, len);
	assert_false(writer.full);
	msgpack_unpacked_init(&out);
	assert_int_equal(msgpack_unpack_next(&out, buf, writer.len, NULL), MSGPACK_UNPACK_SUCCESS);
	type = out.data.type;
	if (type == MSGPACK_OBJECT_STR) {
		assert_int_equal(out.data.via.str.size, len);
		assert_memory_equal(out.data.via.str.ptr, text, len);
	} else {
		assert_int_equal(out.data.via.bin.size, len);
		assert_memory_equal(out.data.via.bin.ptr, text, len);
	}
	msgpack_unpacked_destroy(&out);
	return type;
}

/* RFC 3629: overlong forms, surrogates and what is beyond U+10FFFF are not UTF-8. */
static void test_text(void **state)
{
	static const char *const good[] = { "",
					    "a",
					    "\x7f",
					    "\xc2\x80",
					    "\xdf\xbf",
					    "\xe0\xa0\x80",
					    "\xed\x9f\xbf",
					    "\xee\x80\x80",
					    "\xf0\x90\x80\x80",
					    "\xf4\x8f\xbf\xbf",
					    "a\xc3\xa4z" };
	static const char *const bad[] = { "\x80",
					   "\xc0\x80",
					   "\xc1\xbf",
					   "\xc2",
					   "\xc2x",
					   "\xe0\x9f\xbf",
					   "\xed\xa0\x80",
					   "\xe2\x82",
					   "\xf0\x8f\xbf\xbf",
					   "\xf4\x90\x80\x80",
					   "\xf5\x80\x80\x80",
					   "\xff",
					   "ab\xc3" };

	for (unsigned int i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(packed_type(good[i], strlen(good[i])), MSGPACK_OBJECT_STR);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(packed_type(bad[i], strlen(bad[i])), MSGPACK_OBJECT_BIN);
	assert_int_equal(packed_type("a\0b", 3), MSGPACK_OBJECT_STR);
}

static void check_list(const char *text, size_t len, unsigned int n, const char *const *items)
{
	char buf[256], *copy = malloc(len + !len);
	struct mote_writer writer;
	msgpack_packer pk;
	msgpack_unpacked out;
	size_t at = 0;

	memcpy(copy, text, len); /* of exactly this size: ASan sees a byte too many */
	mote_writer_init(&writer, &pk, buf, sizeof(buf));
	mote_pack_list(&pk, copy, len);
	msgpack_unpacked_init(&out);
	assert_int_equal(msgpack_unpack_next(&out, buf, writer.len, &at), MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(at, writer.len);
	assert_int_equal(out.data.via.array.size, n);
	for (unsigned int i = 0; i < n; i++) {
		const msgpack_object *item = &out.data.via.array.ptr[i];

		assert_int_equal(item->via.str.size, strlen(items[i]));
		assert_memory_equal(item->via.str.ptr, items[i], strlen(items[i]));
	}
	msgpack_unpacked_destroy(&out);
	free(copy);
}

static void test_list(void **state)
{
	check_list("", 0, 0, NULL);
	check_list("ab", 2, 1, (const char *[]){ "ab" });
	check_list("ab\0", 3, 1, (const char *[]){ "ab" });
	check_list("ab\0c", 4, 2, (const char *[]){ "ab", "c" });
	check_list("\0\0", 2, 2, (const char *[]){ "", "" });
	check_list("a\0\0b\0", 5, 3, (const char *[]){ "a", "", "b" });
}

/* Text that does not fit leaves the writer full, and nothing beyond its end. */
static void test_writer_full(void **state)
{
	for (uint32_t size = 0; size < 40; size++) {
		char *buf = malloc(size + !size);
		struct mote_writer writer;
		msgpack_packer pk;

		mote_writer_init(&writer, &pk, buf, size);
		for (int i = 0; i < 5; i++)
			mote_pack_text(&pk, "0123456789", 10);
		assert_int_equal(writer.full, size < 55);
		assert_true(writer.len <= size);
		free(buf);
	}
}

static void test_reply_and_dropped(void **state)
{
	char buf[1024], text[2000];
	uint32_t len = mote_frame_reply(buf, sizeof(buf), 22, "no", 5);
	struct mote_frame_header header;

	memcpy(&header, buf, sizeof(header));
	assert_int_equal(header.type, MOTE_FRAME_REPLY);
	assert_int_equal(header.length, len - sizeof(header));
	assert_memory_equal(buf + sizeof(header), "\x92\x16\xa2no", 5);
	len = mote_frame_dropped(buf, sizeof(buf), UINT64_MAX, 1, 5);
	assert_memory_equal(buf + sizeof(header), "\x92\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x01",
			    11);
	assert_int_equal(len, sizeof(header) + 11);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	assert_true(mote_frame_reply(buf, sizeof(buf), 22, text, 5) <= sizeof(buf));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_boundary),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_keyframe),
		cmocka_unit_test(test_too_large_row),
		cmocka_unit_test(test_epoch),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_writer_full),
		cmocka_unit_test(test_reply_and_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
