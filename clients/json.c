// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Messages as JSON. Integers are written whole, also those above 2^53; nil, NaN and infinities
 * are null; text that is not UTF-8 has U+FFFD where it is not.
 */
#include <math.h>
#include <string.h>

#include "json.h"

void mote_json_text(struct mote_out *out, const char *text)
{
	mote_out_quoted(out, text, strlen(text));
}

static void write_list(struct mote_out *out, const struct mote_value *list)
{
	struct mote_value value;

	mote_out_char(out, '[');
	for (size_t i = 0; i < list->list.size; i++) {
		if (i)
			mote_out_char(out, ',');
		value = mote_element(list, i);
		if (value.type == MOTE_VALUE_LIST) /* none of the schema's types */
			mote_out_text(out, "null");
		else
			mote_json_value(out, &value);
	}
	mote_out_char(out, ']');
}

void mote_json_value(struct mote_out *out, const struct mote_value *value)
{
	switch (value->type) {
	case MOTE_VALUE_U64:
		mote_out_u64(out, value->u64);
		return;
	case MOTE_VALUE_I64:
		mote_out_i64(out, value->i64);
		return;
	case MOTE_VALUE_F64:
		if (isfinite(value->f64)) {
			mote_out_f64(out, value->f64);
			return;
		}
		break;
	case MOTE_VALUE_STR:
	case MOTE_VALUE_BIN:
		mote_out_quoted(out, value->str.bytes, value->str.size);
		return;
	case MOTE_VALUE_LIST:
		write_list(out, value);
		return;
	case MOTE_VALUE_NIL:
	case MOTE_VALUE_OTHER:
		break;
	}
	mote_out_text(out, "null");
}

static bool has_field(const struct mote_stream_info *stream, const char *name)
{
	for (size_t i = 0; i < stream->nfields; i++) {
		if (strcmp(stream->fields[i].name, name) == 0)
			return true;
	}
	return false;
}

/* `{"stream":"cpu","time":1`: a stream's own field `time` says it better, and stands for it. */
static void begin(struct mote_out *out, const struct mote_message *message, bool with_time)
{
	mote_out_text(out, "{\"stream\":");
	mote_json_text(out, message->stream->name);
	if (with_time) {
		mote_out_text(out, ",\"time\":");
		mote_out_u64(out, message->time);
	}
}

static void write_cells(struct mote_out *out, const struct mote_record *record, bool counters_only,
			const char *separator)
{
	const struct mote_field_info *field;
	struct mote_value value;

	for (size_t i = 0; (field = mote_field(record, i)); i++) {
		if (counters_only && field->kind != MOTE_KIND_COUNTER)
			continue;
		mote_out_text(out, separator);
		mote_json_text(out, field->name);
		mote_out_char(out, ':');
		value = mote_value(record, i);
		mote_json_value(out, &value);
		separator = ",";
	}
}

/* `{"keyframe":{"stream":...,"time":...,"interval_ms":...}}` and the like */
static void write_mark(struct mote_out *out, const struct mote_message *message, const char *name)
{
	mote_out_char(out, '{');
	mote_json_text(out, name);
	mote_out_char(out, ':');
	begin(out, message, true);
	mote_out_text(out, ",\"interval_ms\":");
	mote_out_u64(out, message->interval_ms);
	if (strcmp(name, "missed") == 0) {
		mote_out_text(out, ",\"updates\":");
		mote_out_u64(out, message->missed);
	}
	mote_out_text(out, "}}\n");
}

static void write_data(struct mote_out *out, const struct mote_message *message)
{
	struct mote_record record;
	bool with_time;

	if (!message->stream) /* nothing has a name */
		return;
	with_time = !has_field(message->stream, "time");
	if (message->missed)
		write_mark(out, message, "missed");
	if (message->gap)
		write_mark(out, message, "gap");
	if (message->key)
		write_mark(out, message, "keyframe");
	for (size_t i = 0; mote_row(message, i, &record); i++) {
		begin(out, message, with_time);
		write_cells(out, &record, false, ",");
		mote_out_text(out, "}\n");
	}
	for (size_t i = 0; mote_ended(message, i, &record); i++) {
		begin(out, message, true);
		mote_out_text(out, ",\"ended\":{");
		write_cells(out, &record, false, "");
		mote_out_text(out, "}}\n");
	}
	if (mote_totals(message, &record)) {
		begin(out, message, true);
		mote_out_text(out, ",\"totals\":{");
		write_cells(out, &record, true, "");
		mote_out_text(out, "}}\n");
	}
}

void mote_json_pair(struct mote_out *out, const char *key, const char *text)
{
	mote_out_char(out, ',');
	mote_json_text(out, key);
	mote_out_char(out, ':');
	mote_json_text(out, text);
}

static void write_number(struct mote_out *out, const char *key, uint64_t v)
{
	mote_out_char(out, ',');
	mote_json_text(out, key);
	mote_out_char(out, ':');
	mote_out_u64(out, v);
}

static void write_host(struct mote_out *out, const struct mote_host_info *host)
{
	mote_out_text(out, ",\"host\":{\"hostname\":");
	mote_json_text(out, host->hostname);
	mote_json_pair(out, "kernel", host->kernel);
	mote_json_pair(out, "machine", host->machine);
	mote_json_pair(out, "boot_id", host->boot_id);
	write_number(out, "cpus", host->cpus);
	write_number(out, "page_size", host->page_size);
	write_number(out, "user_hz", host->user_hz);
	write_number(out, "pid_max", host->pid_max);
	mote_out_char(out, '}');
}

static void write_tiers(struct mote_out *out, const struct mote_hello *hello)
{
	mote_out_text(out, ",\"tiers\":[");
	for (size_t i = 0; i < hello->ntiers; i++) {
		mote_out_text(out, i ? ",{\"tier\":" : "{\"tier\":");
		mote_json_text(out, hello->tiers[i].tier);
		mote_json_pair(out, "choice", hello->tiers[i].choice);
		mote_json_pair(out, "reason", hello->tiers[i].reason);
		mote_out_char(out, '}');
	}
	mote_out_text(out, "],\"absent\":[");
	for (size_t i = 0; i < hello->nabsent; i++) {
		mote_out_text(out, i ? ",{\"stream\":" : "{\"stream\":");
		mote_json_text(out, hello->absent[i].stream);
		mote_json_pair(out, "field", hello->absent[i].field);
		mote_json_pair(out, "reason", hello->absent[i].reason);
		mote_out_char(out, '}');
	}
	mote_out_char(out, ']');
}

void mote_json_hello(struct mote_out *out, const struct mote_hello *hello)
{
	mote_out_text(out, "\"mote\":");
	mote_json_text(out, hello->mote);
	write_number(out, "protocol", hello->protocol);
	write_host(out, &hello->host);
	mote_out_text(out, ",\"realtime_offset\":");
	mote_out_i64(out, hello->realtime_offset);
	mote_json_pair(out, "mode", hello->mode);
	mote_json_pair(out, "engine", hello->engine);
	mote_out_text(out, ",\"streams\":[");
	for (size_t i = 0; i < hello->nstreams; i++) {
		if (i)
			mote_out_char(out, ',');
		mote_json_text(out, hello->streams[i].name);
	}
	mote_out_char(out, ']');
	write_tiers(out, hello);
	mote_out_text(out, ",\"tables\":[");
	for (size_t i = 0; i < hello->ntables; i++) {
		mote_out_text(out, i ? ",{\"name\":" : "{\"name\":");
		mote_json_text(out, hello->tables[i].name);
		mote_json_pair(out, "unit", hello->tables[i].unit);
		write_number(out, "size", hello->tables[i].size);
		mote_out_char(out, '}');
	}
	mote_out_char(out, ']');
}

void mote_json_message(struct mote_out *out, const struct mote_client *client,
		       const struct mote_message *message)
{
	switch (message->type) {
	case MOTE_MESSAGE_HELLO:
		mote_out_text(out, "{\"hello\":{");
		mote_json_hello(out, mote_hello(client));
		mote_out_text(out, "}}\n");
		break;
	case MOTE_MESSAGE_DATA:
		write_data(out, message);
		break;
	case MOTE_MESSAGE_DROPPED:
		mote_out_text(out, "{\"dropped\":{\"frames\":");
		mote_out_u64(out, message->dropped_frames);
		write_number(out, "bytes", message->dropped_bytes);
		mote_out_text(out, "}}\n");
		break;
	case MOTE_MESSAGE_REPLY:
		mote_out_text(out, "{\"reply\":{\"code\":");
		mote_out_u64(out, message->code);
		mote_out_text(out, ",\"text\":");
		mote_out_quoted(out, message->text, message->text_size);
		mote_out_text(out, "}}\n");
		break;
	}
}
