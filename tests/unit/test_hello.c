// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The hello frame, decoded with msgpack: the whole schema is in it, and what is absent and why.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frame.h"
#include "hello.h"

struct fixture {
	struct mote_options options;
	struct mote_tiers tiers;
	struct mote_hello hello;
	struct mote_source sources[MOTE_STREAMS];
	struct mote_self_sources from;
	char *frame;
	uint32_t len;
	msgpack_unpacked out;
};

static void encode(struct fixture *f)
{
	struct mote_frame_header header;
	size_t at = 0;

	f->hello.options = &f->options;
	f->hello.engine = "sync";
	f->hello.tiers = &f->tiers;
	f->hello.from = &f->from;
	assert_int_equal(mote_hello_encode(&f->hello, &f->frame, &f->len), 0);
	memcpy(&header, f->frame, sizeof(header));
	assert_int_equal(header.magic, MOTE_MAGIC);
	assert_int_equal(header.version, MOTE_PROTOCOL_VERSION);
	assert_int_equal(header.type, MOTE_FRAME_HELLO);
	assert_int_equal(header.length, f->len - sizeof(header));
	msgpack_unpacked_init(&f->out);
	assert_int_equal(msgpack_unpack_next(&f->out, f->frame + sizeof(header), header.length,
					     &at),
			 MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(at, header.length);
	assert_int_equal(f->out.data.type, MSGPACK_OBJECT_MAP);
}

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	mote_options_default(&f.options);
	f.from.server = mote_server_new(&f.options, NULL, -1, f.sources);
	assert_non_null(f.from.server);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	msgpack_unpacked_destroy(&f->out);
	free(f->frame);
	mote_server_free((struct mote_server *)f->from.server);
	return 0;
}

static void same_text(const msgpack_object *object, const char *text)
{
	assert_int_equal(object->type, MSGPACK_OBJECT_STR);
	assert_int_equal(object->via.str.size, strlen(text));
	assert_memory_equal(object->via.str.ptr, text, strlen(text));
}

/* The value of a key, which must be there exactly once. */
static const msgpack_object *get(const msgpack_object *map, const char *key)
{
	const msgpack_object *found = NULL;

	assert_int_equal(map->type, MSGPACK_OBJECT_MAP);
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object *k = &map->via.map.ptr[i].key;

		if (k->via.str.size != strlen(key) || memcmp(k->via.str.ptr, key, strlen(key)) != 0)
			continue;
		assert_null(found);
		found = &map->via.map.ptr[i].val;
	}
	assert_non_null(found);
	return found;
}

static void test_basics(void **state)
{
	static const char *const host_keys[] = { "hostname", "kernel",    "machine", "boot_id",
						 "cpus",     "page_size", "user_hz", "pid_max" };
	struct fixture *f = *state;
	const msgpack_object *host;

	encode(f);
	same_text(get(&f->out.data, "mote"), MOTE_VERSION);
	assert_int_equal(get(&f->out.data, "protocol")->via.u64, MOTE_PROTOCOL_VERSION);
	same_text(get(&f->out.data, "mode"), "standard");
	same_text(get(&f->out.data, "engine"), "sync");
	assert_true(get(&f->out.data, "realtime_offset")->via.u64 > 1500000000000000000ull);
	host = get(&f->out.data, "host");
	for (unsigned int i = 0; i < 8; i++)
		get(host, host_keys[i]);
	assert_int_equal(get(host, "user_hz")->via.u64, 100);
	assert_true(get(host, "pid_max")->via.u64 > 300);
	assert_int_equal(get(host, "boot_id")->via.str.size, 36);
}

static void test_schema(void **state)
{
	struct fixture *f = *state;
	const msgpack_object_array *streams;

	f->options.interval_disk = 7000;
	encode(f);
	streams = &get(&f->out.data, "streams")->via.array;
	assert_int_equal(streams->size, MOTE_STREAMS);
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		const msgpack_object *stream = streams->ptr[i].via.array.ptr;
		const msgpack_object_array *fields = &stream[4].via.array;

		assert_int_equal(stream[0].via.u64, i);
		same_text(&stream[1], mote_streams[i].name);
		same_text(&stream[2], mote_streams[i].help);
		assert_int_equal(stream[3].via.u64, mote_options_interval(&f->options, i));
		assert_int_equal(fields->size, mote_streams[i].nfields);
		for (unsigned int k = 0; k < fields->size; k++) {
			const struct mote_field *field = &mote_streams[i].fields[k];
			const msgpack_object *is = fields->ptr[k].via.array.ptr;

			same_text(&is[0], field->name);
			same_text(&is[1], mote_type_name(field->type));
			same_text(&is[2], mote_kind_name(field->kind));
			same_text(&is[3], field->unit);
			same_text(&is[4], field->help);
		}
	}
	assert_int_equal(streams->ptr[MOTE_STREAM_DISK].via.array.ptr[3].via.u64, 7000);
}

static void test_absent_and_tiers(void **state)
{
	struct fixture *f = *state;
	const msgpack_object_array *absent, *tiers;

	f->options.mote_mode = MOTE_MODE_MINIMAL;
	mote_tiers_add(&f->tiers, "engine", "sync", "because of %d", 5);
	mote_hello_absent(&f->hello, MOTE_STREAM_CPU, -1, "no");
	mote_hello_absent(&f->hello, MOTE_STREAM_PROCESS, PROCESS_RCHAR, "not permitted");
	encode(f);
	same_text(get(&f->out.data, "mode"), "minimal");
	absent = &get(&f->out.data, "absent")->via.array;
	assert_int_equal(absent->size, 2);
	same_text(&absent->ptr[0].via.array.ptr[0], "cpu");
	same_text(&absent->ptr[0].via.array.ptr[1], "*");
	same_text(&absent->ptr[1].via.array.ptr[1], "rchar");
	same_text(&absent->ptr[1].via.array.ptr[2], "not permitted");
	tiers = &get(&f->out.data, "tiers")->via.array;
	assert_int_equal(tiers->size, 1);
	same_text(&tiers->ptr[0].via.array.ptr[2], "because of 5");
}

/* As many as there is room for, and no write beyond. */
static void test_too_many_absent(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < MOTE_ABSENT_MAX + 50; i++)
		mote_hello_absent(&f->hello, MOTE_STREAM_PROCESS, i % PROCESS__FIELDS, "why");
	encode(f);
	assert_int_equal(get(&f->out.data, "absent")->via.array.size, MOTE_ABSENT_MAX);
}

/* The most that can be absent at once on one host fits. */
static void test_absent_room(void **state)
{
	unsigned int most = PROCESS__FIELDS + EVENT__FIELDS + MOTE_STREAMS + 1;

	assert_true(MOTE_ABSENT_MAX >= most);
}

static void test_tables(void **state)
{
	struct fixture *f = *state;
	const msgpack_object_array *tables;

	encode(f);
	tables = &get(&f->out.data, "tables")->via.array;
	assert_int_equal(tables->size, 4); /* those of the server: there are no others */
	for (uint32_t i = 0; i < tables->size; i++) {
		assert_int_equal(tables->ptr[i].via.array.size, 3);
		assert_true(tables->ptr[i].via.array.ptr[2].via.u64 > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_basics, setup, teardown),
		cmocka_unit_test_setup_teardown(test_schema, setup, teardown),
		cmocka_unit_test_setup_teardown(test_absent_and_tiers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_absent, setup, teardown),
		cmocka_unit_test(test_absent_room),
		cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
