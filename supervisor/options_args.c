// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The command line. It is gone through once for what it asks, then the file is read, then what it
 * sets is laid over the file. No abbreviations, no repeats: a unit file should mean one thing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "options_table.h"

enum arg_id {
	ARG_CONFIG,
	ARG_MODE,
	ARG_PROBES,
	ARG_ENGINE,
	ARG_SOCKET,
	ARG_CHECK,
	ARG_JSON,
	ARG_VERSION,
	ARG_HELP,
	ARGS
};

static const struct arg {
	const char *name;
	bool value;
	int option; /* that it sets, -1: none */
} arg_table[ARGS] = {
	[ARG_CONFIG] = { "--config", true, -1 },
	[ARG_MODE] = { "--mode", true, MOTE_OPT_mote_mode },
	[ARG_PROBES] = { "--probes", true, MOTE_OPT_mote_probes },
	[ARG_ENGINE] = { "--engine", true, MOTE_OPT_mote_engine },
	[ARG_SOCKET] = { "--socket", true, MOTE_OPT_socket_path },
	[ARG_CHECK] = { "--check", false, -1 },
	[ARG_JSON] = { "--json", false, -1 },
	[ARG_VERSION] = { "--version", false, -1 },
	[ARG_HELP] = { "--help", false, -1 },
};

static int find_arg(const char *text, size_t len)
{
	for (int i = 0; i < ARGS; i++) {
		if (strlen(arg_table[i].name) == len && !memcmp(arg_table[i].name, text, len))
			return i;
	}
	return -1;
}

/* Takes argv[*at] and, if its value stands apart, the one behind it. */
static int take_arg(const char *values[ARGS], int argc, char **argv, int *at, char *err,
		    size_t size)
{
	const char *text = argv[*at], *value = strchr(text, '=');
	int id = find_arg(text, value ? (size_t)(value - text) : strlen(text));

	if (id < 0) {
		snprintf(err, size, "%s: no such option; moted --help lists them", text);
		return -EINVAL;
	}
	if (values[id]) {
		snprintf(err, size, "%s: given twice; once is allowed", arg_table[id].name);
		return -EINVAL;
	}
	if (value && !arg_table[id].value) {
		snprintf(err, size, "%s: takes no value", arg_table[id].name);
		return -EINVAL;
	}
	if (value)
		value++;
	else if (arg_table[id].value && *at + 1 < argc)
		value = argv[++*at];
	if (arg_table[id].value && (!value || !*value)) {
		snprintf(err, size, "%s: needs a value: %s VALUE", arg_table[id].name,
			 arg_table[id].name);
		return -EINVAL;
	}
	values[id] = value ?: "";
	return 0;
}

static int find_action(const char *values[ARGS], enum mote_action *action, char *err, size_t size)
{
	int n = !!values[ARG_CHECK] + !!values[ARG_VERSION] + !!values[ARG_HELP];

	if (n > 1) {
		snprintf(err, size, "--check, --version and --help: only one of them is allowed");
		return -EINVAL;
	}
	if (values[ARG_JSON] && !values[ARG_CHECK]) {
		snprintf(err, size, "--json: goes with --check only; mote dump --json shows rows");
		return -EINVAL;
	}
	*action = values[ARG_CHECK]     ? MOTE_ACTION_CHECK
		  : values[ARG_VERSION] ? MOTE_ACTION_VERSION
		  : values[ARG_HELP]    ? MOTE_ACTION_HELP
					: MOTE_ACTION_RUN;
	return 0;
}

static int apply(struct mote_options *options, const char *values[ARGS], char *err, size_t size)
{
	char allowed[256];

	for (int i = 0; i < ARGS; i++) {
		const struct mote_option *option;

		if (!values[i] || arg_table[i].option < 0)
			continue;
		option = &mote_option_table[arg_table[i].option];
		if (mote_option_set(options, option, values[i])) {
			mote_option_allowed(option, allowed, sizeof(allowed));
			snprintf(err, size, "%s: '%s'; allowed: %s", arg_table[i].name, values[i],
				 allowed);
			return -EINVAL;
		}
	}
	options->json = values[ARG_JSON];
	return 0;
}

int mote_options_args(struct mote_options *options, int argc, char **argv, enum mote_action *action,
		      char *err, size_t size)
{
	const char *values[ARGS] = { NULL };
	enum mote_action asked;
	struct mote_options made;
	int r = 0;

	for (int i = 1; i < argc && !r; i++)
		r = take_arg(values, argc, argv, &i, err, size);
	if (!r)
		r = find_action(values, &asked, err, size);
	if (r)
		return r;
	mote_options_default(&made);
	if (asked == MOTE_ACTION_RUN || asked == MOTE_ACTION_CHECK) {
		if (values[ARG_CONFIG])
			r = mote_options_load(&made, values[ARG_CONFIG], err, size);
		else if (!access(MOTE_OPTIONS_FILE, F_OK))
			r = mote_options_load(&made, MOTE_OPTIONS_FILE, err, size);
	}
	if (!r)
		r = apply(&made, values, err, size);
	if (r)
		return r;
	*options = made;
	*action = asked;
	return 0;
}
