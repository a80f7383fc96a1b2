/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the network programs share: maps, whose a call is, flows, and the slot of a socket. Kernel
 * memory is read by BPF_CORE_READ only, so that one logic serves both sets; that a socket does not
 * go away meanwhile is the callers' (a lock, a reference, or its destructor).
 */
#ifndef MOTE_BPF_NET_H
#define MOTE_BPF_NET_H

#include "kernel.h"
#include "compat.h"
#include "abi.h"
#include "maps.h"
#include "slots.h"
#include "edge.h"

/* User space sets the sizes. */
const volatile u32 net_nsockets = 8192, net_nflows = 8192, net_ncpus = 1;
const volatile u32 net_families = 3;  /* bit 0: IPv4, bit 1: IPv6 */
const volatile u32 net_protocols = 3; /* bits of enum mote_protocol */
/* What sock_send_length and sock_recv_length count. */
const volatile bool net_tcp_by_tp = false;
const volatile bool net_udp_send_by_tp = false;
const volatile bool net_udp_recv_by_tp = false;
const volatile bool net_by_state = true;   /* net_set_state is attached */
const volatile bool net_udp_pages = false; /* net_udp_sendpage is */
const volatile u32 net_netns = 0;          /* where the iterators walk: mote's own */

#define TABLE(slots_, value_, marks_, index_, free_) \
	ARRAY(slots_, value_, 8192);                 \
	ARRAY(marks_, struct mote_slot_marks, 1);    \
	struct {                                     \
		__uint(type, BPF_MAP_TYPE_HASH);     \
		__uint(max_entries, 8192);           \
		__type(key, u64);                    \
		__type(value, u64);                  \
	} index_ SEC(".maps");                       \
	struct {                                     \
		__uint(type, BPF_MAP_TYPE_QUEUE);    \
		__uint(max_entries, 8192);           \
		__uint(value_size, sizeof(u32));     \
	} free_ SEC(".maps")

TABLE(net_sockets, struct mote_socket, net_socket_marks, net_socket_index, net_socket_free);
TABLE(net_flows, struct mote_flow, net_flow_marks, net_flow_index, net_flow_free);
ARRAY(net_cpus, struct mote_slot_cpu, 1);
ARRAY(net_reap, struct mote_reap, MOTE_SLOT_TABLES);
ARRAY(net_ctl, struct mote_net_ctl, 1);

#define SOCKETS                                                                                 \
	(&(struct slots){ &net_socket_index, &net_socket_free, &net_sockets, &net_socket_marks, \
			  MOTE_SLOTS_SOCKETS })
#define FLOWS                                                                           \
	(&(struct slots){ &net_flow_index, &net_flow_free, &net_flows, &net_flow_marks, \
			  MOTE_SLOTS_FLOWS })

static __always_inline struct mote_net_ctl *net_control(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&net_ctl, &zero);
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

/* Whose a call is; task NULL and tgid 0: the kernel's own. Threads are their process's. */
struct net_caller {
	struct task_struct *task;
	u32 tgid;
};

static __always_inline void net_caller(struct net_caller *c)
{
	struct task_struct *t = (void *)bpf_get_current_task();

	c->tgid = bpf_get_current_pid_tgid() >> 32;
	if (BPF_CORE_READ(t, flags) & PF_KTHREAD) {
		t = compat_works_for(t);
		c->tgid = t ? BPF_CORE_READ(t, tgid) : 0;
	}
	c->task = t;
}

static __always_inline u64 net_start(const struct net_caller *c)
{
	struct task_struct *t = c->task;

	return t ? BPF_CORE_READ(t, group_leader, start_boottime) : 0;
}

/* Calls without bytes are empty datagrams. */
static __always_inline void net_add(struct mote_traffic *to, const struct mote_traffic *moved)
{
	if (moved->sent_calls) {
		__sync_fetch_and_add(&to->sent, moved->sent);
		SLOT_ADD(to->sent_calls, 1);
	}
	if (moved->received_calls) {
		__sync_fetch_and_add(&to->received, moved->received);
		SLOT_ADD(to->received_calls, 1);
	}
}

static __always_inline void net_add_check(u32 tgid, enum mote_protocol protocol,
					  const struct mote_traffic *moved)
{
	struct mote_net_ctl *ctl = net_control();

	if (!ctl || !ctl->check_tgid || ctl->check_tgid != tgid)
		return;
	/* an add of what the compiler knows to be 0 becomes an atomic OR, which 5.10 has not got */
	if (moved->sent)
		__sync_fetch_and_add(&ctl->check_sent[protocol], moved->sent);
	if (moved->received)
		__sync_fetch_and_add(&ctl->check_received[protocol], moved->received);
}

struct net_flow_fill {
	const struct net_caller *caller;
	enum mote_protocol protocol;
};

static __always_inline void net_flow_fill(void *slot, void *arg)
{
	const struct net_flow_fill *fill = arg;
	struct mote_flow *f = slot;

	f->start = net_start(fill->caller);
	f->protocol = fill->protocol;
}

/* `s` NULL: the socket has no slot. */
static __always_inline void net_count(struct mote_slot_cpu *cpu, struct mote_socket *s, u32 slot,
				      enum mote_protocol protocol, const struct net_caller *caller,
				      const struct mote_traffic *moved)
{
	u64 socket = s ? MOTE_SOCKET_ID(slot, s->slot.gen) : MOTE_NO_SOCKET(protocol);
	struct net_flow_fill fill = { caller, protocol };
	struct mote_flow *f;
	u32 flow = 0;

	f = slots_get(FLOWS, cpu, MOTE_FLOW_KEY(socket, caller->tgid), &flow, net_flow_fill, &fill);
	if (f) {
		net_add(&f->traffic, moved);
		slots_mark(FLOWS, flow);
		if (s)
			s->flow = SLOT_PLACE(flow, f->slot.gen);
	} else {
		net_add(&cpu->other[protocol], moved);
	}
	if (edges_wanted)
		edge_moved(socket, moved->sent, moved->received);
	net_add_check(caller->tgid, protocol, moved);
}

/*
 * The short way, for the process that moved bytes over this socket last; false: somebody else. No
 * kernel thread has a flow under its own number.
 */
static __always_inline bool net_count_again(struct mote_socket *s, u32 slot,
					    enum mote_protocol protocol,
					    const struct mote_traffic *moved)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, flow = 0;
	u64 key = MOTE_FLOW_KEY(MOTE_SOCKET_ID(slot, s->slot.gen), tgid);
	struct mote_flow *f = slots_recall(FLOWS, key, s->flow, &flow);

	if (!f)
		return false;
	net_add(&f->traffic, moved);
	slots_mark(FLOWS, flow);
	if (edges_wanted)
		edge_moved(MOTE_FLOW_SOCKET(key), moved->sent, moved->received);
	net_add_check(tgid, protocol, moved);
	return true;
}

static __always_inline void net_load_addresses(struct mote_socket *s, const struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	u32 local, remote;

	s->family = family;
	s->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	s->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (family == AF_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
		bpf_core_read(s->local, sizeof(s->local), &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(s->remote, sizeof(s->remote), &sk->__sk_common.skc_v6_daddr);
		return;
	}
	local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	remote = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	__builtin_memset(s->local, 0, sizeof(s->local));
	__builtin_memset(s->remote, 0, sizeof(s->remote));
	__builtin_memcpy(s->local, &local, sizeof(local));
	__builtin_memcpy(s->remote, &remote, sizeof(remote));
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

/*
 * Claims a slot for a socket that has none; NULL: there is no room. `set`: net_socket_fill(), or
 * what calls it and takes `fill` as the first member of something larger.
 */
static __always_inline struct mote_socket *net_open(struct mote_slot_cpu *cpu,
						    struct net_socket_fill *fill,
						    void (*set)(void *slot, void *fill), u32 *slot)
{
	struct mote_socket *s = slots_get(SOCKETS, cpu, (u64)fill->sk, slot, set, fill);
	struct mote_net_ctl *ctl;

	if (s) {
		slots_mark(SOCKETS, *slot);
		return s;
	}
	ctl = net_control();
	if (ctl)
		ctl->turned_away = 1;
	return NULL;
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
}

/*
 * How a socket that is seen first by something else than its opening came to be missed. The walks
 * at start did not meet those of other network namespaces.
 */
static __always_inline u32 net_missed(const struct sock *sk)
{
	struct mote_net_ctl *ctl = net_control();

	if (!ctl || !ctl->live)
		return MOTE_SOCKET_SEEDED;
	if (ctl->turned_away)
		return MOTE_SOCKET_LATE;
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

#endif
