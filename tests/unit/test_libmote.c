// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * libmote against bytes made by hand, through a socket pair: whole, in pieces, cut, wrong. What a
 * server sends is built with msgpack-c's packer here, never with mote's own encoder.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <msgpack.h>

#include "libmote.h"
#include "protocol.h"

#define HEADER sizeof(struct mote_frame_header)

struct fixture {
	struct mote_client *client;
	int server;
	msgpack_sbuffer body;
	msgpack_packer pk;
	msgpack_sbuffer stream; /* frames to send */
};

static int setup(void **state)
{
	static struct fixture fixture;
	struct fixture *f = &fixture;
	int size = 1 << 20;
	int fds[2];

	memset(f, 0, sizeof(*f));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		return -1;
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (mote_open_fd(fds[1], &f->client) < 0)
		return -1;
	f->server = fds[0];
	msgpack_sbuffer_init(&f->body);
	msgpack_sbuffer_init(&f->stream);
	msgpack_packer_init(&f->pk, &f->body, msgpack_sbuffer_write);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	mote_close(f->client);
	close(f->server);
	msgpack_sbuffer_destroy(&f->body);
	msgpack_sbuffer_destroy(&f->stream);
	return 0;
}

static void send_bytes(struct fixture *f, const void *bytes, size_t size)
{
	assert_int_equal(send(f->server, bytes, size, MSG_DONTWAIT), (ssize_t)size);
}

static void send_stream(struct fixture *f)
{
	send_bytes(f, f->stream.data, f->stream.size);
	msgpack_sbuffer_clear(&f->stream);
}

static struct mote_frame_header header_of(const struct fixture *f, unsigned int type)
{
	return (struct mote_frame_header){
		.magic = htole32(MOTE_MAGIC),
		.version = MOTE_PROTOCOL_VERSION,
		.type = (uint8_t)type,
		.length = htole32((uint32_t)f->body.size),
	};
}

/* The packed body becomes a frame of f->stream. */
static void add_frame(struct fixture *f, struct mote_frame_header header)
{
	msgpack_sbuffer_write(&f->stream, (const char *)&header, sizeof(header));
	if (f->body.size)
		msgpack_sbuffer_write(&f->stream, f->body.data, f->body.size);
	msgpack_sbuffer_clear(&f->body);
}

static void pack_text(struct fixture *f, const char *text)
{
	msgpack_pack_str_with_body(&f->pk, text, strlen(text));
}

static void pack_field(struct fixture *f, const char *name, const char *type, const char *kind)
{
	msgpack_pack_array(&f->pk, 5);
	pack_text(f, name);
	pack_text(f, type);
	pack_text(f, kind);
	pack_text(f, "By");
	pack_text(f, "help");
}

/* Stream 9 "thing": name str key, bytes u64 counter, nice i64, load f64, argv list. */
static void add_hello(struct fixture *f)
{
	msgpack_pack_map(&f->pk, 4);
	pack_text(f, "mote");
	pack_text(f, "1.2.3");
	pack_text(f, "later");
	msgpack_pack_map(&f->pk, 1);
	msgpack_pack_int(&f->pk, 1);
	msgpack_pack_nil(&f->pk);
	pack_text(f, "streams");
	msgpack_pack_array(&f->pk, 1);
	msgpack_pack_array(&f->pk, 5);
	msgpack_pack_int(&f->pk, 9);
	pack_text(f, "thing");
	pack_text(f, "things");
	msgpack_pack_int(&f->pk, 1000);
	msgpack_pack_array(&f->pk, 5);
	pack_field(f, "name", "str", "key");
	pack_field(f, "bytes", "u64", "counter");
	pack_field(f, "nice", "i64", "gauge");
	pack_field(f, "load", "f64", "gauge");
	pack_field(f, "argv", "list", "info");
	pack_text(f, "host");
	msgpack_pack_map(&f->pk, 2);
	pack_text(f, "hostname");
	pack_text(f, "h");
	pack_text(f, "cpus");
	msgpack_pack_int(&f->pk, 8);
	add_frame(f, header_of(f, MOTE_FRAME_HELLO));
}

static void pack_data(struct fixture *f, uint64_t bytes)
{
	msgpack_pack_array(&f->pk, 4);
	msgpack_pack_int(&f->pk, 250);
	msgpack_pack_array(&f->pk, 1);
	msgpack_pack_array(&f->pk, 5);
	msgpack_pack_bin_with_body(&f->pk, "a\xff", 2); /* not UTF-8 */
	msgpack_pack_uint64(&f->pk, bytes);
	msgpack_pack_int(&f->pk, 7);
	msgpack_pack_int(&f->pk, 2);
	msgpack_pack_array(&f->pk, 2);
	pack_text(f, "x");
	pack_text(f, "");
	msgpack_pack_array(&f->pk, 1);
	msgpack_pack_array(&f->pk, 1);
	pack_text(f, "gone");
	msgpack_pack_array(&f->pk, 2);
	msgpack_pack_nil(&f->pk);
	msgpack_pack_int(&f->pk, 44);
}

static void add_data(struct fixture *f, uint64_t sequence, unsigned int flags)
{
	struct mote_frame_header header;

	pack_data(f, UINT64_MAX);
	header = header_of(f, MOTE_FRAME_DATA);
	header.stream = htole32(9);
	header.sequence = htole64(sequence);
	header.time = htole64(5000 + sequence);
	header.flags = htole16((uint16_t)flags);
	add_frame(f, header);
}

static void add_reply(struct fixture *f, int code, const char *text)
{
	msgpack_pack_array(&f->pk, 2);
	msgpack_pack_int(&f->pk, code);
	pack_text(f, text);
	add_frame(f, header_of(f, MOTE_FRAME_REPLY));
}

static void add_dropped(struct fixture *f)
{
	msgpack_pack_array(&f->pk, 3); /* one more than is known */
	msgpack_pack_int(&f->pk, 3);
	msgpack_pack_int(&f->pk, 4096);
	msgpack_pack_int(&f->pk, 1);
	add_frame(f, header_of(f, MOTE_FRAME_DROPPED));
}

static void add_unknown(struct fixture *f)
{
	pack_text(f, "of a later version");
	add_frame(f, header_of(f, 77));
}

/* Hello, data, a type that is not known, dropped, reply: four messages. */
static void add_one_of_each(struct fixture *f)
{
	add_hello(f);
	add_data(f, 1, MOTE_FRAME_KEY | MOTE_FRAME_MORE);
	add_unknown(f);
	add_dropped(f);
	add_reply(f, 22, "not understood");
}

static void check_row(const struct mote_message *m)
{
	struct mote_record row;
	struct mote_value v;

	assert_true(mote_row(m, 0, &row));
	v = mote_value(&row, 0);
	assert_int_equal(v.type, MOTE_VALUE_BIN);
	assert_int_equal(v.str.size, 2);
	assert_memory_equal(v.str.bytes, "a\xff", 2);
	assert_true(v.str.bytes > (const char *)m->raw &&
		    v.str.bytes < (const char *)m->raw + m->raw_size); /* not copied */
	v = mote_value(&row, 1);
	assert_int_equal(v.type, MOTE_VALUE_U64);
	assert_true(v.u64 == UINT64_MAX);
	v = mote_value_named(&row, "nice"); /* as the schema says, not as it was packed */
	assert_int_equal(v.type, MOTE_VALUE_I64);
	assert_int_equal(v.i64, 7);
	v = mote_value_named(&row, "load");
	assert_int_equal(v.type, MOTE_VALUE_F64);
	assert_true(v.f64 == 2.0);
	v = mote_value_named(&row, "argv");
	assert_int_equal(v.type, MOTE_VALUE_LIST);
	assert_int_equal(v.list.size, 2);
	assert_memory_equal(mote_element(&v, 0).str.bytes, "x", 1);
	assert_int_equal(mote_element(&v, 1).str.size, 0);
	assert_int_equal(mote_element(&v, 2).type, MOTE_VALUE_NIL);
	assert_int_equal(mote_value_named(&row, "none").type, MOTE_VALUE_NIL);
	assert_int_equal(mote_value(&row, 5).type, MOTE_VALUE_NIL);
	assert_null(mote_field(&row, 5));
	assert_false(mote_row(m, 1, &row));
}

static void check_data(const struct mote_message *m)
{
	struct mote_record record;

	assert_int_equal(m->type, MOTE_MESSAGE_DATA);
	assert_string_equal(m->stream->name, "thing");
	assert_int_equal(m->stream_id, 9);
	assert_int_equal(m->interval_ms, 250);
	assert_int_equal(m->nrows, 1);
	check_row(m);
	assert_true(mote_ended(m, 0, &record));
	assert_string_equal(mote_field(&record, 0)->name, "name");
	assert_null(mote_field(&record, 1));
	assert_memory_equal(mote_value_named(&record, "name").str.bytes, "gone", 4);
	assert_false(mote_ended(m, 1, &record));
	assert_true(mote_totals(m, &record));
	assert_int_equal(mote_value_named(&record, "bytes").u64, 44);
	assert_int_equal(mote_value_named(&record, "name").type, MOTE_VALUE_NIL);
	assert_int_equal(mote_value_named(&record, "argv").type, MOTE_VALUE_NIL);
}

/* Message number `n` of add_one_of_each(). */
static void check_one_of_each(struct fixture *f, const struct mote_message *m, unsigned int n)
{
	const struct mote_hello *hello = mote_hello(f->client);

	assert_in_range(n, 0, 3);
	assert_non_null(hello);
	if (n == 0) {
		assert_int_equal(m->type, MOTE_MESSAGE_HELLO);
		assert_string_equal(hello->mote, "1.2.3");
		assert_string_equal(hello->host.hostname, "h");
		assert_string_equal(hello->host.kernel, "");
		assert_int_equal(hello->host.cpus, 8);
		assert_int_equal(hello->nstreams, 1);
		assert_int_equal(hello->streams[0].nkeys, 1);
		assert_int_equal(hello->streams[0].fields[1].kind, MOTE_KIND_COUNTER);
		assert_int_equal(hello->ntiers, 0);
	} else if (n == 1) {
		check_data(m);
		assert_true(m->key && m->more && !m->gap);
		assert_int_equal(m->time, 5001);
	} else if (n == 2) {
		assert_int_equal(m->type, MOTE_MESSAGE_DROPPED);
		assert_int_equal(m->dropped_frames, 3);
		assert_int_equal(m->dropped_bytes, 4096);
	} else {
		assert_int_equal(m->type, MOTE_MESSAGE_REPLY);
		assert_int_equal(m->code, 22);
		assert_int_equal(m->text_size, strlen("not understood"));
		assert_memory_equal(m->text, "not understood", m->text_size);
	}
}

/* Reads all there is; returns how many messages there are by now. */
static unsigned int drain(struct fixture *f, unsigned int n)
{
	struct mote_message m;
	int r;

	while ((r = mote_next(f->client, &m, 0)) == 1)
		check_one_of_each(f, &m, n++);
	assert_int_equal(r, -EAGAIN);
	return n;
}

static void test_whole(void **state)
{
	struct fixture *f = *state;
	struct mote_message m;

	assert_null(mote_hello(f->client));
	add_one_of_each(f);
	send_stream(f);
	assert_int_equal(drain(f, 0), 4);
	close(f->server);
	f->server = -1;
	assert_int_equal(mote_next(f->client, &m, -1), 0);
	assert_int_equal(mote_next(f->client, &m, -1), 0);
}

static void test_cut_at_every_byte(void **state)
{
	struct fixture *f = *state;
	unsigned int n;
	size_t size;

	add_one_of_each(f);
	size = f->stream.size;
	for (size_t cut = 1; cut < size; cut++) {
		send_bytes(f, f->stream.data, cut);
		n = drain(f, 0);
		assert_true(n < 4);
		send_bytes(f, f->stream.data + cut, size - cut);
		assert_int_equal(drain(f, n), 4);
	}
}

static void test_byte_by_byte(void **state)
{
	struct fixture *f = *state;
	unsigned int n = 0;

	add_one_of_each(f);
	for (size_t i = 0; i < f->stream.size; i++) {
		send_bytes(f, f->stream.data + i, 1);
		n = drain(f, n);
	}
	assert_int_equal(n, 4);
}

/* `err` comes now and ever after, with a text that contains `text`. */
static void assert_broken(struct fixture *f, int err, const char *text)
{
	struct mote_message m;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(mote_next(f->client, &m, 0), err);
		assert_non_null(strstr(mote_error(f->client), text));
		add_reply(f, 0, "ok");
		send_stream(f);
	}
}

static void test_bad_magic(void **state)
{
	struct fixture *f = *state;

	send_bytes(f, "mH", 2); /* is not waited on for a whole header */
	assert_broken(f, -EPROTO, "frame 1 at byte 0: no frame begins here");
}

static void test_bad_version(void **state)
{
	struct fixture *f = *state;
	struct mote_frame_header header = header_of(f, MOTE_FRAME_REPLY);

	header.version = 2;
	add_frame(f, header);
	send_stream(f);
	assert_broken(f, -EPROTONOSUPPORT, "protocol version 2, this is 1");
}

static void test_oversized(void **state)
{
	struct fixture *f = *state;
	struct mote_frame_header header = header_of(f, MOTE_FRAME_DATA);

	header.length = htole32(MOTE_MAX_BODY + 1);
	add_frame(f, header);
	send_stream(f);
	assert_broken(f, -EMSGSIZE, "a body of 16777217 bytes, at most 16777216");
}

static void test_oversized_by_limit(void **state)
{
	struct fixture *f = *state;
	struct mote_message m;

	mote_set_max_body(f->client, 64);
	add_reply(f, 0, "small");
	send_stream(f);
	assert_int_equal(mote_next(f->client, &m, 0), 1);
	add_reply(f, 0, "0123456789012345678901234567890123456789012345678901234567890123456789");
	send_stream(f);
	assert_broken(f, -EMSGSIZE, "at most 64 taken");
}

static void test_ends_within(void **state)
{
	struct fixture *f = *state;
	struct mote_message m;

	add_one_of_each(f);
	send_bytes(f, f->stream.data, f->stream.size - 1);
	assert_int_equal(drain(f, 0), 3);
	shutdown(f->server, SHUT_WR);
	assert_int_equal(mote_next(f->client, &m, -1), -ENODATA);
	assert_non_null(strstr(mote_error(f->client), "frame 5"));
	assert_int_equal(mote_next(f->client, &m, -1), -ENODATA);
}

/* A body cut anywhere is an error of that frame only. */
static void test_truncated_bodies(void **state)
{
	struct fixture *f = *state;
	struct mote_frame_header header;
	struct mote_message m;
	msgpack_sbuffer whole;

	pack_data(f, 1);
	whole = f->body;
	msgpack_sbuffer_init(&f->body);
	for (size_t cut = 0; cut < whole.size; cut++) {
		if (cut)
			msgpack_sbuffer_write(&f->body, whole.data, cut);
		header = header_of(f, MOTE_FRAME_DATA);
		add_frame(f, header);
		add_reply(f, 0, "next");
		send_stream(f);
		assert_int_equal(mote_next(f->client, &m, 0), -EBADMSG);
		assert_non_null(strstr(mote_error(f->client), "cut short"));
		assert_int_equal(mote_next(f->client, &m, 0), 1);
		assert_int_equal(m.type, MOTE_MESSAGE_REPLY);
		assert_string_equal(mote_error(f->client), "");
	}
	msgpack_sbuffer_destroy(&whole);
}

static void send_body(struct fixture *f, unsigned int type, const char *body, size_t size)
{
	msgpack_sbuffer_write(&f->body, body, size);
	add_frame(f, header_of(f, type));
	send_stream(f);
}

static void test_bad_bodies(void **state)
{
	static const struct {
		unsigned int type;
		const char *body;
		size_t size;
		const char *error;
	} cases[] = {
#define BODY(type, bytes, error) { MOTE_FRAME_##type, bytes, sizeof(bytes) - 1, error }
		BODY(DATA, "\xdd\xff\xff\xff\xff", "cut short"), /* 4 billion elements */
		BODY(DATA, "\xdf\xff\xff\xff\xff\xc0\xc0", "cut short"),
		BODY(DATA, "\xdb\xff\xff\xff\xff", "cut short"),
		BODY(DATA, "\xc6\xff\xff\xff\xff", "cut short"),
		BODY(DATA, "\xc9\xff\xff\xff\xff", "cut short"),
		BODY(DATA, "\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\xc0",
		     "too deep"),
		BODY(DATA, "\xc1", "does not use"),
		BODY(DATA, "\x94\x01\x90\x90\xc0\x00", "bytes behind"),
		BODY(DATA, "\xc0", "data is not"),
		BODY(DATA, "\x93\x01\x90\x90", "data is not"),
		BODY(DATA, "\x94\xff\x90\x90\xc0", "interval"),
		BODY(DATA, "\x94\x01\x91\x01\x90\xc0", "rows"),
		BODY(DATA, "\x94\x01\x80\x90\xc0", "rows"),
		BODY(DATA, "\x94\x01\x90\x91\xc0\xc0", "ended"),
		BODY(DATA, "\x94\x01\x90\x90\x01", "totals"),
		BODY(DROPPED, "\x91\x01", "dropped"),
		BODY(DROPPED, "\x92\x01\xa1x", "dropped"),
		BODY(REPLY, "\x92\xff\xa1x", "reply"),
		BODY(REPLY, "\x92\x01\x01", "reply"),
		BODY(REPLY, "\x80", "reply"),
		BODY(HELLO, "\x90", "wrong shape"),
		BODY(HELLO, "\x81\xa4mote\x01", "wrong shape"),
		BODY(HELLO, "\x81\xa7streams\x91\x95\x01\xa1x\xa1x\x01\x91\x94", "cut short"),
		BODY(HELLO, "\x81\xa7streams\x91\x94\x01\xa1x\xa1x\x01", "wrong shape"),
		BODY(HELLO, "\x81\xa5tiers\x91\x93\xa1x\xa1x\x01", "wrong shape"),
	};
	struct fixture *f = *state;
	struct mote_message m = { .type = 99 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		send_body(f, cases[i].type, cases[i].body, cases[i].size);
		assert_int_equal(mote_next(f->client, &m, 0), -EBADMSG);
		if (!strstr(mote_error(f->client), cases[i].error))
			fail_msg("case %zu: '%s' without '%s'", i, mote_error(f->client),
				 cases[i].error);
		assert_int_equal(m.type, 99); /* untouched */
	}
	assert_null(mote_hello(f->client));
	add_one_of_each(f);
	send_stream(f);
	assert_int_equal(drain(f, 0), 4);
}

/* A hello that cannot be read leaves the one before as it was. */
static void test_second_hello(void **state)
{
	struct fixture *f = *state;
	struct mote_message m;

	add_hello(f);
	send_stream(f);
	assert_int_equal(drain(f, 0), 1);
	send_body(f, MOTE_FRAME_HELLO, "\x81\xa4mote\x01", 7);
	assert_int_equal(mote_next(f->client, &m, 0), -EBADMSG);
	assert_string_equal(mote_hello(f->client)->mote, "1.2.3");
	send_body(f, MOTE_FRAME_HELLO,
		  "\x81\xa4mote\xa3"
		  "2.0",
		  10);
	assert_int_equal(mote_next(f->client, &m, 0), 1);
	assert_string_equal(mote_hello(f->client)->mote, "2.0");
	assert_int_equal(mote_hello(f->client)->nstreams, 0);
}

static void next_data(struct fixture *f, uint64_t sequence, unsigned int flags, uint64_t missed)
{
	struct mote_message m;

	add_data(f, sequence, flags);
	send_stream(f);
	assert_int_equal(mote_next(f->client, &m, 0), 1);
	assert_int_equal(m.missed, missed);
	assert_int_equal(m.gap, (flags & MOTE_FRAME_GAP) != 0);
}

static void test_missed(void **state)
{
	struct fixture *f = *state;

	next_data(f, 7, MOTE_FRAME_KEY | MOTE_FRAME_MORE, 0);
	next_data(f, 8, 0, 0); /* an update between the frames of the keyframe */
	next_data(f, 7, 0, 0);
	next_data(f, 9, MOTE_FRAME_MORE, 0);
	next_data(f, 9, MOTE_FRAME_GAP, 0);
	next_data(f, 13, 0, 3);
	next_data(f, 20, MOTE_FRAME_KEY, 6);
	assert_int_equal(mote_request(f->client, "poll thing"), 0);
	next_data(f, 22, 0, 1);
	assert_int_equal(mote_request(f->client, "subscribe thing"), 0);
	next_data(f, 40, MOTE_FRAME_KEY, 0); /* subscribed anew */
	next_data(f, 42, 0, 1);
}

static void test_streams_unknown(void **state)
{
	struct fixture *f = *state;
	struct mote_record row;
	struct mote_message m;

	add_data(f, 1, 0); /* no hello came before it */
	send_stream(f);
	assert_int_equal(mote_next(f->client, &m, 0), 1);
	assert_null(m.stream);
	assert_int_equal(m.stream_id, 9);
	assert_true(mote_row(&m, 0, &row));
	assert_int_equal(mote_value(&row, 2).type, MOTE_VALUE_U64);
	assert_null(mote_field(&row, 0));
	assert_int_equal(mote_value_named(&row, "bytes").type, MOTE_VALUE_NIL);
}

static void test_large_frames(void **state)
{
	struct fixture *f = *state;
	struct mote_message m;
	char *text = calloc(1, 100001);

	memset(text, 'x', 100000);
	add_reply(f, 0, "small");
	add_reply(f, 0, text); /* larger than the first buffer */
	add_reply(f, 0, "small");
	send_stream(f);
	assert_int_equal(mote_next(f->client, &m, 0), 1);
	assert_int_equal(mote_next(f->client, &m, 0), 1);
	assert_int_equal(m.text_size, 100000);
	assert_memory_equal(m.text, text, 100000);
	assert_int_equal(mote_next(f->client, &m, 0), 1);
	assert_int_equal(m.text_size, 5);
	free(text);
}

static void test_raw(void **state)
{
	struct fixture *f = *state;
	static const unsigned int types[] = { 1, 2, 77, 3, 4 };
	msgpack_sbuffer copy;
	struct mote_message m;

	mote_set_raw(f->client, true);
	add_one_of_each(f);
	send_bytes(f, f->stream.data, f->stream.size);
	msgpack_sbuffer_init(&copy);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(mote_next(f->client, &m, 0), 1);
		assert_int_equal(m.type, types[i]);
		assert_int_equal(m.nrows, 0);
		msgpack_sbuffer_write(&copy, m.raw, m.raw_size);
	}
	assert_int_equal(copy.size, f->stream.size);
	assert_memory_equal(copy.data, f->stream.data, copy.size);
	assert_string_equal(mote_hello(f->client)->mote, "1.2.3");
	msgpack_sbuffer_destroy(&copy);
}

static void test_request(void **state)
{
	struct fixture *f = *state;
	char line[MOTE_REQUEST_MAX + 1], got[2 * MOTE_REQUEST_MAX];

	assert_int_equal(mote_request(f->client, "subscribe cpu interval=1s"), 0);
	assert_int_equal(recv(f->server, got, sizeof(got), 0), 26);
	assert_memory_equal(got, "subscribe cpu interval=1s\n", 26);
	assert_int_equal(mote_request(f->client, "a\nb"), -EINVAL);
	memset(line, 'x', sizeof(line));
	line[MOTE_REQUEST_MAX] = '\0';
	assert_int_equal(mote_request(f->client, line), -EMSGSIZE);
	assert_non_null(strstr(mote_error(f->client), "512 bytes, at most 511"));
	line[MOTE_REQUEST_MAX - 1] = '\0';
	assert_int_equal(mote_request(f->client, line), 0);
	assert_int_equal(recv(f->server, got, sizeof(got), 0), MOTE_REQUEST_MAX);
	close(f->server);
	f->server = -1;
	assert_int_equal(mote_request(f->client, "ping"), -EPIPE); /* and no SIGPIPE */
}

static void test_pipe(void **state)
{
	struct fixture *f = *state;
	struct mote_client *client = NULL;
	struct mote_message m;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(mote_open_fd(fds[0], &client), 0);
	assert_int_equal(mote_fd(client), fds[0]);
	assert_int_equal(mote_request(client, "ping"), -ENOTSOCK);
	assert_int_equal(mote_next(client, &m, 0), -EAGAIN); /* without O_NONBLOCK */
	add_reply(f, 0, "recorded");
	assert_int_equal(write(fds[1], f->stream.data, f->stream.size), (ssize_t)f->stream.size);
	close(fds[1]);
	assert_int_equal(mote_next(client, &m, -1), 1);
	assert_int_equal(mote_next(client, &m, -1), 0);
	mote_close(client);
}

static void test_open_fails(void **state)
{
	struct mote_client *client = NULL;
	char path[200];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(mote_open("/nonexistent/mote.sock", &client), -ENOENT);
	assert_int_equal(mote_open(path, &client), -ENAMETOOLONG);
	assert_int_equal(mote_open_fd(-1, &client), -EBADF);
	assert_null(client);
	mote_close(NULL);
}

static void on_alarm(int number)
{
}

static void test_waits(void **state)
{
	struct fixture *f = *state;
	struct itimerval timer = { .it_value = { .tv_usec = 20000 } };
	struct sigaction action = { .sa_handler = on_alarm };
	struct timespec from, to;
	struct mote_message m;
	long ms;

	clock_gettime(CLOCK_MONOTONIC, &from);
	assert_int_equal(mote_next(f->client, &m, 30), -EAGAIN);
	clock_gettime(CLOCK_MONOTONIC, &to);
	ms = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
	assert_true(ms >= 29);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	assert_int_equal(mote_next(f->client, &m, -1), -EINTR);
	add_reply(f, 0, "ok");
	send_stream(f);
	assert_int_equal(mote_next(f->client, &m, -1), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole),
		TEST(test_cut_at_every_byte),
		TEST(test_byte_by_byte),
		TEST(test_bad_magic),
		TEST(test_bad_version),
		TEST(test_oversized),
		TEST(test_oversized_by_limit),
		TEST(test_ends_within),
		TEST(test_truncated_bodies),
		TEST(test_bad_bodies),
		TEST(test_second_hello),
		TEST(test_missed),
		TEST(test_streams_unknown),
		TEST(test_large_frames),
		TEST(test_raw),
		TEST(test_request),
		TEST(test_pipe),
		TEST(test_open_fails),
		TEST(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
