// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The hello frame of docs/PROTOCOL.md. The host's facts are read here, once.
 */
#include "hello.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"
#include "parse.h"

void mote_hello_absent(struct mote_hello *hello, int stream, int field, const char *why)
{
	if (hello->nabsent < MOTE_ABSENT_MAX)
		hello->absent[hello->nabsent++] = (struct mote_absent){ stream, field, why };
}

static void pack_string(msgpack_packer *pk, const char *text)
{
	mote_pack_text(pk, text, strlen(text));
}

static void pack_pair(msgpack_packer *pk, const char *key, const char *value)
{
	pack_string(pk, key);
	pack_string(pk, value);
}

static void pack_number(msgpack_packer *pk, const char *key, int64_t value)
{
	pack_string(pk, key);
	msgpack_pack_int64(pk, value);
}

/* The first line of a small file, "" if it cannot be read. */
static const char *first_line(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return buf;
}

static void pack_host(msgpack_packer *pk)
{
	struct utsname name;
	char buf[64];

	uname(&name);
	pack_string(pk, "host");
	msgpack_pack_map(pk, 8);
	pack_pair(pk, "hostname", name.nodename);
	pack_pair(pk, "kernel", name.release);
	pack_pair(pk, "machine", name.machine);
	pack_pair(pk, "boot_id", first_line("/proc/sys/kernel/random/boot_id", buf, sizeof(buf)));
	pack_number(pk, "cpus", sysconf(_SC_NPROCESSORS_CONF));
	pack_number(pk, "page_size", sysconf(_SC_PAGESIZE));
	pack_number(pk, "user_hz", MOTE_USER_HZ);
	pack_number(pk, "pid_max", atoll(first_line("/proc/sys/kernel/pid_max", buf, sizeof(buf))));
}

static int64_t realtime_offset(void)
{
	struct timespec real, mono;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	return (real.tv_sec - mono.tv_sec) * 1000000000ll + real.tv_nsec - mono.tv_nsec;
}

static void pack_streams(msgpack_packer *pk, const struct mote_options *options)
{
	pack_string(pk, "streams");
	msgpack_pack_array(pk, MOTE_STREAMS);
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		const struct mote_stream *stream = &mote_streams[i];

		msgpack_pack_array(pk, 5);
		msgpack_pack_uint32(pk, i);
		pack_string(pk, stream->name);
		pack_string(pk, stream->help);
		msgpack_pack_uint32(pk, mote_options_interval(options, (enum mote_stream_id)i));
		msgpack_pack_array(pk, stream->nfields);
		for (unsigned int f = 0; f < stream->nfields; f++) {
			const struct mote_field *field = &stream->fields[f];

			msgpack_pack_array(pk, 5);
			pack_string(pk, field->name);
			pack_string(pk, mote_type_name(field->type));
			pack_string(pk, mote_kind_name(field->kind));
			pack_string(pk, field->unit);
			pack_string(pk, field->help);
		}
	}
}

static void pack_tiers(msgpack_packer *pk, const struct mote_tiers *tiers)
{
	pack_string(pk, "tiers");
	msgpack_pack_array(pk, tiers->n);
	for (unsigned int i = 0; i < tiers->n; i++) {
		msgpack_pack_array(pk, 3);
		pack_string(pk, tiers->tier[i].name);
		pack_string(pk, tiers->tier[i].choice);
		pack_string(pk, tiers->tier[i].reason);
	}
}

static void pack_absent(msgpack_packer *pk, const struct mote_hello *hello)
{
	pack_string(pk, "absent");
	msgpack_pack_array(pk, hello->nabsent);
	for (unsigned int i = 0; i < hello->nabsent; i++) {
		const struct mote_absent *absent = &hello->absent[i];
		const struct mote_stream *stream = &mote_streams[absent->stream];

		msgpack_pack_array(pk, 3);
		pack_string(pk, stream->name);
		pack_string(pk, absent->field < 0 ? "*" : stream->fields[absent->field].name);
		pack_string(pk, absent->why);
	}
}

static void count_table(void *ctx, const char *name, const char *unit, const struct mote_fill *fill)
{
	++*(unsigned int *)ctx;
}

static void pack_table(void *ctx, const char *name, const char *unit, const struct mote_fill *fill)
{
	msgpack_packer *pk = ctx;

	msgpack_pack_array(pk, 3);
	pack_string(pk, name);
	pack_string(pk, unit);
	msgpack_pack_uint64(pk, fill->size);
}

static void pack_tables(msgpack_packer *pk, const struct mote_self_sources *from)
{
	unsigned int n = 0;

	mote_self_tables(from, count_table, &n);
	pack_string(pk, "tables");
	msgpack_pack_array(pk, n);
	mote_self_tables(from, pack_table, pk);
}

int mote_hello_encode(const struct mote_hello *hello, char **frame, uint32_t *len)
{
	const char zero[sizeof(struct mote_frame_header)] = { 0 };
	bool minimal = hello->options->mote_mode == MOTE_MODE_MINIMAL;
	msgpack_sbuffer buf;
	msgpack_packer pk;

	msgpack_sbuffer_init(&buf);
	if (msgpack_sbuffer_write(&buf, zero, sizeof(zero)))
		return -ENOMEM;
	msgpack_packer_init(&pk, &buf, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 10);
	pack_pair(&pk, "mote", MOTE_VERSION);
	pack_number(&pk, "protocol", MOTE_PROTOCOL_VERSION);
	pack_host(&pk);
	pack_number(&pk, "realtime_offset", realtime_offset());
	pack_pair(&pk, "mode", minimal ? "minimal" : "standard");
	pack_pair(&pk, "engine", hello->engine);
	pack_streams(&pk, hello->options);
	pack_tiers(&pk, hello->tiers);
	pack_absent(&pk, hello);
	pack_tables(&pk, hello->from);
	*len = (uint32_t)buf.size;
	*frame = realloc(buf.data, buf.size);
	if (!*frame)
		return -ENOMEM;
	mote_frame_header(*frame, *len, MOTE_FRAME_HELLO, 0, 0, 0, 0);
	return 0;
}
