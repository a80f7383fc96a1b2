/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The one header that BPF programs and the supervisor share: records and maps between them.
 * Fixed-width types, padding named; both compilers check the layout.
 */
#ifndef MOTE_ABI_H
#define MOTE_ABI_H

#ifdef __bpf__
/* kernel.h has the fixed-width types there */
#else
#	include <assert.h>
#	include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

#define MOTE_COMM_LEN 16
#define MOTE_ARGV_MAX 512
#define MOTE_EXE_MAX  256

/* What is kept of one thread; cumulative since the thread began. Times in ns, memory in bytes. */
struct mote_thread_counts {
	u64 utime, stime; /* as the tick or vtime accounting counted them, before cputime_adjust */
	u64 run_time;     /* se.sum_exec_runtime */
	u64 run_delay;    /* sched_info.run_delay */
	u64 minflt, majflt;
	u64 nvcsw, nivcsw;
	u64 rchar, wchar, syscr, syscw;
	u64 read_bytes, write_bytes, cancelled_write_bytes;
};

/*
 * A thread other than its process's leader, exited ones that were not reaped included. If threads
 * came before the leader in a walk, as when pids have wrapped, the sums of the process's threads
 * that are gone are here too: as they were at the first of them (pid 0), and when the leader came
 * (pid as tgid), as the leader's record has them.
 */
struct mote_thread {
	u32 pid, tgid;
	struct mote_thread_counts counts;
};

/*
 * A process. The task iterator, or the /proc tier, fills it with the leader's own counts plus
 * signal_struct's (threads that are gone); user space adds the living threads' to `counts`.
 */
struct mote_task {
	u32 pid, ppid;
	u64 start; /* task_struct.start_boottime, ns; from /proc: ticks * 10^7 */
	struct mote_thread_counts counts;
	u64 cutime, cstime;         /* of children waited for */
	u64 prev_utime, prev_stime; /* signal->prev_cputime */
	u64 vsize, rss, shared;
	u64 cgroup_id;
	u32 uid, gid, session, tty;
	s32 nice, priority, oom_score_adj;
	u32 threads, fds;
	u32 exec_id; /* task_struct.self_exec_id: grows with each exec */
	u32 flags;   /* MOTE_TASK_* */
	char state;  /* R S D T t X Z P I */
	char pad0[3];
	char comm[MOTE_COMM_LEN];
	u64 present; /* bit PROCESS_<FIELD> of schema.h: which fields are known; 0 from BPF: all */

	/* User space's own; BPF never writes below. */
	u64 shown_utime, shown_stime; /* last given out; cputime_adjust keeps them monotonic */
	u32 text;                     /* handle of argv and exe in the text store, 0: none yet */
	u32 text_exec_id;             /* exec_id that `text` belongs to */
	u32 seen;  /* threads of this walk, the first included: mote_task_add_threads() */
	u32 named; /* what `text` has: 1 argv, 2 exe */
};

/* What is no counter, and that others may change; pid and ppid besides. */
#define MOTE_GAUGES_AT  __builtin_offsetof(struct mote_task, vsize)
#define MOTE_GAUGES_END __builtin_offsetof(struct mote_task, present)

enum mote_task_flags {
	MOTE_TASK_KTHREAD = 1,
	MOTE_TASK_HAS_MM = 2,
	MOTE_TASK_HAS_FDS = 4, /* fds was counted; not set where the table has more than 65536 */
	MOTE_TASK_HAS_RSS = 8, /* rss and shared are known (0 for a task without memory) */
	/* User space's of iter/task: the threads of this walk and `threads` differ, one came or
	   went meanwhile; and one that ended meanwhile may be in `counts` twice, as there was no
	   room for the sums. */
	MOTE_TASK_TORN = 16,
	MOTE_TASK_TWICE = 32,
};

/* The array map `task_ctl`, one value: the walks of both iterators. */
struct mote_ctl {
	u32 half; /* user space: which half of task_recs the next walk fills, 0 or 1 */
	u32 pad0;
	u64 begun; /* walks begun, and the number of the last that came to its end */
	u64 done;
	u32 tasks, threads;           /* records written by this walk */
	u32 tasks_lost, threads_lost; /* what did not fit in this walk */
	u64 idents_begun, idents_done;
	u32 idents;      /* records written by this walk */
	u32 idents_more; /* wanted tasks that did not fit in this walk */
};

/*
 * The list walk (walk.bpf.c). A process has a pair of records while it lives, one in each half of
 * the records; a walk writes the one that is not current, and only if something changed.
 */
struct mote_ref {
	u32 pid;
	u32 pair; /* its number, and MOTE_REF_WRITTEN */
};

/* How long what others can change may stand as it was: so many walks, and so much time. */
#define MOTE_WALK_TURN    16
#define MOTE_WALK_TURN_MS 16000

#define MOTE_REF_WRITTEN 0x80000000u /* since the walk that mote_walk_ctl.taken says */

/* User space's, as far as nothing else is said. */
struct mote_pair {
	u32 side : 1;  /* half that has the current record of this pair */
	u32 seen : 31; /* which walk found its process last */
	u32 free;      /* a stack of pairs that no process has: mote_walk_ctl.free of these */
};

struct mote_walk_ctl {
	u64 begun; /* walks begun, and the number of the last that came to its end */
	u64 done;
	u64 taken;            /* user space: the last walk whose records it has made current */
	u64 moved;            /* the last walk whose processes were not those of the one before */
	u32 free;             /* pairs on the stack: a walk takes from it, user space gives back */
	u32 full;             /* user space: the next walk is to write every record */
	u32 tasks;            /* refs of this walk, in the order in which the processes were made */
	u32 tasks_lost;       /* processes that found no pair, or no room */
	u32 threads, written; /* threads beside the first; records */
};

#define MOTE_IDENTS     64 /* records a walk */
#define MOTE_IDENT_BITS 65536

/* The array map `ident_want`: user space sets the bit pid % MOTE_IDENT_BITS, and clears it. */
struct mote_ident_want {
	u64 bits[MOTE_IDENT_BITS / 64];
};

/*
 * A task's identity, and its executable's path as the kernel's mounts and dentries give it: names
 * from the file up to the root of its mount namespace, each with its NUL; mote_task_exe() makes a
 * path of it. (bpf_d_path() would write it as /proc/PID/exe has it, but follows pointers that a
 * task which ends or execs meanwhile frees: it must not be used on other tasks.)
 */
struct mote_ident {
	u32 pid, exec_id;
	u64 start;
	u32 exe_len;   /* bytes of exe; 0: no executable, as with kernel threads */
	u32 exe_flags; /* MOTE_EXE_* */
	char exe[MOTE_EXE_MAX];
};

enum mote_exe_flags {
	MOTE_EXE_ABSENT = 1,   /* this kernel does not let BPF read it (lockdown) */
	MOTE_EXE_CUT = 2,      /* the path was longer: its beginning is missing */
	MOTE_EXE_DELETED = 4,  /* the file was deleted or replaced */
	MOTE_EXE_DETACHED = 8, /* not below any root: memfd and the like */
};

/*
 * The ends of a socket. Ports are in host order; state: TCP_*, as the kernel numbers them, UDP: 7
 * unconnected, 1 connected.
 */
#define MOTE_ENDS                             \
	u8 local[16], remote[16];             \
	u16 local_port, remote_port;          \
	u16 family;  /* AF_INET, AF_INET6 */  \
	u8 protocol; /* MOTE_TCP, MOTE_UDP */ \
	u8 state;

struct mote_ends {
	MOTE_ENDS
};

/* Records of the ring buffer `events`; all begin with struct mote_event. */
enum mote_event_kind {
	MOTE_EVENT_FORK = 1,
	MOTE_EVENT_EXEC = 2,
	MOTE_EVENT_EXIT = 3, /* struct mote_event_exit: it ends */
	MOTE_EVENT_FINAL =
		4, /* struct mote_event_exit: it is reaped and gone, the totals are final */
	MOTE_EVENT_PROCESS_KINDS = 5,
	/* struct mote_event_socket, from the network programs: */
	MOTE_EVENT_OPENED = 5,
	MOTE_EVENT_CLOSED = 6,
	MOTE_EVENT_FAILED = 7, /* it tried to connect, and came to no connection */
	MOTE_EVENT_KINDS = 8,
};

struct mote_event {
	u32 kind; /* MOTE_EVENT_* */
	u32 pid, ppid, uid;
	u64 time;  /* CLOCK_MONOTONIC, ns */
	u64 start; /* as in mote_task; 0: not known (fork by the classic tracepoint) */
	char comm[MOTE_COMM_LEN];
};

/* The record is cut after the executable's path. */
struct mote_event_exec {
	struct mote_event event;
	u32 exec_id;
	u16 argv_len, exe_len;
	u8 argv_cut;  /* 1: the command line was longer than MOTE_ARGV_MAX */
	u8 exe_flags; /* MOTE_EXE_* */
	u8 pad0[6];
	/* Arguments, each with its NUL, the last perhaps without; then what mote_ident has in
	 * `exe`. */
	char argv[MOTE_ARGV_MAX + MOTE_EXE_MAX];
};

/*
 * Totals of the whole process. At EXIT they are what the scheduler knew by its last tick, without
 * the freeing of memory that follows: nine tenths of the time of a process as short as true(1) are
 * missing. FINAL has all of it, some ms after the parent (or init) has waited for the process; it
 * has no ppid, cgroup_id and run_delay. A process whose threads end at once may be reported to EXIT
 * twice. So, of one (pid, start), each later record replaces the earlier one's totals.
 */
struct mote_event_exit {
	struct mote_event event;
	u32 exit_code; /* as waitpid() gives it */
	u32 flags;     /* MOTE_EXIT_* */
	struct mote_thread_counts counts;
	u64 prev_utime, prev_stime; /* signal->prev_cputime, for cputime_adjust */
	u64 cgroup_id;
};

enum mote_exit_flags {
	MOTE_EXIT_PARTIAL = 1, /* threads that were just ending may be missing, or counted twice */
};

/*
 * A socket was opened or closed. `event`: its time; uid is the socket's; pid, ppid and comm are
 * not known, but for pid and start if it has a slot with an owner. state: TCP's that it came to,
 * or that it left.
 */
struct mote_event_socket {
	struct mote_event event;
	u64 socket; /* MOTE_SOCKET_ID of its slot; 0: it has none */
	struct mote_ends ends;
};

/* The array map `event_ctl`, one value. */
struct mote_event_ctl {
	u64 dropped[MOTE_EVENT_PROCESS_KINDS]; /* by kind: did not fit in the ring buffer */
};

/*
 * What is known of a cgroup, in the order of the fields of the stream `cgroup` (schema.def): ns,
 * bytes, pages counted in bytes, numbers. Up to MOTE_CGROUP_FAST it is what a walk gives
 * (cgroup_walk.bpf.c); what comes behind is only in the text of cgroupfs.
 */
enum mote_cgroup_value {
	MOTE_CGROUP_CPU_USAGE = 0,
	MOTE_CGROUP_CPU_USER = 1, /* as shown: user space applies cputime_adjust() to the walk's */
	MOTE_CGROUP_CPU_SYSTEM = 2, /* the same */
	MOTE_CGROUP_CPU_PERIODS = 3,
	MOTE_CGROUP_CPU_THROTTLED = 4,
	MOTE_CGROUP_CPU_THROTTLED_TIME = 5,
	MOTE_CGROUP_CPU_WEIGHT = 6,
	MOTE_CGROUP_CPU_QUOTA = 7,
	MOTE_CGROUP_CPU_PERIOD = 8,
	MOTE_CGROUP_MEMORY_CURRENT = 9,
	MOTE_CGROUP_MEMORY_PEAK = 10,
	MOTE_CGROUP_MEMORY_MAX = 11,
	MOTE_CGROUP_MEMORY_HIGH = 12,
	MOTE_CGROUP_SWAP_CURRENT = 13,
	MOTE_CGROUP_SWAP_MAX = 14,
	MOTE_CGROUP_ANON = 15,
	MOTE_CGROUP_FILE = 16,
	MOTE_CGROUP_SHMEM = 17,
	MOTE_CGROUP_KERNEL = 18,
	MOTE_CGROUP_SLAB = 19,
	MOTE_CGROUP_FILE_DIRTY = 20,
	MOTE_CGROUP_FILE_WRITEBACK = 21,
	MOTE_CGROUP_INACTIVE_FILE = 22,
	MOTE_CGROUP_PGFAULT = 23,
	MOTE_CGROUP_PGMAJFAULT = 24,
	MOTE_CGROUP_REFAULT_ANON = 25,
	MOTE_CGROUP_REFAULT_FILE = 26,
	MOTE_CGROUP_PGSCAN = 27,
	MOTE_CGROUP_PGSTEAL = 28,
	MOTE_CGROUP_LOW = 29, /* memory.events, and those of the cgroup alone */
	MOTE_CGROUP_HIGH = 30,
	MOTE_CGROUP_MAX = 31,
	MOTE_CGROUP_OOM = 32,
	MOTE_CGROUP_OOM_KILL = 33,
	MOTE_CGROUP_LOCAL_LOW = 34,
	MOTE_CGROUP_LOCAL_HIGH = 35,
	MOTE_CGROUP_LOCAL_MAX = 36,
	MOTE_CGROUP_LOCAL_OOM = 37,
	MOTE_CGROUP_LOCAL_OOM_KILL = 38,
	MOTE_CGROUP_PIDS_CURRENT = 39,
	MOTE_CGROUP_PIDS_MAX = 40,
	MOTE_CGROUP_THREADS = 41,
	MOTE_CGROUP_DESCENDANTS = 42,
	MOTE_CGROUP_DYING = 43,
	MOTE_CGROUP_FROZEN = 44,
	MOTE_CGROUP_FAST = 45,

	MOTE_CGROUP_PROCESSES = 45,
	MOTE_CGROUP_IO_READ_BYTES = 46,
	MOTE_CGROUP_IO_WRITE_BYTES = 47,
	MOTE_CGROUP_IO_READS = 48,
	MOTE_CGROUP_IO_WRITES = 49,
	MOTE_CGROUP_CPU_SOME = 50,
	MOTE_CGROUP_CPU_FULL = 51,
	MOTE_CGROUP_MEMORY_SOME = 52,
	MOTE_CGROUP_MEMORY_FULL = 53,
	MOTE_CGROUP_IO_SOME = 54,
	MOTE_CGROUP_IO_FULL = 55,
	MOTE_CGROUP_VALUES = 56,
};

/*
 * A cgroup's row. The walk writes the first part of those that mote_cgroup_slot.row leads to; where
 * there is no walk user space does.
 */
struct mote_cgroup_row {
	u64 walk;    /* the last walk that saw it */
	u64 written; /* the last walk that found something new */
	u64 present; /* bit MOTE_CGROUP_<VALUE> */
	u64 v[MOTE_CGROUP_VALUES];
	u64 utime, stime;           /* as counted, before cputime_adjust() */
	u64 prev_utime, prev_stime; /* cgroup->prev_cputime: what the kernel has shown */

	/* User space's own; BPF never writes below. */
	u64 changed;  /* sample time at which a value last changed; 0: not in use */
	u64 slow;     /* when the files that are read now and then were read last, ns; 0: never */
	u64 slow_cpu; /* its CPU time and memory then */
	u64 slow_memory;
	u32 node;
	u32 missing; /* bit per file: it was not there */
};

#define MOTE_CGROUP_NONE 0xffffffffu

/* Values of the cgroup itself: what it has does not include what is below it. */
#define MOTE_CGROUP_LOCAL                                                         \
	(1ull << MOTE_CGROUP_CPU_PERIODS | 1ull << MOTE_CGROUP_CPU_THROTTLED |    \
	 1ull << MOTE_CGROUP_CPU_THROTTLED_TIME | 1ull << MOTE_CGROUP_LOCAL_LOW | \
	 1ull << MOTE_CGROUP_LOCAL_HIGH | 1ull << MOTE_CGROUP_LOCAL_MAX |         \
	 1ull << MOTE_CGROUP_LOCAL_OOM | 1ull << MOTE_CGROUP_LOCAL_OOM_KILL |     \
	 1ull << MOTE_CGROUP_THREADS | 1ull << MOTE_CGROUP_PROCESSES)

/* Values that memory.stat has: the walk gives them only where it can find them, see has_stat. */
#define MOTE_CGROUP_STAT                                                                          \
	(1ull << MOTE_CGROUP_ANON | 1ull << MOTE_CGROUP_FILE | 1ull << MOTE_CGROUP_SHMEM |        \
	 1ull << MOTE_CGROUP_KERNEL | 1ull << MOTE_CGROUP_SLAB | 1ull << MOTE_CGROUP_FILE_DIRTY | \
	 1ull << MOTE_CGROUP_FILE_WRITEBACK | 1ull << MOTE_CGROUP_INACTIVE_FILE |                 \
	 1ull << MOTE_CGROUP_PGFAULT | 1ull << MOTE_CGROUP_PGMAJFAULT |                           \
	 1ull << MOTE_CGROUP_REFAULT_ANON | 1ull << MOTE_CGROUP_REFAULT_FILE |                    \
	 1ull << MOTE_CGROUP_PGSCAN | 1ull << MOTE_CGROUP_PGSTEAL)

/*
 * The index from ids to rows: an open hash table, its size a power of two. User space writes it
 * while no walk is under way, the walk only `seen`. An id is at most MOTE_CGROUP_PROBES slots
 * behind its place, mote_cgroup_place().
 */
struct mote_cgroup_slot {
	u64 id; /* 0: free */
	/*
	 * The number of rows: it is summed in `other`. One more: so is one above it, which has all
	 * of this one but MOTE_CGROUP_LOCAL. MOTE_CGROUP_NONE: it is not shown.
	 */
	u32 row;
	u32 node; /* user space's */
	u64 seen; /* the last walk, or listing, that saw it */
};

#define MOTE_CGROUP_PROBES 32

static inline u32 mote_cgroup_place(u64 id, u32 mask)
{
	return (u32)(id * 0x9e3779b97f4a7c15ull >> 32) & mask;
}

#define MOTE_CGROUP_NAME 256
#define MOTE_CGROUP_NEW  128 /* cgroups that the index does not have, a walk */

struct mote_cgroup_new {
	u64 id, parent; /* parent 0: the walk begins with it */
	u32 level;
	u32 name_len; /* without a NUL */
	char name[MOTE_CGROUP_NAME];
};

struct mote_cgroup_ctl {
	u64 begun, done; /* walks */
	u32 known;       /* cgroups of this walk that the index has */
	u32 unknown;     /* and those it does not have, of which `fresh` has the first */
	u32 has_stat;    /* 1: it can read what memory.stat shows */
	u32 root_level;  /* of where it begins: above 0 within a cgroup namespace */
	struct mote_cgroup_new fresh[MOTE_CGROUP_NEW];
};

/* Records of the ring buffer `cgroup_events`, and of the thread that stands in for it. */
enum mote_cgroup_event_kind {
	MOTE_CGROUP_MKDIR = 1,
	MOTE_CGROUP_RMDIR = 2,
	MOTE_CGROUP_LISTED = 3, /* of a listing: is there */
	/* `id`: when it began; all that are there were told, but for `parent` that it has no room
	   for. */
	MOTE_CGROUP_LIST_END = 4,
};

/* The record is cut behind the name. */
struct mote_cgroup_event {
	u32 kind; /* MOTE_CGROUP_* */
	u32 level;
	u64 time;       /* CLOCK_MONOTONIC, ns */
	u64 id, parent; /* id 0: it was gone before anybody could look */
	u32 name_len;
	u32 pad0;
	char name[MOTE_CGROUP_NAME];
};

/*
 * Slots: cumulative counters in mapped memory that BPF adds to and user space reads, reused without
 * a bpf() call. The protocol, its states and its ordering are in docs/SLOTS.md. There are two
 * tables of them, sockets and flows; their index of slots is never above MOTE_SLOTS_MAX.
 */
#define MOTE_SLOTS_MAX 131072 /* a power of two */

enum mote_slot_table {
	MOTE_SLOTS_SOCKETS = 0,
	MOTE_SLOTS_FLOWS = 1,
	MOTE_SLOT_TABLES = 2,
};

/* How every slot begins. */
struct mote_slot {
	u64 key;  /* the claimer writes it before its insert, user space writes 0 */
	u32 gen;  /* user space only: grows when the slot is freed */
	u32 left; /* enum mote_slot_left; 0: in use, or free */
};

enum mote_slot_left {
	MOTE_SLOT_ORPHAN = 1, /* the claimer: it lost a race, and could not give the slot back */
	/* User space: its key is out of the index, from before the grace begins. Who remembers the
	   slot instead of looking it up must not use it any more. */
	MOTE_SLOT_UNLINKED = 2,
};

/*
 * A byte a slot: the writer sets it after it added, user space clears it before it reads. Their map
 * has as many lines as the slots need, one behind the other in memory; user space looks at them as
 * a whole, of which only so much is mapped.
 */
#define MOTE_MARKS_LINE        64 /* a multiple of 8, to which the kernel rounds values up */
#define MOTE_MARKS_LINES(size) (((size) + MOTE_MARKS_LINE - 1) / MOTE_MARKS_LINE)

struct mote_slot_marks_line {
	u8 mark[MOTE_MARKS_LINE];
};

struct mote_slot_marks {
	u8 mark[MOTE_SLOTS_MAX];
};

/* Cumulative; a flow's goes to 0 only while its slot is nobody's. Bytes are what calls returned. */
struct mote_traffic {
	u64 sent, received; /* bytes */
	u64 sent_calls,
		received_calls; /* TCP by release_sock: times the socket was held and moved */
};

enum mote_protocol {
	MOTE_TCP = 0,
	MOTE_UDP = 1,
	MOTE_PROTOCOLS = 2,
};

/*
 * One for each possible CPU, by atomic adds, as programs nest. A program is inside from `enter` to
 * `exit`; it stays on its CPU meanwhile.
 */
struct mote_slot_cpu {
	u64 enter, exit;
	struct mote_traffic other[MOTE_PROTOCOLS]; /* of flows that had no slot */
	u64 claims;                                /* slots taken, of both tables */
	u64 lost_races;                            /* another CPU inserted the key first */
	u64 mismatches;  /* the index led to a slot that is another key's by now: looked up again */
	u64 push_failed; /* slots that became orphans */
	u64 turned_away[MOTE_SLOT_TABLES]; /* no slot was free */
	u64 refused[MOTE_SLOT_TABLES];     /* the kernel refused the insert */
	u64 pad0[6];
};

#define MOTE_REAP 2048 /* entries of each kind that one pass works off; a power of two */

enum mote_reap_status {
	MOTE_REAP_NONE = 0,
	MOTE_REAP_DONE = 1,
	MOTE_REAP_ABSENT = 2,     /* delete: the key is not in the index */
	MOTE_REAP_OTHER_SLOT = 3, /* delete: the key has another slot by now */
	MOTE_REAP_ERROR = 4,      /* the kernel's lock gave up: try again */
};

/* Of one table. User space fills it, the program `reap` answers a status an entry. */
struct mote_reap {
	u32 deletes, pushes; /* how many; the program sets them to 0 */
	u64 passes;          /* the program counts one up */
	struct {
		u64 key;
		u32 slot;
		u32 status;
	} del[MOTE_REAP]; /* take this key out of the index */
	struct {
		u32 slot;
		u32 status;
	} push[MOTE_REAP]; /* give this slot back to the queue of free ones */
};

/* A flow's key, never 0: a process, and a socket (its id; 1 or 2 if there was no room for it)
 */
#define MOTE_SOCKET_SLOT_BITS 17
#define MOTE_SOCKET_GEN_BITS  25
#define MOTE_TGID_BITS        22
#define MOTE_SOCKET_ID(slot, gen) \
	(((u64)((gen) & ((1u << MOTE_SOCKET_GEN_BITS) - 1)) << MOTE_SOCKET_SLOT_BITS) | (slot))
#define MOTE_NO_SOCKET(protocol)    ((u64)(protocol) + 1) /* below every MOTE_SOCKET_ID */
#define MOTE_SOCKET_SLOT(id)        ((u32)((id) & (MOTE_SLOTS_MAX - 1)))
#define MOTE_FLOW_KEY(socket, tgid) ((u64)(socket) << MOTE_TGID_BITS | (tgid))
#define MOTE_FLOW_SOCKET(key)       ((u64)(key) >> MOTE_TGID_BITS)
#define MOTE_FLOW_TGID(key)         ((u32)((key) & ((1u << MOTE_TGID_BITS) - 1)))

/* What one process moved over one socket; tgid 0: the kernel itself. */
struct mote_flow {
	struct mote_slot slot; /* key: MOTE_FLOW_KEY */
	struct mote_traffic traffic;
	u64 start; /* start_boottime of the process, ns, read when the slot was claimed; 0: kernel
		    */
	u32 protocol;
	u32 pad0;

	/* User space's own; BPF never writes below. */
	struct mote_traffic seen;     /* what of `traffic` has been added up */
	u64 changed;                  /* sample time at which a value last changed; 0: not in use */
	u32 state;                    /* of slots.c */
	u32 process;                  /* index in network.c's table */
	u32 socket_next, socket_prev; /* flows of the same socket, slot + 1; 0: none */
	u32 process_next, process_prev; /* of the same process */
};

enum mote_socket_flags {
	MOTE_SOCKET_SEEDED = 1,     /* older than mote: counted from its first sight on */
	MOTE_SOCKET_LATE = 2,       /* there was no room for it when it was opened */
	MOTE_SOCKET_SYN = 4,        /* TCP: in SYN_SENT, copied_seq is not set yet */
	MOTE_SOCKET_FIN_SENT = 8,   /* TCP: the sequence number of our FIN has been taken off */
	MOTE_SOCKET_FIN_TAKEN = 16, /* and of the peer's */
	MOTE_SOCKET_KERNEL = 32,    /* made by the kernel itself */
	MOTE_SOCKET_TRUTH = 64,     /* accepted and taken are valid */
	MOTE_SOCKET_ACTIVE = 128,   /* TCP: it connected, and so its SYN is in the kernel's count */
	MOTE_SOCKET_NEW = 256,      /* TCP: write_seq and copied_seq are not set yet */
};

/*
 * A TCP or UDP socket. Written under the socket's lock where it has to be consistent: TCP's
 * sequence numbers. Addresses are the kernel's bytes, IPv4 in the first four.
 */
struct mote_socket {
	struct mote_slot slot; /* key: the kernel's address of the sock; never leaves the agent */
	u64 opened, closed;    /* CLOCK_MONOTONIC ns; closed 0: not yet */
	union {
		struct mote_ends ends;
		struct {
			MOTE_ENDS
		};
	};
	u32 flags; /* MOTE_SOCKET_* */
	u32 tgid;  /* who made it, or had it when mote started; 0: not known */
	/* TCP: as of the last release. UDP: write_seq is the last walk of net_udp that saw it. */
	u32 write_seq, copied_seq;
	u32 flow;       /* the flow that moved bytes last: SLOT_PLACE() of bpf/slots.h */
	u32 hash;       /* TCP: the kernel's, of both ends, while it has two; 0: not known yet */
	u32 uid, netns; /* netns: its inode number */
	u64 start;      /* of the process tgid: start_boottime, ns */
	u64 cgroup_id, inode,
		cookie;    /* 0: not known; cookie: nobody has asked the kernel for it yet */
	u64 retransmitted; /* bytes, TCP */
	/* TCP: bytes the kernel accepted for sending, and that were taken from it, since the socket
	   began, and what they were when mote first saw it. */
	u64 accepted, taken, accepted_base, taken_base;
	u32 srtt_us;

	/* User space's own; BPF never writes below. */
	u32 flows;     /* the first of its flows, slot + 1; 0: none */
	u32 state_own; /* of slots.c */
	u32 next : 24; /* of those that closed in this sample, slot + 1 */
	u32 flags_own : 8;
	struct mote_traffic traffic; /* sum over its flows */
	u64 changed;                 /* as in mote_flow */
	s64 unattributed_sent, unattributed_received;
	u64 retransmitted_seen; /* what of `retransmitted` has been added up */
};

/* The array map `net_ctl`, one value. */
struct mote_net_ctl {
	u64 seeded;    /* sockets that were there at start */
	u64 seed_lost; /* of these, what found no slot */
	u64 check_sent[MOTE_PROTOCOLS], check_received[MOTE_PROTOCOLS]; /* bytes of check_tgid */
	u32 check_tgid; /* user space: whose traffic the self-check counts; 0: nobody's */
	/* User space, when the first walks of net_tcp and net_udp are over: 1. Until then they take
	   in every socket, and what BPF sees first is older than mote. */
	u32 live;
	u32 turned_away;    /* 1: some socket found no slot; what is seen first may be late */
	u32 events;         /* user space: 1 while somebody wants records of sockets */
	u64 events_dropped; /* that found no room */
};

#pragma GCC diagnostic pop

_Static_assert(sizeof(struct mote_thread_counts) == 120, "mote_thread_counts");
_Static_assert(sizeof(struct mote_thread) == 128, "mote_thread");
_Static_assert(MOTE_GAUGES_AT % 8 == 0 && MOTE_GAUGES_END % 8 == 0, "gauges are words");
_Static_assert(sizeof(struct mote_task) == 304, "mote_task");
_Static_assert(sizeof(struct mote_ctl) == 64, "mote_ctl");
_Static_assert(sizeof(struct mote_ref) == 8, "mote_ref");
_Static_assert(sizeof(struct mote_pair) == 8, "mote_pair");
_Static_assert(sizeof(struct mote_walk_ctl) == 56, "mote_walk_ctl");
_Static_assert(sizeof(struct mote_ident) == 280, "mote_ident");
_Static_assert(sizeof(struct mote_event) == 48, "mote_event");
_Static_assert(__builtin_offsetof(struct mote_event_exec, argv) == 64, "mote_event_exec");
_Static_assert(sizeof(struct mote_event_exit) == 200, "mote_event_exit");
_Static_assert(sizeof(struct mote_ends) == 40, "mote_ends");
_Static_assert(sizeof(struct mote_event_socket) == 96, "mote_event_socket");
_Static_assert(sizeof(struct mote_event_ctl) == 40, "mote_event_ctl");
_Static_assert(sizeof(struct mote_flow) == 128, "mote_flow");
_Static_assert(sizeof(struct mote_socket) == 256, "mote_socket");
_Static_assert(sizeof(struct mote_slot_cpu) == 192, "mote_slot_cpu");
#endif
