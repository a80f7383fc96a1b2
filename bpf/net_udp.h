/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UDP. Receiving: skb_consume_udp() has what the call returns, and for MSG_PEEK a negative length.
 * Sending: what udp_sendmsg() returned. A socket's slot is claimed at its first datagram, and given
 * up when the kernel destroys the socket; where no probe can tell, when a walk over all sockets did
 * not find it any more.
 */
#ifndef MOTE_BPF_NET_UDP_H
#define MOTE_BPF_NET_UDP_H

#include "net.h"

/*
 * The address may be another socket's by now: without a probe at the end, and where that was left
 * out, as a kprobe program is that interrupts another one on its CPU.
 */
static __always_inline bool udp_is_other(const struct mote_socket *s, const struct sock *sk)
{
	return s->inode != net_inode(sk);
}

/* Connected, bound or neither: seen when it is used. */
static __always_inline void udp_refresh(struct mote_socket *s, u32 slot, const struct sock *sk)
{
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	if (s->state == state && s->local_port == BPF_CORE_READ(sk, __sk_common.skc_num))
		return;
	s->state = state;
	net_load_addresses(s, sk);
	slots_mark(SOCKETS, slot);
}

static __always_inline struct mote_socket *udp_find(struct mote_slot_cpu *cpu,
						    const struct sock *sk, u32 *slot)
{
	struct mote_socket *s = net_find(cpu, sk, slot);

	if (!s || !udp_is_other(s, sk))
		return s;
	net_close(s, *slot);
	return NULL;
}

/* Seeded in a walk, a socket is not the caller's, and not new. */
NET_FUNCTION int udp_try(u64 address, u32 flags)
{
	struct net_socket_fill fill = { .sk = (const void *)address,
					.protocol = MOTE_UDP,
					.flags = flags };
	struct mote_slot_cpu *cpu = net_cpu();
	struct net_caller caller;

	if (!(flags & MOTE_SOCKET_SEEDED)) {
		net_caller(&caller);
		fill.owner = &caller;
	}
	return cpu ? net_open(cpu, &fill, net_socket_fill) : -1;
}

static __always_inline struct mote_socket *udp_open(u64 address, u32 flags, u32 *slot)
{
	struct mote_socket *s = net_socket_at(NET_TRIES(udp_try(address, flags)), slot);

	if (s && !(flags & MOTE_SOCKET_SEEDED))
		net_tell(address, *slot, MOTE_EVENT_OPENED, s->state);
	return s;
}

static __always_inline void udp_moved(struct mote_slot_cpu *cpu, const struct sock *sk, s64 sent,
				      s64 received)
{
	struct mote_traffic moved = net_moved(sent, received);
	u32 slot = 0;
	struct mote_socket *s = udp_find(cpu, sk, &slot);
	u64 address;

	if (!s && !net_wants(sk, IPPROTO_UDP))
		return;
	if (s)
		udp_refresh(s, slot, sk);
	if (s && s->tgid && net_count_again(s, slot, MOTE_UDP, &moved))
		return;
	address = net_address(sk);
	if (!s)
		udp_open(address, 0, &slot);
	net_count_new(address, slot, MOTE_UDP, sent, received);
}

/* The walks of net_udp. */
static u32 udp_walk;       /* number of the one that runs, or ran last; never 0 */
static u64 udp_walk_began; /* ns */

static __always_inline void udp_walk_begin(void)
{
	udp_walk++;
	if (!udp_walk)
		udp_walk = 1;
	udp_walk_began = bpf_ktime_get_ns();
}

static __always_inline void udp_walked(struct mote_slot_cpu *cpu, const struct sock *sk)
{
	struct mote_net_ctl *ctl = net_control();
	u32 slot = 0;
	struct mote_socket *s = udp_find(cpu, sk, &slot);

	if (!s && ctl && !ctl->live && net_wants(sk, IPPROTO_UDP)) {
		s = udp_open(net_address(sk), MOTE_SOCKET_SEEDED, &slot);
		if (s)
			ctl->seeded++;
		else
			ctl->seed_lost++;
	}
	if (!s)
		return;
	s->write_seq = udp_walk;
	udp_refresh(s, slot, sk);
}

/*
 * Whether what is at the socket's address now is still this socket: close() takes the inode away,
 * and another socket has another one. Memory that is not there any more reads as 0.
 */
static __always_inline bool udp_is_there(const struct mote_socket *s)
{
	return s->inode && net_inode((const struct sock *)s->slot.key) == s->inode;
}

/* Not to be met in the walk is not enough: it is over the sockets of one network namespace. */
static __always_inline bool udp_is_gone(const struct mote_socket *s)
{
	return s->write_seq != udp_walk && s->opened < udp_walk_began && !udp_is_there(s);
}

#endif
