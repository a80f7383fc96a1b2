// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The configuration file and the command line. libinih parses; the lines are handed to it here, so
 * that a message can name the line, and what libinih lets pass (text after a section's name, a line
 * cut in two, an empty section of the wrong name) is refused. The first mistake ends it; the
 * caller's options are changed only if there was none.
 */
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options_table.h"

#define FILE_BYTES (256 << 10)

/* The text of a configuration on its way through libinih. */
struct source {
	const char *name, *text;
	size_t len, at;
	unsigned int line;             /* the one that libinih has now */
	unsigned int failed;           /* line of the first mistake */
	unsigned int given[MOTE_OPTS]; /* line that set it, 0: none */
	struct mote_options *options;
	char *err;
	size_t size;
};

__attribute__((format(printf, 3, 4))) static int complain(char *err, size_t size, const char *fmt,
							  ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err, size, fmt, args);
	va_end(args);
	return -EINVAL;
}

#define FAIL(source, fmt, ...)                                                                  \
	((source)->failed = (source)->line,                                                     \
	 complain((source)->err, (source)->size, "%s:%u: " fmt, (source)->name, (source)->line, \
		  ##__VA_ARGS__))

/* Rules between options */

/* `line` 0: neither was given, which only a fault in options.def can bring about. */
static int broken(const struct source *source, enum mote_option_id id, enum mote_option_id other,
		  const char *rule)
{
	const struct mote_option *a = &mote_option_table[id], *b = &mote_option_table[other];
	const struct mote_option *named = source->given[id] ? a : b;
	char va[32], vb[32], it[64];

	mote_option_format(a, mote_option_get(source->options, a), va, sizeof(va));
	mote_option_format(b, mote_option_get(source->options, b), vb, sizeof(vb));
	snprintf(it, sizeof(it), "[%s] %s, ", a->section, a->key);
	complain(source->err, source->size, "%s:%u: [%s] %s: %s%s, must be %s [%s] %s, %s",
		 source->name, source->given[id] ?: source->given[other], named->section,
		 named->key, named == a ? "" : it, va, rule, b->section, b->key, vb);
	return -EINVAL;
}

/* The member that a time of the table is kept in. */
static unsigned int *time_of(struct mote_options *options, const struct mote_option *option)
{
	return (unsigned int *)((char *)options + option->offset);
}

/* A default below a second gives way to a [loop] base that does not divide it. */
static int check_intervals(const struct source *source)
{
	unsigned int base = source->options->loop_base;

	for (enum mote_option_id i = 0; i < MOTE_OPTS; i++) {
		const struct mote_option *option = &mote_option_table[i];
		unsigned int *time = time_of(source->options, option);

		if (option->kind != MOTE_OPTION_TIME || *time % base == 0)
			continue;
		if (source->given[i] || option->def >= 1000 || i == MOTE_OPT_loop_base)
			return broken(source, i, MOTE_OPT_loop_base, "a multiple of");
		*time += base - *time % base;
	}
	return 0;
}

/* What processes see begins with a slash: one that does not would never match. */
static int check_paths(const struct source *source, enum mote_option_id id, const char *words)
{
	const struct mote_option *option = &mote_option_table[id];

	for (size_t len; *(words += strspn(words, " \t")); words += len) {
		len = strcspn(words, " \t");
		if (*words != '/')
			return complain(source->err, source->size,
					"%s:%u: [%s] %s: '%.*s', must begin with /", source->name,
					source->given[id], option->section, option->key, (int)len,
					words);
	}
	return 0;
}

static int check_rules(const struct source *source)
{
	const struct mote_options *o = source->options;

	if (o->tables_events & (o->tables_events - 1))
		return complain(source->err, source->size,
				"%s:%u: [tables] events: %zu bytes is not a power of two; allowed: "
				"64KiB, 128KiB and so on to 64MiB",
				source->name, source->given[MOTE_OPT_tables_events],
				o->tables_events);
	if (o->socket_arena < 4 * o->socket_frame)
		return broken(source, MOTE_OPT_socket_arena, MOTE_OPT_socket_frame,
			      "at least 4 times");
	if (o->socket_queue < 2 * o->socket_frame)
		return broken(source, MOTE_OPT_socket_queue, MOTE_OPT_socket_frame,
			      "at least twice");
	if (o->socket_queue > o->socket_arena)
		return broken(source, MOTE_OPT_socket_queue, MOTE_OPT_socket_arena, "at most");
	if (check_paths(source, MOTE_OPT_filters_exclude_paths, o->filters_exclude_paths) ||
	    check_paths(source, MOTE_OPT_filters_include_paths, o->filters_include_paths))
		return -EINVAL;
	return check_intervals(source);
}

/* The file */

static void list_sections(char *buf, size_t size)
{
	size_t at = 0;

	for (unsigned int i = 0; i < mote_section_count && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? ", " : "",
				       mote_section_table[i].name);
}

static void list_keys(const char *section, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < MOTE_OPTS && at < size; i++) {
		if (!strcmp(mote_option_table[i].section, section))
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "",
					       mote_option_table[i].key);
	}
}

static bool is_section(const char *name, size_t len)
{
	for (unsigned int i = 0; i < mote_section_count; i++) {
		if (strlen(mote_section_table[i].name) == len &&
		    !memcmp(mote_section_table[i].name, name, len))
			return true;
	}
	return false;
}

static int check_section(struct source *source, const char *line)
{
	const char *end = strchr(line, ']');
	char list[128];

	if (!end)
		return FAIL(source, "a section's name ends with ]: [socket]");
	if (!is_section(line + 1, (size_t)(end - line - 1))) {
		list_sections(list, sizeof(list));
		return FAIL(source, "[%.*s]: no such section; there are %s", (int)(end - line - 1),
			    line + 1, list);
	}
	end += 1 + strspn(end + 1, " \t");
	if (*end && *end != ';' && *end != '#')
		return FAIL(source, "'%s' after a section's name; a key needs a line of its own",
			    end);
	return 0;
}

static int check_line(struct source *source, const char *line, size_t len, size_t room)
{
	if (len > room)
		return FAIL(source, "a line of %zu bytes; at most %zu are allowed", len, room);
	for (size_t i = 0; i < len; i++) {
		if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
			return FAIL(source, "byte 0x%02x in column %zu is not text",
				    (unsigned char)line[i], i + 1);
	}
	return 0;
}

/*
 * fgets() for libinih: one line a call. Blanks in front go, for libinih takes an indented line as
 * more of the value before it.
 */
static char *read_line(char *buf, int size, void *data)
{
	struct source *source = data;
	const char *line = source->text + source->at, *end;
	size_t len;

	if (source->failed || source->at >= source->len)
		return NULL;
	end = memchr(line, '\n', source->len - source->at);
	len = end ? (size_t)(end - line) : source->len - source->at;
	source->at += len + 1;
	source->line++;
	if (len && line[len - 1] == '\r')
		len--;
	for (; len && (*line == ' ' || *line == '\t'); len--)
		line++;
	if (check_line(source, line, len, (size_t)size - 3))
		return NULL;
	memcpy(buf, line, len);
	buf[len] = '\0';
	if (*buf == '[' && check_section(source, buf))
		return NULL;
	strcpy(buf + len, "\n");
	return buf;
}

static int find_option(const char *section, const char *key)
{
	for (int i = 0; i < MOTE_OPTS; i++) {
		if (!strcmp(mote_option_table[i].section, section) &&
		    !strcmp(mote_option_table[i].key, key))
			return i;
	}
	return -1;
}

static int take(struct source *source, const char *section, const char *key, const char *value)
{
	const struct mote_option *option;
	char allowed[256];
	int id = find_option(section, key);

	if (!*section)
		return FAIL(source, "%s: a key before the first section; [socket] begins one", key);
	if (id < 0) {
		list_keys(section, allowed, sizeof(allowed));
		return FAIL(source, "[%s] %s: no such key; there are %s", section, key, allowed);
	}
	option = &mote_option_table[id];
	if (source->given[id])
		return FAIL(source, "[%s] %s: given before, on line %u; one value is allowed",
			    section, key, source->given[id]);
	if (strstr(value, " #") || strstr(value, "\t#"))
		return FAIL(source, "[%s] %s: a comment behind a value begins with ;, not #",
			    section, key);
	if (mote_option_set(source->options, option, value)) {
		mote_option_allowed(option, allowed, sizeof(allowed));
		return FAIL(source, "[%s] %s: '%s'; allowed: %s", section, key, value, allowed);
	}
	source->given[id] = source->line;
	return 0;
}

/* libinih's handler: 0 is an error there. */
static int on_value(void *data, const char *section, const char *key, const char *value)
{
	struct source *source = data;

	return source->failed || !value || take(source, section, key, value) ? 0 : 1;
}

int mote_options_parse(struct mote_options *options, const char *name, const char *text, size_t len,
		       char *err, size_t size)
{
	struct mote_options parsed = *options;
	struct source source = {
		.name = name, .text = text, .len = len, .options = &parsed, .err = err, .size = size
	};
	int r;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) /* a byte order mark */
		source.at = 3;
	r = ini_parse_stream(read_line, &source, on_value, &source);
	if (r < 0)
		return complain(err, size, "%s: no memory to parse it", name);
	/* libinih returns the line of its first error, ours included. */
	if (r > 0 && (!source.failed || (unsigned int)r < source.failed))
		return complain(err, size,
				"%s:%d: neither a [section], nor key = value, nor a comment", name,
				r);
	if (source.failed || check_rules(&source))
		return -EINVAL;
	*options = parsed;
	return 0;
}

static int read_file(const char *path, char *buf, size_t size, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	*len = 0;
	while ((n = read(fd, buf + *len, size - *len)) > 0)
		*len += (size_t)n;
	if (n < 0)
		r = -errno;
	else if (*len == size)
		r = -EFBIG;
	close(fd);
	return r;
}

int mote_options_load(struct mote_options *options, const char *path, char *err, size_t size)
{
	char *text = malloc(FILE_BYTES + 1);
	size_t len = 0;
	int r = text ? read_file(path, text, FILE_BYTES + 1, &len) : -ENOMEM;

	if (r)
		complain(err, size,
			 "%s: cannot be read: %s; it must be a readable file of at most %d KiB",
			 path, strerror(-r), FILE_BYTES >> 10);
	else
		r = mote_options_parse(options, path, text, len, err, size);
	if (!r)
		snprintf(options->config, sizeof(options->config), "%s", path);
	free(text);
	return r;
}

unsigned int mote_options_interval(const struct mote_options *options, enum mote_stream_id stream)
{
	int id = find_option("interval", mote_streams[stream].name);

	return id < 0 ? mote_streams[stream].interval_ms
		      : (unsigned int)mote_option_get(options, &mote_option_table[id]);
}
