// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What of a socket stands in its row and in events alike, see network_ends.h. */
#include "network_ends.h"

#include "frame.h"
#include "network_address.h"

static const char *state_name(const struct mote_ends *ends)
{
	static const char *const names[] = {
		"UNKNOWN",   "ESTABLISHED", "SYN_SENT", "SYN_RECV",   "FIN_WAIT1",
		"FIN_WAIT2", "TIME_WAIT",   "CLOSE",    "CLOSE_WAIT", "LAST_ACK",
		"LISTEN",    "CLOSING",     "SYN_RECV",
	};

	if (ends->protocol == MOTE_UDP && ends->state != 1)
		return "UNCONN";
	return names[ends->state < sizeof(names) / sizeof(names[0]) ? ends->state : 0];
}

static void pack_address(msgpack_packer *pk, const struct mote_ends *ends,
			 const uint8_t address[16])
{
	char text[MOTE_ADDRESS_TEXT];
	unsigned int len = mote_address_text(address, ends->family != 2, text); /* AF_INET */

	msgpack_pack_str(pk, len);
	msgpack_pack_str_body(pk, text, len);
}

void mote_pack_ends(msgpack_packer *pk, const struct mote_ends *ends)
{
	mote_pack_word(pk, ends->protocol == MOTE_UDP ? "udp" : "tcp");
	mote_pack_word(pk, ends->family == 2 ? "ipv4" : "ipv6");
	pack_address(pk, ends, ends->local);
	mote_pack_known(pk, ends->local_port, ends->local_port);
	if (ends->remote_port)
		pack_address(pk, ends, ends->remote);
	else
		msgpack_pack_nil(pk);
	mote_pack_known(pk, ends->remote_port, ends->remote_port);
	mote_pack_word(pk, state_name(ends));
}
