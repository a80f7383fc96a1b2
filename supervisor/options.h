/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The configuration, made from options.def: one member an option, named section_key. Times are in
 * ms, sizes in bytes. Every value has been checked against its range and against the others.
 */
#ifndef MOTE_OPTIONS_H
#define MOTE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "schema.h"

#define MOTE_OPTIONS_FILE "/etc/mote/mote.conf"

/* In the order of the names in options.def. */
enum mote_mode { MOTE_MODE_STANDARD, MOTE_MODE_MINIMAL };
enum mote_probes_choice {
	MOTE_PROBES_AUTO,
	MOTE_PROBES_FENTRY,
	MOTE_PROBES_KPROBE,
	MOTE_PROBES_NONE,
};
enum mote_engine_choice { MOTE_ENGINE_AUTO, MOTE_ENGINE_URING, MOTE_ENGINE_SYNC };
enum mote_source_choice { MOTE_SOURCE_AUTO, MOTE_SOURCE_ITERATOR, MOTE_SOURCE_PROC };
enum mote_events_choice {
	MOTE_EVENTS_AUTO,
	MOTE_EVENTS_TRACEPOINT,
	MOTE_EVENTS_TP_BTF,
	MOTE_EVENTS_CONNECTOR,
	MOTE_EVENTS_OFF,
};

enum mote_cgroup_source {
	MOTE_CGROUP_SOURCE_AUTO,
	MOTE_CGROUP_SOURCE_ITERATOR,
	MOTE_CGROUP_SOURCE_FILES,
	MOTE_CGROUP_SOURCE_OFF,
};

enum mote_action { MOTE_ACTION_RUN, MOTE_ACTION_CHECK, MOTE_ACTION_VERSION, MOTE_ACTION_HELP };

struct mote_options {
#define COUNT(section, key, def, min, max, help)     unsigned int section##_##key;
#define SIZE(section, key, def, min, max, help)      size_t section##_##key;
#define TIME(section, key, def, min, max, help)      unsigned int section##_##key;
#define FLAG(section, key, def, help)                bool section##_##key;
#define TEXT(section, key, def, max, help)           char section##_##key[(max) + 1];
#define PATH(section, key, def, max, help)           char section##_##key[(max) + 1];
#define CHOICE(section, key, def, type, names, help) enum type section##_##key;
#define MODE(section, key, def, help)                unsigned int section##_##key;
#include "options.def"

	/* Not options of the file. */
	bool json;         /* --check as JSON */
	char config[4096]; /* the file that was read; "" for none */
};

/*
 * The functions below return 0, or -EINVAL (or the errno of a file that cannot be read) and one
 * line in `err` that says where, what is wrong and what is allowed; the caller exits with 2.
 */

void mote_options_default(struct mote_options *options);

/* Reads a file over what `options` holds, and checks the outcome; on error nothing is changed. */
int mote_options_load(struct mote_options *options, const char *path, char *err, size_t size);

/* The same from memory; `name` stands for the path in messages. */
int mote_options_parse(struct mote_options *options, const char *name, const char *text, size_t len,
		       char *err, size_t size);

/*
 * All of it: the defaults, then the file (--config, else MOTE_OPTIONS_FILE if that exists), then
 * the command line over it. With MOTE_ACTION_VERSION and MOTE_ACTION_HELP no file is read.
 */
int mote_options_args(struct mote_options *options, int argc, char **argv, enum mote_action *action,
		      char *err, size_t size);

/* The default interval of a stream in ms: [interval] of the configuration. */
unsigned int mote_options_interval(const struct mote_options *options, enum mote_stream_id stream);

void mote_options_help(FILE *out);     /* --help */
void mote_options_sample(FILE *out);   /* dist/mote.conf */
void mote_options_markdown(FILE *out); /* docs/CONFIG.md */

#endif
