/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ends of a socket as rows have them, seven fields in this order: protocol, family, local
 * address and port, remote address and port (nil while it has none), state.
 */
#ifndef MOTE_NETWORK_ENDS_H
#define MOTE_NETWORK_ENDS_H

#include <msgpack.h>

#include "abi.h"

#define MOTE_ENDS_FIELDS 7

void mote_pack_ends(msgpack_packer *pk, const struct mote_ends *ends);

#endif
