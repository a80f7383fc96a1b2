/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * After a walk over all sockets: slots whose socket ended without a program that saw it, as there
 * is no hook for it, or the kernel left each of them out. A slot is closed as the end of its socket
 * would have closed it. Who sweeps is inside, so that no slot is given to another key meanwhile
 * (docs/SLOTS.md); and what is at a socket's address tells of itself, whatever the walk has met.
 */
#ifndef MOTE_BPF_NET_SWEEP_H
#define MOTE_BPF_NET_SWEEP_H

#include "net_tcp_walk.h"
#include "net_udp.h"

NET_FUNCTION int net_sweep_slot(u32 slot, u32 protocol)
{
	struct mote_socket *s = bpf_map_lookup_elem(&net_sockets, &slot);

	if (!s || !s->slot.key || s->closed || s->protocol != protocol)
		return 0;
	if (protocol == MOTE_UDP ? !udp_is_gone(s) : !tcp_is_gone(s))
		return 0;
	if (protocol == MOTE_TCP)
		tcp_lost(slot, tcp_last_look(s));
	else
		net_close(s, slot);
	return 1;
}

/* The verifier looks at each turn of a loop: 64 and 128 turns are 192, in one loop 8,192. */
#define SWEEP_PART 64
#define SWEEP      (128 * SWEEP_PART) /* slots a walk */

NET_FUNCTION int net_sweep_part(u32 from, u32 protocol)
{
	int closed = 0;

	for (u32 i = 0; i < SWEEP_PART; i++)
		closed += net_sweep_slot(from + i, protocol);
	return closed;
}

/* `from`: the slot where this sweep begins, and the next is to begin. */
static __always_inline void net_sweep(u32 *from, u32 protocol)
{
	u32 first = *from, slots = net_nsockets;

	for (u32 i = 0; i < SWEEP && i < slots; i += SWEEP_PART)
		net_sweep_part(first + i, protocol);
	first += SWEEP;
	*from = first < slots ? first : 0;
}

#endif
