// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Prints a generated document to stdout, from the tables that mote itself is built from. Run by
 * gen/docs.
 */
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "schema.h"

static void print_cell(const char *text)
{
	for (; *text; text++)
		printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_stream(const struct mote_stream *stream)
{
	printf("\n## %s\n\n", stream->name);
	print_cell(stream->help);
	printf(". Every %g s by default.\n\n"
	       "| field | type | kind | unit | |\n|---|---|---|---|---|\n",
	       stream->interval_ms / 1000.0);
	for (unsigned int i = 0; i < stream->nfields; i++) {
		const struct mote_field *field = &stream->fields[i];

		printf("| `%s` | %s | %s | %s%s%s | ", field->name, mote_type_name(field->type),
		       mote_kind_name(field->kind), *field->unit ? "`" : "", field->unit,
		       *field->unit ? "`" : "");
		print_cell(field->help);
		printf(" |\n");
	}
}

static void print_metrics(FILE *out)
{
	fputs("<!-- made by `make docs` from supervisor/schema.def: change it there -->\n"
	      "# Metrics\n"
	      "\n"
	      "Every stream and field. Kinds: a `key` identifies a row; a `counter` is cumulative "
	      "and never\ndecreases; a `gauge` is a value of now; `info` describes the object. "
	      "Units are UCUM's, as\nOpenTelemetry writes them. A field that this host or this "
	      "object does not have is nil, never 0;\nwhat mote cannot give here, the hello "
	      "frame (PROTOCOL.md) and `mote schema` name with the\nreason. AVAILABILITY.md has every "
	      "field that may be missing, by tier and kernel.\n",
	      out);
	for (int i = 0; i < MOTE_STREAMS; i++)
		print_stream(&mote_streams[i]);
}

static const struct {
	const char *name;
	void (*print)(FILE *out);
} documents[] = {
	{ "metrics", print_metrics },
	{ "config", mote_options_markdown },
	{ "sample", mote_options_sample },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(documents) / sizeof(documents[0]); i++) {
		if (!strcmp(argv[1], documents[i].name)) {
			documents[i].print(stdout);
			return fflush(stdout) || ferror(stdout);
		}
	}
	fprintf(stderr, "usage: docs metrics|config|sample\n");
	return 2;
}
