/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The options as a table, for those who parse and print them: options.c and options_print.c.
 */
#ifndef MOTE_OPTIONS_TABLE_H
#define MOTE_OPTIONS_TABLE_H

#include <stddef.h>

enum mote_option_kind {
	MOTE_OPTION_COUNT,
	MOTE_OPTION_SIZE,
	MOTE_OPTION_TIME,
	MOTE_OPTION_FLAG,
	MOTE_OPTION_TEXT,
	MOTE_OPTION_PATH,
	MOTE_OPTION_CHOICE,
	MOTE_OPTION_MODE,
};

struct mote_option {
	const char *section, *key, *help;
	enum mote_option_kind kind;
	size_t offset;                    /* in struct mote_options */
	unsigned long long def, min, max; /* of a text: `max` bytes without the NUL */
	const char *text;                 /* default of a text */
	const char *names;                /* of a choice */
};

#define COUNT(section, key, ...)  MOTE_OPT_##section##_##key,
#define SIZE(section, key, ...)   MOTE_OPT_##section##_##key,
#define TIME(section, key, ...)   MOTE_OPT_##section##_##key,
#define FLAG(section, key, ...)   MOTE_OPT_##section##_##key,
#define TEXT(section, key, ...)   MOTE_OPT_##section##_##key,
#define PATH(section, key, ...)   MOTE_OPT_##section##_##key,
#define CHOICE(section, key, ...) MOTE_OPT_##section##_##key,
#define MODE(section, key, ...)   MOTE_OPT_##section##_##key,
enum mote_option_id {
#include "options.def"
	MOTE_OPTS
};

struct mote_section {
	const char *name, *help;
};

extern const struct mote_option mote_option_table[MOTE_OPTS];
extern const struct mote_section mote_section_table[];
extern const unsigned int mote_section_count;

struct mote_options;

/* Returns 0, or -EINVAL: `text` is not allowed, and nothing is changed. */
int mote_option_set(struct mote_options *options, const struct mote_option *option,
		    const char *text);
/* Of all but texts. */
unsigned long long mote_option_get(const struct mote_options *options,
				   const struct mote_option *option);

/* A value as the file would have it: 250ms, 64KiB, on, 0660, auto. */
void mote_option_format(const struct mote_option *option, unsigned long long value, char *buf,
			size_t size);
void mote_option_default(const struct mote_option *option, char *buf, size_t size);
/* What is allowed: "10ms to 1h, in ms, s, m or h". */
void mote_option_allowed(const struct mote_option *option, char *buf, size_t size);

#endif
