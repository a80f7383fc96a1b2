/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Records of sockets, for who follows events. They leave half of the buffer to those of processes,
 * on which accounts depend.
 */
#ifndef MOTE_BPF_NET_EVENT_H
#define MOTE_BPF_NET_EVENT_H

#include "net_maps.h"

static __always_inline void net_load_ends(struct mote_ends *ends, const struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	u32 local, remote;

	ends->family = family;
	ends->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	ends->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (family == AF_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		bpf_core_read(ends->local, sizeof(ends->local), &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(ends->remote, sizeof(ends->remote), &sk->__sk_common.skc_v6_daddr);
		return;
	}
	local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	remote = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	__builtin_memset(ends->local, 0, sizeof(ends->local));
	__builtin_memset(ends->remote, 0, sizeof(ends->remote));
	__builtin_memcpy(ends->local, &local, sizeof(local));
	__builtin_memcpy(ends->remote, &remote, sizeof(remote));
}

static __always_inline bool net_has_room(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) <
	       bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / 2;
}

static __always_inline void net_event_owner(struct mote_event_socket *e,
					    const struct mote_socket *s, u32 slot)
{
	e->event.pid = s->tgid;
	e->event.start = s->start;
	e->event.uid = s->uid;
	e->socket = MOTE_SOCKET_ID(slot, s->slot.gen);
	e->ends = s->ends;
}

static __always_inline void net_event_unknown(struct mote_event_socket *e, const struct sock *sk)
{
	e->event.pid = 0;
	e->event.start = 0;
	e->event.uid = BPF_CORE_READ(sk, sk_uid.val);
	e->socket = 0;
	net_load_ends(&e->ends, sk);
	e->ends.protocol = MOTE_TCP;
}

static __always_inline void net_event_fill(struct mote_event_socket *e, const struct sock *sk,
					   u32 slot)
{
	const struct mote_socket *s = bpf_map_lookup_elem(&net_sockets, &slot);
	u16 port;

	e->event.ppid = 0;
	e->event.time = bpf_ktime_get_ns();
	__builtin_memset(e->event.comm, 0, sizeof(e->event.comm));
	if (s)
		net_event_owner(e, s, slot);
	else
		net_event_unknown(e, sk);
	if (e->ends.protocol != MOTE_TCP)
		return;
	/* connect() has chosen it since the slot was claimed, and skc_num is 0 by the end */
	port = __builtin_bswap16(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport));
	if (port)
		e->ends.local_port = port;
}

/* `slot` -1: TCP without one; `address` 0: its memory may be another's by now. */
NET_FUNCTION int net_tell(u64 address, u32 slot, u32 kind, u32 state)
{
	struct mote_net_ctl *ctl = net_control();
	struct mote_event_socket *e;

	if (!net_events || !ctl || !*(volatile u32 *)&ctl->events)
		return 0;
	e = net_has_room() ? bpf_ringbuf_reserve(&events, sizeof(*e), 0) : NULL;
	if (!e) {
		__sync_fetch_and_add(&ctl->events_dropped, 1);
		return 0;
	}
	e->event.kind = kind;
	net_event_fill(e, (const void *)address, slot);
	e->ends.state = state;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
