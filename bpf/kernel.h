/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's types, as far as mote reads them; libbpf fits the offsets to the running kernel
 * (CO-RE), so that order and gaps do not matter here. What differs between kernels by more than
 * an offset is in compat.h.
 */
#ifndef MOTE_KERNEL_H
#define MOTE_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed short s16;
typedef signed int s32;
typedef signed long long s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* What bpf_helper_defs.h takes for granted. */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_MMAPABLE = 1 << 10 };
enum { BPF_RB_NO_WAKEUP = 1 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1 };

#define PF_KTHREAD        0x00200000
#define S_IFMT            0170000
#define S_IFREG           0100000
#define S_IFSOCK          0140000
#define S_IFIFO           0010000
#define MAY_WRITE         0x2
#define MAY_READ          0x4
#define AF_INET           2
#define AF_INET6          10
#define IPPROTO_TCP       6
#define IPPROTO_UDP       17
#define MSG_PEEK          0x2
#define MSG_ERRQUEUE      0x2000
#define CLONE_PARENT      0x00008000
#define CLONE_THREAD      0x00010000
#define SIGNAL_GROUP_EXIT 0x00000004
#define MAX_RT_PRIO       100
#define DEFAULT_PRIO      120

/* include/linux/pid.h: enum pid_type, unchanged since 4.19 */
#define PIDTYPE_SID 3
#define PIDTYPE_MAX 4

/* include/net/tcp_states.h, user space knows them by tcp_info */
enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT,
	TCP_SYN_RECV,
	TCP_FIN_WAIT1,
	TCP_FIN_WAIT2,
	TCP_TIME_WAIT,
	TCP_CLOSE,
	TCP_CLOSE_WAIT,
	TCP_LAST_ACK,
	TCP_LISTEN,
	TCP_CLOSING,
	TCP_NEW_SYN_RECV,
};

#define SOCK_RAW 3 /* enum sock_type */

/* include/net/sock.h: enum sock_flags, bits of skc_flags; the first two since 2.6 */
#define SOCK_DEAD (1ul << 0)
#define SOCK_DONE (1ul << 1)

/* Registers at a function's entry, arch/ARCH/include/asm/ptrace.h: laid out for user space too. */
#ifdef __TARGET_ARCH_arm64
struct user_pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
};
#else
struct pt_regs {
	unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	unsigned long rax, rcx, rdx, rsi, rdi, orig_rax;
	unsigned long rip, cs, eflags, rsp, ss;
};
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct atomic_int {
	int counter;
};

struct list_head {
	struct list_head *next, *prev;
};

struct kuid {
	u32 val;
};

struct cred {
	struct kuid uid, gid;
};

struct task_io_accounting {
	u64 rchar, wchar, syscr, syscw;
	u64 read_bytes, write_bytes, cancelled_write_bytes;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct sched_info {
	unsigned long long run_delay, last_arrival, last_queued;
};

struct prev_cputime {
	u64 utime, stime;
};

struct upid {
	int nr;
};

struct pid {
	struct upid numbers[1];
};

struct tty_driver {
	int major, minor_start;
};

struct tty_struct {
	struct tty_driver *driver;
	int index;
};

/* The kernel's nest of typedefs, of which only the names of the members count. */
struct seqcount {
	u32 sequence;
};

struct seqcount_spinlock {
	struct seqcount seqcount;
};

struct seqlock {
	struct seqcount_spinlock seqcount;
};

struct signal_struct {
	struct atomic_int live;
	int nr_threads;
	struct list_head thread_head;
	struct seqlock stats_lock;
	int group_exit_code;
	unsigned int flags;
	struct pid *pids[PIDTYPE_MAX];
	struct tty_struct *tty;
	u64 utime, stime, cutime, cstime;
	struct prev_cputime prev_cputime;
	unsigned long nvcsw, nivcsw;
	unsigned long min_flt, maj_flt;
	struct task_io_accounting ioac;
	unsigned long long sum_sched_runtime;
	short oom_score_adj;
};

struct fdtable {
	unsigned int max_fds;
	unsigned long *open_fds;
};

struct files_struct {
	struct atomic_int count;
	struct fdtable *fdt;
	unsigned long open_fds_init[1];
};

struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	void *mnt_ns;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

struct pipe_buffer {
	unsigned int len;
};

struct pipe_inode_info {
	unsigned int head, tail; /* buffers in use */
	unsigned int ring_size;  /* a power of two */
	struct pipe_buffer *bufs;
};

struct inode {
	u16 i_mode;
	u32 i_generation;
	u64 i_ino;
	struct super_block *i_sb;
	struct pipe_inode_info *i_pipe;
};

struct fs_struct {
	struct path root;
};

struct file {
	unsigned int f_mode;
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};

struct mm_struct {
	unsigned long total_vm;
	unsigned long arg_start, arg_end;
	struct task_struct *owner; /* with CONFIG_MEMCG */
	struct file *exe_file;
};

struct kernfs_node {
	u64 id;
	const char *name;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct task_cputime {
	u64 stime, utime;
	unsigned long long sum_exec_runtime;
};

struct cgroup_base_stat {
	struct task_cputime cputime;
};

struct cgroup_freezer_state {
	bool freeze;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct cgroup_subsys_state self;
	int level;
	int nr_descendants, nr_dying_descendants;
	struct kernfs_node *kn;
	struct cgroup_subsys_state *subsys[16];
	struct cgroup_root *root;
	struct list_head cset_links;
	struct cgroup_base_stat bstat;
	struct prev_cputime prev_cputime;
	struct cgroup_freezer_state freezer;
};

struct css_set {
	struct cgroup *dfl_cgrp;
	int nr_tasks;
};

struct cgrp_cset_link {
	struct css_set *cset;
	struct list_head cset_link;
};

struct task_struct {
	int exit_state, exit_code;
	unsigned int flags;
	unsigned int on_cpu, on_rq; /* bytes in 7.x; libbpf fits loads to that if unsigned */
	int prio, static_prio;
	int pid, tgid;
	struct sched_entity se;
	struct sched_info sched_info;
	struct list_head tasks;
	struct mm_struct *mm;
	struct task_struct *real_parent, *group_leader;
	struct list_head thread_node;
	u64 utime, stime;
	unsigned long nvcsw, nivcsw;
	u64 start_boottime;
	unsigned long min_flt, maj_flt;
	const struct cred *real_cred;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	u64 self_exec_id;
	struct task_io_accounting ioac;
	struct css_set *cgroups;
};

struct atomic_long64 {
	s64 counter;
};

struct cfs_bandwidth {
	s64 period;
	u64 quota;
	int nr_periods, nr_throttled;
	u64 throttled_time;
};

struct task_group {
	unsigned long shares;
	struct cfs_bandwidth cfs_bandwidth;
};

struct page_counter {
	struct atomic_long64 usage;
	unsigned long watermark, max, high;
};

struct memcg_vmstats {
	long state[64];
	unsigned long events[64];
};

struct mem_cgroup {
	struct page_counter memory, swap;
	struct memcg_vmstats *vmstats;
	struct atomic_long64 memory_events[8];
	struct atomic_long64 memory_events_local[8];
};

struct pids_cgroup {
	struct atomic_long64 counter, limit;
};

enum cgroup_subsys_id {
	cpu_cgrp_id,
	memory_cgrp_id,
	pids_cgrp_id,
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

struct possible_net {
	struct net *net; /* with CONFIG_NET_NS */
};

struct in6_addr {
	u8 s6_addr[16];
};

struct sock_common {
	__be32 skc_daddr, skc_rcv_saddr;
	u32 skc_hash;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	u8 skc_state;
	struct possible_net skc_net;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr; /* with CONFIG_IPV6 */
	struct atomic_long64 skc_cookie;
	unsigned long skc_flags;
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	u16 sk_type, sk_protocol;
	u8 sk_kern_sock : 1;
	struct kuid sk_uid;
	struct socket *sk_socket;
};

struct socket {
	struct file *file;
	struct sock *sk;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct inet_sock {
	u16 inet_sport; /* kept when the port itself is given up */
};

struct udp_sock;

struct tcp_sock {
	u32 write_seq, snd_una, snd_nxt;
	u32 copied_seq, rcv_nxt;
	u32 srtt_us;
	u64 bytes_sent, bytes_acked, bytes_retrans, bytes_received;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id, seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__udp {
	struct bpf_iter_meta *meta;
	struct udp_sock *udp_sk;
};

struct bpf_iter__cgroup {
	struct bpf_iter_meta *meta;
	struct cgroup *cgroup;
};

struct kiocb {
	struct file *ki_filp;
};

struct io_kiocb {
	struct file *file;
	unsigned int flags; /* the first eight: IOSQE_* of include/uapi/linux/io_uring.h */
};

/* The contexts of classic tracepoints: /sys/kernel/tracing/events/CATEGORY/NAME/format */
struct trace_event_raw_task_newtask {
	int pid;
	unsigned long clone_flags;
};

struct trace_event_raw_sched_process_exec {
	int pid, old_pid;
};

struct trace_event_raw_inet_sock_set_state {
	const void *skaddr;
	int oldstate, newstate;
	u16 family, protocol;
};

/* sock_send_length, sock_recv_length: from 6.3 on */
struct trace_event_raw_sock_msg_length {
	void *sk;
	u16 family, protocol;
	int ret, flags;
};

struct trace_event_raw_tcp_event_sk {
	const void *skaddr;
};

#pragma clang attribute pop

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#endif
