/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages as JSON, one object a line; `mote dump --help` says which. */
#ifndef MOTE_JSON_H
#define MOTE_JSON_H

#include "libmote.h"
#include "output.h"

void mote_json_message(struct mote_out *out, const struct mote_client *client,
		       const struct mote_message *message);
void mote_json_value(struct mote_out *out, const struct mote_value *value);
void mote_json_text(struct mote_out *out, const char *text);
/* `"key":` and text, a comma before it */
void mote_json_pair(struct mote_out *out, const char *key, const char *text);
/* `"mote":..., "tables":[...]` without braces; streams by name only */
void mote_json_hello(struct mote_out *out, const struct mote_hello *hello);

#endif
