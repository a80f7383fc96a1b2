// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * File bytes by process and file: entry points. As net.bpf.c this is built into an object for each
 * set: -DMOTE_FENTRY and -DMOTE_KPROBE, and each once more with -DMOTE_FETCH for arm64.
 */
#include "file.h"
#include "probe.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* enter, the logic, exit: nothing in between returns */
#define WITH_CPU(logic)                                              \
	({                                                           \
		struct mote_slot_cpu *cpu = slots_enter(&file_cpus); \
                                                                     \
		if (cpu) {                                           \
			logic;                                       \
			slots_exit(cpu);                             \
		}                                                    \
		0;                                                   \
	})

/* Broken on purpose, one way each, for tests that must notice: see net.bpf.c. */
#ifdef MOTE_MUTANT_FILE_DEAF
#	define DEAF true /* does not look at writes */
#else
#	define DEAF false
#endif
#ifdef MOTE_MUTANT_FILE_EXEC
#	define KERNELS false /* what the kernel reads for itself is the process's */
#else
#	define KERNELS true
#endif
#ifdef MOTE_MUTANT_FILE_EXIT
#	define SETTLES false /* an ending thread takes its last bytes with it */
#else
#	define SETTLES true
#endif
#ifdef MOTE_MUTANT_FILE_LATE
#	define TURN_FIRST true /* the bytes before are the next file's */
#else
#	define TURN_FIRST false
#endif

/*
 * Set when a regular file or directory is opened, and of nothing else (FMODE_ATOMIC_POS): one look
 * instead of two, and pipes, sockets and terminals are out.
 */
#define F_REGULAR 0x8000

/* The calling thread turns to another file; 0: to none that is counted. */
static __always_inline void turn(u64 file, int side, bool kernels)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct file_thread *t = file_thread(true);
	struct file_count count;
	struct file_side *s;
	u32 place = NOWHERE;
	u64 identity = 0;

	if (!t)
		return;
	s = &t->side[side];
	load_count(&count, task, side);
	if (file && !kernels) {
		place = file_place(file, (u64)task);
		identity = file_identity(BPF_CORE_READ((struct file *)file, f_inode));
	}
	if (edges_wanted)
		edge_turn(t, &count, side, place);
	if (TURN_FIRST)
		s->place = place;
	file_settle(s, &count, side);
	s->file = identity;
	*(volatile u32 *)&s->place = place;
}

__noinline int turn_to_read(u64 file, u32 kernels)
{
	turn(file, READ, kernels);
	return 0;
}

__noinline int turn_to_write(u64 file, u32 kernels)
{
	turn(file, WRITE, kernels);
	return 0;
}

/* It was there already: what it moves goes on adding up. */
static __always_inline bool is_there(const struct file_side *s, const struct file *file)
{
	return s->file == file_identity(BPF_CORE_READ(file, f_inode));
}

static __always_inline bool is_a(const struct file *file, u32 type)
{
	return (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == type;
}

/*
 * sendfile() asks for the file, then for what it sends to, and fails no more from there on (but for
 * an offset that is too large). One that fails before does not raise syscr.
 */
static __always_inline void sendfile_asks(struct file_thread *t, int side)
{
	if (t->sendfile == SENDFILE_CALLED)
		t->sendfile = side == READ ? SENDFILE_MAY_READ : 0;
	else if (t->sendfile == SENDFILE_MAY_READ && side == WRITE)
		t->sendfile = SENDFILE_SENDS;
}

static __always_inline int permission(struct file *file, int side)
{
	u32 mode = BPF_CORE_READ(file, f_mode);
	struct file_thread *t = file_thread(false);
	bool regular = mode & F_REGULAR, kernels = false;

	if (compat_is_backing(mode))
		return 0;
	if (edges_wanted && t)
		sendfile_asks(t, side);
	/* In two steps, or the compiler ORs a pointer that may be NULL, which the verifier refuses.
	 */
	if (!t) {
		if (!regular || !is_a(file, S_IFREG))
			return 0;
	} else if (t->kernels) {
		kernels = t->kernels == (u64)file;
		t->kernels = 0;
	} else if (regular ? is_there(&t->side[side], file) : !t->side[side].file) {
		return 0;
	}
	if (side == READ)
		return WITH_CPU(turn_to_read(regular ? ADDRESS(file) : 0, kernels));
	return WITH_CPU(turn_to_write(regular ? ADDRESS(file) : 0, kernels));
}

/* Every call that reads or writes asks before it does. */
ENTRY(file_permission, security_file_permission, struct file *file, int mask)
{
	struct file_thread *t;

	if (mask & MAY_WRITE) {
		if (file_writes && !DEAF)
			return permission(file, WRITE);
		t = edges_wanted ? file_thread(false) : NULL;
		if (t)
			sendfile_asks(t, WRITE);
		return 0;
	}
	return mask & MAY_READ && file_reads ? permission(file, READ) : 0;
}

/* What exec, module loading and the like read is not what the process reads. */
static __always_inline int kernels(struct file *file)
{
	struct file_thread *t = KERNELS ? file_thread(true) : NULL;

	if (t)
		t->kernels = (u64)file;
	return 0;
}

ENTRY(file_kernel_read, kernel_read, struct file *file)
{
	return kernels(file);
}

ENTRY(file_kernel_write, kernel_write, struct file *file)
{
	return kernels(file);
}

/* The kernel moves bytes without asking: they are not the file's that the thread was at. */
static __always_inline void leave_side(int side)
{
	struct file_thread *t = file_thread(false);

	if (t)
		file_leave(t, (void *)bpf_get_current_task(), side);
}

/* IMA reads what is opened or executed, all of it; kernel_read() calls this, too. */
ENTRY(file_integrity_read, __kernel_read)
{
	return WITH_CPU(leave_side(READ));
}

/* A core dump and BSD accounting write. */
static __always_inline void leave_write(void)
{
	leave_side(WRITE);
}

ENTRY(file_coredump, do_coredump, const void *info)
{
	return WITH_CPU(leave_write());
}

/* 6.17: its new name. */
ENTRY(file_vfs_coredump, vfs_coredump, const void *info)
{
	return WITH_CPU(leave_write());
}

ENTRY(file_acct, acct_process)
{
	return WITH_CPU(leave_write());
}

static __always_inline void leave(u32 tid)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct file_thread *t = bpf_map_lookup_elem(&file_threads, &tid);
	struct mote_file_ctl *ctl;

	if (!t)
		return;
	if (SETTLES) {
		file_leave(t, task, READ);
		file_leave(t, task, WRITE);
	}
	ctl = file_control();
	if (!(int)bpf_map_delete_elem(&file_threads, &tid) && ctl)
		__sync_fetch_and_add(&ctl->threads, -1);
}

SEC("?tp/sched/sched_process_exit")
int file_exit(void *ctx)
{
	return WITH_CPU(leave((u32)bpf_get_current_pid_tgid()));
}

/* The verdict on a process is on what it was. */
static __always_inline void decide_again(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 start = BPF_CORE_READ(task, group_leader, start_boottime);
	u64 key = mote_process_key(BPF_CORE_READ(task, tgid), start);
	u32 zero = 0;
	struct mote_file_verdicts *v = bpf_map_lookup_elem(&file_verdicts, &zero);

	if (v && v->key[MOTE_VERDICT_AT(key) & (MOTE_VERDICTS - 1)] == key)
		v->key[MOTE_VERDICT_AT(key) & (MOTE_VERDICTS - 1)] = 0;
}

/* What a program has read, the next one does not send. */
static __always_inline void forget_credit(struct file_thread *t)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	file_leave(t, task, READ);
	file_leave(t, task, WRITE);
	t->before = t->before_left = t->sendfile = 0;
	t->socket_left = 0;
	t->sent = 0;
}

/* A thread that execs takes the number of its process's first, which is gone. */
static __always_inline void exec(u32 old)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct file_thread *t;

	if (old != tid)
		leave(old);
	if (file_filters)
		decide_again();
	t = file_thread(false);
	if (t)
		forget_credit(t);
}

SEC("?tp/sched/sched_process_exec")
int file_exec(struct trace_event_raw_sched_process_exec *ctx)
{
	u32 old = ctx->old_pid;

	return WITH_CPU(exec(old));
}

/* The file that it reads of it turns to within the call. */
ENTRY(file_sendfile, do_sendfile)
{
	struct file_thread *t = file_thread(true);

	if (t) {
		t->sendfile = SENDFILE_CALLED;
		t->sendfile_call = reading_call((void *)bpf_get_current_task());
	}
	return 0;
}

/* The call that comes next will be counted once more. */
static __always_inline void count_again(struct file_thread *t, int side)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct file_side *s = &t->side[side];
	struct file_count count, since;
	u32 place = s->place;

	load_count(&count, task, side);
	file_since(&since, s, &count);
	if (is_several(s) && !since.calls) {
		s->file += s->file < SEVERAL;
		return;
	}
	if (edges_wanted && side == WRITE)
		edge_turn(t, &count, WRITE, place);
	else if (edges_wanted)
		t->sent -= since.bytes;
	file_settle(s, &count, side);
	s->file = 2;
	*(volatile u32 *)&s->place = place;
}

static __always_inline void copy_below(void)
{
	struct file_thread *t = file_thread(false);

	if (!t)
		return;
	count_again(t, READ);
	count_again(t, WRITE);
}

/*
 * copy_file_range() of two files of overlayfs calls itself for those below, and both calls add what
 * was copied to the thread's account.
 */
ENTRY(file_copy, vfs_copy_file_range, struct file *in)
{
	return compat_is_backing(BPF_CORE_READ(in, f_mode)) ? WITH_CPU(copy_below()) : 0;
}

/* splice(2) is not in ioac. */

static __always_inline u32 splice_place(struct file *file)
{
	if (!(BPF_CORE_READ(file, f_mode) & F_REGULAR))
		return NOWHERE;
	return (u32)file_place(ADDRESS(file), bpf_get_current_task());
}

/* The pipe's key. */
static __always_inline u64 pipe_at(const struct file *file)
{
	struct pipe_inode_info *pipe = BPF_CORE_READ(file, f_inode, i_pipe);
	u64 key = pipe_key(file);

	pipe_begin(key, (u64)pipe);
	return key;
}

static __always_inline void splice_enter(struct file *in, struct file *out)
{
	struct file_thread *t = file_thread(true);

	if (!t)
		return;
	t->splice[READ] = file_reads ? splice_place(in) : NOWHERE;
	t->splice[WRITE] = file_writes ? splice_place(out) : NOWHERE;
	t->pipe_in = t->pipe_out = t->pipe_moved = 0;
	if (!edges_wanted)
		return;
	if (is_a(out, S_IFIFO))
		t->pipe_in = pipe_at(out);
	if (is_a(in, S_IFIFO))
		t->pipe_out = pipe_at(in);
}

/* What no socket has put in or taken meanwhile. */
static __always_inline void pipes_moved(struct file_thread *t, u64 bytes)
{
	u64 rest = bytes - least(bytes, t->pipe_moved);

	if (t->pipe_in)
		pipe_put(t->pipe_in, t->splice[READ], false, rest);
	if (t->pipe_out && rest)
		pipe_out(t->pipe_out, 0, t->splice[WRITE] ?: OTHER, rest);
}

static __always_inline void splice_leave(s64 ret)
{
	struct file_thread *t = file_thread(false);

	if (!t)
		return;
	if (ret >= 0) {
		file_add(t->splice[READ], READ, ret, 1);
		file_add(t->splice[WRITE], WRITE, ret, 1);
	}
	if (edges_wanted && ret > 0)
		pipes_moved(t, ret);
	t->pipe_in = t->pipe_out = 0;
	t->splice[READ] = t->splice[WRITE] = NOWHERE;
}

ENTRY(file_splice, do_splice, struct file *in, void *in_at, struct file *out)
{
	return WITH_CPU(splice_enter(in, out));
}

EXIT(file_splice_ret, do_splice, s64 ret, struct file *in, void *in_at, struct file *out,
     void *out_at, u64 len, u32 flags)
{
	return WITH_CPU(splice_leave(ret));
}

/* Nor are io_uring and libaio: a request's file is remembered until it is complete. */

struct file_request {
	u64 file;
	u32 place;
	u32 side;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, struct file_request);
} file_requests SEC(".maps");

static __always_inline bool is_regular(const struct file *file)
{
	return BPF_CORE_READ(file, f_mode) & F_REGULAR;
}

static __always_inline void request_begin(u64 key, struct file *file, u32 side)
{
	struct file_request r = { .file = (u64)file, .side = side };
	struct mote_file_ctl *ctl;

	if (!is_regular(file))
		return;
	r.place = (u32)file_place(ADDRESS(file), bpf_get_current_task());
	if (r.place == NOWHERE || !(int)bpf_map_update_elem(&file_requests, &key, &r, BPF_ANY))
		return;
	ctl = file_control();
	if (ctl)
		__sync_fetch_and_add(&ctl->no_request, 1);
}

/* A request's memory may be another's by now, if it ended unseen: then its file is another. */
static __always_inline void request_end(u64 key, const struct file *file, s64 result)
{
	struct file_request *r = bpf_map_lookup_elem(&file_requests, &key);

	if (!r)
		return;
	if (result >= 0 && r->file == (u64)file) {
		if (r->side == READ)
			file_add(r->place, READ, result, 1);
		else
			file_add(r->place, WRITE, result, 1);
	}
	bpf_map_delete_elem(&file_requests, &key);
}

#define SKIPS_SUCCESS 0x40 /* IOSQE_CQE_SKIP_SUCCESS */

/* One that completes unseen if it succeeds must not take a place, which nobody would give back. */
static __always_inline int uring_begin(struct io_kiocb *request, u32 side)
{
	struct mote_file_ctl *ctl;

	if (BPF_CORE_READ(request, flags) & SKIPS_SUCCESS) {
		ctl = is_regular(BPF_CORE_READ(request, file)) ? file_control() : NULL;
		if (ctl)
			__sync_fetch_and_add(&ctl->no_request, 1);
		return 0;
	}
	return WITH_CPU(request_begin((u64)request, BPF_CORE_READ(request, file), side));
}

static __always_inline void uring_end(u64 request, s64 result)
{
	request_end(request, BPF_CORE_READ((struct io_kiocb *)request, file), result);
}

ENTRY(file_io_read, io_read, struct io_kiocb *request)
{
	return file_reads ? uring_begin(request, READ) : 0;
}

ENTRY(file_io_write, io_write, struct io_kiocb *request)
{
	return file_writes ? uring_begin(request, WRITE) : 0;
}

SEC("?tp/io_uring/io_uring_complete")
int file_io_complete(struct trace_event_raw_io_uring_complete *ctx)
{
	u64 request = (u64)ctx->req;
	s64 result = ctx->res;

	if (!bpf_map_lookup_elem(&file_requests, &request)) /* a socket's, most often */
		return 0;
	return WITH_CPU(uring_end(request, result));
}

/*
 * Up to 5.18: the result is the argument, with what an earlier part of the request read. -529
 * (EIOCBQUEUED): not yet. A request begins with its kiocb.
 */
static __always_inline void kiocb_end(const void *kiocb, s64 result)
{
	struct io_async_rw *rw = BPF_CORE_READ((struct io_kiocb___with_data *)kiocb, async_data);
	s64 before = rw ? BPF_CORE_READ(rw, bytes_done) : 0;

	if (result == -529)
		return;
	uring_end((u64)kiocb, result < 0 ? (before ?: -1) : result + before);
}

ENTRY(file_kiocb_done, kiocb_done, const void *kiocb, s64 result)
{
	return WITH_CPU(kiocb_end(kiocb, result));
}

ENTRY(file_complete_rw, io_complete_rw, const void *kiocb, s64 result)
{
	return WITH_CPU(kiocb_end(kiocb, result));
}

/*
 * libaio: every request that was begun ends in aio_complete_rw(), later and in any task if it is
 * O_DIRECT. One that is refused between does not: its memory is the next request's.
 */
ENTRY(file_aio_read, aio_read, struct kiocb *kiocb)
{
	return file_reads ? WITH_CPU(request_begin((u64)kiocb, BPF_CORE_READ(kiocb, ki_filp), READ))
			  : 0;
}

ENTRY(file_aio_write, aio_write, struct kiocb *kiocb)
{
	return file_writes
		       ? WITH_CPU(request_begin((u64)kiocb, BPF_CORE_READ(kiocb, ki_filp), WRITE))
		       : 0;
}

ENTRY(file_aio_complete, aio_complete_rw, struct kiocb *kiocb, s64 result)
{
	return WITH_CPU(request_end((u64)kiocb, BPF_CORE_READ(kiocb, ki_filp), result));
}

#define keep_order() asm volatile("" ::: "memory")

/*
 * What one living thread has beyond what is settled. A thread that turns meanwhile is left out: its
 * bytes are settled by now, and come with the next walk. The snapshot is taken before anything of a
 * thread is looked at, so that no byte is in both.
 */
static __always_inline void show(struct file_thread *t, const struct task_struct *task, u64 walk,
				 int side)
{
	struct file_side *s = &t->side[side];
	u32 place = *(const volatile u32 *)&s->place, slot = 0;
	struct mote_access *a = place <= OTHER ? NULL : file_at(place, &slot);
	struct file_side seen = {};
	struct file_count count, since;

	if (!a) { /* its file may get a slot by now */
		if (place != NOWHERE && s->file > SEVERAL)
			s->file = LOOK_AGAIN;
		return;
	}
	if (a->walk != walk) {
		a->settled = a->moved;
		a->pending = (struct mote_moved){};
		a->walk = walk;
	}
	keep_order();
	seen.base = *(const volatile u64 *)&s->base;
	seen.calls = *(const volatile u32 *)&s->calls;
	seen.file = *(const volatile u64 *)&s->file;
	keep_order();
	load_count(&count, task, side);
	keep_order();
	if (*(const volatile u64 *)&s->base != seen.base ||
	    *(const volatile u64 *)&s->file != seen.file ||
	    *(const volatile u32 *)&s->place != place ||
	    *(const volatile u32 *)&t->tid != (u32)BPF_CORE_READ(task, pid))
		return;
	if ((s64)(count.bytes - seen.base) < 0)
		return;
	/* One that is counted several times is not half done. */
	if (is_several(&seen) && (u32)count.calls - seen.calls != seen.file)
		return;
	file_since(&since, &seen, &count);
	if (!(since.bytes | since.calls))
		return;
	if (side == READ) {
		a->pending.read += since.bytes;
		a->pending.reads += since.calls;
	} else {
		a->pending.written += since.bytes;
		a->pending.writes += since.calls;
	}
	slots_mark(FILES, slot);
}

SEC("?iter/task")
int file_walk(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mote_file_ctl *ctl = file_control();
	struct file_thread *t;
	u32 tid;

	if (!ctl)
		return 0;
	if (!task) {
		ctl->walked = ctl->walk;
		return 0;
	}
	if (!ctx->meta->seq_num)
		ctl->walk++;
	tid = BPF_CORE_READ(task, pid);
	t = bpf_map_lookup_elem(&file_threads, &tid);
	if (!t)
		return 0;
	return WITH_CPU({
		show(t, task, ctl->walk, READ);
		show(t, task, ctl->walk, WRITE);
	});
}

/* A function of its own: the verifier looks at it once, and not in each turn of the loop. */
__noinline int file_reap_entry(u32 i)
{
	u32 files = MOTE_FILE_ACCESSES, edges = MOTE_FILE_EDGES;
	struct mote_reap *list = bpf_map_lookup_elem(&file_reap, &files);
	int some = list ? slots_reap(FILES, list, i) : 0;

	if (!edges_wanted)
		return some;
	list = bpf_map_lookup_elem(&file_reap, &edges);
	return some | (list ? slots_reap(EDGES, list, i) : 0);
}

static __always_inline void reaped(u32 table)
{
	struct mote_reap *list = bpf_map_lookup_elem(&file_reap, &table);

	if (list)
		slots_reaped(list);
}

SEC("?iter/task")
int file_reap_run(struct bpf_iter__task *ctx)
{
	if (!ctx->task || !slots_pass(ctx->meta))
		return 0;
	for (u32 i = 0; i < MOTE_REAP && file_reap_entry(i); i++)
		;
	reaped(MOTE_FILE_ACCESSES);
	reaped(MOTE_FILE_EDGES);
	return 0;
}
