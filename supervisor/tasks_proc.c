// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Processes from /proc, see tasks.h. Of every process known, /proc/PID/{stat,statm,schedstat,
 * status,io} are held open and read at offset 0; a read that gives ESRCH says that the process has
 * ended, even if its pid is another's by then. It owns the descriptors, both halves and a thread
 * that lists /proc. Only opening it can fail.
 *
 * A sample is a few batches. In each, every process takes its next step: its stat is opened, then
 * its other files; stat, statm and schedstat are read; then status and io, if it may have run since
 * they were read the last time. A first thread whose run time stands still and that is not running
 * has not run, so its credentials are what they were; and if it is the only one, so is what it
 * read and wrote. What others can change (nice, parent, memory) is in what is always read.
 *
 * What the kernel shows of the first thread alone is not given for the process: context switches,
 * run time and run delay would lack those of threads, also of ones that are gone.
 */
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listing.h"
#include "options.h"
#include "parse_proc.h"
#include "proc_batch.h"
#include "proc_files.h"
#include "proc_pool.h"
#include "schema.h"

#define HAS(field)     (1ull << PROCESS_##field)
#define FILE_BIT(file) (1u << (file))

#define IO_FIELDS                                                                                 \
	(HAS(RCHAR) | HAS(WCHAR) | HAS(SYSCR) | HAS(SYSCW) | HAS(READ_BYTES) | HAS(WRITE_BYTES) | \
	 HAS(CANCELLED_WRITE_BYTES))

#define KERNEL_PART offsetof(struct mote_task, shown_utime)

struct tasks_proc {
	struct mote_tasks base;
	struct mote_proc_files files;
	struct mote_proc_pool pool;
	struct mote_listing *listing;
	unsigned int page_size;

	bool sampling, closing;
	unsigned int half, last; /* half of this sample and of the one before */
	unsigned int count[2];   /* records in each */
	unsigned int next;       /* closing: entry; else all entries before are done */

	struct mote_proc_batch batch;
};

static struct tasks_proc *proc_of(const struct mote_tasks *tasks)
{
	return (struct tasks_proc *)tasks;
}

/* Reads of `files` (bits) that are open, or none at all: false if the batch has no room. */
static bool push_reads(struct tasks_proc *t, uint32_t at, unsigned int files)
{
	const struct mote_proc *proc = &t->pool.procs[at];
	unsigned int n = 0;
	size_t text = 0;

	for (unsigned int i = 0; i < MOTE_PROC_FILES; i++) {
		if (proc->fd[i] < 0 || proc->refuse & FILE_BIT(i))
			files &= ~FILE_BIT(i);
		n += files >> i & 1;
		text += files >> i & 1 ? t->files.size[i] : 0;
	}
	if (!mote_proc_batch_fits(&t->batch, n, text))
		return false;
	for (unsigned int i = 0; i < MOTE_PROC_FILES; i++) {
		if (files >> i & 1)
			mote_proc_batch_read(&t->batch, at, proc->fd[i], i, t->files.size[i]);
	}
	return true;
}

static bool push_opens(struct tasks_proc *t, uint32_t at)
{
	if (!mote_proc_batch_fits(&t->batch, MOTE_PROC_FILES - 1, 0))
		return false;
	for (unsigned int i = MOTE_PROC_STAT + 1; i < MOTE_PROC_FILES; i++) {
		if (t->files.has[i])
			mote_proc_batch_open(&t->batch, at, t->pool.procs[at].pid, i);
	}
	return true;
}

static bool push_closes_of(struct tasks_proc *t, struct mote_proc *proc)
{
	bool all = proc->state == MOTE_PROC_ENDED;

	if (!all && !proc->refuse)
		return true;
	for (unsigned int i = 0; i < MOTE_PROC_FILES; i++) {
		if (proc->fd[i] < 0 || !(all || proc->refuse & FILE_BIT(i)))
			continue;
		if (!mote_proc_batch_fits(&t->batch, 1, 0))
			return false;
		mote_proc_batch_close(&t->batch, proc->fd[i]);
		proc->fd[i] = -1;
	}
	proc->refuse = 0;
	return true;
}

/* False if the batch is full before all that is to be closed was pushed. */
static bool push_closes(struct tasks_proc *t)
{
	for (; t->next < t->pool.n; t->next++) {
		if (!push_closes_of(t, &t->pool.procs[t->next]))
			return false;
	}
	return true;
}

/* What the sample before had of a process; NULL: nothing. */
static const struct mote_task *before(const struct tasks_proc *t, const struct mote_proc *proc)
{
	if (!proc->recorded || t->last == t->half || proc->at >= t->count[t->last])
		return NULL;
	return &t->base.half[t->last][proc->at];
}

/* Whether the first thread may have run since the sample before. */
static bool may_have_run(const struct mote_proc *proc, const struct mote_task *task)
{
	return !(proc->got & FILE_BIT(MOTE_PROC_SCHEDSTAT)) || task->state == 'R' ||
	       task->counts.run_time != proc->ran;
}

static void take_status(struct mote_task *task, const struct mote_task *from)
{
	task->uid = from->uid;
	task->gid = from->gid;
	task->present |= HAS(UID) | HAS(GID);
}

static void take_io(struct mote_task *task, const struct mote_task *from)
{
	task->counts.rchar = from->counts.rchar;
	task->counts.wchar = from->counts.wchar;
	task->counts.syscr = from->counts.syscr;
	task->counts.syscw = from->counts.syscw;
	task->counts.read_bytes = from->counts.read_bytes;
	task->counts.write_bytes = from->counts.write_bytes;
	task->counts.cancelled_write_bytes = from->counts.cancelled_write_bytes;
	task->present |= IO_FIELDS;
}

/* Takes over of status and io what cannot have changed. Returns which are to be read. */
static unsigned int changed_files(const struct tasks_proc *t, const struct mote_proc *proc,
				  struct mote_task *task)
{
	const struct mote_task *last = before(t, proc);
	unsigned int files = FILE_BIT(MOTE_PROC_STATUS) | FILE_BIT(MOTE_PROC_IO);

	if (!last || may_have_run(proc, task))
		return files;
	if (last->present & HAS(UID)) {
		take_status(task, last);
		files &= ~FILE_BIT(MOTE_PROC_STATUS);
	}
	if (last->present & HAS(RCHAR) && last->threads == 1 && task->threads == 1) {
		take_io(task, last);
		files &= ~FILE_BIT(MOTE_PROC_IO);
	}
	return files;
}

/* Pushes what a process needs next. False if the batch has no room for it. */
static bool advance(struct tasks_proc *t, uint32_t i)
{
	const unsigned int always = FILE_BIT(MOTE_PROC_STAT) | FILE_BIT(MOTE_PROC_STATM) |
				    FILE_BIT(MOTE_PROC_SCHEDSTAT);
	struct mote_proc *proc = &t->pool.procs[i];
	struct mote_task *task = &t->base.half[t->half][i];

	switch ((enum mote_proc_state)proc->state) {
	case MOTE_PROC_NEW:
		if (!mote_proc_batch_fits(&t->batch, 1, 0))
			return false;
		mote_proc_batch_open(&t->batch, i, proc->pid, MOTE_PROC_STAT);
		proc->state = MOTE_PROC_OPENING;
		return true;
	case MOTE_PROC_OPEN:
		if (!push_opens(t, i))
			return false;
		proc->state = MOTE_PROC_READY;
		return true;
	case MOTE_PROC_READY:
		if (!push_reads(t, i, always))
			return false;
		memset(task, 0, KERNEL_PART);
		proc->state = MOTE_PROC_READING;
		return true;
	case MOTE_PROC_READING:
		if (proc->got & FILE_BIT(MOTE_PROC_STAT) &&
		    !push_reads(t, i, changed_files(t, proc, task)))
			return false;
		proc->state = MOTE_PROC_DONE;
		return true;
	case MOTE_PROC_OPENING:
	case MOTE_PROC_DONE:
	case MOTE_PROC_ENDED:
		break;
	}
	return true;
}

static void begin_sample(struct tasks_proc *t, unsigned int half)
{
	t->sampling = t->closing = true;
	t->half = half;
	t->next = 0;
}

/* After the closes: the pool may be changed only now. */
static void renew(struct tasks_proc *t)
{
	struct mote_pids listed;
	bool new = mote_listing_take(t->listing, &listed);

	mote_proc_pool_renew(&t->pool, new ? &listed : NULL);
	t->closing = false;
	t->next = 0;
}

static bool is_done(const struct mote_proc *proc)
{
	return proc->state == MOTE_PROC_DONE || proc->state == MOTE_PROC_ENDED;
}

static unsigned int tasks_push(struct mote_tasks *tasks, struct mote_engine *engine,
			       unsigned int half, uint32_t index, unsigned int room)
{
	struct tasks_proc *t = proc_of(tasks);

	if (!t->sampling)
		begin_sample(t, half);
	mote_proc_batch_begin(&t->batch, engine, index, room);
	if (t->closing) {
		if (!push_closes(t))
			return t->batch.n;
		renew(t);
	}
	for (unsigned int i = t->next; i < t->pool.n; i++) {
		if (!advance(t, i))
			break;
		if (i == t->next && is_done(&t->pool.procs[i]))
			t->next++;
	}
	return t->batch.n;
}

static void opened(struct tasks_proc *t, const struct mote_proc_step *step, int res)
{
	struct mote_proc *proc = &t->pool.procs[step->proc];

	if (res >= 0)
		proc->fd[step->file] = res;
	if (step->file != MOTE_PROC_STAT)
		return;
	if (res >= 0) {
		proc->state = MOTE_PROC_OPEN;
		return;
	}
	/* It has ended already, is not for us (hidepid), or there is no descriptor for it. */
	if (res == -EMFILE || res == -ENFILE)
		t->pool.dropped++;
	proc->again = false;
	proc->state = MOTE_PROC_ENDED;
}

/* Of a pid that was given to a thread since it was told, the files can be opened, too. */
static bool is_leader(struct mote_text status, uint32_t pid)
{
	char line[24] = "\nTgid:\t";
	unsigned int len = 7 + mote_proc_digits(line + 7, pid);

	line[len++] = '\n';
	return memmem(status.data, status.len, line, len) != NULL;
}

static int parse(struct tasks_proc *t, const struct mote_proc_step *step, struct mote_text text)
{
	struct mote_proc *proc = &t->pool.procs[step->proc];
	struct mote_task *task = &t->base.half[t->half][step->proc];

	switch (step->file) {
	case MOTE_PROC_STAT:
		return mote_parse_pid_stat(text, task);
	case MOTE_PROC_STATM:
		return mote_parse_pid_statm(text, t->page_size, task);
	case MOTE_PROC_SCHEDSTAT:
		return mote_parse_pid_schedstat(text, task);
	case MOTE_PROC_STATUS:
		if (!proc->leader && !is_leader(text, proc->pid))
			return -ESRCH;
		proc->leader = true;
		return mote_parse_pid_status(text, task);
	case MOTE_PROC_IO:
		return mote_parse_pid_io(text, task);
	case MOTE_PROC_FILES:
		break;
	}
	return -EINVAL;
}

static void was_read(struct tasks_proc *t, const struct mote_proc_step *step, int res)
{
	struct mote_proc *proc = &t->pool.procs[step->proc];

	if (proc->state == MOTE_PROC_ENDED)
		return;
	if (res >= 0)
		res = parse(t, step, (struct mote_text){ step->text, (size_t)res });
	/* Without stat there is nothing to tell of a process that has become somebody else's. */
	if (res == -ESRCH || res == -ENOENT ||
	    (step->file == MOTE_PROC_STAT && (res == -EACCES || res == -EPERM)))
		proc->state = MOTE_PROC_ENDED;
	else if (res == -EACCES || res == -EPERM)
		proc->refuse |= FILE_BIT(step->file);
	else if (!res)
		proc->got |= FILE_BIT(step->file);
}

static void tasks_complete(struct mote_tasks *tasks, uint32_t step, int res)
{
	struct tasks_proc *t = proc_of(tasks);

	if (step >= t->batch.n)
		return;
	if (t->batch.steps[step].op == MOTE_OP_OPEN)
		opened(t, &t->batch.steps[step], res);
	else if (t->batch.steps[step].op == MOTE_OP_READ)
		was_read(t, &t->batch.steps[step], res);
}

/* Leaves what the kernel gives of the whole process. */
static void settle(const struct tasks_proc *t, struct mote_proc *proc, struct mote_task *task)
{
	const struct mote_task *last = before(t, proc);

	task->present &= ~t->base.absent;
	if (proc->got & FILE_BIT(MOTE_PROC_SCHEDSTAT))
		proc->ran = task->counts.run_time;
	/* Known for processes of one thread only, a counter would fall when a second begins. */
	task->counts.run_time = task->counts.run_delay = 0;
	task->counts.nvcsw = task->counts.nivcsw = 0;
	/* An exec that no event told of shows by its name, if at all. */
	if (last && memcmp(last->comm, task->comm, sizeof(task->comm)) != 0)
		proc->exec_id++;
	task->exec_id = proc->exec_id;
}

/* The record of an entry. One that could not be read now is as it was; NULL: there is none. */
static const struct mote_task *record(struct tasks_proc *t, uint32_t i)
{
	struct mote_proc *proc = &t->pool.procs[i];
	struct mote_task *task = &t->base.half[t->half][i];

	if (proc->state == MOTE_PROC_ENDED)
		return NULL;
	if (!(proc->got & FILE_BIT(MOTE_PROC_STAT)))
		return before(t, proc);
	settle(t, proc, task);
	return task;
}

static int tasks_finish(struct mote_tasks *tasks, unsigned int half)
{
	struct tasks_proc *t = proc_of(tasks);
	struct mote_task *out = tasks->half[half];
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->pool.n; i++) {
		const struct mote_task *task = record(t, i);

		t->pool.procs[i].recorded = task != NULL;
		t->pool.procs[i].at = n;
		if (!task)
			continue;
		if (task != &out[n])
			memcpy(&out[n], task, KERNEL_PART);
		n++;
	}
	t->count[half] = n;
	t->last = half;
	t->sampling = false;
	return (int)n;
}

static void tasks_born(struct mote_tasks *tasks, uint32_t pid)
{
	mote_proc_pool_born(&proc_of(tasks)->pool, pid);
}

static void tasks_fill(const struct mote_tasks *tasks, struct mote_fill *processes,
		       struct mote_fill *threads)
{
	const struct mote_proc_pool *pool = &proc_of(tasks)->pool;

	*processes = (struct mote_fill){
		.size = pool->max, .fill = pool->n, .peak = pool->peak, .dropped = pool->dropped
	};
	*threads = (struct mote_fill){ 0 };
}

static void tasks_close(struct mote_tasks *tasks)
{
	struct tasks_proc *t = proc_of(tasks);

	mote_listing_stop(t->listing);
	for (unsigned int i = 0; i < t->pool.n; i++) {
		for (unsigned int j = 0; j < MOTE_PROC_FILES; j++) {
			if (t->pool.procs[i].fd[j] >= 0)
				close(t->pool.procs[i].fd[j]);
		}
	}
	mote_proc_pool_close(&t->pool);
	free(tasks->half[0]);
	free(tasks->half[1]);
	if (t->batch.proc >= 0)
		close(t->batch.proc);
	free(t);
}

static const struct mote_tasks_ops tasks_ops = {
	.name = "proc",
	.push = tasks_push,
	.complete = tasks_complete,
	.finish = tasks_finish,
	.born = tasks_born,
	.fill = tasks_fill,
	.close = tasks_close,
};

static int allocate(struct tasks_proc *t)
{
	unsigned int max = t->base.max;

	for (int i = 0; i < 2; i++) {
		t->base.half[i] = malloc(max * sizeof(struct mote_task));
		if (!t->base.half[i])
			return -ENOMEM;
		memset(t->base.half[i], 0xff, max * sizeof(struct mote_task));
	}
	return mote_proc_pool_open(&t->pool, max);
}

static int prepare(struct tasks_proc *t, const struct mote_options *options)
{
	int err;

	t->batch.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->batch.proc < 0)
		return -errno;
	err = mote_proc_files_probe(&t->files, t->batch.proc);
	if (err)
		return err;
	t->base.absent = mote_proc_files_absent(&t->files);
	t->base.max =
		mote_proc_files_limit(t->batch.proc, t->files.count, options->tables_processes);
	if (t->base.max == 0)
		return -EMFILE;
	t->base.descriptors = t->base.max * t->files.count;
	err = allocate(t);
	if (err)
		return err;
	return mote_listing_start(NULL, t->base.max, options->process_listing, &t->listing);
}

/*
 * Neither `direct` (what is pooled are plain descriptors, of which there can be more) nor
 * `has_events` matters: the listing makes up for births that events lost.
 */
int mote_tasks_proc_open(const struct mote_options *options, bool direct, bool has_events,
			 struct mote_tasks **out)
{
	struct tasks_proc *t = malloc(sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	memset(t, 0xff, sizeof(*t));
	memset(t, 0, offsetof(struct tasks_proc, batch));
	t->base.ops = &tasks_ops;
	t->base.apart = true;
	t->batch.proc = -1;
	t->page_size = (unsigned int)sysconf(_SC_PAGESIZE);
	err = prepare(t, options);
	if (err) {
		tasks_close(&t->base);
		return err;
	}
	*out = &t->base;
	return 0;
}

const char *mote_tasks_proc_why(const struct mote_tasks *tasks, unsigned int field)
{
	return mote_proc_files_why(&proc_of(tasks)->files, field);
}
