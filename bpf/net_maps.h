/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The maps of the network programs, what user space sets before it loads them, and how they are
 * reached. */
#ifndef MOTE_BPF_NET_MAPS_H
#define MOTE_BPF_NET_MAPS_H

#include "kernel.h"
#include "compat.h"
#include "abi.h"
#include "maps.h"
#include "slots.h"

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
const volatile bool net_events = true;     /* there is a buffer for records of sockets */
const volatile u32 net_netns = 0;          /* where the iterators walk: mote's own */

#define TABLE(slots_, value_, marks_, index_, free_)                        \
	ARRAY(slots_, value_, 8192);                                        \
	ARRAY(marks_, struct mote_slot_marks_line, MOTE_MARKS_LINES(8192)); \
	struct {                                                            \
		__uint(type, BPF_MAP_TYPE_HASH);                            \
		__uint(max_entries, 8192);                                  \
		__type(key, u64);                                           \
		__type(value, u64);                                         \
	} index_ SEC(".maps");                                              \
	struct {                                                            \
		__uint(type, BPF_MAP_TYPE_QUEUE);                           \
		__uint(max_entries, 8192);                                  \
		__uint(value_size, sizeof(u32));                            \
	} free_ SEC(".maps")

TABLE(net_sockets, struct mote_socket, net_socket_marks, net_socket_index, net_socket_free);
TABLE(net_flows, struct mote_flow, net_flow_marks, net_flow_index, net_flow_free);
ARRAY(net_cpus, struct mote_slot_cpu, 1);
ARRAY(net_reap, struct mote_reap, MOTE_SLOT_TABLES);
ARRAY(net_ctl, struct mote_net_ctl, 1);

/* That of lifecycle.bpf.c: one order, and one buffer for all. Not made where there is none. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

#define SOCKETS                                                                                 \
	(&(struct slots){ &net_socket_index, &net_socket_free, &net_sockets, &net_socket_marks, \
			  MOTE_SLOTS_SOCKETS })
#define FLOWS                                                                           \
	(&(struct slots){ &net_flow_index, &net_flow_free, &net_flows, &net_flow_marks, \
			  MOTE_SLOTS_FLOWS })

/*
 * Where there are loops and many ways through, there are global functions: the verifier looks at
 * each once, and not in every state of who calls it. What they take and give are numbers (5.10):
 * slots, of which -1 is none, and addresses. That the caller is inside, from enter to exit, keeps a
 * slot its key's.
 */
#define NET_FUNCTION __attribute__((noinline))

/* The number of what the verifier may know as a pointer. */
static __always_inline u64 net_address(const void *pointer)
{
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &pointer);
	return address;
}

static __always_inline struct mote_slot_cpu *net_cpu(void)
{
	u32 number = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&net_cpus, &number);
}

static __always_inline struct mote_net_ctl *net_control(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&net_ctl, &zero);
}

#endif
