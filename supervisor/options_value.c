// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The values of options: defaults, and text turned into values. A value that is not allowed is
 * -EINVAL and changes nothing; the message is made by the caller from mote_option_allowed().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "options_table.h"

static void set_number(struct mote_options *options, const struct mote_option *option,
		       unsigned long long value)
{
	void *member = (char *)options + option->offset;

	if (option->kind == MOTE_OPTION_SIZE)
		*(size_t *)member = value;
	else if (option->kind == MOTE_OPTION_FLAG)
		*(bool *)member = value;
	else
		*(unsigned int *)member = (unsigned int)value; /* a choice's enum, too */
}

unsigned long long mote_option_get(const struct mote_options *options,
				   const struct mote_option *option)
{
	const void *member = (const char *)options + option->offset;

	if (option->kind == MOTE_OPTION_SIZE)
		return *(const size_t *)member;
	if (option->kind == MOTE_OPTION_FLAG)
		return *(const bool *)member;
	return *(const unsigned int *)member;
}

void mote_options_default(struct mote_options *options)
{
	memset(options, 0, sizeof(*options));
	for (unsigned int i = 0; i < MOTE_OPTS; i++) {
		const struct mote_option *option = &mote_option_table[i];

		if (option->text)
			strcpy((char *)options + option->offset, option->text);
		else
			set_number(options, option, option->def);
	}
}

static int parse_digits(const char *text, int base, const char **end, unsigned long long *value)
{
	if (*text < '0' || *text > '9') /* strtoull() takes signs and blanks */
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, (char **)end, base);
	return errno ? -EINVAL : 0;
}

static int parse_unit(enum mote_option_kind kind, const char *text, unsigned long long *unit)
{
	static const struct {
		enum mote_option_kind kind;
		const char *name;
		unsigned long long unit;
	} units[] = {
		{ MOTE_OPTION_TIME, "ms", 1 },        { MOTE_OPTION_TIME, "s", 1000 },
		{ MOTE_OPTION_TIME, "m", 60000 },     { MOTE_OPTION_TIME, "h", 3600000 },
		{ MOTE_OPTION_SIZE, "", 1 },          { MOTE_OPTION_SIZE, "KiB", 1 << 10 },
		{ MOTE_OPTION_SIZE, "MiB", 1 << 20 }, { MOTE_OPTION_COUNT, "", 1 },
		{ MOTE_OPTION_MODE, "", 1 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].kind == kind && !strcmp(units[i].name, text)) {
			*unit = units[i].unit;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_number(const struct mote_option *option, const char *text,
			unsigned long long *value)
{
	unsigned long long digits, unit;
	const char *end;

	if (parse_digits(text, option->kind == MOTE_OPTION_MODE ? 8 : 10, &end, &digits) ||
	    parse_unit(option->kind, end, &unit) || __builtin_mul_overflow(digits, unit, value))
		return -EINVAL;
	return *value < option->min || *value > option->max ? -EINVAL : 0;
}

static int parse_choice(const char *names, const char *text, unsigned long long *value)
{
	size_t len;

	for (unsigned long long i = 0; *names; i++) {
		len = strcspn(names, " ");
		if (strlen(text) == len && !memcmp(names, text, len)) {
			*value = i;
			return 0;
		}
		names += len + (names[len] == ' ');
	}
	return -EINVAL;
}

static int set_text(struct mote_options *options, const struct mote_option *option,
		    const char *text)
{
	if (strlen(text) > option->max || (!*text && *option->text))
		return -EINVAL;
	if (option->kind == MOTE_OPTION_PATH && *text && *text != '/')
		return -EINVAL;
	strcpy((char *)options + option->offset, text);
	return 0;
}

int mote_option_set(struct mote_options *options, const struct mote_option *option,
		    const char *text)
{
	unsigned long long value;
	int r;

	if (option->text)
		return set_text(options, option, text);
	if (option->kind == MOTE_OPTION_CHOICE)
		r = parse_choice(option->names, text, &value);
	else if (option->kind == MOTE_OPTION_FLAG)
		r = parse_choice("off on", text, &value);
	else
		r = parse_number(option, text, &value);
	if (!r)
		set_number(options, option, value);
	return r;
}
