// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * encode SOCKET ROWS ROUNDS: JSON against MessagePack for the same rows, those of the supervisor's
 * process stream, repeated until there are ROWS. MessagePack is the supervisor's frame encoder and
 * libmote; JSON is jansson, one object a row with the schema's names, as `mote dump --json` has
 * them. Both decoders look at every value; that their sums are equal is checked. Prints one JSON
 * object, times in ns of thread CPU for all rows, minimum and median of ROUNDS.
 *
 * The rows are kept as plain cells, so that neither side encodes from its own form. Allocations are
 * counted by functions that stand before glibc's.
 */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench_util.h"
#include "frame.h"
#include "libmote.h"

#define FRAME_SIZE 16384u /* [socket] frame */
#define ROUNDS_MAX 1000

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static unsigned long allocations;

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	allocations++;
	return __libc_realloc(old, size);
}

struct cell {
	enum mote_value_type type; /* NIL U64 I64 STR BIN, or LIST of `n` that are NUL-separated */
	uint64_t number;
	char *text;
	size_t size;
};

static struct {
	const struct mote_stream_info *stream;
	struct cell *cells; /* stream->nfields a row */
	size_t rows;
	void *hello;
	size_t hello_size;
} data;

static struct cell *row_at(size_t row)
{
	return &data.cells[row * data.stream->nfields];
}

static struct cell copy_text(enum mote_value_type type, const char *bytes, size_t size)
{
	struct cell cell = { .type = type, .text = malloc(size + 1), .size = size };

	if (!cell.text)
		bench_die("encode: out of memory");
	memcpy(cell.text, bytes, size);
	cell.text[size] = 0;
	return cell;
}

static struct cell copy_list(const struct mote_value *list)
{
	char text[4096];
	size_t size = 0;

	for (size_t i = 0; i < list->list.size; i++) {
		struct mote_value item = mote_element(list, i);

		if (size + item.str.size + 1 > sizeof(text))
			break;
		memcpy(text + size, item.str.bytes, item.str.size);
		size += item.str.size;
		text[size++] = 0;
	}
	return copy_text(MOTE_VALUE_LIST, text, size);
}

static struct cell copy_value(const struct mote_value *value)
{
	switch (value->type) {
	case MOTE_VALUE_U64:
		return (struct cell){ .type = MOTE_VALUE_U64, .number = value->u64 };
	case MOTE_VALUE_I64:
		return (struct cell){ .type = MOTE_VALUE_I64, .number = (uint64_t)value->i64 };
	case MOTE_VALUE_STR:
		return copy_text(MOTE_VALUE_STR, value->str.bytes, value->str.size);
	case MOTE_VALUE_LIST:
		return copy_list(value);
	default: /* JSON has no bytes: both sides do without */
		return (struct cell){ .type = MOTE_VALUE_NIL };
	}
}

static void take_rows(const struct mote_message *message, size_t most)
{
	struct mote_record row;

	data.stream = message->stream;
	for (size_t i = 0; data.rows < most && mote_row(message, i, &row); i++, data.rows++) {
		for (size_t f = 0; f < data.stream->nfields; f++) {
			struct mote_value value = mote_value(&row, f);

			row_at(data.rows)[f] = copy_value(&value);
		}
	}
}

/* The rows of one keyframe, repeated until there are `most`. */
static void load(struct mote_client *client, size_t most)
{
	struct mote_message message = { 0 };
	bool done = false;
	size_t loaded;

	data.cells = calloc(most * 64, sizeof(*data.cells));
	if (!data.cells || mote_request(client, "poll process"))
		bench_die("encode: cannot ask for processes");
	while (!done) {
		if (mote_next(client, &message, 10000) != 1)
			bench_die("encode: no rows: %s", mote_error(client));
		if (message.type == MOTE_MESSAGE_HELLO) {
			data.hello_size = message.raw_size;
			data.hello = malloc(message.raw_size);
			if (!data.hello)
				bench_die("encode: out of memory");
			memcpy(data.hello, message.raw, message.raw_size);
		} else if (message.type == MOTE_MESSAGE_DATA) {
			take_rows(&message, most);
			done = !message.more;
		}
	}
	loaded = data.rows;
	while (loaded && data.rows < most) {
		memcpy(row_at(data.rows), row_at(data.rows % loaded),
		       data.stream->nfields * sizeof(struct cell));
		data.rows++;
	}
}

/* MessagePack: the supervisor's frames. */

static void pack_cell(msgpack_packer *pk, const struct cell *cell)
{
	if (cell->type == MOTE_VALUE_U64)
		msgpack_pack_uint64(pk, cell->number);
	else if (cell->type == MOTE_VALUE_I64)
		msgpack_pack_int64(pk, (int64_t)cell->number);
	else if (cell->type == MOTE_VALUE_STR)
		mote_pack_text(pk, cell->text, cell->size);
	else if (cell->type == MOTE_VALUE_LIST)
		mote_pack_list(pk, cell->text, cell->size);
	else
		msgpack_pack_nil(pk);
}

static bool source_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	if (*cursor >= data.rows)
		return false;
	msgpack_pack_array(pk, data.stream->nfields);
	for (size_t f = 0; f < data.stream->nfields; f++)
		pack_cell(pk, &row_at(*cursor)[f]);
	++*cursor;
	return true;
}

static bool source_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	return false;
}

static void source_totals(void *ctx, msgpack_packer *pk)
{
	msgpack_pack_nil(pk);
}

static size_t encode_msgpack(char *buf, size_t size)
{
	static const struct mote_source_ops ops = { .row = source_row,
						    .ended = source_ended,
						    .totals = source_totals };
	struct mote_source source = { .ops = &ops };
	struct mote_update update = { .stream = MOTE_STREAM_PROCESS,
				      .source = &source,
				      .time = 1,
				      .sequence = 1,
				      .interval_ms = 1000,
				      .flags = MOTE_FRAME_KEY };
	struct mote_progress progress = { 0 };
	bool done = false;
	size_t len = 0;

	while (!done) {
		if (size - len < FRAME_SIZE)
			bench_die("encode: the buffer is too small");
		len += mote_frame_data(buf + len, FRAME_SIZE, &update, &progress, &done);
	}
	return len;
}

static uint64_t look_at(const struct mote_value *value)
{
	uint64_t sum = 0;

	if (value->type == MOTE_VALUE_U64)
		return value->u64;
	if (value->type == MOTE_VALUE_I64)
		return (uint64_t)value->i64;
	if (value->type == MOTE_VALUE_STR)
		return value->str.size;
	if (value->type != MOTE_VALUE_LIST)
		return 0;
	for (size_t i = 0; i < value->list.size; i++)
		sum += mote_element(value, i).str.size;
	return sum;
}

/* From a file in memory, the hello first, as a recording is. */
static uint64_t decode_msgpack(int fd)
{
	struct mote_client *client;
	struct mote_message message;
	struct mote_record row;
	uint64_t sum = 0;

	if (lseek(fd, 0, SEEK_SET) || mote_open_fd(dup(fd), &client))
		bench_die("encode: cannot read the frames again");
	while (mote_next(client, &message, -1) > 0) {
		for (size_t i = 0; mote_row(&message, i, &row); i++) {
			for (size_t f = 0; f < data.stream->nfields; f++) {
				struct mote_value value = mote_value(&row, f);

				sum += look_at(&value);
			}
		}
	}
	mote_close(client);
	return sum;
}

/* JSON: jansson. */

static json_t *json_of_list(const struct cell *cell)
{
	json_t *list = json_array();

	for (size_t at = 0; at < cell->size; at += strlen(cell->text + at) + 1)
		json_array_append_new(list, json_string(cell->text + at));
	return list;
}

static json_t *json_of(const struct cell *cell)
{
	if (cell->type == MOTE_VALUE_U64 || cell->type == MOTE_VALUE_I64)
		return json_integer((json_int_t)cell->number);
	if (cell->type == MOTE_VALUE_STR)
		return json_stringn(cell->text, cell->size);
	if (cell->type == MOTE_VALUE_LIST)
		return json_of_list(cell);
	return json_null();
}

/* One object a line; each row's object lives as long as it is printed. */
static size_t encode_json(char *buf, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < data.rows; i++) {
		json_t *row = json_object();
		size_t n;

		for (size_t f = 0; f < data.stream->nfields; f++)
			json_object_set_new_nocheck(row, data.stream->fields[f].name,
						    json_of(&row_at(i)[f]));
		n = json_dumpb(row, buf + len, size - len, JSON_COMPACT);
		json_decref(row);
		if (!n || n >= size - len)
			bench_die("encode: the buffer is too small");
		len += n;
		buf[len++] = '\n';
	}
	return len;
}

static uint64_t look_at_json(const json_t *value)
{
	uint64_t sum = 0;

	if (json_is_integer(value))
		return (uint64_t)json_integer_value(value);
	if (json_is_string(value))
		return json_string_length(value);
	for (size_t i = 0; i < json_array_size(value); i++)
		sum += json_string_length(json_array_get(value, i));
	return sum;
}

static uint64_t decode_json(const char *buf, size_t size)
{
	const char *end = buf + size;
	uint64_t sum = 0;

	while (buf < end) {
		const char *newline = memchr(buf, '\n', (size_t)(end - buf));
		json_t *row = json_loadb(buf, (size_t)(newline - buf), 0, NULL);

		if (!row)
			bench_die("encode: jansson does not read what it wrote");
		for (size_t f = 0; f < data.stream->nfields; f++)
			sum += look_at_json(json_object_get(row, data.stream->fields[f].name));
		json_decref(row);
		buf = newline + 1;
	}
	return sum;
}

/* What is measured. */

struct figure {
	int64_t ns[ROUNDS_MAX];
	unsigned long allocations;
};

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void print_figure(const char *name, struct figure *figure, int rounds)
{
	qsort(figure->ns, (size_t)rounds, sizeof(figure->ns[0]), compare);
	printf(",\"%s\":{\"min_ns\":%lld,\"median_ns\":%lld,\"allocations\":%lu}", name,
	       (long long)figure->ns[0], (long long)figure->ns[rounds / 2], figure->allocations);
}

#define MEASURE(figure, round, call)                                               \
	do {                                                                       \
		int64_t began = bench_clock(CLOCK_THREAD_CPUTIME_ID);              \
		unsigned long before = allocations;                                \
		call;                                                              \
		(figure).ns[round] = bench_clock(CLOCK_THREAD_CPUTIME_ID) - began; \
		(figure).allocations = allocations - before;                       \
	} while (0)

static int frames_file(const char *frames, size_t size)
{
	int fd = memfd_create("frames", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data.hello, data.hello_size) != (ssize_t)data.hello_size ||
	    write(fd, frames, size) != (ssize_t)size)
		bench_die("encode: cannot keep the frames: %s", strerror(errno));
	return fd;
}

static void measure(int rounds)
{
	static struct figure pack, unpack, dump, parse;
	size_t size = data.rows * 4096 + FRAME_SIZE, packed = 0, dumped = 0;
	char *frames = malloc(size), *text = malloc(size);
	uint64_t sum = 0, json_sum = 0;
	int fd;

	packed = encode_msgpack(frames, size); /* once unmeasured: memory is touched */
	dumped = encode_json(text, size);
	fd = frames_file(frames, packed);
	for (int i = 0; i < rounds; i++) {
		MEASURE(pack, i, packed = encode_msgpack(frames, size));
		MEASURE(dump, i, dumped = encode_json(text, size));
		MEASURE(unpack, i, sum = decode_msgpack(fd));
		MEASURE(parse, i, json_sum = decode_json(text, dumped));
	}
	if (sum != json_sum)
		bench_die("encode: the decoders do not see the same rows");
	printf("{\"rows\":%zu,\"fields\":%zu,\"msgpack_bytes\":%zu,\"json_bytes\":%zu", data.rows,
	       data.stream->nfields, packed, dumped);
	print_figure("msgpack_encode", &pack, rounds);
	print_figure("json_encode", &dump, rounds);
	print_figure("msgpack_decode", &unpack, rounds);
	print_figure("json_decode", &parse, rounds);
	printf("}\n");
	close(fd);
	free(frames);
	free(text);
}

int main(int argc, char **argv)
{
	struct mote_client *client;
	int rc, rounds = argc == 4 ? atoi(argv[3]) : 0;

	if (rounds < 1 || rounds > ROUNDS_MAX || atoi(argv[2]) < 1)
		bench_die("usage: encode SOCKET ROWS ROUNDS");
	rc = mote_open(argv[1], &client);
	if (rc)
		bench_die("encode: %s: %s", argv[1], strerror(-rc));
	load(client, (size_t)atoi(argv[2]));
	measure(rounds);
	mote_close(client);
	return 0;
}
