/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel's own counters of a TCP socket say, beside what the hooks saw: accepted for
 * sending = bytes_acked + (write_seq - snd_una), taken by the application = bytes_received -
 * (rcv_nxt - copied_seq). A SYN and a FIN have a sequence number each. Of these, bytes_acked has
 * the SYN of who connected, not that of who accepted (tcp_create_openreq_child() begins after it);
 * bytes_received has no SYN.
 */
#ifndef MOTE_BPF_NET_TCP_NUMBERS_H
#define MOTE_BPF_NET_TCP_NUMBERS_H

#include "net.h"

struct tcp_numbers {
	u32 write, una, copied, nxt;
	u64 acked, received;
};

/* False: they moved meanwhile, as without the lock they can. */
static __always_inline bool tcp_numbers_sent(struct tcp_numbers *n, const struct sock *sk)
{
	const struct tcp_sock *tp = (const void *)sk;

	n->una = BPF_CORE_READ(tp, snd_una);
	n->acked = BPF_CORE_READ(tp, bytes_acked);
	n->write = BPF_CORE_READ(tp, write_seq);
	return n->una == BPF_CORE_READ(tp, snd_una) && n->acked == BPF_CORE_READ(tp, bytes_acked);
}

static __always_inline bool tcp_numbers_received(struct tcp_numbers *n, const struct sock *sk)
{
	const struct tcp_sock *tp = (const void *)sk;

	n->nxt = BPF_CORE_READ(tp, rcv_nxt);
	n->received = BPF_CORE_READ(tp, bytes_received);
	n->copied = BPF_CORE_READ(tp, copied_seq);
	return n->nxt == BPF_CORE_READ(tp, rcv_nxt) &&
	       n->received == BPF_CORE_READ(tp, bytes_received);
}

static __always_inline bool tcp_numbers(struct tcp_numbers *n, const struct sock *sk)
{
	bool sent = tcp_numbers_sent(n, sk), received = tcp_numbers_received(n, sk);

	return sent && received;
}

/*
 * 1 if a number is 0, else 0, without a branch: with each the ways double that the verifier
 * follows. The compiler must not see what it is, or makes a branch of it.
 */
static __always_inline u32 tcp_is_zero(u64 n)
{
	n |= -n;
	asm volatile("" : "+r"(n));
	n >>= 63;
	asm volatile("" : "+r"(n));
	return n ^ 1;
}

#define TCP_SENT_FIN                                                                          \
	(1u << TCP_FIN_WAIT1 | 1u << TCP_FIN_WAIT2 | 1u << TCP_LAST_ACK | 1u << TCP_CLOSING | \
	 1u << TCP_TIME_WAIT)

static __always_inline u32 tcp_sent_fin(u32 state)
{
	return TCP_SENT_FIN >> (state & 31) & 1;
}

/*
 * How many of the sequence numbers that a socket used are no bytes: bytes_sent has these without
 * SYN and FIN, and those that were sent again twice.
 */
static __always_inline u64 tcp_no_bytes(const struct tcp_sock *tp, const struct tcp_numbers *n,
					u32 next)
{
	return n->acked + (next - n->una) - BPF_CORE_READ(tp, bytes_sent) +
	       BPF_CORE_READ(tp, bytes_retrans);
}

/* Whether a socket that was not seen to connect did: of these, what is not its FIN is its SYN. */
static __always_inline u32 tcp_connected(const struct sock *sk, const struct tcp_numbers *n,
					 u32 state)
{
	const struct tcp_sock *tp = (const void *)sk;

	return tcp_is_zero(tcp_no_bytes(tp, n, BPF_CORE_READ(tp, snd_nxt)) - tcp_sent_fin(state) -
			   1);
}

static __always_inline u32 tcp_flag(u32 flags, u32 flag)
{
	return tcp_is_zero(flags & flag) ^ 1;
}

/* In CLOSE, where the state does not tell: all was sent, and beside a SYN there was a FIN. */
static __always_inline u32 tcp_fin_went(const struct sock *sk, const struct tcp_numbers *n,
					u32 flags)
{
	const struct tcp_sock *tp = (const void *)sk;
	u32 next = BPF_CORE_READ(tp, snd_nxt);

	return tcp_is_zero(n->write - next) &
	       tcp_is_zero(tcp_no_bytes(tp, n, next) - tcp_flag(flags, MOTE_SOCKET_ACTIVE) - 1);
}

static __always_inline s64 tcp_accepted(const struct tcp_numbers *n, u32 flags)
{
	return n->acked + (u32)(n->write - n->una) - tcp_flag(flags, MOTE_SOCKET_ACTIVE) -
	       tcp_flag(flags, MOTE_SOCKET_FIN_SENT);
}

static __always_inline s64 tcp_taken(const struct tcp_numbers *n, u32 flags)
{
	return n->received - (u32)(n->nxt - n->copied) - tcp_flag(flags, MOTE_SOCKET_FIN_TAKEN);
}

/* copied_seq has passed the peer's FIN: rcv_nxt is behind it, and nothing can follow. */
static __always_inline u32 tcp_took_fin(const struct sock *sk, const struct tcp_numbers *n)
{
	return tcp_is_zero(n->copied - n->nxt) &
	       tcp_flag(BPF_CORE_READ(sk, __sk_common.skc_flags), SOCK_DONE);
}

/*
 * They never fall: a look without the lock may come between two steps of the kernel. `s->state`
 * CLOSE: tcp_disconnect() may have set the numbers back, and what was accepted cannot grow. In
 * SYN_SENT they may be another connection's still: tcp_defers().
 */
static __always_inline bool tcp_set_accepted(struct mote_socket *s, const struct tcp_numbers *n)
{
	s64 accepted = tcp_accepted(n, s->flags);

	if (accepted <= (s64)s->accepted || s->state == TCP_CLOSE || s->state == TCP_SYN_SENT)
		return false;
	s->accepted = accepted;
	return true;
}

static __always_inline bool tcp_set_taken(struct mote_socket *s, const struct sock *sk,
					  const struct tcp_numbers *n)
{
	s64 taken = tcp_taken(n, tcp_took_fin(sk, n) * MOTE_SOCKET_FIN_TAKEN);

	if (taken <= (s64)s->taken || s->flags & MOTE_SOCKET_SYN)
		return false;
	s->taken = taken;
	return true;
}

static __always_inline bool tcp_set_truth(struct mote_socket *s, const struct sock *sk,
					  const struct tcp_numbers *n)
{
	bool accepted = tcp_set_accepted(s, n), taken = tcp_set_taken(s, sk, n);

	return accepted || taken;
}

/* In CLOSE: tcp_disconnect() has set the numbers back, or there never was a connection. */
static __always_inline bool tcp_is_reset(const struct tcp_numbers *n)
{
	return !n->acked && !n->received;
}

static __always_inline bool tcp_truth(struct mote_socket *s, const struct sock *sk)
{
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	struct tcp_numbers n;

	if (s->state == TCP_LISTEN || !tcp_numbers(&n, sk))
		return false;
	if (state == TCP_CLOSE && tcp_is_reset(&n))
		return false;
	if (state == TCP_CLOSE && tcp_fin_went(sk, &n, s->flags))
		s->flags |= MOTE_SOCKET_FIN_SENT;
	return tcp_set_truth(s, sk, &n);
}

/* Of the way that `moved` went. */
static __always_inline bool tcp_truth_of(struct mote_socket *s, const struct sock *sk,
					 const struct mote_traffic *moved)
{
	struct tcp_numbers n;

	if (moved->sent_calls)
		return tcp_numbers_sent(&n, sk) && tcp_set_accepted(s, &n);
	return tcp_numbers_received(&n, sk) && tcp_set_taken(s, sk, &n);
}

#endif
