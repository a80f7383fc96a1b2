// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The parser of request lines: words parted by blanks, a verb first.
 */
#include "request.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "schema.h"

#define INTERVAL_MAX_MS 3600000u

struct word {
	const char *text;
	size_t len;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct word next_word(const char **at, const char *end)
{
	struct word word;

	while (*at < end && is_blank(**at))
		(*at)++;
	word.text = *at;
	while (*at < end && !is_blank(**at))
		(*at)++;
	word.len = (size_t)(*at - word.text);
	return word;
}

static bool is(struct word word, const char *text)
{
	return word.len == strlen(text) && !memcmp(word.text, text, word.len);
}

/* For messages: no control character of a client gets into a reply or a log. */
static const char *printable(struct word word, char *out, size_t size)
{
	size_t n = word.len < size - 1 ? word.len : size - 1;

	for (size_t i = 0; i < n; i++)
		out[i] = word.text[i] >= ' ' && word.text[i] < 127 ? word.text[i] : '?';
	out[n] = 0;
	return out;
}

#define SHOWN 40

static int parse_streams(struct word word, uint32_t *streams, char *err, size_t size)
{
	const char *end = word.text + word.len, *at = word.text;
	uint32_t mask = 0;
	char shown[SHOWN];

	if (is(word, "all")) {
		*streams = (1u << MOTE_STREAMS) - 1;
		return 0;
	}
	while (at <= end && word.len) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		struct word name = { at, (size_t)((comma ? comma : end) - at) };
		int id = mote_stream_find(name.text, (unsigned int)name.len);

		if (id < 0) {
			snprintf(err, size,
				 "no stream '%s': `mote schema` lists them, `all` is all",
				 printable(name, shown, sizeof(shown)));
			return -EINVAL;
		}
		mask |= 1u << id;
		at = (comma ? comma : end) + 1;
	}
	if (!mask) {
		snprintf(err, size, "streams are missing: names parted by commas, or `all`");
		return -EINVAL;
	}
	*streams = mask;
	return 0;
}

static int parse_interval(struct word word, unsigned int base_ms, uint32_t *ms, char *err,
			  size_t size)
{
	static const struct {
		const char *suffix;
		uint32_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
	uint64_t value = 0;
	size_t digits = 0;
	char shown[SHOWN];

	while (digits < word.len && word.text[digits] >= '0' && word.text[digits] <= '9' &&
	       value < 1u << 30)
		value = value * 10 + (uint64_t)(word.text[digits++] - '0');
	for (size_t i = 0; digits && i < sizeof(units) / sizeof(units[0]); i++) {
		struct word suffix = { word.text + digits, word.len - digits };
		uint64_t total = value * units[i].ms;

		if (!is(suffix, units[i].suffix))
			continue;
		if (!total || total % base_ms || total > INTERVAL_MAX_MS)
			break;
		*ms = (uint32_t)total;
		return 0;
	}
	snprintf(err, size, "interval '%s': a multiple of %ums up to 1h, as 250ms, 1s or 5m",
		 printable(word, shown, sizeof(shown)), base_ms);
	return -EINVAL;
}

static int parse_interval_option(struct word word, unsigned int base_ms, uint32_t *ms, char *err,
				 size_t size)
{
	static const char name[] = "interval=";
	const size_t len = sizeof(name) - 1;
	char shown[SHOWN];

	if (!word.len)
		return 0;
	if (word.len < len || memcmp(word.text, name, len)) {
		snprintf(err, size, "'%s' is not understood: only interval=TIME may follow",
			 printable(word, shown, sizeof(shown)));
		return -EINVAL;
	}
	return parse_interval((struct word){ word.text + len, word.len - len }, base_ms, ms, err,
			      size);
}

static const struct {
	const char *name;
	bool streams, option, interval;
} verbs[] = {
	[MOTE_SUBSCRIBE] = { "subscribe", .streams = true, .option = true },
	[MOTE_UNSUBSCRIBE] = { "unsubscribe", .streams = true },
	[MOTE_INTERVAL] = { "interval", .interval = true },
	[MOTE_POLL] = { "poll", .streams = true },
	[MOTE_PING] = { "ping" },
};
static_assert(sizeof(verbs) / sizeof(verbs[0]) == MOTE_VERBS, "one row a verb");

static int find_verb(struct word word)
{
	for (int i = 0; i < MOTE_VERBS; i++) {
		if (is(word, verbs[i].name))
			return i;
	}
	return -1;
}

int mote_request_parse(const char *line, size_t len, unsigned int base_ms,
		       struct mote_request *request, char *err, size_t size)
{
	const char *at = line, *end = line + len;
	struct word word = next_word(&at, end);
	struct mote_request out = { 0 };
	int verb = find_verb(word), ret = 0;
	char shown[SHOWN];

	if (verb < 0) {
		snprintf(err, size,
			 "'%s' is no request: subscribe, unsubscribe, interval, poll or ping",
			 printable(word, shown, sizeof(shown)));
		return -EINVAL;
	}
	out.verb = (enum mote_verb)verb;
	if (verbs[verb].streams)
		ret = parse_streams(next_word(&at, end), &out.streams, err, size);
	if (!ret && verbs[verb].interval)
		ret = parse_interval(next_word(&at, end), base_ms, &out.interval_ms, err, size);
	if (!ret && verbs[verb].option)
		ret = parse_interval_option(next_word(&at, end), base_ms, &out.interval_ms, err,
					    size);
	if (ret)
		return ret;
	word = next_word(&at, end);
	if (word.len) {
		snprintf(err, size, "'%s' is one word too many",
			 printable(word, shown, sizeof(shown)));
		return -EINVAL;
	}
	*request = out;
	return 0;
}
