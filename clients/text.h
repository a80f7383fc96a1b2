/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages for a person: one row a line, names with values in readable units, nil left out. */
#ifndef MOTE_TEXT_H
#define MOTE_TEXT_H

#include "libmote.h"
#include "output.h"

void mote_text_message(struct mote_out *out, const struct mote_client *client,
		       const struct mote_message *message);
void mote_text_value(struct mote_out *out, const struct mote_value *value, const char *unit);
/* A number of any type as double; false for text, lists and nil. */
bool mote_text_number(const struct mote_value *value, double *number);

#endif
