/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TCP. write_seq and copied_seq move only under the socket's lock, and who holds the lock gives it
 * back by release_sock(): what moved since the last time is the caller's. Nothing is held over a
 * call that waits, MSG_PEEK does not move copied_seq, and what one run missed the next makes up.
 *
 * A socket's slot is claimed when it connects, listens or is established, and given up when its
 * state is CLOSE and no descriptor is left (SOCK_DEAD): what it sends again after close() is still
 * its own.
 */
#ifndef MOTE_BPF_NET_TCP_H
#define MOTE_BPF_NET_TCP_H

#include "net_tcp_life.h"

static __always_inline bool tcp_refresh(struct mote_socket *s, const struct sock *sk)
{
	const struct tcp_sock *tp = (const void *)sk;
	u32 srtt = BPF_CORE_READ(tp, srtt_us) >> 3;
	u64 retransmitted = BPF_CORE_READ(tp, bytes_retrans);
	bool changed = tcp_truth(s, sk);

	if (srtt != s->srtt_us) {
		s->srtt_us = srtt;
		changed = true;
	}
	if (retransmitted > s->retransmitted) {
		s->retransmitted = retransmitted;
		changed = true;
	}
	if (!s->inode || !s->cookie)
		changed |= net_load_names(s, sk);
	return changed;
}

/*
 * Where the connection began: after our SYN, whose number is snd_una while it is not acked, or one
 * less than what was acked since; of what came, likewise.
 */
static __always_inline void tcp_base(struct mote_socket *s, const struct tcp_numbers *n)
{
	s->write_seq = n->una - (u32)n->acked + !!(s->flags & MOTE_SOCKET_ACTIVE) +
		       !!(s->flags & MOTE_SOCKET_FIN_SENT);
	s->copied_seq = n->nxt - (u32)n->received + !!(s->flags & MOTE_SOCKET_FIN_TAKEN);
	s->flags &= ~MOTE_SOCKET_NEW;
}

/* Nobody knows whose these bytes were. */
static __always_inline void tcp_add_other(struct mote_slot_cpu *cpu, s64 sent, s64 received)
{
	struct mote_traffic moved =
		net_moved(sent > 0 ? sent : NOT_THIS_WAY, received > 0 ? received : NOT_THIS_WAY);

	net_add(&cpu->other[MOTE_TCP], &moved);
}

/* What can be seen of a socket's past. */
static __always_inline u32 tcp_seen_flags(const struct sock *sk, const struct tcp_numbers *n,
					  u32 state)
{
	return tcp_connected(sk, n, state) * MOTE_SOCKET_ACTIVE |
	       tcp_sent_fin(state) * MOTE_SOCKET_FIN_SENT |
	       tcp_took_fin(sk, n) * MOTE_SOCKET_FIN_TAKEN;
}

/* What a socket without a slot has moved: when it gets one late, or at its end. */
static __always_inline void tcp_add_unseen(struct mote_slot_cpu *cpu, const struct sock *sk,
					   const struct tcp_numbers *n, u8 state)
{
	u32 flags = tcp_seen_flags(sk, n, state);

	tcp_add_other(cpu, tcp_accepted(n, flags), tcp_taken(n, flags));
}

/* A socket that is seen first by something else than its opening. */
struct tcp_late {
	struct net_socket_fill socket;
	struct tcp_numbers n;
};

static __always_inline u32 tcp_late_flags(const struct sock *sk, const struct tcp_numbers *n,
					  u8 state)
{
	u32 flags = MOTE_SOCKET_TRUTH | net_missed(sk);

	/* without a reason for coming late its bytes count from the connection's beginning */
	if (!(flags & (MOTE_SOCKET_LATE | MOTE_SOCKET_SEEDED)))
		flags |= MOTE_SOCKET_NEW;
	if (state == TCP_SYN_SENT)
		return flags | MOTE_SOCKET_SYN | MOTE_SOCKET_ACTIVE;
	return flags | tcp_seen_flags(sk, n, state);
}

/* Before the slot is in the index: the iterator of 5.10 has not got the lock. */
static __always_inline void tcp_late_fill(void *slot, void *arg)
{
	const struct tcp_late *late = arg;
	const struct sock *sk = late->socket.sk;
	struct mote_socket *s = slot;

	net_socket_fill(s, arg);
	if (tcp_has_peer(s->state))
		s->hash = BPF_CORE_READ(sk, __sk_common.skc_hash);
	if (late->socket.flags & MOTE_SOCKET_NEW)
		return;
	s->write_seq = late->n.write;
	s->copied_seq = late->n.copied;
	tcp_set_truth(s, sk, &late->n);
	s->accepted_base = s->accepted;
	s->taken_base = s->taken;
}

/* One that is about to go must not get a slot: nothing would tell of its end. */
NET_FUNCTION int tcp_try_late(u64 address, u32 state)
{
	const struct sock *sk = (const void *)address;
	struct tcp_late late = { .socket = { .sk = sk, .protocol = MOTE_TCP } };
	struct mote_slot_cpu *cpu = net_cpu();
	int slot;

	if (!cpu || state == TCP_CLOSE || BPF_CORE_READ(sk, __sk_common.skc_flags) & SOCK_DEAD)
		return -1;
	if (state == TCP_LISTEN) {
		late.socket.flags = net_missed(sk);
		return net_open(cpu, &late.socket, net_socket_fill);
	}
	if (!tcp_numbers(&late.n, sk))
		return -1;
	late.socket.flags = tcp_late_flags(sk, &late.n, state);
	slot = net_open(cpu, &late.socket, tcp_late_fill);
	if (slot >= 0 && late.socket.flags & MOTE_SOCKET_LATE && !net_tcp_by_tp)
		tcp_add_unseen(cpu, sk, &late.n, state);
	return slot;
}

static __always_inline struct mote_socket *tcp_open_late(const struct sock *sk, u8 state, u32 *slot)
{
	u64 address = net_address(sk);

	return net_socket_at(NET_TRIES(tcp_try_late(address, state)), slot);
}

/* What a sequence number moved; backwards it goes where it was set anew. */
static __always_inline u32 tcp_moved(u32 now, u32 before)
{
	return (s32)(now - before) > 0 ? now - before : 0;
}

/*
 * TCP_FASTOPEN_CONNECT: connect() leaves the SYN to the first send. Until then write_seq is this
 * connection's, and the numbers of what was sent are 0 or those of the connection before.
 */
static __always_inline bool tcp_defers(const struct sock *sk, const struct tcp_numbers *n)
{
	const struct tcp_sock *tp = (const void *)sk;

	return BPF_CORE_READ(tp, snd_nxt) == n->una;
}

/* All that is not bytes: states other than ESTABLISHED, and the first time. */
static __always_inline void tcp_settle(struct mote_socket *s, u32 slot, const struct sock *sk,
				       u8 state, u32 write, u32 copied)
{
	struct tcp_numbers n;

	tcp_numbers(&n, sk);
	if (state == TCP_CLOSE && tcp_is_reset(&n)) {
		tcp_forget_truth(s);
		s->write_seq = write;
		s->copied_seq = copied;
		s->flags &= ~MOTE_SOCKET_NEW;
		return;
	}
	if (s->flags & MOTE_SOCKET_NEW && state == TCP_SYN_SENT && tcp_defers(sk, &n)) {
		s->write_seq = write;
		s->copied_seq = copied;
		return;
	}
	if (s->flags & MOTE_SOCKET_NEW) {
		net_load_addresses(s, sk);
		tcp_base(s, &n);
		slots_mark(SOCKETS, slot);
	}
	if (s->flags & MOTE_SOCKET_SYN && state != TCP_SYN_SENT) {
		s->flags &= ~MOTE_SOCKET_SYN;
		s->copied_seq = n.nxt - (u32)n.received;
	}
	if (!(s->flags & MOTE_SOCKET_FIN_SENT) && write != s->write_seq &&
	    (tcp_sent_fin(state) || (state == TCP_CLOSE && tcp_fin_went(sk, &n, s->flags)))) {
		s->flags |= MOTE_SOCKET_FIN_SENT;
		s->write_seq++;
	}
	if (!(s->flags & MOTE_SOCKET_FIN_TAKEN) && tcp_took_fin(sk, &n)) {
		s->flags |= MOTE_SOCKET_FIN_TAKEN;
		s->copied_seq++;
	}
	if (tcp_set_truth(s, sk, &n))
		slots_mark(SOCKETS, slot);
}

/* What moved since the last release; false: nothing. */
static __always_inline bool tcp_take_moved(struct mote_socket *s, u32 write, u32 copied,
					   struct mote_traffic *moved)
{
	moved->sent = tcp_moved(write, s->write_seq);
	moved->received = s->flags & MOTE_SOCKET_SYN ? 0 : tcp_moved(copied, s->copied_seq);
	moved->sent_calls = moved->sent > 0;
	moved->received_calls = moved->received > 0;
	if (moved->sent)
		s->write_seq = write;
	if (moved->received)
		s->copied_seq = copied;
	return moved->sent || moved->received;
}

/* close() has given it up, or will never be told of its end. */
static __always_inline bool tcp_is_over(const struct sock *sk, u8 state)
{
	return state != TCP_ESTABLISHED && (state == TCP_CLOSE || !net_by_state) &&
	       BPF_CORE_READ(sk, __sk_common.skc_flags) & SOCK_DEAD;
}

static __always_inline void tcp_released_slot(struct mote_socket *s, u32 slot,
					      const struct sock *sk, u8 state)
{
	const struct tcp_sock *tp = (const void *)sk;
	u32 write = BPF_CORE_READ(tp, write_seq), copied = BPF_CORE_READ(tp, copied_seq);
	struct mote_traffic moved = {};
	bool any;

	if (state != TCP_ESTABLISHED || s->flags & (MOTE_SOCKET_NEW | MOTE_SOCKET_SYN))
		tcp_settle(s, slot, sk, state, write, copied);
	any = tcp_take_moved(s, write, copied, &moved);
	if (s->tgid && (!any || net_count_again(s, slot, MOTE_TCP, &moved)))
		return;
	net_count_new(net_address(sk), slot, MOTE_TCP, moved.sent ?: NOT_THIS_WAY,
		      moved.received ?: NOT_THIS_WAY);
}

/*
 * The lock is about to be given back, of a socket of any kind: what is known is TCP's and wanted,
 * and the rest is looked at only if it is not. Where no hook tells of UDP's ends, a slot outlives
 * its socket, whose memory may be TCP's by now.
 */
static __always_inline void tcp_released(struct mote_slot_cpu *cpu, const struct sock *sk)
{
	u32 slot = 0;
	struct mote_socket *s = net_find(cpu, sk, &slot);
	struct compat_sock_head now;

	if ((!s || s->protocol != MOTE_TCP) && !net_wants(sk, IPPROTO_TCP))
		return;
	compat_sock_head(&now, sk);
	if (s && !tcp_is_same(s, now.hash, now.state)) {
		tcp_lost(slot, false);
		s = NULL;
		if (!net_wants(sk, IPPROTO_TCP))
			return;
	}
	if (now.state == TCP_LISTEN && s)
		return;
	if (!s)
		s = tcp_open_late(sk, now.state, &slot);
	if (!s)
		return;
	if (now.state == TCP_LISTEN) {
		net_count_new(net_address(sk), slot, MOTE_TCP, NOT_THIS_WAY, NOT_THIS_WAY);
		return;
	}
	tcp_released_slot(s, slot, sk, now.state);
	if (s->state != now.state || s->hash != now.hash)
		tcp_came_to(s, slot, now.hash, now.state);
	if (tcp_is_over(sk, now.state)) {
		tcp_refresh(s, sk);
		net_close(s, slot);
	}
}

/* A call has returned, and nobody holds the lock: what it said. */
static __always_inline void tcp_returned(struct mote_slot_cpu *cpu, const struct sock *sk, s64 sent,
					 s64 received)
{
	struct mote_traffic moved = net_moved(sent, received);
	u32 slot = 0;
	struct mote_socket *s = net_find(cpu, sk, &slot);
	struct compat_sock_head now;

	compat_sock_head(&now, sk);
	if (s && !tcp_may_be_same(s, now.hash, now.state)) {
		tcp_lost(slot, false);
		s = NULL;
	}
	if (!s && !net_wants(sk, IPPROTO_TCP))
		return;
	if (!s)
		s = tcp_open_late(sk, now.state, &slot);
	if (s && !s->hash)
		tcp_came_to(s, slot, now.hash, now.state);
	if (s && tcp_truth_of(s, sk, &moved))
		slots_mark(SOCKETS, slot);
	if (s && s->tgid && net_count_again(s, slot, MOTE_TCP, &moved))
		return;
	net_count_new(net_address(sk), slot, MOTE_TCP, sent, received);
}

/*
 * It has no slot, and its end is the last moment to look at what it moved. Of one that is older
 * than mote and found no slot either this has what it moved before, too.
 */
static __always_inline void tcp_ended_unseen(struct mote_slot_cpu *cpu, const struct sock *sk,
					     int oldstate)
{
	struct mote_net_ctl *ctl = net_control();
	struct tcp_numbers n;

	if (!ctl || !ctl->live)
		return;
	if (net_tcp_by_tp || oldstate == TCP_SYN_SENT || oldstate == TCP_LISTEN ||
	    oldstate == TCP_CLOSE || !tcp_numbers(&n, sk))
		return;
	tcp_add_unseen(cpu, sk, &n, oldstate);
}

/* SYN_RECV is left out: the child of a listening socket has no address yet. */
NET_FUNCTION int tcp_try(u64 address, u32 oldstate, u32 newstate)
{
	struct net_socket_fill fill = { .sk = (const void *)address, .protocol = MOTE_TCP };
	struct mote_slot_cpu *cpu = net_cpu();
	struct net_caller caller;

	if (newstate != TCP_LISTEN)
		fill.flags = MOTE_SOCKET_NEW | MOTE_SOCKET_TRUTH;
	if (newstate == TCP_SYN_SENT)
		fill.flags |= MOTE_SOCKET_ACTIVE | MOTE_SOCKET_SYN;
	else if (oldstate == TCP_SYN_SENT)
		fill.flags |= MOTE_SOCKET_ACTIVE;
	/* connect() and listen(); established it becomes in a softirq */
	if (newstate != TCP_ESTABLISHED) {
		net_caller(&caller);
		fill.owner = &caller;
	}
	return cpu ? net_open(cpu, &fill, net_socket_fill) : -1;
}

static __always_inline struct mote_socket *tcp_open(const struct sock *sk, int oldstate,
						    int newstate, u32 *slot)
{
	u64 address = net_address(sk);

	return net_socket_at(NET_TRIES(tcp_try(address, oldstate, newstate)), slot);
}

/* The peer's first sequence number is known now. */
static __always_inline void tcp_connects(struct mote_socket *s, const struct sock *sk)
{
	const struct tcp_sock *tp = (const void *)sk;

	if (!(s->flags & MOTE_SOCKET_SYN))
		return;
	s->flags &= ~MOTE_SOCKET_SYN;
	s->copied_seq = BPF_CORE_READ(tp, copied_seq);
}

/* Into these states tcp_send_fin() follows at once. */
static __always_inline void tcp_fin(struct mote_socket *s, int state)
{
	if (s->flags & MOTE_SOCKET_FIN_SENT || !tcp_sent_fin(state))
		return;
	s->flags |= MOTE_SOCKET_FIN_SENT;
	s->write_seq++;
}

/* Of a socket that has a slot. */
static __always_inline void tcp_change(struct mote_socket *s, u32 slot, const struct sock *sk,
				       u32 hash, int oldstate, int newstate)
{
	tcp_came_to(s, slot, hash, oldstate);
	tcp_fin(s, oldstate);
	if (oldstate != TCP_SYN_SENT && oldstate != TCP_LISTEN && oldstate != TCP_CLOSE)
		tcp_refresh(s, sk);
	if (newstate == TCP_ESTABLISHED) {
		net_load_addresses(s, sk);
		tcp_connects(s, sk);
		s->hash = hash;
	}
	tcp_fin(s, newstate);
	s->state = newstate;
	if (newstate == TCP_CLOSE && BPF_CORE_READ(sk, __sk_common.skc_flags) & SOCK_DEAD)
		net_close(s, slot);
	else
		slots_mark(SOCKETS, slot);
}

/* In the lock, before sk_state is set. */
static __always_inline void tcp_state(struct mote_slot_cpu *cpu, const struct sock *sk,
				      int oldstate, int newstate)
{
	u32 slot = 0, event = tcp_event(oldstate, newstate);
	u32 hash = BPF_CORE_READ(sk, __sk_common.skc_hash);
	struct mote_socket *s = net_find(cpu, sk, &slot);

	if (s && (newstate == TCP_SYN_SENT || newstate == TCP_LISTEN ||
		  !tcp_is_same(s, hash, oldstate))) {
		tcp_lost(slot, false);
		s = NULL;
	}
	if (!s && !net_wants(sk, IPPROTO_TCP))
		return;
	if (!s &&
	    (newstate == TCP_SYN_SENT || newstate == TCP_ESTABLISHED || newstate == TCP_LISTEN))
		s = tcp_open(sk, oldstate, newstate, &slot);
	if (s)
		tcp_change(s, slot, sk, hash, oldstate, newstate);
	else if (newstate == TCP_CLOSE)
		tcp_ended_unseen(cpu, sk, oldstate);
	if (event)
		net_tell(net_address(sk), s ? slot : (u32)-1, event,
			 newstate == TCP_CLOSE ? oldstate : newstate);
}

#endif
