// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Bodies of frames: checks them before msgpack-c sees them, and gives rows and values out of what
 * it decoded. Nothing is owned here: cells are msgpack-c's objects in the client's zone, bytes of
 * text are in the client's buffer. Functions that can fail return what is wrong as text.
 */
#include <string.h>

#include "libmote_internal.h"

#define MAX_DEPTH 16

/* An object's head: how many bytes and how many objects follow the head of `head` bytes. */
struct head {
	size_t head, bytes, objects;
};

static uint64_t big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

/* For first bytes c0 to df: bytes of the length that follows it, and what else is there. */
static const struct {
	uint8_t length, fixed, per_count;
	bool is_data;
} heads[32] = {
	[0x00] = { 0, 0, 0, false }, /* nil */
	[0x02] = { 0, 0, 0, false }, /* false */
	[0x03] = { 0, 0, 0, false }, /* true */
	[0x04] = { 1, 0, 0, true },  /* bin 8, 16, 32 */
	[0x05] = { 2, 0, 0, true },  [0x06] = { 4, 0, 0, true },
	[0x07] = { 1, 1, 0, true }, /* ext 8, 16, 32 */
	[0x08] = { 2, 1, 0, true },  [0x09] = { 4, 1, 0, true },
	[0x0a] = { 0, 4, 0, false },                              /* float 32, 64 */
	[0x0b] = { 0, 8, 0, false }, [0x0c] = { 0, 1, 0, false }, /* uint 8 to 64 */
	[0x0d] = { 0, 2, 0, false }, [0x0e] = { 0, 4, 0, false },
	[0x0f] = { 0, 8, 0, false }, [0x10] = { 0, 1, 0, false }, /* int 8 to 64 */
	[0x11] = { 0, 2, 0, false }, [0x12] = { 0, 4, 0, false },
	[0x13] = { 0, 8, 0, false }, [0x14] = { 0, 2, 0, false }, /* fixext 1 to 16 */
	[0x15] = { 0, 3, 0, false }, [0x16] = { 0, 5, 0, false },
	[0x17] = { 0, 9, 0, false }, [0x18] = { 0, 17, 0, false },
	[0x19] = { 1, 0, 0, true }, /* str 8, 16, 32 */
	[0x1a] = { 2, 0, 0, true },  [0x1b] = { 4, 0, 0, true },
	[0x1c] = { 2, 0, 1, false },                              /* array 16, 32 */
	[0x1d] = { 4, 0, 1, false }, [0x1e] = { 2, 0, 2, false }, /* map 16, 32 */
	[0x1f] = { 4, 0, 2, false },
};

/* Returns NULL or what is wrong; `left` bytes, at least one, are at `p`. */
static const char *read_head(const uint8_t *p, size_t left, struct head *head)
{
	size_t length, n;

	*head = (struct head){ .head = 1 };
	if (p[0] < 0x80 || p[0] >= 0xe0)
		return NULL;
	if (p[0] < 0x90) {
		head->objects = 2 * (size_t)(p[0] & 0x0f);
	} else if (p[0] < 0xa0) {
		head->objects = p[0] & 0x0f;
	} else if (p[0] < 0xc0) {
		head->bytes = p[0] & 0x1f;
	} else if (p[0] == 0xc1) {
		return "a byte that MessagePack does not use";
	} else {
		length = heads[p[0] - 0xc0].length;
		if (length > left - 1)
			return "cut short";
		n = big_endian(p + 1, length);
		head->head += length;
		head->bytes = heads[p[0] - 0xc0].fixed;
		if (heads[p[0] - 0xc0].is_data)
			head->bytes += n;
		head->objects = n * heads[p[0] - 0xc0].per_count;
	}
	return NULL;
}

const char *mote_client_check(const uint8_t *body, size_t size, size_t *at)
{
	size_t open[MAX_DEPTH] = { 1 }; /* objects still to come, at each depth */
	const char *wrong;
	struct head head;
	size_t depth = 0;
	size_t pos = 0;

	for (;;) {
		*at = pos;
		while (open[depth] == 0) {
			if (depth-- == 0)
				return pos == size ? NULL : "bytes behind the end";
		}
		open[depth]--;
		if (pos == size)
			return "cut short";
		wrong = read_head(body + pos, size - pos, &head);
		if (wrong)
			return wrong;
		pos += head.head;
		/* Each object takes a byte at least. */
		if (head.bytes > size - pos || head.objects > size - pos)
			return "cut short";
		pos += head.bytes;
		if (head.objects == 0)
			continue;
		if (++depth == MAX_DEPTH)
			return "nested too deep";
		open[depth] = head.objects;
	}
}

static const struct mote_cells *to_cells(const msgpack_object *objects)
{
	return (const struct mote_cells *)objects;
}

static const msgpack_object *to_objects(const struct mote_cells *cells)
{
	return (const msgpack_object *)cells;
}

static bool to_u64(const msgpack_object *object, uint64_t *v)
{
	if (object->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return false;
	*v = object->via.u64;
	return true;
}

/* An array of arrays. */
static bool to_rows(const msgpack_object *object, const struct mote_cells **rows, size_t *n)
{
	if (object->type != MSGPACK_OBJECT_ARRAY)
		return false;
	for (size_t i = 0; i < object->via.array.size; i++) {
		if (object->via.array.ptr[i].type != MSGPACK_OBJECT_ARRAY)
			return false;
	}
	*rows = to_cells(object->via.array.ptr);
	*n = object->via.array.size;
	return true;
}

const char *mote_client_data(const msgpack_object *body, struct mote_message *message)
{
	const msgpack_object *part = body->via.array.ptr;
	uint64_t interval;

	/* A later version may add elements at the end. */
	if (body->type != MSGPACK_OBJECT_ARRAY || body->via.array.size < 4)
		return "data is not [interval, rows, ended, totals]";
	if (!to_u64(&part[0], &interval) || interval > UINT32_MAX)
		return "the interval is not a number of ms";
	if (!to_rows(&part[1], &message->rows, &message->nrows))
		return "rows are not an array of arrays";
	if (!to_rows(&part[2], &message->ended, &message->nended))
		return "ended keys are not an array of arrays";
	if (part[3].type != MSGPACK_OBJECT_NIL && part[3].type != MSGPACK_OBJECT_ARRAY)
		return "totals are neither nil nor an array";
	message->interval_ms = (uint32_t)interval;
	message->has_totals = part[3].type == MSGPACK_OBJECT_ARRAY;
	message->totals = to_cells(&part[3]);
	return NULL;
}

const char *mote_client_dropped(const msgpack_object *body, struct mote_message *message)
{
	if (body->type != MSGPACK_OBJECT_ARRAY || body->via.array.size < 2 ||
	    !to_u64(&body->via.array.ptr[0], &message->dropped_frames) ||
	    !to_u64(&body->via.array.ptr[1], &message->dropped_bytes))
		return "dropped is not [frames, bytes]";
	return NULL;
}

const char *mote_client_reply(const msgpack_object *body, struct mote_message *message)
{
	const msgpack_object *part = body->via.array.ptr;
	uint64_t code;

	if (body->type != MSGPACK_OBJECT_ARRAY || body->via.array.size < 2 ||
	    !to_u64(&part[0], &code) || code > 4095 ||
	    (part[1].type != MSGPACK_OBJECT_STR && part[1].type != MSGPACK_OBJECT_BIN))
		return "reply is not [code, text]";
	message->code = (int)code;
	message->text = part[1].via.str.ptr;
	message->text_size = part[1].via.str.size;
	return NULL;
}

static bool to_record(const struct mote_message *message, const msgpack_object *array, bool is_key,
		      struct mote_record *record)
{
	*record = (struct mote_record){
		.stream = message->stream,
		.cells = to_cells(array->via.array.ptr),
		.ncells = array->via.array.size,
		.is_key = is_key,
	};
	return true;
}

bool mote_row(const struct mote_message *message, size_t i, struct mote_record *row)
{
	return i < message->nrows && to_record(message, to_objects(message->rows) + i, false, row);
}

bool mote_ended(const struct mote_message *message, size_t i, struct mote_record *key)
{
	return i < message->nended && to_record(message, to_objects(message->ended) + i, true, key);
}

bool mote_totals(const struct mote_message *message, struct mote_record *totals)
{
	return message->has_totals &&
	       to_record(message, to_objects(message->totals), false, totals);
}

static struct mote_value to_value(const msgpack_object *object)
{
	struct mote_value value = { .type = MOTE_VALUE_OTHER };

	switch (object->type) {
	case MSGPACK_OBJECT_NIL:
		value.type = MOTE_VALUE_NIL;
		break;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		value.type = MOTE_VALUE_U64;
		value.u64 = object->via.u64;
		break;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		value.type = MOTE_VALUE_I64;
		value.i64 = object->via.i64;
		break;
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		value.type = MOTE_VALUE_F64;
		value.f64 = object->via.f64;
		break;
	case MSGPACK_OBJECT_STR:
	case MSGPACK_OBJECT_BIN: /* the same members */
		value.type = object->type == MSGPACK_OBJECT_STR ? MOTE_VALUE_STR : MOTE_VALUE_BIN;
		value.str.bytes = object->via.str.ptr;
		value.str.size = object->via.str.size;
		break;
	case MSGPACK_OBJECT_ARRAY:
		value.type = MOTE_VALUE_LIST;
		value.list.cells = to_cells(object->via.array.ptr);
		value.list.size = object->via.array.size;
		break;
	default:
		break;
	}
	return value;
}

/* MessagePack writes 1 of a field of type i64 or f64 as it writes 1 of a u64. */
static void convert(struct mote_value *value, enum mote_value_type type)
{
	const uint64_t exact = 1ull << 53; /* a double holds every integer up to here */

	if (value->type != MOTE_VALUE_U64)
		return;
	if (type == MOTE_VALUE_I64 && value->u64 <= INT64_MAX) {
		value->type = MOTE_VALUE_I64;
		value->i64 = (int64_t)value->u64;
	} else if (type == MOTE_VALUE_F64 && value->u64 <= exact) {
		value->type = MOTE_VALUE_F64;
		value->f64 = (double)value->u64;
	}
}

const struct mote_field_info *mote_field(const struct mote_record *record, size_t i)
{
	const struct mote_stream_info *stream = record->stream;

	if (!stream)
		return NULL;
	if (!record->is_key)
		return i < stream->nfields ? &stream->fields[i] : NULL;
	for (size_t f = 0; f < stream->nfields; f++) {
		if (stream->fields[f].kind == MOTE_KIND_KEY && i-- == 0)
			return &stream->fields[f];
	}
	return NULL;
}

struct mote_value mote_value(const struct mote_record *record, size_t i)
{
	const struct mote_field_info *field = mote_field(record, i);
	struct mote_value value = { .type = MOTE_VALUE_NIL };

	if (i < record->ncells)
		value = to_value(to_objects(record->cells) + i);
	if (field)
		convert(&value, field->type);
	return value;
}

struct mote_value mote_value_named(const struct mote_record *record, const char *name)
{
	const struct mote_field_info *field;

	for (size_t i = 0; (field = mote_field(record, i)); i++) {
		if (strcmp(field->name, name) == 0)
			return mote_value(record, i);
	}
	return (struct mote_value){ .type = MOTE_VALUE_NIL };
}

struct mote_value mote_element(const struct mote_value *list, size_t i)
{
	if (list->type != MOTE_VALUE_LIST || i >= list->list.size)
		return (struct mote_value){ .type = MOTE_VALUE_NIL };
	return to_value(to_objects(list->list.cells) + i);
}
