// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The hello's body to struct mote_hello. Everything it points to is allocated in the zone given
 * and goes with it. Keys that are not known are passed over, those that are missing leave "" and
 * 0; what is there but of the wrong shape is an error, returned as text.
 */
#include <string.h>

#include "libmote_internal.h"

static const char no_memory[] = "no memory";
static const char bad_shape[] = "the hello has a value of the wrong shape";

typedef const char *(*read_fn)(const msgpack_object *object, msgpack_zone *zone, void *out);

/* Text, NUL-terminated, cut at a NUL within. */
static const char *read_text(const msgpack_object *object, msgpack_zone *zone, void *out)
{
	char *copy;

	if (object->type != MSGPACK_OBJECT_STR && object->type != MSGPACK_OBJECT_BIN)
		return bad_shape;
	copy = msgpack_zone_malloc(zone, (size_t)object->via.str.size + 1);
	if (!copy)
		return no_memory;
	memcpy(copy, object->via.str.ptr, object->via.str.size);
	copy[object->via.str.size] = '\0';
	*(const char **)out = copy;
	return NULL;
}

static const char *read_u64(const msgpack_object *object, msgpack_zone *zone, void *out)
{
	if (object->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return bad_shape;
	*(uint64_t *)out = object->via.u64;
	return NULL;
}

static const char *read_u32(const msgpack_object *object, msgpack_zone *zone, void *out)
{
	if (object->type != MSGPACK_OBJECT_POSITIVE_INTEGER || object->via.u64 > UINT32_MAX)
		return bad_shape;
	*(uint32_t *)out = (uint32_t)object->via.u64;
	return NULL;
}

static const char *read_i64(const msgpack_object *object, msgpack_zone *zone, void *out)
{
	if (object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
		*(int64_t *)out = object->via.i64;
	else if (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER && object->via.u64 <= INT64_MAX)
		*(int64_t *)out = (int64_t)object->via.u64;
	else
		return bad_shape;
	return NULL;
}

struct member {
	const char *key; /* NULL in tuples */
	read_fn read;
	size_t offset;
};

/* An array whose elements stand in the order of `members`; more may follow them. */
static const char *read_tuple(const msgpack_object *object, msgpack_zone *zone,
			      const struct member *members, size_t n, char *out)
{
	const char *wrong = NULL;

	if (object->type != MSGPACK_OBJECT_ARRAY || object->via.array.size < n)
		return bad_shape;
	for (size_t i = 0; i < n && !wrong; i++)
		wrong = members[i].read(&object->via.array.ptr[i], zone, out + members[i].offset);
	return wrong;
}

static const char *read_map(const msgpack_object *object, msgpack_zone *zone,
			    const struct member *members, size_t n, char *out)
{
	const char *wrong = NULL;

	if (object->type != MSGPACK_OBJECT_MAP)
		return bad_shape;
	for (size_t i = 0; i < object->via.map.size; i++) {
		const msgpack_object_kv *kv = &object->via.map.ptr[i];

		if (kv->key.type != MSGPACK_OBJECT_STR)
			continue;
		for (size_t m = 0; m < n && !wrong; m++) {
			if (strlen(members[m].key) == kv->key.via.str.size &&
			    memcmp(members[m].key, kv->key.via.str.ptr, kv->key.via.str.size) == 0)
				wrong = members[m].read(&kv->val, zone, out + members[m].offset);
		}
	}
	return wrong;
}

/* An array of elements of `size` bytes; *items is set, and *count. */
static const char *read_array(const msgpack_object *object, msgpack_zone *zone, read_fn read,
			      size_t size, const void **items, size_t *count)
{
	const char *wrong = NULL;
	char *array;
	size_t n;

	if (object->type != MSGPACK_OBJECT_ARRAY)
		return bad_shape;
	n = object->via.array.size;
	array = msgpack_zone_malloc(zone, n * size + 1); /* n is below the body's bytes */
	if (!array)
		return no_memory;
	memset(array, 0, n * size);
	for (size_t i = 0; i < n && !wrong; i++)
		wrong = read(&object->via.array.ptr[i], zone, array + i * size);
	if (!wrong) {
		*items = array;
		*count = n;
	}
	return wrong;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct member field_members[] = {
	{ NULL, read_text, offsetof(struct mote_field_info, name) },
	{ NULL, read_text, offsetof(struct mote_field_info, type_name) },
	{ NULL, read_text, offsetof(struct mote_field_info, kind_name) },
	{ NULL, read_text, offsetof(struct mote_field_info, unit) },
	{ NULL, read_text, offsetof(struct mote_field_info, help) },
};

static const char *const type_names[] = {
	[MOTE_VALUE_U64] = "u64", [MOTE_VALUE_I64] = "i64",   [MOTE_VALUE_F64] = "f64",
	[MOTE_VALUE_STR] = "str", [MOTE_VALUE_LIST] = "list",
};

static const char *const kind_names[] = {
	[MOTE_KIND_KEY] = "key",
	[MOTE_KIND_COUNTER] = "counter",
	[MOTE_KIND_GAUGE] = "gauge",
	[MOTE_KIND_INFO] = "info",
};

static unsigned int find_name(const char *name, const char *const *names, unsigned int n,
			      unsigned int otherwise)
{
	for (unsigned int i = 0; i < n; i++) {
		if (names[i] && strcmp(names[i], name) == 0)
			return i;
	}
	return otherwise;
}

static const char *read_field(const msgpack_object *object, msgpack_zone *zone, void *out)
{
	struct mote_field_info *field = out;
	const char *wrong;

	wrong = read_tuple(object, zone, field_members, COUNT(field_members), out);
	if (wrong)
		return wrong;
	field->type = find_name(field->type_name, type_names, COUNT(type_names), MOTE_VALUE_OTHER);
	field->kind = find_name(field->kind_name, kind_names, COUNT(kind_names), MOTE_KIND_OTHER);
	return NULL;
}

static const char *read_fields(const msgpack_object *object, msgpack_zone *zone, void *out)
{
	struct mote_stream_info *stream = out;
	const void *items;
	const char *wrong;

	wrong = read_array(object, zone, read_field, sizeof(struct mote_field_info), &items,
			   &stream->nfields);
	if (wrong)
		return wrong;
	stream->fields = items;
	for (size_t i = 0; i < stream->nfields; i++)
		stream->nkeys += stream->fields[i].kind == MOTE_KIND_KEY;
	return NULL;
}

static const struct member stream_members[] = {
	{ NULL, read_u32, offsetof(struct mote_stream_info, id) },
	{ NULL, read_text, offsetof(struct mote_stream_info, name) },
	{ NULL, read_text, offsetof(struct mote_stream_info, help) },
	{ NULL, read_u32, offsetof(struct mote_stream_info, interval_ms) },
	{ NULL, read_fields, 0 },
};

static const struct member tier_members[] = {
	{ NULL, read_text, offsetof(struct mote_tier_info, tier) },
	{ NULL, read_text, offsetof(struct mote_tier_info, choice) },
	{ NULL, read_text, offsetof(struct mote_tier_info, reason) },
};

static const struct member absent_members[] = {
	{ NULL, read_text, offsetof(struct mote_absent_info, stream) },
	{ NULL, read_text, offsetof(struct mote_absent_info, field) },
	{ NULL, read_text, offsetof(struct mote_absent_info, reason) },
};

static const struct member table_members[] = {
	{ NULL, read_text, offsetof(struct mote_table_info, name) },
	{ NULL, read_text, offsetof(struct mote_table_info, unit) },
	{ NULL, read_u64, offsetof(struct mote_table_info, size) },
};

/* read_one_<kind>() reads an element, read_all_<kind>() the hello's array of them. */
#define LIST_READER(kind, type, items_member, count_member)                                  \
	static const char *read_one_##kind(const msgpack_object *object, msgpack_zone *zone, \
					   void *out)                                        \
	{                                                                                    \
		return read_tuple(object, zone, kind##_members, COUNT(kind##_members), out); \
	}                                                                                    \
	static const char *read_all_##kind(const msgpack_object *object, msgpack_zone *zone, \
					   void *out)                                        \
	{                                                                                    \
		struct mote_hello *hello = out;                                              \
		const void *items;                                                           \
		const char *wrong;                                                           \
                                                                                             \
		wrong = read_array(object, zone, read_one_##kind, sizeof(type), &items,      \
				   &hello->count_member);                                    \
		if (!wrong)                                                                  \
			hello->items_member = items;                                         \
		return wrong;                                                                \
	}

LIST_READER(stream, struct mote_stream_info, streams, nstreams)
LIST_READER(tier, struct mote_tier_info, tiers, ntiers)
LIST_READER(absent, struct mote_absent_info, absent, nabsent)
LIST_READER(table, struct mote_table_info, tables, ntables)

static const struct member host_members[] = {
	{ "hostname", read_text, offsetof(struct mote_host_info, hostname) },
	{ "kernel", read_text, offsetof(struct mote_host_info, kernel) },
	{ "machine", read_text, offsetof(struct mote_host_info, machine) },
	{ "boot_id", read_text, offsetof(struct mote_host_info, boot_id) },
	{ "cpus", read_u64, offsetof(struct mote_host_info, cpus) },
	{ "page_size", read_u64, offsetof(struct mote_host_info, page_size) },
	{ "user_hz", read_u64, offsetof(struct mote_host_info, user_hz) },
	{ "pid_max", read_u64, offsetof(struct mote_host_info, pid_max) },
};

static const char *read_host(const msgpack_object *object, msgpack_zone *zone, void *out)
{
	return read_map(object, zone, host_members, COUNT(host_members), out);
}

static const struct member hello_members[] = {
	{ "mote", read_text, offsetof(struct mote_hello, mote) },
	{ "protocol", read_u64, offsetof(struct mote_hello, protocol) },
	{ "host", read_host, offsetof(struct mote_hello, host) },
	{ "realtime_offset", read_i64, offsetof(struct mote_hello, realtime_offset) },
	{ "mode", read_text, offsetof(struct mote_hello, mode) },
	{ "engine", read_text, offsetof(struct mote_hello, engine) },
	{ "streams", read_all_stream, 0 },
	{ "tiers", read_all_tier, 0 },
	{ "absent", read_all_absent, 0 },
	{ "tables", read_all_table, 0 },
};

const char *mote_client_hello(const msgpack_object *body, msgpack_zone *zone,
			      struct mote_hello *hello)
{
	struct mote_hello made = {
		.mote = "",
		.mode = "",
		.engine = "",
		.host = { .hostname = "", .kernel = "", .machine = "", .boot_id = "" },
	};
	const char *wrong;

	wrong = read_map(body, zone, hello_members, COUNT(hello_members), (char *)&made);
	if (!wrong)
		*hello = made;
	return wrong;
}
