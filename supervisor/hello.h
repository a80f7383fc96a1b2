/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hello frame: made once, at the end of start.
 */
#ifndef MOTE_HELLO_H
#define MOTE_HELLO_H

#include <stdint.h>

#include "options.h"
#include "self.h"
#include "tier.h"

#define MOTE_ABSENT_MAX 96

struct mote_absent {
	int stream; /* enum mote_stream_id */
	int field;  /* -1: every field */
	const char *why;
};

struct mote_hello {
	const struct mote_options *options;
	const char *engine;
	const struct mote_tiers *tiers;
	const struct mote_self_sources *from; /* of the tables */
	unsigned int nabsent;
	struct mote_absent absent[MOTE_ABSENT_MAX];
};

void mote_hello_absent(struct mote_hello *hello, int stream, int field, const char *why);

/* Allocates the frame; the caller frees it. -ENOMEM. */
int mote_hello_encode(const struct mote_hello *hello, char **frame, uint32_t *len);

#endif
