/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whose a call is, and what it moved: flows, and `other` for those that have no room. */
#ifndef MOTE_BPF_NET_FLOW_H
#define MOTE_BPF_NET_FLOW_H

#include "edge.h"
#include "net_maps.h"

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

#define NOT_THIS_WAY (-1)

/* Calls without bytes are empty datagrams. */
static __always_inline struct mote_traffic net_moved(s64 sent, s64 received)
{
	return (struct mote_traffic){
		.sent = sent > 0 ? sent : 0,
		.received = received > 0 ? received : 0,
		.sent_calls = sent >= 0,
		.received_calls = received >= 0,
	};
}

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
		__sync_fetch_and_add(&ctl->check_sent[compat_bounded(protocol, 1)], moved->sent);
	if (moved->received)
		__sync_fetch_and_add(&ctl->check_received[compat_bounded(protocol, 1)],
				     moved->received);
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

NET_FUNCTION int net_get_flow(u64 key, u64 task, u32 protocol)
{
	struct net_caller caller = { (void *)task, MOTE_FLOW_TGID(key) };
	struct net_flow_fill fill = { &caller, protocol };
	struct mote_slot_cpu *cpu = net_cpu();
	u32 slot = 0;

	return cpu && slots_get(FLOWS, cpu, key, &slot, net_flow_fill, &fill) ? (int)slot : -1;
}

/* `s` NULL: the socket has no slot. */
static __always_inline void net_count(struct mote_slot_cpu *cpu, struct mote_socket *s, u32 slot,
				      enum mote_protocol protocol, const struct net_caller *caller,
				      const struct mote_traffic *moved)
{
	u64 socket = s ? MOTE_SOCKET_ID(slot, s->slot.gen) : MOTE_NO_SOCKET(protocol);
	u64 key = MOTE_FLOW_KEY(socket, caller->tgid);
	int claimed = net_get_flow(key, (u64)caller->task, protocol);
	u32 flow = claimed;
	struct mote_flow *f = claimed < 0 ? NULL : bpf_map_lookup_elem(&net_flows, &flow);

	if (f) {
		net_add(&f->traffic, moved);
		slots_mark(FLOWS, flow);
		if (s)
			s->flow = SLOT_PLACE(flow, f->slot.gen);
	} else {
		net_add(&cpu->other[compat_bounded(protocol, 1)], moved);
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

#endif
