// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Network bytes by socket and process: entry points. This file is built into several objects with
 * the same names of programs and maps: -DMOTE_FENTRY (trampolines) and -DMOTE_KPROBE, and each once
 * more with -DMOTE_FETCH for arm64. User space loads one of them, and of it the programs that the
 * hooks it chose need; an event is counted by one of them only.
 */
#include "kernel.h"
#include "net_sweep.h"
#include "probe.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* enter, the logic, exit: nothing in between returns */
#define WITH_CPU(logic)                                             \
	({                                                          \
		struct mote_slot_cpu *cpu = slots_enter(&net_cpus); \
                                                                    \
		if (cpu) {                                          \
			logic;                                      \
			slots_exit(cpu);                            \
		}                                                   \
		0;                                                  \
	})

/*
 * MOTE_MUTANT_*: broken on purpose, one way each (make MUTANT=...), for tests that must notice:
 * PEEK counts looks as receives, DEAF has a probe that does nothing. With LOST the kernel seems to
 * leave out two of three changes of state, and ends of sockets, which nothing must notice.
 */
#ifdef MOTE_MUTANT_PEEK
#	define NOT_RECEIVED MSG_ERRQUEUE
#	define LENGTH(len)  ((len) < 0 ? -(len) : (len))
#else
#	define NOT_RECEIVED (MSG_PEEK | MSG_ERRQUEUE)
#	define LENGTH(len)  (len)
#endif
#ifdef MOTE_MUTANT_LOST
#	define LOST (bpf_get_prandom_u32() % 3 != 0)
#else
#	define LOST false
#endif
#ifdef MOTE_MUTANT_DEAF
#	define DEAF true
#else
#	define DEAF false
#endif

ENTRY(net_release_sock, release_sock, struct sock *sk)
{
	return DEAF ? 0 : WITH_CPU(tcp_released(cpu, sk));
}

static __always_inline int udp_call(const struct sock *sk, s64 sent, s64 received)
{
	return WITH_CPU(udp_moved(cpu, sk, sent, received));
}

ENTRY(net_skb_consume_udp, skb_consume_udp, struct sock *sk, void *skb, int len)
{
	return LENGTH(len) < 0 ? 0 : udp_call(sk, NOT_THIS_WAY, LENGTH(len));
}

/*
 * A kretprobe does not see arguments: the entry remembers the socket by thread. An IPv6 socket that
 * sends to an IPv4 address passes udpv6_sendmsg() and, in it, udp_sendmsg(): the inner return takes
 * the socket, the outer finds none. What a missed return left behind the thread's next call
 * replaces.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024); /* twice what can be held in the return probes */
	__type(key, u32);
	__type(value, u64);
} net_udp_calls SEC(".maps");

/*
 * udp_sendpage() calls udp_sendmsg(), with no bytes or, on some devices and stable kernels, with
 * all: it has a place of its own, and what it calls does not count. Threads have at most 22 bits.
 */
#define OF_SENDMSG  0
#define OF_SENDPAGE (1u << 31)

static __always_inline int udp_enter(struct sock *sk, u32 function)
{
	u32 thread = (u32)bpf_get_current_pid_tgid() | function;
	u64 socket = (u64)sk;

	(void)bpf_map_update_elem(&net_udp_calls, &thread, &socket, BPF_ANY);
	return 0;
}

ENTRY(net_udp_sendmsg, udp_sendmsg, struct sock *sk)
{
	return udp_enter(sk, OF_SENDMSG);
}

ENTRY(net_udpv6_sendmsg, udpv6_sendmsg, struct sock *sk)
{
	return udp_enter(sk, OF_SENDMSG);
}

ENTRY(net_udp_sendpage, udp_sendpage, struct sock *sk)
{
	return udp_enter(sk, OF_SENDPAGE);
}

static __always_inline struct sock *udp_leave(u32 function)
{
	u32 thread = (u32)bpf_get_current_pid_tgid() | function;
	u64 *value = bpf_map_lookup_elem(&net_udp_calls, &thread), socket = value ? *value : 0;

	if (value)
		bpf_map_delete_elem(&net_udp_calls, &thread);
	return (struct sock *)socket;
}

static __always_inline bool udp_in_sendpage(void)
{
	u32 thread = (u32)bpf_get_current_pid_tgid() | OF_SENDPAGE;

	return net_udp_pages && bpf_map_lookup_elem(&net_udp_calls, &thread);
}

#ifdef MOTE_FENTRY
/* Of an IPv6 socket: udpv6_sendmsg() called it, and is counted. */
#	define SENT_BY(sk, own_family) \
		(BPF_CORE_READ(sk, __sk_common.skc_family) == (own_family) ? (sk) : NULL)
#else
#	define SENT_BY(sk, own_family) udp_leave(OF_SENDMSG)
#endif

static __always_inline int udp_sent(const struct sock *sk, int ret)
{
	return !sk || ret < 0 ? 0 : udp_call(sk, ret, NOT_THIS_WAY);
}

EXIT(net_udp_sendmsg_ret, udp_sendmsg, int ret, struct sock *sk, void *msg, u64 len)
{
	struct sock *by = SENT_BY(sk, AF_INET);

	return udp_in_sendpage() ? 0 : udp_sent(by, ret);
}

EXIT(net_udpv6_sendmsg_ret, udpv6_sendmsg, int ret, struct sock *sk, void *msg, u64 len)
{
	return udp_sent(SENT_BY(sk, AF_INET6), ret);
}

/* Up to 6.4: sendfile() and splice() into an IPv4 socket. */
EXIT(net_udp_sendpage_ret, udp_sendpage, int ret, struct sock *sk, void *page, u64 offset, u64 size,
     u64 flags)
{
	return udp_sent(udp_leave(OF_SENDPAGE), ret);
}

/* A call that moved nothing may have been at the end of the stream. */
static __always_inline int tcp_call(const struct sock *sk, s64 sent, s64 received)
{
	return sent <= 0 && received <= 0 ? 0 : WITH_CPU(tcp_returned(cpu, sk, sent, received));
}

SEC("?tp/sock/sock_send_length")
int net_send_length(struct trace_event_raw_sock_msg_length *ctx)
{
	const struct sock *sk = ctx->sk;

	if (ctx->ret < 0 || DEAF)
		return 0;
	if (net_tcp_by_tp && ctx->protocol == IPPROTO_TCP)
		return tcp_call(sk, ctx->ret, NOT_THIS_WAY);
	if (net_udp_send_by_tp && ctx->protocol == IPPROTO_UDP)
		return udp_call(sk, ctx->ret, NOT_THIS_WAY);
	return 0;
}

/* From the error queue come copies of what was sent. */
SEC("?tp/sock/sock_recv_length")
int net_recv_length(struct trace_event_raw_sock_msg_length *ctx)
{
	const struct sock *sk = ctx->sk;

	if (ctx->ret < 0 || ctx->flags & NOT_RECEIVED)
		return 0;
	if (net_tcp_by_tp && ctx->protocol == IPPROTO_TCP)
		return tcp_call(sk, NOT_THIS_WAY, ctx->ret);
	if (net_udp_recv_by_tp && ctx->protocol == IPPROTO_UDP)
		return udp_call(sk, NOT_THIS_WAY, ctx->ret);
	return 0;
}

SEC("?tp/sock/inet_sock_set_state")
int net_set_state(struct trace_event_raw_inet_sock_set_state *ctx)
{
	const struct sock *sk = ctx->skaddr;
	int oldstate = ctx->oldstate, newstate = ctx->newstate;

	if (ctx->protocol != IPPROTO_TCP || LOST)
		return 0;
	return WITH_CPU(tcp_state(cpu, sk, oldstate, newstate));
}

/* Nothing of it is left but its memory. */
static __always_inline void destroyed(struct mote_slot_cpu *cpu, const struct sock *sk)
{
	u32 slot = 0;
	struct mote_socket *s = net_find(cpu, sk, &slot);
	bool same;

	if (!s)
		return;
	if (s->protocol != MOTE_TCP) {
		net_close(s, slot);
		return;
	}
	same = tcp_is_same(s, BPF_CORE_READ(sk, __sk_common.skc_hash), TCP_CLOSE);
	if (same)
		tcp_refresh(s, sk);
	tcp_lost(slot, same);
}

/* Also of sockets that nobody accepted: no release_sock() sees their end. */
SEC("?tp/tcp/tcp_destroy_sock")
int net_destroy(struct trace_event_raw_tcp_event_sk *ctx)
{
	const struct sock *sk = ctx->skaddr;

	return LOST ? 0 : WITH_CPU(destroyed(cpu, sk));
}

/*
 * UDP's close(), in the caller's context: in a softirq, where inet_sock_destruct() runs, a kprobe
 * program is left out if it interrupts another one on its CPU.
 */
ENTRY(net_destruct, sk_common_release, struct sock *sk)
{
	return WITH_CPU(destroyed(cpu, sk));
}

static __always_inline struct mote_reap *reap_list(u32 table)
{
	return bpf_map_lookup_elem(&net_reap, &table);
}

NET_FUNCTION int net_reap_entry(u32 i)
{
	struct mote_reap *sockets = reap_list(MOTE_SLOTS_SOCKETS);
	struct mote_reap *flows = reap_list(MOTE_SLOTS_FLOWS);
	int some = 0;

	if (sockets)
		some |= slots_reap(SOCKETS, sockets, i);
	if (flows)
		some |= slots_reap(FLOWS, flows, i);
	return some;
}

#define NET_REAP_PART 64

/* 0: neither list has more. */
NET_FUNCTION int net_reap_part(u32 from)
{
	int some = 1;

	for (u32 i = 0; i < NET_REAP_PART && some; i++)
		some = net_reap_entry(from + i);
	return some;
}

static __always_inline void reaped(u32 table)
{
	struct mote_reap *list = reap_list(table);

	if (list)
		slots_reaped(list);
}

/* Not iter/bpf_map_elem: see slots_pass(). */
SEC("?iter/task")
int net_reap_run(struct bpf_iter__task *ctx)
{
	if (!ctx->task || !slots_pass(ctx->meta))
		return 0;
	for (u32 i = 0; i < MOTE_REAP && net_reap_part(i); i += NET_REAP_PART)
		;
	reaped(MOTE_SLOTS_SOCKETS);
	reaped(MOTE_SLOTS_FLOWS);
	return 0;
}

static u32 tcp_swept, udp_swept;

/* Among full sockets there are those of handshakes and of TIME_WAIT, which are smaller. */
SEC("?iter/tcp")
int net_tcp(struct bpf_iter__tcp *ctx)
{
	const struct sock *sk = (const void *)ctx->sk_common;
	u8 state;

	if (!sk)
		return WITH_CPU(net_sweep(&tcp_swept, MOTE_TCP));
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV)
		return 0;
	return WITH_CPU(tcp_walked(cpu, sk, state));
}

SEC("?iter/udp")
int net_udp(struct bpf_iter__udp *ctx)
{
	const struct sock *sk = (const void *)ctx->udp_sk;

	/* At the end, without a socket, it is the last one's; -1 where there was none. */
	if (sk ? !ctx->meta->seq_num : ctx->meta->seq_num == -1ull)
		udp_walk_begin();
	if (!sk)
		return WITH_CPU(net_sweep(&udp_swept, MOTE_UDP));
	return WITH_CPU(udp_walked(cpu, sk));
}

static __always_inline void own_if_known(struct mote_slot_cpu *cpu, const struct sock *sk,
					 struct task_struct *task)
{
	struct net_caller owner = { task, BPF_CORE_READ(task, tgid) };
	u32 slot = 0;
	struct mote_socket *s = net_find(cpu, sk, &slot);

	if (s)
		net_want_owner(s, slot, sk, &owner);
}

/* At start: the first process, by its pid, that has a descriptor of a socket. */
SEC("?iter/task_file")
int net_owners(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	const struct socket *socket;
	const struct sock *sk;

	if (!task || !file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	if (!socket || BPF_CORE_READ(socket, file) != file)
		return 0;
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || !(net_wants(sk, IPPROTO_TCP) || net_wants(sk, IPPROTO_UDP)))
		return 0;
	return WITH_CPU(own_if_known(cpu, sk, task));
}
