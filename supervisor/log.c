// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Messages: formatted on the stack and written by one write(), so that lines of two threads do not
 * mix. A line that does not fit is cut. A write that fails is nobody's to report.
 */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024
#define MINUTE_NS      (60ull * 1000 * 1000 * 1000)

static bool to_journal;

/* systemd.exec(5): $JOURNAL_STREAM is inherited, so it counts only if it names our stderr. */
void mote_log_open(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	to_journal = stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
		     !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

/* Values may come from file names and the like: what could start a line of its own is replaced. */
static void make_one_line(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = ' ';
	}
}

static void write_line(enum mote_log_level level, const char *tail, const char *fmt, va_list args)
{
	char line[LINE_MAX_BYTES];
	size_t room = sizeof(line) - 1; /* the newline */
	int n = to_journal ? snprintf(line, room, "<%d>", level) : snprintf(line, room, "moted: ");
	size_t len = (size_t)n;

	n = vsnprintf(line + len, room - len, fmt, args);
	if (n > 0)
		len += (size_t)n < room - len ? (size_t)n : room - len - 1;
	n = snprintf(line + len, room - len, "%s", tail);
	if (n > 0)
		len += (size_t)n < room - len ? (size_t)n : room - len - 1;
	make_one_line(line, len);
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void mote_log(enum mote_log_level level, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(level, "", fmt, args);
	va_end(args);
}

void mote_log_limited(struct mote_limit *limit, uint64_t now_ns, const char *fmt, ...)
{
	char tail[64] = "";
	va_list args;

	if (now_ns < limit->next_ns) {
		limit->left_out++;
		return;
	}
	if (limit->left_out)
		snprintf(tail, sizeof(tail), " (%llu such lines left out)",
			 (unsigned long long)limit->left_out);
	*limit = (struct mote_limit){ .next_ns = now_ns + MINUTE_NS };
	va_start(args, fmt);
	write_line(MOTE_LOG_WARNING, tail, fmt, args);
	va_end(args);
}
