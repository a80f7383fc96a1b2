/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether a slot's connection is the one that is at its socket's address now. Any program may be
 * left out: a kprobe or classic tracepoint in a softirq that interrupts another program on its CPU.
 * Of a socket that ended so, the slot is still there when the kernel gives its memory to the next
 * one, whose sequence numbers are others. So who comes to a slot looks whether it is still meant,
 * by two things that cost no read of their own: the kernel's hash of both ends, and that a
 * connection's state never goes back.
 */
#ifndef MOTE_BPF_NET_TCP_LIFE_H
#define MOTE_BPF_NET_TCP_LIFE_H

#include "net_tcp_numbers.h"

#define TCP_STAGE(state, stage) ((u64)(stage) << 4 * (state))

/* How far a connection has come. LISTEN comes to CLOSE only. */
static __always_inline u32 tcp_stage(u32 state)
{
	u64 stages = TCP_STAGE(TCP_SYN_SENT, 1) | TCP_STAGE(TCP_SYN_RECV, 2) |
		     TCP_STAGE(TCP_ESTABLISHED, 3) | TCP_STAGE(TCP_FIN_WAIT1, 4) |
		     TCP_STAGE(TCP_CLOSE_WAIT, 4) | TCP_STAGE(TCP_FIN_WAIT2, 5) |
		     TCP_STAGE(TCP_CLOSING, 5) | TCP_STAGE(TCP_LAST_ACK, 5) |
		     TCP_STAGE(TCP_TIME_WAIT, 6) | TCP_STAGE(TCP_LISTEN, 7) |
		     TCP_STAGE(TCP_CLOSE, 8);

	return stages >> (state & 15) * 4 & 15;
}

/*
 * Both ends are known, and the hash of them stays: connect() chooses a port and an address, and
 * may choose again, until it is past SYN_SENT. In CLOSE the hash is still that of the connection
 * before.
 */
static __always_inline bool tcp_has_peer(u32 state)
{
	return state != TCP_CLOSE && state != TCP_LISTEN && state != TCP_SYN_SENT;
}

/* `hash`, `state`: of the socket at the slot's address now, by who has its lock. */
static __always_inline bool tcp_is_same(const struct mote_socket *s, u32 hash, u32 state)
{
	if (s->protocol != MOTE_TCP)
		return false;
	if (s->hash == hash && s->state == state)
		return true;
	return (!s->hash || s->hash == hash) && tcp_stage(state) >= tcp_stage(s->state) &&
	       (state != TCP_LISTEN || s->state == TCP_LISTEN);
}

/*
 * As that, without the lock: a change of state may be half done, so the state tells nothing but
 * that no listener becomes a connection.
 */
static __always_inline bool tcp_may_be_same(const struct mote_socket *s, u32 hash, u32 state)
{
	return tcp_is_same(s, hash, s->state) && (s->state != TCP_LISTEN || !tcp_has_peer(state));
}

/* It came to `state`, heard or not. */
static __always_inline void tcp_came_to(struct mote_socket *s, u32 slot, u32 hash, u32 state)
{
	if (tcp_has_peer(state))
		s->hash = hash;
	if (s->state == state)
		return;
	s->state = state;
	slots_mark(SOCKETS, slot);
}

/*
 * What a change of state is to who counts connections, slots or not; 0: nothing. Of one that was
 * never established nothing but a failed connect() is told.
 */
static __always_inline u32 tcp_event(int oldstate, int newstate)
{
	if (newstate == TCP_ESTABLISHED || newstate == TCP_LISTEN)
		return MOTE_EVENT_OPENED;
	if (newstate != TCP_CLOSE || oldstate == TCP_CLOSE || oldstate == TCP_SYN_RECV)
		return 0;
	return oldstate == TCP_SYN_SENT ? MOTE_EVENT_FAILED : MOTE_EVENT_CLOSED;
}

/*
 * It has ended, and what the kernel counted cannot be had any more. That was read at each release
 * after a FIN, but of one that was last heard of before that it is behind, and says nothing.
 */
static __always_inline void tcp_forget_truth(struct mote_socket *s)
{
	if (s->hash && tcp_stage(s->state) <= tcp_stage(TCP_ESTABLISHED))
		s->flags &= ~MOTE_SOCKET_TRUTH;
}

/* A slot whose connection has ended, perhaps unheard; `known`: the kernel's counts of it are. */
NET_FUNCTION int tcp_lost(u32 slot, u32 known)
{
	struct mote_socket *s = bpf_map_lookup_elem(&net_sockets, &slot);
	u32 event;

	if (!s)
		return 0;
	event = s->protocol == MOTE_TCP ? tcp_event(s->state, TCP_CLOSE) : 0;
	if (!known)
		tcp_forget_truth(s);
	if (event)
		net_tell(0, slot, event, s->state);
	net_close(s, slot);
	return 0;
}

#endif
