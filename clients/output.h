/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Buffered output. An error is kept, and what is written after it is thrown away, so that only
 * the end of a frame has to look.
 */
#ifndef MOTE_OUTPUT_H
#define MOTE_OUTPUT_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

struct mote_out {
	int fd;
	int error;                         /* errno of the write that failed, or 0 */
	const volatile sig_atomic_t *stop; /* not 0: a reader that stalls is not waited for */
	size_t used;
	char buffer[64 << 10];
};

void mote_out_flush(struct mote_out *out);
void mote_out_bytes(struct mote_out *out, const void *bytes, size_t size);
void mote_out_text(struct mote_out *out, const char *text);
void mote_out_char(struct mote_out *out, char c);
void mote_out_u64(struct mote_out *out, uint64_t v);
void mote_out_i64(struct mote_out *out, int64_t v);
/* The shortest of 15 to 17 digits that reads back as the same number; it must be finite. */
void mote_out_f64(struct mote_out *out, double v);
__attribute__((format(printf, 2, 3))) void mote_out_format(struct mote_out *out, const char *format,
							   ...); /* at most 255 bytes */

/*
 * A JSON string with its quotes. A byte that is no part of valid UTF-8 becomes U+FFFD, each one.
 * Control characters are escaped, those above 7e too, so that none reaches a terminal.
 */
void mote_out_quoted(struct mote_out *out, const char *bytes, size_t size);

/* For a person: as it is if it is one word of plain text, else quoted. */
void mote_out_word(struct mote_out *out, const char *bytes, size_t size);

/* For a person: `v` of the UCUM unit `unit` as 1.5MiB, 2.25s or 17. */
void mote_out_quantity(struct mote_out *out, double v, const char *unit);
/* Seconds a `unit`, 0 if it is none of time. */
double mote_out_seconds(const char *unit);

#endif
