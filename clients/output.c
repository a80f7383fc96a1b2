// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Buffered output and how numbers and text are written. See output.h. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output.h"

/* To be stopped: whether the reader still takes PIPE_BUF bytes without making us wait. */
static bool reader_stalls(const struct mote_out *out)
{
	struct pollfd pfd = { .fd = out->fd, .events = POLLOUT };

	return poll(&pfd, 1, 200) <= 0;
}

static void write_all(struct mote_out *out, const char *bytes, size_t size)
{
	size_t chunk;
	ssize_t n;

	while (size && !out->error) {
		chunk = size;
		if (out->stop && *out->stop) {
			if (reader_stalls(out))
				out->error = EINTR;
			chunk = size < PIPE_BUF ? size : PIPE_BUF;
		}
		n = out->error ? 0 : write(out->fd, bytes, chunk);
		if (n >= 0) {
			bytes += n;
			size -= n;
		} else if (errno != EINTR) {
			out->error = errno;
		}
	}
}

void mote_out_flush(struct mote_out *out)
{
	write_all(out, out->buffer, out->used);
	out->used = 0;
}

void mote_out_bytes(struct mote_out *out, const void *bytes, size_t size)
{
	if (size > sizeof(out->buffer) - out->used)
		mote_out_flush(out);
	if (size > sizeof(out->buffer)) {
		write_all(out, bytes, size);
		return;
	}
	memcpy(out->buffer + out->used, bytes, size);
	out->used += size;
}

void mote_out_text(struct mote_out *out, const char *text)
{
	mote_out_bytes(out, text, strlen(text));
}

void mote_out_char(struct mote_out *out, char c)
{
	mote_out_bytes(out, &c, 1);
}

void mote_out_u64(struct mote_out *out, uint64_t v)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	mote_out_bytes(out, digits + i, sizeof(digits) - i);
}

void mote_out_i64(struct mote_out *out, int64_t v)
{
	if (v < 0)
		mote_out_char(out, '-');
	mote_out_u64(out, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void mote_out_f64(struct mote_out *out, double v)
{
	char text[32];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	mote_out_text(out, text);
}

void mote_out_format(struct mote_out *out, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	mote_out_text(out, text);
}

/* Length of the character at `s`, 0 if it is not valid UTF-8 (RFC 3629). */
static size_t utf8_length(const unsigned char *s, size_t left)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	n = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	if (n == 0 || n > left)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0; /* shorter forms are not allowed */
	else if (s[0] == 0xed)
		high = 0x9f; /* surrogates */
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f; /* above U+10FFFF */
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

/* What must be escaped of single bytes: controls, quote, backslash; and anything above 7e. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void escape(struct mote_out *out, unsigned char c)
{
	static const char short_forms[] = "\bb\tt\nn\ff\rr\"\"\\\\";

	for (size_t i = 0; i + 1 < sizeof(short_forms); i += 2) {
		if ((unsigned char)short_forms[i] == c) {
			mote_out_char(out, '\\');
			mote_out_char(out, short_forms[i + 1]);
			return;
		}
	}
	mote_out_format(out, "\\u%04x", c);
}

void mote_out_quoted(struct mote_out *out, const char *bytes, size_t size)
{
	const unsigned char *s = (const unsigned char *)bytes;
	size_t run, n;

	mote_out_char(out, '"');
	for (size_t i = 0; i < size; i += n) {
		for (run = 0; i + run < size && is_plain(s[i + run]);)
			run++;
		if (run) {
			mote_out_bytes(out, s + i, run);
			n = run;
			continue;
		}
		n = utf8_length(s + i, size - i);
		if (n == 1)
			escape(out, s[i]);
		else if (n == 2 && s[i] == 0xc2 && s[i + 1] < 0xa0) /* U+0080 to U+009F */
			escape(out, s[i + 1]);
		else if (n)
			mote_out_bytes(out, s + i, n);
		else
			mote_out_text(out, "\\ufffd");
		n = n ? n : 1;
	}
	mote_out_char(out, '"');
}

void mote_out_word(struct mote_out *out, const char *bytes, size_t size)
{
	bool plain = size > 0;

	for (size_t i = 0; i < size; i++)
		plain = plain && is_plain(bytes[i]) && bytes[i] != ' ';
	if (plain)
		mote_out_bytes(out, bytes, size);
	else
		mote_out_quoted(out, bytes, size);
}

double mote_out_seconds(const char *unit)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(units[i].unit, unit) == 0)
			return units[i].seconds;
	}
	return 0;
}

static void write_bytes(struct mote_out *out, double v)
{
	static const char *const prefixes[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t i = 0;

	while ((v >= 1024 || v <= -1024) && i + 1 < sizeof(prefixes) / sizeof(prefixes[0])) {
		v /= 1024;
		i++;
	}
	mote_out_format(out, i ? "%.1f%s" : "%.0f%s", v, prefixes[i]);
}

void mote_out_quantity(struct mote_out *out, double v, const char *unit)
{
	double seconds = mote_out_seconds(unit);

	if (seconds != 0) {
		v *= seconds;
		if (v != 0 && v < 1e-3 && v > -1e-3)
			mote_out_format(out, "%.4gus", v * 1e6);
		else if (v != 0 && v < 1 && v > -1)
			mote_out_format(out, "%.4gms", v * 1e3);
		else
			mote_out_format(out, "%.*fs", v < 1000 ? 3 : 0, v);
	} else if (strcmp(unit, "By") == 0) {
		write_bytes(out, v);
	} else if (strcmp(unit, "KiBy") == 0) {
		write_bytes(out, v * 1024);
	} else if (v == (double)(int64_t)v && v < 1e15 && v > -1e15) {
		mote_out_format(out, "%.0f%s", v, strcmp(unit, "%") == 0 ? "%" : "");
	} else {
		mote_out_format(out, v < 1000 && v > -1000 ? "%.4g%s" : "%.0f%s", v,
				strcmp(unit, "%") == 0 ? "%" : "");
	}
}
