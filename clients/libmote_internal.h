/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the parts of libmote share and its users do not see. */
#ifndef LIBMOTE_INTERNAL_H
#define LIBMOTE_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include <msgpack.h>

#include "libmote.h"

/*
 * Whether `body` is one whole MessagePack object: every length lies within it and nesting within
 * 16. msgpack-c reserves 24 bytes for each element that an array announces, before it has seen
 * one; a body of five bytes could so ask for 100 GB. Returns NULL, or what is wrong, and where in
 * *at.
 */
const char *mote_client_check(const uint8_t *body, size_t size, size_t *at);

/* Fills *hello from a decoded body; what it points to lives in `zone`. Returns NULL or an error. */
const char *mote_client_hello(const msgpack_object *body, msgpack_zone *zone,
			      struct mote_hello *hello);

/* Fills a message's members from a decoded body. Return NULL or what is wrong. */
const char *mote_client_data(const msgpack_object *body, struct mote_message *message);
const char *mote_client_dropped(const msgpack_object *body, struct mote_message *message);
const char *mote_client_reply(const msgpack_object *body, struct mote_message *message);

#endif
