// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * libmote and `mote dump --json`: the input is what a server sends. Every value of every message
 * is looked at and written as JSON, which must be lines of balanced brackets without control
 * characters. Bodies alone are decoded behind a hello, so that the fuzzer need not learn the
 * framing first. Needs clients/libmote*.c, which tests/fuzz/run links; clients/json.c and
 * clients/output.c are no part of it and are included.
 */
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libmote.h"
#include "protocol.h"
#include "json.c"
#include "output.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t hello[] = "\x81\xa7streams\x91\x95\x01\xa1s\xa0\xcd\x03\xe8\x93"
			       "\x95\xa3pid\xa3u64\xa3key\xa0\xa0"
			       "\x95\xa4nice\xa3i64\xa5gauge\xa0\xa0"
			       "\x95\xa4load\xa3"
			       "f64\xa7"
			       "counter\xa0\xa0";

static volatile uint64_t sink;

static void use_value(const struct mote_value *value, unsigned int depth)
{
	struct mote_value element;

	if (value->type == MOTE_VALUE_STR || value->type == MOTE_VALUE_BIN) {
		for (size_t i = 0; i < value->str.size; i++)
			sink += (unsigned char)value->str.bytes[i];
	} else if (value->type == MOTE_VALUE_LIST && depth < 32) {
		for (size_t i = 0; i < value->list.size; i++) {
			element = mote_element(value, i);
			use_value(&element, depth + 1);
		}
	} else if (value->type == MOTE_VALUE_U64) {
		sink += value->u64;
	}
}

static void use_record(const struct mote_record *record)
{
	const struct mote_field_info *field;
	struct mote_value value;

	for (size_t i = 0; i <= record->ncells; i++) {
		value = mote_value(record, i);
		use_value(&value, 0);
		field = mote_field(record, i);
		if (field)
			sink += strlen(field->name) + strlen(field->unit) + strlen(field->help);
	}
	value = mote_value_named(record, "load");
	use_value(&value, 0);
}

static void use_hello(const struct mote_hello *h)
{
	sink += strlen(h->mote) + strlen(h->mode) + strlen(h->engine) + strlen(h->host.hostname);
	for (size_t i = 0; i < h->ntiers; i++)
		sink += strlen(h->tiers[i].tier) + strlen(h->tiers[i].reason);
	for (size_t i = 0; i < h->nabsent; i++)
		sink += strlen(h->absent[i].stream) + strlen(h->absent[i].reason);
	for (size_t i = 0; i < h->ntables; i++)
		sink += strlen(h->tables[i].name) + h->tables[i].size;
	for (size_t i = 0; i < h->nstreams; i++) {
		sink += strlen(h->streams[i].name);
		if (h->streams[i].nkeys > h->streams[i].nfields)
			abort();
	}
}

/* What is written so far is whole lines of JSON, as far as brackets and quotes tell. */
static void check_json(const char *text, size_t size)
{
	bool quoted = false;
	int depth = 0;

	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n' ? quoted || depth : c < 0x20 || c == 0x7f)
			abort();
		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted)
			depth += (c == '{' || c == '[') - (c == '}' || c == ']');
	}
	if (quoted || depth)
		abort();
}

static void use_json(const struct mote_client *client, const struct mote_message *message)
{
	static struct mote_out out = { .fd = -1 }; /* what does not fit its buffer is thrown away */

	out.used = 0;
	out.error = 0;
	mote_json_message(&out, client, message);
	if (!out.error)
		check_json(out.buffer, out.used);
}

static void use_message(const struct mote_client *client, const struct mote_message *message)
{
	struct mote_record record;

	use_json(client, message);
	if (message->type == MOTE_MESSAGE_HELLO)
		use_hello(mote_hello(client));
	for (size_t i = 0; mote_row(message, i, &record); i++)
		use_record(&record);
	for (size_t i = 0; mote_ended(message, i, &record); i++)
		use_record(&record);
	if (mote_totals(message, &record))
		use_record(&record);
	for (size_t i = 0; i < message->text_size; i++)
		sink += (unsigned char)message->text[i];
}

/* Reads all of `fd`; what a fatal error is must stay one. */
static void read_all(int fd)
{
	struct mote_client *client;
	struct mote_message message;
	int r;

	lseek(fd, 0, SEEK_SET);
	if (mote_open_fd(fd, &client) < 0)
		abort();
	mote_set_max_body(client, 1 << 20);
	while ((r = mote_next(client, &message, 0)) == 1 || r == -EBADMSG) {
		if (r == 1)
			use_message(client, &message);
		else if (!mote_error(client)[0])
			abort();
	}
	if (r == -EAGAIN || mote_next(client, &message, 0) != r)
		abort(); /* a file never waits */
	mote_close(client);
}

static void write_frame(int fd, unsigned int type, const uint8_t *body, size_t size)
{
	struct mote_frame_header header = {
		.magic = htole32(MOTE_MAGIC),
		.version = MOTE_PROTOCOL_VERSION,
		.type = (uint8_t)type,
		.length = htole32((uint32_t)size),
		.stream = htole32(1),
	};

	if (write(fd, &header, sizeof(header)) < 0 || write(fd, body, size) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (write(fd, data, size) < 0)
		abort();
	read_all(fd);
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	write_frame(fd, MOTE_FRAME_HELLO, hello, sizeof(hello) - 1);
	for (unsigned int type = MOTE_FRAME_HELLO; type < MOTE_FRAME_TYPES; type++)
		write_frame(fd, type, data, size);
	read_all(fd);
	return 0;
}
