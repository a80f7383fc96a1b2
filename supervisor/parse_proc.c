// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/PID/{stat,statm,status,schedstat,io,oom_score_adj}: see parse_proc.h. All of a file is read
 * before anything is written to the task.
 */
#include "parse_proc.h"

#include "schema.h"
#include "scan.h"

#define HAS(field) (1ull << PROCESS_##field)
#define NS(ticks)  ((ticks)*MOTE_NS_PER_TICK)
#define TICKS_MAX  (UINT64_MAX / MOTE_NS_PER_TICK)
#define PF_KTHREAD 0x00200000
#define STAT_PRESENT                                                                            \
	(HAS(PID) | HAS(START) | HAS(PPID) | HAS(SESSION) | HAS(TTY) | HAS(STATE) | HAS(NICE) | \
	 HAS(PRIORITY) | HAS(THREADS) | HAS(UTIME) | HAS(STIME) | HAS(CUTIME) | HAS(CSTIME) |   \
	 HAS(MINFLT) | HAS(MAJFLT) | HAS(VSIZE) | HAS(COMM))

/* Columns of stat after the state, in its order. */
enum {
	PPID,
	PGRP,
	SESSION,
	TTY,
	TPGID,
	FLAGS,
	MINFLT,
	CMINFLT,
	MAJFLT,
	CMAJFLT,
	UTIME,
	STIME,
	CUTIME,
	CSTIME,
	PRIORITY,
	NICE,
	THREADS,
	ITREALVALUE,
	START,
	VSIZE,
	COLUMNS
};

/* What a file that is one line holds; false if the line was cut. */
static bool only_line(struct mote_text text, struct mote_scan *line)
{
	struct mote_scan scan = mote_scan_text(text);

	return mote_scan_line(&scan, line) && mote_scan_done(&scan);
}

/*
 * A command name can hold anything but NUL, `)` and newlines too, so it ends at the last `)`; what
 * follows is numbers. Sets the line to what follows.
 */
static bool read_comm(struct mote_text text, struct mote_scan *line, struct mote_text *pid,
		      struct mote_text *comm)
{
	const char *open, *close;

	if (!text.len || text.data[text.len - 1] != '\n')
		return false;
	open = memchr(text.data, '(', text.len);
	close = memrchr(text.data, ')', text.len);
	if (!open || !close || close < open || open == text.data || open[-1] != ' ')
		return false;
	*pid = (struct mote_text){ text.data, open - 1 - text.data };
	*comm = (struct mote_text){ open + 1, close - open - 1 };
	*line = (struct mote_scan){ close + 1, text.data + text.len - 1 };
	return true;
}

/* vsize and flags are unsigned and may need bit 63; the others may be negative. */
static bool read_columns(struct mote_scan *line, uint64_t columns[COLUMNS])
{
	for (unsigned int i = 0; i < COLUMNS; i++) {
		struct mote_text word = mote_scan_word(line);

		if (!mote_text_u64(word, &columns[i]) &&
		    !mote_text_s64(word, (int64_t *)&columns[i]))
			return false;
	}
	for (unsigned int i = UTIME; i <= STIME; i++) {
		if (columns[i] > TICKS_MAX)
			return false;
	}
	return columns[START] <= TICKS_MAX;
}

/* A sum of children's times that does not fit, or that a 32-bit kernel shows below 0, is 0. */
static uint64_t child_ns(uint64_t ticks)
{
	return ticks > TICKS_MAX ? 0 : NS(ticks);
}

static void set_comm(struct mote_task *task, struct mote_text comm)
{
	size_t len = strnlen(comm.data, comm.len < MOTE_COMM_LEN ? comm.len : MOTE_COMM_LEN - 1);

	memset(task->comm, 0, sizeof(task->comm));
	memcpy(task->comm, comm.data, len);
}

static void set_flags(struct mote_task *task, const uint64_t columns[COLUMNS])
{
	task->flags &= ~(MOTE_TASK_KTHREAD | MOTE_TASK_HAS_MM);
	if (columns[FLAGS] & PF_KTHREAD)
		task->flags |= MOTE_TASK_KTHREAD;
	if (columns[VSIZE])
		task->flags |= MOTE_TASK_HAS_MM;
}

static void set_times(struct mote_task *task, const uint64_t columns[COLUMNS])
{
	task->counts.utime = task->prev_utime = NS(columns[UTIME]);
	task->counts.stime = task->prev_stime = NS(columns[STIME]);
	task->cutime = child_ns(columns[CUTIME]);
	task->cstime = child_ns(columns[CSTIME]);
	task->start = NS(columns[START]);
}

/* `13315 (bash) S 13314 13315 3243 0 -1 4194368 126 63 0 0 ...` */
int mote_parse_pid_stat(struct mote_text text, struct mote_task *task)
{
	struct mote_text pid_word, comm, state;
	uint64_t pid, columns[COLUMNS];
	struct mote_scan line;

	if (!read_comm(text, &line, &pid_word, &comm) || !mote_text_u64(pid_word, &pid))
		return -EBADMSG;
	state = mote_scan_word(&line);
	if (state.len != 1 || !read_columns(&line, columns))
		return -EBADMSG;
	task->pid = pid;
	task->state = state.data[0];
	task->ppid = columns[PPID];
	task->session = columns[SESSION];
	task->tty = columns[TTY];
	task->nice = columns[NICE];
	task->priority = columns[PRIORITY];
	task->threads = columns[THREADS];
	task->counts.minflt = columns[MINFLT];
	task->counts.majflt = columns[MAJFLT];
	task->vsize = columns[VSIZE];
	set_times(task, columns);
	set_flags(task, columns);
	set_comm(task, comm);
	task->present |= STAT_PRESENT;
	return 0;
}

/* `1190 524 346 193 0 209 0`: size, resident, shared, ... in pages */
int mote_parse_pid_statm(struct mote_text text, unsigned int page_size, struct mote_task *task)
{
	uint64_t size, rss, shared;
	struct mote_scan line;

	if (!only_line(text, &line) || !mote_scan_u64(&line, &size) ||
	    !mote_scan_u64(&line, &rss) || !mote_scan_u64(&line, &shared) ||
	    __builtin_mul_overflow(rss, page_size, &rss) ||
	    __builtin_mul_overflow(shared, page_size, &shared))
		return -EBADMSG;
	task->rss = rss;
	task->shared = shared;
	task->flags |= MOTE_TASK_HAS_RSS;
	task->present |= HAS(RSS) | HAS(SHARED);
	return 0;
}

/* `514584 432392 2`: ns on a CPU, ns waiting for one, times it ran */
int mote_parse_pid_schedstat(struct mote_text text, struct mote_task *task)
{
	uint64_t run_time, run_delay;
	struct mote_scan line;

	if (!only_line(text, &line) || !mote_scan_u64(&line, &run_time) ||
	    !mote_scan_u64(&line, &run_delay))
		return -EBADMSG;
	task->counts.run_time = run_time;
	task->counts.run_delay = run_delay;
	task->present |= HAS(RUN_TIME) | HAS(RUN_DELAY);
	return 0;
}

int mote_parse_pid_oom_score_adj(struct mote_text text, struct mote_task *task)
{
	struct mote_scan line;
	int64_t v;

	if (!only_line(text, &line) || !mote_text_s64(mote_scan_word(&line), &v) || v < INT32_MIN ||
	    v > INT32_MAX)
		return -EBADMSG;
	task->oom_score_adj = v;
	task->present |= HAS(OOM_SCORE_ADJ);
	return 0;
}

/*
 * Lines of `name: number`, other words after it passed over: the first number of each name goes to
 * `values`. Returns a bit for each name found, 0 if the text was cut.
 */
static unsigned int read_named(struct mote_text text, const char *const names[], unsigned int n,
			       uint64_t values[])
{
	struct mote_scan scan = mote_scan_text(text), line;
	unsigned int found = 0;

	while (mote_scan_line(&scan, &line)) {
		struct mote_text name = mote_scan_until(&line, ':');

		for (unsigned int i = 0; i < n; i++) {
			if (!(found & 1u << i) && mote_text_is(name, names[i]) &&
			    mote_scan_u64(&line, &values[i]))
				found |= 1u << i;
		}
	}
	return mote_scan_done(&scan) ? found : 0;
}

/* In `Name:` the kernel escapes newlines: a command name cannot forge a line. */
int mote_parse_pid_status(struct mote_text text, struct mote_task *task)
{
	static const char *const names[] = { "Uid", "Gid", "voluntary_ctxt_switches",
					     "nonvoluntary_ctxt_switches" };
	uint64_t v[4];

	if (read_named(text, names, 4, v) != 0xf)
		return -EBADMSG;
	task->uid = v[0];
	task->gid = v[1];
	task->counts.nvcsw = v[2];
	task->counts.nivcsw = v[3];
	task->present |= HAS(UID) | HAS(GID) | HAS(NVCSW) | HAS(NIVCSW);
	return 0;
}

int mote_parse_pid_io(struct mote_text text, struct mote_task *task)
{
	static const char *const names[] = { "rchar",
					     "wchar",
					     "syscr",
					     "syscw",
					     "read_bytes",
					     "write_bytes",
					     "cancelled_write_bytes" };
	uint64_t v[7];

	if (read_named(text, names, 7, v) != 0x7f)
		return -EBADMSG;
	task->counts.rchar = v[0];
	task->counts.wchar = v[1];
	task->counts.syscr = v[2];
	task->counts.syscw = v[3];
	task->counts.read_bytes = v[4];
	task->counts.write_bytes = v[5];
	task->counts.cancelled_write_bytes = v[6];
	task->present |= HAS(RCHAR) | HAS(WCHAR) | HAS(SYSCR) | HAS(SYSCW) | HAS(READ_BYTES) |
			 HAS(WRITE_BYTES) | HAS(CANCELLED_WRITE_BYTES);
	return 0;
}
