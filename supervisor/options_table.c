// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The table of options, built from options.def, and how its values are written. Nothing here fails.
 */
#include "options_table.h"

#include <stdio.h>
#include <string.h>

#include "options.h"

#define SECTION(name, help) { #name, help },
const struct mote_section mote_section_table[] = {
#include "options.def"
};
const unsigned int mote_section_count = sizeof(mote_section_table) / sizeof(mote_section_table[0]);

#define ROW(section, key) [MOTE_OPT_##section##_##key] = { #section, #key,
#define AT(section, key)  offsetof(struct mote_options, section##_##key)
#define NUMBER(KIND, section, key, def, min, max, help)                                         \
	ROW(section, key) help, MOTE_OPTION_##KIND, AT(section, key), def, min, max, NULL, NULL \
	}                                                                                       \
	,
#define LETTERS(KIND, section, key, def, max, help)                                        \
	ROW(section, key) help, MOTE_OPTION_##KIND, AT(section, key), 0, 0, max, def, NULL \
	}                                                                                  \
	,
#define COUNT(...)                    NUMBER(COUNT, __VA_ARGS__)
#define SIZE(...)                     NUMBER(SIZE, __VA_ARGS__)
#define TIME(...)                     NUMBER(TIME, __VA_ARGS__)
#define FLAG(section, key, def, help) NUMBER(FLAG, section, key, def, 0, 1, help)
#define MODE(section, key, def, help) NUMBER(MODE, section, key, def, 0, 0777, help)
#define TEXT(...)                     LETTERS(TEXT, __VA_ARGS__)
#define PATH(...)                     LETTERS(PATH, __VA_ARGS__)
#define CHOICE(section, key, def, type, names, help)                                         \
	ROW(section, key) help, MOTE_OPTION_CHOICE, AT(section, key), def, 0, 0, NULL, names \
	}                                                                                    \
	,
const struct mote_option mote_option_table[MOTE_OPTS] = {
#include "options.def"
};

static void format_unit(unsigned long long value, const char *const names[],
			const unsigned long long units[], char *buf, size_t size)
{
	unsigned int i = 0;

	/* The largest unit that divides it; the last has factor 1. */
	while (units[i] > 1 && (!value || value % units[i]))
		i++;
	snprintf(buf, size, "%llu%s", value / units[i], names[i]);
}

static void format_choice(const struct mote_option *option, unsigned long long value, char *buf,
			  size_t size)
{
	const char *name = option->names;

	for (; value && *name; value--)
		name += strcspn(name, " ") + 1;
	snprintf(buf, size, "%.*s", (int)strcspn(name, " "), name);
}

void mote_option_format(const struct mote_option *option, unsigned long long value, char *buf,
			size_t size)
{
	static const char *const times[] = { "h", "m", "s", "ms" };
	static const unsigned long long time_units[] = { 3600000, 60000, 1000, 1 };
	static const char *const sizes[] = { "MiB", "KiB", "" };
	static const unsigned long long size_units[] = { 1 << 20, 1 << 10, 1 };

	switch (option->kind) {
	case MOTE_OPTION_TIME:
		format_unit(value, times, time_units, buf, size);
		break;
	case MOTE_OPTION_SIZE:
		format_unit(value, sizes, size_units, buf, size);
		break;
	case MOTE_OPTION_FLAG:
		snprintf(buf, size, "%s", value ? "on" : "off");
		break;
	case MOTE_OPTION_MODE:
		snprintf(buf, size, "%04llo", value);
		break;
	case MOTE_OPTION_CHOICE:
		format_choice(option, value, buf, size);
		break;
	default:
		snprintf(buf, size, "%llu", value);
	}
}

void mote_option_default(const struct mote_option *option, char *buf, size_t size)
{
	if (option->text)
		snprintf(buf, size, "%s", option->text);
	else
		mote_option_format(option, option->def, buf, size);
}

static void list_names(const char *names, char *buf, size_t size)
{
	size_t at = (size_t)snprintf(buf, size, "one of ");

	for (; *names && at + 2 < size; names++) {
		if (*names == ' ')
			buf[at++] = ',';
		buf[at++] = *names;
	}
	buf[at] = '\0';
}

void mote_option_allowed(const struct mote_option *option, char *buf, size_t size)
{
	char min[32], max[32];

	mote_option_format(option, option->min, min, sizeof(min));
	mote_option_format(option, option->max, max, sizeof(max));
	switch (option->kind) {
	case MOTE_OPTION_COUNT:
		snprintf(buf, size, "a number from %s to %s", min, max);
		break;
	case MOTE_OPTION_SIZE:
		snprintf(buf, size, "%s to %s, in bytes, KiB or MiB", min, max);
		break;
	case MOTE_OPTION_TIME:
		snprintf(buf, size, "%s to %s, in ms, s, m or h", min, max);
		break;
	case MOTE_OPTION_FLAG:
		snprintf(buf, size, "on or off");
		break;
	case MOTE_OPTION_TEXT:
		snprintf(buf, size, "text of at most %llu bytes", option->max);
		break;
	case MOTE_OPTION_PATH:
		snprintf(buf, size, "an absolute path of at most %llu bytes%s", option->max,
			 *option->text ? "" : ", or nothing");
		break;
	case MOTE_OPTION_CHOICE:
		list_names(option->names, buf, size);
		break;
	case MOTE_OPTION_MODE:
		snprintf(buf, size, "an octal mode from %s to %s", min, max);
		break;
	}
}
