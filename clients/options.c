// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Options of `mote`, from tables: parsing and help. See cli.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

int mote_cli_fail(const struct mote_cli *cli, int code, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "mote%s%s: %s\n", cli->command ? " " : "", cli->command ? cli->command : "",
		text);
	return code;
}

static int unknown(const struct mote_cli *cli, const char *word)
{
	return mote_cli_fail(cli, -1, "unknown option '%s'; see mote%s%s --help", word,
			     cli->command ? " " : "", cli->command ? cli->command : "");
}

/* `word` is "--name" or "--name=value". */
static const struct mote_cli_option *find(const struct mote_cli_option *options, const char *word,
					  size_t len)
{
	for (; options->name; options++) {
		if (strlen(options->name) == len - 2 &&
		    strncmp(options->name, word + 2, len - 2) == 0)
			return options;
	}
	return NULL;
}

static int set(const struct mote_cli_option *option, const char *value, struct mote_cli *cli)
{
	char *member = (char *)cli + option->offset;
	char *end;

	if (option->kind == MOTE_CLI_FLAG) {
		*(bool *)member = true;
	} else if (option->kind == MOTE_CLI_TEXT) {
		*(const char **)member = value;
	} else {
		errno = 0;
		*(uint64_t *)member = strtoull(value, &end, 10);
		if (value[0] < '0' || value[0] > '9' || *end || errno || *(uint64_t *)member == 0)
			return mote_cli_fail(cli, -1, "--%s %s: a number from 1 is needed",
					     option->name, value);
	}
	return 0;
}

int mote_cli_parse(int argc, char **argv, const struct mote_cli_option *options,
		   struct mote_cli *cli)
{
	const struct mote_cli_option *option;
	const char *word, *equals;
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		word = strcmp(argv[i], "-h") == 0 ? "--help" : argv[i];
		if (strcmp(word, "--") == 0)
			return i + 1;
		if (strncmp(word, "--", 2) != 0)
			return unknown(cli, word);
		equals = strchr(word, '=');
		option = find(options, word, equals ? (size_t)(equals - word) : strlen(word));
		if (!option)
			return unknown(cli, word);
		if (!option->arg && equals)
			return mote_cli_fail(cli, -1, "--%s takes no value", option->name);
		if (option->arg && !equals && !argv[++i])
			return mote_cli_fail(cli, -1, "--%s needs a value: %s", option->name,
					     option->arg);
		if (set(option, equals ? equals + 1 : argv[i], cli) < 0)
			return -1;
	}
	return i;
}

void mote_cli_print_options(const struct mote_cli_option *options, struct mote_out *out)
{
	char left[64];

	for (; options->name; options++) {
		snprintf(left, sizeof(left), "--%s%s%s", options->name, options->arg ? " " : "",
			 options->arg ? options->arg : "");
		mote_out_format(out, "  %-18s %s\n", left, options->help);
	}
}
