// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Messages for a person. See text.h; what scripts read is json.c's. */
#include <string.h>
#include <time.h>

#include "text.h"

bool mote_text_number(const struct mote_value *value, double *number)
{
	switch (value->type) {
	case MOTE_VALUE_U64:
		*number = (double)value->u64;
		return true;
	case MOTE_VALUE_I64:
		*number = (double)value->i64;
		return true;
	case MOTE_VALUE_F64:
		*number = value->f64;
		return true;
	default:
		return false;
	}
}

void mote_text_value(struct mote_out *out, const struct mote_value *value, const char *unit)
{
	struct mote_value element;
	double number;

	if (value->type == MOTE_VALUE_U64 && unit[0] == '\0') { /* an identity: every digit */
		mote_out_u64(out, value->u64);
	} else if (mote_text_number(value, &number)) {
		mote_out_quantity(out, number, unit);
	} else if (value->type == MOTE_VALUE_STR || value->type == MOTE_VALUE_BIN) {
		mote_out_word(out, value->str.bytes, value->str.size);
	} else if (value->type == MOTE_VALUE_LIST) {
		mote_out_char(out, '[');
		for (size_t i = 0; i < value->list.size; i++) {
			element = mote_element(value, i);
			if (i)
				mote_out_char(out, ' ');
			if (element.type != MOTE_VALUE_LIST)
				mote_text_value(out, &element, "");
		}
		mote_out_char(out, ']');
	} else {
		mote_out_char(out, '-');
	}
}

/* The sample's time of day, and the stream. */
static void begin(struct mote_out *out, const struct mote_client *client,
		  const struct mote_message *message)
{
	const struct mote_hello *hello = mote_hello(client);
	int64_t ns = (int64_t)(message->time + (uint64_t)(hello ? hello->realtime_offset : 0));
	time_t seconds = ns / 1000000000;
	struct tm tm = { 0 };

	localtime_r(&seconds, &tm);
	mote_out_format(out, "%02d:%02d:%02d.%03d ", tm.tm_hour, tm.tm_min, tm.tm_sec,
			(int)(ns / 1000000 % 1000));
	mote_out_text(out, message->stream->name);
}

static void write_record(struct mote_out *out, const struct mote_record *record)
{
	const struct mote_field_info *field;
	struct mote_value value;

	for (size_t i = 0; (field = mote_field(record, i)); i++) {
		value = mote_value(record, i);
		if (value.type == MOTE_VALUE_NIL)
			continue;
		mote_out_char(out, ' ');
		mote_out_text(out, field->name);
		mote_out_char(out, '=');
		/* Ticks after boot are half of a process's identity. */
		mote_text_value(out, &value, field->kind == MOTE_KIND_KEY ? "" : field->unit);
	}
	mote_out_char(out, '\n');
}

static void write_data(struct mote_out *out, const struct mote_client *client,
		       const struct mote_message *message)
{
	struct mote_record record;

	if (!message->stream)
		return;
	if (message->missed || message->gap) {
		begin(out, client, message);
		if (message->missed)
			mote_out_format(out, " missed %llu updates",
					(unsigned long long)message->missed);
		mote_out_text(out, message->gap ? " after a gap\n" : "\n");
	}
	for (size_t i = 0; mote_row(message, i, &record); i++) {
		begin(out, client, message);
		write_record(out, &record);
	}
	for (size_t i = 0; mote_ended(message, i, &record); i++) {
		begin(out, client, message);
		mote_out_text(out, " ended");
		write_record(out, &record);
	}
	if (mote_totals(message, &record)) {
		begin(out, client, message);
		mote_out_text(out, " totals of ended");
		write_record(out, &record);
	}
}

static void write_hello(struct mote_out *out, const struct mote_hello *hello)
{
	mote_out_text(out, "# mote ");
	mote_out_text(out, hello->mote);
	mote_out_text(out, " on ");
	mote_out_word(out, hello->host.hostname, strlen(hello->host.hostname));
	mote_out_format(out, ": Linux %s %s, %llu CPUs, mode %s, engine %s\n", hello->host.kernel,
			hello->host.machine, (unsigned long long)hello->host.cpus, hello->mode,
			hello->engine);
}

void mote_text_message(struct mote_out *out, const struct mote_client *client,
		       const struct mote_message *message)
{
	switch (message->type) {
	case MOTE_MESSAGE_HELLO:
		write_hello(out, mote_hello(client));
		break;
	case MOTE_MESSAGE_DATA:
		write_data(out, client, message);
		break;
	case MOTE_MESSAGE_DROPPED:
		mote_out_format(out, "# lost so far, as this reader is slow: %llu frames, ",
				(unsigned long long)message->dropped_frames);
		mote_out_quantity(out, (double)message->dropped_bytes, "By");
		mote_out_char(out, '\n');
		break;
	}
}
