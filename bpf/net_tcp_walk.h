/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a walk over all sockets tells of TCP: those older than mote, and ends that nobody heard. */
#ifndef MOTE_BPF_NET_TCP_WALK_H
#define MOTE_BPF_NET_TCP_WALK_H

#include "net_tcp.h"

/*
 * Whether all that could tell of a socket's end was left out. No descriptor is left and its state
 * is CLOSE: nothing comes after that. TCP's memory stays TCP's while anybody may look at it, and
 * has this until the next socket gets it; or the memory is another connection's, or no TCP socket's
 * any more. What is not there reads as 0.
 */
static __always_inline bool tcp_is_gone(const struct mote_socket *s)
{
	const struct sock *sk = (const void *)s->slot.key;
	struct compat_sock_head now;

	compat_sock_head(&now, sk);
	if (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP ||
	    !tcp_may_be_same(s, now.hash, now.state))
		return true;
	return now.state == TCP_CLOSE && BPF_CORE_READ(sk, __sk_common.skc_flags) & SOCK_DEAD;
}

/*
 * What the memory of a socket that is gone still says of it; false: nothing, as it is another's, or
 * tcp_disconnect() has set the numbers back.
 */
static __always_inline bool tcp_last_look(struct mote_socket *s)
{
	const struct sock *sk = (const void *)s->slot.key;
	struct tcp_numbers n;

	if (!tcp_numbers(&n, sk) || tcp_is_reset(&n))
		return false;
	if (tcp_fin_went(sk, &n, s->flags))
		s->flags |= MOTE_SOCKET_FIN_SENT;
	if (!s->hash || BPF_CORE_READ(sk, __sk_common.skc_hash) != s->hash)
		return false;
	tcp_set_truth(s, sk, &n);
	return true;
}

/* The same of one whose memory is another's by now: an inode stays the same as long as it is. */
static __always_inline bool tcp_is_other(const struct mote_socket *s, const struct sock *sk)
{
	u64 inode = net_inode(sk);
	struct compat_sock_head now;

	compat_sock_head(&now, sk);
	return !tcp_may_be_same(s, now.hash, now.state) || (s->inode && inode && s->inode != inode);
}

/* From the iterator: with the lock from 5.15 on, before that while it is in its hash table. */
static __always_inline void tcp_walked(struct mote_slot_cpu *cpu, const struct sock *sk, u8 state)
{
	struct mote_net_ctl *ctl = net_control();
	u32 slot = 0;
	struct mote_socket *s = net_find(cpu, sk, &slot);

	if (s && tcp_is_other(s, sk)) {
		tcp_lost(slot, false);
		s = NULL;
	}
	if (s) {
		if (tcp_refresh(s, sk))
			slots_mark(SOCKETS, slot);
		return;
	}
	if (!ctl || ctl->live || !net_wants(sk, IPPROTO_TCP) ||
	    BPF_CORE_READ(sk, __sk_common.skc_flags) & SOCK_DEAD)
		return;
	if (tcp_open_late(sk, state, &slot))
		ctl->seeded++;
	else
		ctl->seed_lost++;
}

#endif
