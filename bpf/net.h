/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the network programs share: the slot of a socket, from its first sight to its end. Kernel
 * memory is read by BPF_CORE_READ only, so that one logic serves both sets; that a socket does not
 * go away meanwhile is the callers' (a lock, a reference, or its destructor).
 */
#ifndef MOTE_BPF_NET_H
#define MOTE_BPF_NET_H

#include "net_event.h"
#include "net_flow.h"

static __always_inline struct mote_socket *net_socket_at(int claimed, u32 *slot)
{
	*slot = claimed;
	return claimed < 0 ? NULL : bpf_map_lookup_elem(&net_sockets, slot);
}

NET_FUNCTION int net_find_again(u64 key)
{
	struct mote_slot_cpu *cpu = net_cpu();
	u32 slot = 0;

	return cpu && slots_find(SOCKETS, cpu, key, &slot) ? (int)slot : -1;
}

static __always_inline struct mote_socket *net_find(struct mote_slot_cpu *cpu,
						    const struct sock *sk, u32 *slot)
{
	bool absent;
	struct mote_socket *s = slots_lookup(SOCKETS, cpu, (u64)sk, slot, &absent);

	return s || absent ? s : net_socket_at(net_find_again(net_address(sk)), slot);
}

static __always_inline bool net_wants_family(u16 family)
{
	return (family == AF_INET && net_families & 1) || (family == AF_INET6 && net_families & 2);
}

/* A raw socket can have the protocol of TCP or UDP, too. */
static __always_inline bool net_wants(const struct sock *sk, u16 kernel_protocol)
{
	enum mote_protocol protocol = kernel_protocol == IPPROTO_TCP ? MOTE_TCP : MOTE_UDP;

	return net_protocols >> protocol & 1 &&
	       net_wants_family(BPF_CORE_READ(sk, __sk_common.skc_family)) &&
	       BPF_CORE_READ(sk, sk_protocol) == kernel_protocol &&
	       BPF_CORE_READ(sk, sk_type) != SOCK_RAW;
}

static __always_inline void net_load_addresses(struct mote_socket *s, const struct sock *sk)
{
	net_load_ends(&s->ends, sk);
}

/* The inode that /proc/PID/fd shows; 0: it has none, as before accept(). */
static __always_inline u64 net_inode(const struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);
	struct socket_alloc *alloc;

	if (!socket)
		return 0;
	alloc = (void *)socket - bpf_core_field_offset(struct socket_alloc, socket);
	return BPF_CORE_READ(alloc, vfs_inode.i_ino);
}

/*
 * What a socket gets when it is accepted, and when somebody asks for it; true: it is new. An inode
 * it has no more when it is closed.
 */
static __always_inline bool net_load_names(struct mote_socket *s, const struct sock *sk)
{
	u64 inode = net_inode(sk), cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	bool changed = (inode && inode != s->inode) || cookie != s->cookie;

	if (inode)
		s->inode = inode;
	s->cookie = cookie;
	return changed;
}

/* In the owner's own context only. */
static __always_inline void net_own(struct mote_socket *s, const struct sock *sk,
				    const struct net_caller *caller)
{
	struct task_struct *t = caller->task;

	net_load_names(s, sk);
	if (!t)
		return;
	s->uid = BPF_CORE_READ(sk, sk_uid.val);
	s->start = net_start(caller);
	s->cgroup_id = BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id);
	s->tgid = caller->tgid;
}

/* Its inode number; 0: the kernel has no namespaces. */
static __always_inline u32 net_namespace(const struct sock *sk)
{
	return bpf_core_field_exists(sk->__sk_common.skc_net.net)
		       ? BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum)
		       : 0;
}

struct net_socket_fill {
	const struct sock *sk;
	const struct net_caller *owner; /* NULL: not known here */
	u32 flags;                      /* MOTE_SOCKET_* */
	enum mote_protocol protocol;
};

static __always_inline void net_socket_fill(void *slot, void *arg)
{
	const struct net_socket_fill *fill = arg;
	const struct sock *sk = fill->sk;
	struct mote_socket *s = slot;

	s->opened = bpf_ktime_get_ns();
	s->closed = 0;
	s->protocol = fill->protocol;
	s->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	s->flags = fill->flags;
	if (BPF_CORE_READ_BITFIELD_PROBED(sk, sk_kern_sock))
		s->flags |= MOTE_SOCKET_KERNEL;
	net_load_addresses(s, sk);
	s->uid = BPF_CORE_READ(sk, sk_uid.val);
	s->netns = net_namespace(sk);
	s->tgid = 0;
	s->start = 0;
	s->cgroup_id = 0;
	s->inode = 0;
	net_load_names(s, sk);
	s->write_seq = 0;
	s->copied_seq = 0;
	s->hash = 0;
	s->srtt_us = 0;
	s->flow = 0;
	s->retransmitted = 0;
	s->accepted = 0;
	s->taken = 0;
	s->accepted_base = 0;
	s->taken_base = 0;
	if (fill->owner)
		net_own(s, sk, fill->owner);
}

#define NET_AGAIN (-2)

/* All tries to open a socket: net_open() is one. */
#define NET_TRIES(one)                                                           \
	({                                                                       \
		int claimed_ = NET_AGAIN;                                        \
                                                                                 \
		for (int i_ = 0; i_ < SLOT_TRIES && claimed_ == NET_AGAIN; i_++) \
			claimed_ = (one);                                        \
		claimed_ == NET_AGAIN ? net_give_up() : claimed_;                \
	})

static __always_inline int net_no_room(void)
{
	struct mote_net_ctl *ctl = net_control();

	if (ctl)
		ctl->turned_away = 1;
	return -1;
}

static __always_inline int net_give_up(void)
{
	struct mote_slot_cpu *cpu = net_cpu();

	if (cpu)
		__sync_fetch_and_add(&cpu->refused[MOTE_SLOTS_SOCKETS], 1);
	return net_no_room();
}

/*
 * Claims a slot for a socket that has none; -1: there is no room; NET_AGAIN. `set`:
 * net_socket_fill(), or what calls it and takes `fill` as the first member of something larger.
 */
static __always_inline int net_open(struct mote_slot_cpu *cpu, struct net_socket_fill *fill,
				    void (*set)(void *slot, void *fill))
{
	u32 slot = 0;
	bool again;

	if (slots_try(SOCKETS, cpu, (u64)fill->sk, &slot, set, fill, &again)) {
		slots_mark(SOCKETS, slot);
		return slot;
	}
	return again ? NET_AGAIN : net_no_room();
}

/*
 * The socket has ended. Its key goes first, and with the mark user space learns of it; nothing may
 * claim the address again for what is left of this socket.
 */
static __always_inline void net_close(struct mote_socket *s, u32 slot)
{
	slots_remove(SOCKETS, s->slot.key, slot);
	s->closed = bpf_ktime_get_ns();
	slots_mark(SOCKETS, slot);
	if (s->protocol == MOTE_UDP)
		net_tell(0, slot, MOTE_EVENT_CLOSED, s->state);
}

/*
 * How a socket that is seen first by something else than its opening came to be missed. The walks
 * at start did not meet those of other network namespaces; who just connects is not older.
 */
static __always_inline u32 net_missed(const struct sock *sk)
{
	struct mote_net_ctl *ctl = net_control();

	if (!ctl || !ctl->live)
		return MOTE_SOCKET_SEEDED;
	if (ctl->turned_away)
		return MOTE_SOCKET_LATE;
	if (BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_SYN_SENT)
		return 0;
	return net_netns && net_namespace(sk) != net_netns ? MOTE_SOCKET_SEEDED : 0;
}

/* The first process that uses a socket has accepted it; before that others may hold its lock. */
static __always_inline void net_want_owner(struct mote_socket *s, u32 slot, const struct sock *sk,
					   const struct net_caller *caller)
{
	if (s->tgid || !caller->tgid || !BPF_CORE_READ(sk, sk_socket))
		return;
	net_own(s, sk, caller);
	slots_mark(SOCKETS, slot);
}

/*
 * The long way, of a caller that moved bytes over this socket for the first time, or after another
 * one, or never yet had it: `slot` -1 if the socket has none, both NOT_THIS_WAY if it moved none.
 */
NET_FUNCTION int net_count_new(u64 address, u32 slot, u32 protocol, s64 sent, s64 received)
{
	struct mote_traffic moved = net_moved(sent, received);
	struct mote_slot_cpu *cpu = net_cpu();
	struct net_caller caller;
	struct mote_socket *s;

	s = slot == (u32)-1 ? NULL : bpf_map_lookup_elem(&net_sockets, &slot);
	net_caller(&caller);
	if (s)
		net_want_owner(s, slot, (const void *)address, &caller);
	if (cpu && (moved.sent_calls || moved.received_calls))
		net_count(cpu, s, slot, protocol, &caller, &moved);
	return 0;
}

#endif
