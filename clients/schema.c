// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* `mote schema`: the streams and fields of the supervisor that answers, from its hello. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "json.h"

/* Why a field is nil here, or NULL. */
static const char *absent(const struct mote_hello *hello, const char *stream, const char *field)
{
	const struct mote_absent_info *a = hello->absent;

	for (size_t i = 0; i < hello->nabsent; i++) {
		if (strcmp(a[i].stream, stream) == 0 &&
		    (strcmp(a[i].field, "*") == 0 || strcmp(a[i].field, field) == 0))
			return a[i].reason;
	}
	return NULL;
}

static void write_text(struct mote_out *out, const struct mote_hello *hello,
		       const struct mote_stream_info *stream)
{
	const struct mote_field_info *field;
	const char *reason;

	mote_out_text(out, stream->name);
	mote_out_format(out, ", every %u ms: ", stream->interval_ms);
	mote_out_text(out, stream->help);
	mote_out_char(out, '\n');
	for (size_t i = 0; i < stream->nfields; i++) {
		field = &stream->fields[i];
		mote_out_format(out, "  %-32s %-4s %-8s %-12s ", field->name, field->type_name,
				field->kind_name, field->unit);
		mote_out_text(out, field->help);
		reason = absent(hello, stream->name, field->name);
		if (reason) {
			mote_out_text(out, "; absent here: ");
			mote_out_text(out, reason);
		}
		mote_out_char(out, '\n');
	}
}

static void write_json(struct mote_out *out, const struct mote_hello *hello,
		       const struct mote_stream_info *stream)
{
	const struct mote_field_info *field;
	const char *reason;

	mote_out_format(out, "{\"id\":%u,\"interval_ms\":%u", stream->id, stream->interval_ms);
	mote_json_pair(out, "name", stream->name);
	mote_json_pair(out, "help", stream->help);
	mote_out_text(out, ",\"fields\":[");
	for (size_t i = 0; i < stream->nfields; i++) {
		field = &stream->fields[i];
		mote_out_text(out, i ? ",{\"name\":" : "{\"name\":");
		mote_json_text(out, field->name);
		mote_json_pair(out, "type", field->type_name);
		mote_json_pair(out, "kind", field->kind_name);
		mote_json_pair(out, "unit", field->unit);
		mote_json_pair(out, "help", field->help);
		reason = absent(hello, stream->name, field->name);
		if (reason)
			mote_json_pair(out, "absent", reason);
		mote_out_char(out, '}');
	}
	mote_out_text(out, "]}");
}

static void write_schema(const struct mote_cli *cli, const struct mote_hello *hello,
			 struct mote_out *out)
{
	if (cli->json) {
		mote_out_text(out, "{\"mote\":");
		mote_json_text(out, hello->mote);
		mote_out_text(out, ",\"streams\":[");
	}
	for (size_t i = 0; i < hello->nstreams; i++) {
		if (i)
			mote_out_text(out, cli->json ? "," : "\n");
		if (cli->json)
			write_json(out, hello, &hello->streams[i]);
		else
			write_text(out, hello, &hello->streams[i]);
	}
	if (cli->json)
		mote_out_text(out, "]}\n");
}

int mote_cli_schema(struct mote_cli *cli)
{
	static struct mote_out out = { .fd = 1 };
	const struct mote_hello *hello;
	struct mote_client *client;
	bool live;
	int code, written;

	code = mote_cli_open(cli, &out, &client, &live);
	if (code)
		return code;
	hello = mote_cli_hello(cli, client, &out);
	if (hello)
		write_schema(cli, hello, &out);
	else
		code = 1;
	written = mote_cli_finish(cli, &out);
	mote_close(client);
	return code ? code : written;
}
