/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-line messages to stderr, without allocation. Under journald each line carries its syslog
 * priority as `<N>`, elsewhere the name of the program.
 */
#ifndef MOTE_LOG_H
#define MOTE_LOG_H

#include <stdint.h>

/* syslog's numbers */
enum mote_log_level {
	MOTE_LOG_ERROR = 3,
	MOTE_LOG_WARNING = 4,
	MOTE_LOG_NOTICE = 5,
	MOTE_LOG_INFO = 6,
	MOTE_LOG_DEBUG = 7,
};

/* Finds out, once at start, whether stderr is the journal; a seccomp filter may forbid it later. */
void mote_log_open(void);

void mote_log(enum mote_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* All zero to begin with. */
struct mote_limit {
	uint64_t next_ns; /* no line before that */
	uint64_t left_out;
};

/*
 * A warning, at most once a minute for each limit; the next line that is written says how many
 * were left out. `now_ns` is any clock that does not go back.
 */
void mote_log_limited(struct mote_limit *limit, uint64_t now_ns, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
