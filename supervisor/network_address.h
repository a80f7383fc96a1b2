/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Internet addresses as text: RFC 5952, as inet_ntop() gives it, without stdio.
 */
#ifndef MOTE_NETWORK_ADDRESS_H
#define MOTE_NETWORK_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#define MOTE_ADDRESS_TEXT 48

/* Returns the length; no NUL is written. `v6`: sixteen bytes, else the first four. */
unsigned int mote_address_text(const uint8_t address[16], bool v6, char text[MOTE_ADDRESS_TEXT]);

#endif
