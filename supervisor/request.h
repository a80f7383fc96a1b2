/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The request line of docs/PROTOCOL.md, parsed without allocation.
 */
#ifndef MOTE_REQUEST_H
#define MOTE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

enum mote_verb {
	MOTE_SUBSCRIBE,
	MOTE_UNSUBSCRIBE,
	MOTE_INTERVAL,
	MOTE_POLL,
	MOTE_PING,
	MOTE_VERBS
};

struct mote_request {
	enum mote_verb verb;
	uint32_t streams;     /* a bit a stream */
	uint32_t interval_ms; /* 0: none was given */
};

/*
 * `line` has no newline and need not end with NUL; `base_ms` is what every interval must be a
 * multiple of. Returns 0, or -EINVAL with one line in `err` that says what is wrong and what is
 * allowed; `request` is untouched then.
 */
int mote_request_parse(const char *line, size_t len, unsigned int base_ms,
		       struct mote_request *request, char *err, size_t size);

#endif
