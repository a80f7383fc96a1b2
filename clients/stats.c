// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * `mote stats`: what mote costs, how full its tables are, what it reads from and what it cannot
 * give. Takes two samples of the self stream, for rates. Which counters there are comes from the
 * hello's schema; no metric is named here.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "text.h"

#define MAX_FIELDS 64
#define MAX_TABLES 128

struct self_sample {
	uint64_t time;                        /* ns; 0: none */
	struct mote_value values[MAX_FIELDS]; /* numbers only */
};

struct table_row {
	char name[48], unit[32];
	uint64_t size, fill, peak, dropped;
};

struct stats {
	const struct mote_hello *hello;
	const struct mote_stream_info *self;
	struct self_sample first, last;
	struct table_row tables[MAX_TABLES];
	size_t ntables;
};

static void copy_text(char *to, size_t size, const struct mote_value *value)
{
	size_t n = 0;

	if (value->type == MOTE_VALUE_STR || value->type == MOTE_VALUE_BIN)
		n = value->str.size < size ? value->str.size : size - 1;
	if (n)
		memcpy(to, value->str.bytes, n);
	to[n] = '\0';
}

static uint64_t number_named(const struct mote_record *row, const char *name)
{
	struct mote_value value = mote_value_named(row, name);

	return value.type == MOTE_VALUE_U64 ? value.u64 : 0;
}

static void take_table(struct stats *stats, const struct mote_record *row)
{
	struct mote_value text = mote_value_named(row, "name");
	struct table_row made = {
		.size = number_named(row, "size"),
		.fill = number_named(row, "fill"),
		.peak = number_named(row, "peak"),
		.dropped = number_named(row, "dropped"),
	};
	size_t i = 0;

	copy_text(made.name, sizeof(made.name), &text);
	text = mote_value_named(row, "unit");
	copy_text(made.unit, sizeof(made.unit), &text);
	while (i < stats->ntables && strcmp(stats->tables[i].name, made.name) != 0)
		i++;
	if (i == MAX_TABLES)
		return;
	stats->tables[i] = made;
	if (i == stats->ntables)
		stats->ntables++;
}

static void take_self(struct stats *stats, const struct mote_message *message,
		      const struct mote_record *row)
{
	struct self_sample sample = { .time = message->time };
	struct mote_value value;
	double number;

	for (size_t i = 0; i < stats->self->nfields && i < MAX_FIELDS; i++) {
		value = mote_value(row, i);
		if (mote_text_number(&value, &number))
			sample.values[i] = value;
	}
	if (stats->first.time == 0)
		stats->first = sample;
	stats->last = sample;
}

static void take(struct stats *stats, const struct mote_message *message)
{
	struct mote_record row;

	for (size_t i = 0; mote_row(message, i, &row); i++) {
		if (message->stream == stats->self)
			take_self(stats, message, &row);
		else if (message->stream && strcmp(message->stream->name, "table") == 0)
			take_table(stats, &row);
	}
}

/* Reads until there are two samples of self, and the tables of the second one's tick. */
static int collect(const struct mote_cli *cli, struct mote_client *client, struct stats *stats,
		   struct mote_out *out)
{
	struct mote_message message;
	bool two = false;

	for (;;) {
		switch (mote_cli_next(cli, client, &message, out, two ? 100 : 5000)) {
		case MOTE_CLI_MESSAGE:
			if (message.type == MOTE_MESSAGE_REPLY &&
			    mote_cli_check_reply(cli, &message))
				return 1;
			if (message.type == MOTE_MESSAGE_DATA)
				take(stats, &message);
			two = stats->last.time > stats->first.time;
			break;
		case MOTE_CLI_ERROR:
			return 1;
		case MOTE_CLI_END:
		case MOTE_CLI_TIMEOUT:
			if (stats->first.time)
				return 0;
			return mote_cli_fail(cli, 1, "no sample of the self stream within 5 s");
		case MOTE_CLI_STOP:
			return 0;
		}
	}
}

/* Change of a counter a second between the samples; false if it is none or not known. */
static bool rate(const struct stats *stats, size_t i, double *per_second)
{
	double elapsed = (double)(stats->last.time - stats->first.time) * 1e-9;
	double from, to;

	if (stats->self->fields[i].kind != MOTE_KIND_COUNTER || elapsed <= 0 ||
	    !mote_text_number(&stats->first.values[i], &from) ||
	    !mote_text_number(&stats->last.values[i], &to))
		return false;
	*per_second = (to - from) / elapsed;
	return true;
}

/* Writes what `out` has gained since `from` padded to `width` with blanks on the left. */
static void pad_left(struct mote_out *out, size_t from, size_t width)
{
	size_t n = out->used - from;

	if (n >= width || out->used + width - n > sizeof(out->buffer))
		return;
	memmove(out->buffer + from + width - n, out->buffer + from, n);
	memset(out->buffer + from, ' ', width - n);
	out->used += width - n;
}

static void write_rate(struct mote_out *out, double per_second, const char *unit)
{
	double seconds = mote_out_seconds(unit);

	if (seconds != 0) { /* time a second is a share */
		mote_out_format(out, "%.3f%%", per_second * seconds * 100);
	} else {
		mote_out_quantity(out, per_second, unit);
		mote_out_text(out, "/s");
	}
}

static void write_self(const struct stats *stats, struct mote_out *out)
{
	const struct mote_field_info *field;
	double per_second;
	size_t from;

	mote_out_format(out, "\n%-36s %12s %12s\n", "SELF", "VALUE", "RATE");
	for (size_t i = 0; i < stats->self->nfields && i < MAX_FIELDS; i++) {
		field = &stats->self->fields[i];
		mote_out_format(out, "%-36s ", field->name);
		from = out->used;
		mote_text_value(out, &stats->last.values[i], field->unit);
		pad_left(out, from, 12);
		from = out->used;
		if (rate(stats, i, &per_second))
			write_rate(out, per_second, field->unit);
		pad_left(out, from, 13);
		mote_out_text(out, "  ");
		mote_out_text(out, field->help);
		mote_out_char(out, '\n');
		mote_out_flush(out); /* so that the padding has room */
	}
}

static void write_count(struct mote_out *out, uint64_t v, const char *unit)
{
	size_t from = out->used;

	mote_out_quantity(out, (double)v, unit);
	pad_left(out, from, 11);
}

static void write_tables(const struct stats *stats, struct mote_out *out)
{
	const struct table_row *row;

	mote_out_format(out, "\n%-24s %10s %10s %10s %6s %10s  %s\n", "TABLE", "SIZE", "FILL",
			"PEAK", "PEAK%", "DROPPED", "UNIT");
	for (size_t i = 0; i < stats->ntables; i++) {
		row = &stats->tables[i];
		mote_out_format(out, "%-23s ", row->name);
		write_count(out, row->size, row->unit);
		write_count(out, row->fill, row->unit);
		write_count(out, row->peak, row->unit);
		mote_out_format(out, " %5.1f%% %10llu  %s\n",
				row->size ? 100.0 * (double)row->peak / (double)row->size : 0,
				(unsigned long long)row->dropped, row->unit);
		mote_out_flush(out);
	}
}

/* Fields of one stream that are absent for the same reason stand in one line. */
static void write_absent(const struct mote_hello *hello, struct mote_out *out)
{
	const struct mote_absent_info *a = hello->absent, *next;

	mote_out_text(out, hello->nabsent ? "\nABSENT\n" : "\nNothing is absent.\n");
	for (size_t i = 0; i < hello->nabsent; i++) {
		if (i == 0 || strcmp(a[i].stream, a[i - 1].stream) != 0 ||
		    strcmp(a[i].reason, a[i - 1].reason) != 0) {
			mote_out_text(out, a[i].stream);
			mote_out_text(out, ": ");
		}
		mote_out_text(out, strcmp(a[i].field, "*") == 0 ? "all of it" : a[i].field);
		next = i + 1 < hello->nabsent ? &a[i + 1] : NULL;
		if (next && strcmp(next->stream, a[i].stream) == 0 &&
		    strcmp(next->reason, a[i].reason) == 0) {
			mote_out_text(out, ", ");
			continue;
		}
		mote_out_text(out, " (");
		mote_out_text(out, a[i].reason);
		mote_out_text(out, ")\n");
	}
}

static void write_text(const struct stats *stats, struct mote_out *out)
{
	const struct mote_hello *hello = stats->hello;

	mote_out_format(out, "mote %s on %s: Linux %s %s, %llu CPUs, mode %s, engine %s\n",
			hello->mote, hello->host.hostname, hello->host.kernel, hello->host.machine,
			(unsigned long long)hello->host.cpus, hello->mode, hello->engine);
	write_self(stats, out);
	write_tables(stats, out);
	mote_out_text(out, "\nTIERS\n");
	for (size_t i = 0; i < hello->ntiers; i++) {
		mote_out_format(out, "%-20s %-14s ", hello->tiers[i].tier, hello->tiers[i].choice);
		mote_out_text(out, hello->tiers[i].reason);
		mote_out_char(out, '\n');
	}
	write_absent(hello, out);
}

static void write_json_self(const struct stats *stats, struct mote_out *out)
{
	const struct mote_field_info *fields = stats->self->fields;
	const char *comma = "";
	double per_second;

	mote_out_text(out, ",\"time\":");
	mote_out_u64(out, stats->last.time);
	mote_out_text(out, ",\"self\":{");
	for (size_t i = 0; i < stats->self->nfields && i < MAX_FIELDS; i++) {
		mote_out_text(out, i ? "," : "");
		mote_json_text(out, fields[i].name);
		mote_out_char(out, ':');
		mote_json_value(out, &stats->last.values[i]);
	}
	mote_out_text(out, "},\"rates\":{");
	for (size_t i = 0; i < stats->self->nfields && i < MAX_FIELDS; i++) {
		if (!rate(stats, i, &per_second))
			continue;
		mote_out_text(out, comma);
		mote_json_text(out, fields[i].name);
		mote_out_char(out, ':');
		mote_out_f64(out, per_second);
		comma = ",";
	}
	mote_out_char(out, '}');
}

static void write_json(const struct stats *stats, struct mote_out *out)
{
	const struct table_row *row;

	mote_out_text(out, "{\"hello\":{");
	mote_json_hello(out, stats->hello);
	mote_out_char(out, '}');
	write_json_self(stats, out);
	mote_out_text(out, ",\"tables\":[");
	for (size_t i = 0; i < stats->ntables; i++) {
		row = &stats->tables[i];
		mote_out_text(out, i ? ",{\"name\":" : "{\"name\":");
		mote_json_text(out, row->name);
		mote_json_pair(out, "unit", row->unit);
		mote_out_format(out, ",\"size\":%llu,\"fill\":%llu,\"peak\":%llu,\"dropped\":%llu}",
				(unsigned long long)row->size, (unsigned long long)row->fill,
				(unsigned long long)row->peak, (unsigned long long)row->dropped);
	}
	mote_out_text(out, "]}\n");
}

static int run(const struct mote_cli *cli, struct mote_client *client, bool live,
	       struct mote_out *out)
{
	static struct stats stats;
	int code;

	stats.hello = mote_cli_hello(cli, client, out);
	if (!stats.hello)
		return 1;
	for (size_t i = 0; i < stats.hello->nstreams; i++) {
		if (strcmp(stats.hello->streams[i].name, "self") == 0)
			stats.self = &stats.hello->streams[i];
	}
	if (!stats.self)
		return mote_cli_fail(cli, 1, "the supervisor has no stream 'self'");
	code = live ? mote_cli_request(cli, client, "subscribe self,table interval=1s") : 0;
	if (code == 0)
		code = collect(cli, client, &stats, out);
	if (code || stats.first.time == 0)
		return code;
	if (cli->json)
		write_json(&stats, out);
	else
		write_text(&stats, out);
	return 0;
}

int mote_cli_stats(struct mote_cli *cli)
{
	static struct mote_out out = { .fd = 1 };
	struct mote_client *client;
	bool live;
	int code, written;

	code = mote_cli_open(cli, &out, &client, &live);
	if (code)
		return code;
	code = run(cli, client, live, &out);
	written = mote_cli_finish(cli, &out);
	mote_close(client);
	return code ? code : written;
}
