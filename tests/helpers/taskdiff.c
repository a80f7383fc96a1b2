// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * taskdiff [PROCESSES [WAY]]: BPF's records and /proc side by side, on every process of the machine
 * and on about a hundred of its own making. Each value must be what BPF gave before and after, or
 * between the two. Prints TAP. Needs root; runs as well in an initramfs. WAY:
 * list: the walk of the list, which writes every record (the default, where it can be had)
 * kept: the same, which leaves out what did not change, after as many walks as others' changes take
 * iterator: the task iterator
 *
 * Where the two differ by design:
 * - comm of a kernel thread: /proc adds a kworker's work queue (4.18), and has names longer than 15
 *   bytes (5.17); the iterator has the first 15 bytes.
 * - shared: /proc/PID/statm sums every CPU's part of the counter (6.18), stat and the iterator do
 *   not: they may be behind by one batch a CPU and counter.
 * - voluntary_ctxt_switches, run_time: /proc shows living threads only. Where threads have ended it
 *   is a lower bound; run_time is also held against utime + stime, which have it all.
 */

#include "load.h"
#include "probes.h"
#include "proc_read.h"
#include "task.h"
#include "tap.h"

#define TICK         (1000000000ull / 100) /* USER_HZ is 100 on every architecture that mote knows */
#define MIN_COMPARED 60

enum column {
	PPID,
	START,
	UID,
	GID,
	SESSION,
	TTY,
	STATE,
	NICE,
	PRIORITY,
	THREADS,
	UTIME,
	STIME,
	CUTIME,
	CSTIME,
	MINFLT,
	MAJFLT,
	VSIZE,
	RSS,
	SHARED,
	RCHAR,
	WCHAR,
	SYSCR,
	SYSCW,
	READ_BYTES,
	WRITE_BYTES,
	CANCELLED,
	NVCSW,
	NIVCSW,
	RUN_TIME,
	RUN_TIME_LIVING,
	RUN_DELAY,
	FDS,
	CGROUP,
	OOM_SCORE_ADJ,
	COMM,
	KTHREAD,
	EXE,
	COLUMNS
};

struct result {
	const char *name;
	const char *constant_ok; /* a reason for which it may be the same in all processes */
	unsigned int equal, within, bad, absent;
	uint64_t first;
	bool varies, seen;
	char example[160];
};

#define NO_DISK "an initramfs has no disk"

static struct result results[COLUMNS] = {
	[PPID] = { "ppid" },
	[START] = { "start" },
	[UID] = { "uid" },
	[GID] = { "gid" },
	[SESSION] = { "session" },
	[TTY] = { "tty", "no devpts here" },
	[STATE] = { "state" },
	[NICE] = { "nice" },
	[PRIORITY] = { "priority" },
	[THREADS] = { "threads" },
	[UTIME] = { "utime" },
	[STIME] = { "stime" },
	[CUTIME] = { "cutime" },
	[CSTIME] = { "cstime", "children that ran in user mode only" },
	[MINFLT] = { "minflt" },
	[MAJFLT] = { "majflt", NO_DISK },
	[VSIZE] = { "vsize" },
	[RSS] = { "rss" },
	[SHARED] = { "shared" },
	[RCHAR] = { "rchar" },
	[WCHAR] = { "wchar" },
	[SYSCR] = { "syscr" },
	[SYSCW] = { "syscw" },
	[READ_BYTES] = { "read_bytes", NO_DISK },
	[WRITE_BYTES] = { "write_bytes", NO_DISK },
	[CANCELLED] = { "cancelled_write_bytes", NO_DISK },
	[NVCSW] = { "voluntary_ctxt_switches" },
	[NIVCSW] = { "nonvoluntary_ctxt_switches" },
	[RUN_TIME] = { "run_time" },
	[RUN_TIME_LIVING] = { "run_time of living threads" },
	[RUN_DELAY] = { "run_delay" },
	[FDS] = { "fds" },
	[CGROUP] = { "cgroup_id", "no cgroup2 to be had here" },
	[OOM_SCORE_ADJ] = { "oom_score_adj" },
	[COMM] = { "comm" },
	[KTHREAD] = { "kernel thread" },
	[EXE] = { "exe" },
};

enum way { LIST, KEPT, ITERATOR };

static enum way way;
static long ncpu;
static char cgroup_mount[256], cgroup_dir[320];

static void note(enum column c, int pid, bool ok, bool same, uint64_t lo, uint64_t v, uint64_t hi)
{
	struct result *r = &results[c];

	if (!r->seen)
		r->first = lo;
	r->seen = true;
	r->varies |= lo != r->first || hi != r->first;
	r->equal += ok && same;
	r->within += ok && !same;
	r->bad += !ok;
	if (!ok)
		snprintf(r->example, sizeof(r->example),
			 "pid %d: iterator %lld to %lld, /proc %lld", pid, (long long)lo,
			 (long long)hi, (long long)v);
}

/* lo and hi in either order: gauges fall. */
static void between(enum column c, int pid, int64_t lo, int64_t v, int64_t hi, int64_t slack)
{
	int64_t min = lo < hi ? lo : hi, max = lo < hi ? hi : lo;

	note(c, pid, v >= min - slack && v <= max + slack, lo == v && hi == v, lo, v, hi);
}

/* A sum over living threads, of a value that covers the ended ones too. */
static void living(enum column c, int pid, uint64_t lo, uint64_t v, uint64_t hi, bool all_live)
{
	if (all_live)
		between(c, pid, lo, v, hi, 0);
	else
		note(c, pid, v <= hi, false, lo, v, hi);
}

/* The letters between which a process can go to and fro while it is looked at. */
static bool moving(char state)
{
	return strchr("RSDI", state);
}

static void compare_state(int pid, char lo, char v, char hi)
{
	bool same = v == lo && v == hi;

	note(STATE, pid, v == lo || v == hi || (moving(lo) && moving(v) && moving(hi)), same, lo, v,
	     hi);
}

static void compare_comm(int pid, const struct mote_task *t, const struct proc_values *v)
{
	size_t len = v->flags & PF_KTHREAD ? strnlen(t->comm, MOTE_COMM_LEN) : sizeof(v->comm);
	bool same = !strncmp(t->comm, v->comm, len);
	uint64_t hash = 0;

	for (const char *p = t->comm; *p; p++)
		hash = hash * 31 + *p;
	note(COMM, pid, same, same, hash, hash, hash);
	if (!same)
		snprintf(results[COMM].example, sizeof(results[COMM].example),
			 "pid %d: iterator \"%s\", /proc \"%s\"", pid, t->comm, v->comm);
}

/* Ours, of a kind whose threads all live; kernel threads have none that end. */
static bool all_threads_live(int pid, const struct proc_values *v)
{
	for (unsigned int i = 0; i < load_all.n; i++)
		if (load_all.pids[i] == pid)
			return !load_kinds[i % LOAD_KINDS_N].threads_ended;
	return v->flags & PF_KTHREAD;
}

static void compare_times(int pid, struct mote_task *a, const struct proc_values *v,
			  struct mote_task *b)
{
	bool live = all_threads_live(pid, v);
	uint64_t total = v->utime + v->stime;

	mote_task_adjust(a);
	mote_task_adjust(b);
	between(UTIME, pid, a->shown_utime / TICK, v->utime, b->shown_utime / TICK, 0);
	between(STIME, pid, a->shown_stime / TICK, v->stime, b->shown_stime / TICK, 0);
	between(CUTIME, pid, a->cutime / TICK, v->cutime, b->cutime / TICK, 0);
	between(CSTIME, pid, a->cstime / TICK, v->cstime, b->cstime / TICK, 0);
	/* both are cut to ticks before they are added */
	note(RUN_TIME, pid,
	     a->counts.run_time / TICK <= total + 1 && total <= b->counts.run_time / TICK,
	     a->counts.run_time == b->counts.run_time, a->counts.run_time / TICK, total,
	     b->counts.run_time / TICK);
	living(RUN_TIME_LIVING, pid, a->counts.run_time, v->living_run, b->counts.run_time, live);
	living(NVCSW, pid, a->counts.nvcsw, v->living_nvcsw, b->counts.nvcsw, live);
	living(NIVCSW, pid, a->counts.nivcsw, v->living_nivcsw, b->counts.nivcsw, live);
	between(RUN_DELAY, pid, a->counts.run_delay, v->living_delay, b->counts.run_delay, 0);
}

static void compare_memory(int pid, const struct mote_task *a, const struct proc_values *v,
			   const struct mote_task *b)
{
	/* percpu_counter_batch: max(32, 2 * CPUs) pages; file pages and shared memory */
	int64_t batch = 2 * ncpu * (ncpu > 16 ? 2 * ncpu : 32) * sysconf(_SC_PAGESIZE);

	between(VSIZE, pid, a->vsize, v->vsize, b->vsize, 0);
	if (!(a->flags & MOTE_TASK_HAS_RSS)) {
		results[RSS].absent++;
		results[SHARED].absent++;
		return;
	}
	between(RSS, pid, a->rss, v->rss, b->rss, 0);
	between(SHARED, pid, a->shared, v->shared, b->shared,
		a->flags & MOTE_TASK_HAS_MM ? batch : 0);
}

static void compare(int pid, struct mote_task *a, const struct proc_values *v, struct mote_task *b)
{
	const struct mote_thread_counts *x = &a->counts, *y = &b->counts;

	between(PPID, pid, a->ppid, v->ppid, b->ppid, 0);
	between(START, pid, a->start / TICK, v->start, b->start / TICK, 0);
	between(UID, pid, a->uid, v->uid, b->uid, 0);
	between(GID, pid, a->gid, v->gid, b->gid, 0);
	between(SESSION, pid, a->session, v->session, b->session, 0);
	between(TTY, pid, a->tty, v->tty, b->tty, 0);
	between(NICE, pid, a->nice, v->nice, b->nice, 0);
	between(PRIORITY, pid, a->priority, v->priority, b->priority, 0);
	between(THREADS, pid, a->threads, v->threads, b->threads, 0);
	between(MINFLT, pid, x->minflt, v->minflt, y->minflt, 0);
	between(MAJFLT, pid, x->majflt, v->majflt, y->majflt, 0);
	between(RCHAR, pid, x->rchar, v->rchar, y->rchar, 0);
	between(WCHAR, pid, x->wchar, v->wchar, y->wchar, 0);
	between(SYSCR, pid, x->syscr, v->syscr, y->syscr, 0);
	between(SYSCW, pid, x->syscw, v->syscw, y->syscw, 0);
	between(READ_BYTES, pid, x->read_bytes, v->read_bytes, y->read_bytes, 0);
	between(WRITE_BYTES, pid, x->write_bytes, v->write_bytes, y->write_bytes, 0);
	between(CANCELLED, pid, x->cancelled_write_bytes, v->cancelled, y->cancelled_write_bytes,
		0);
	between(OOM_SCORE_ADJ, pid, a->oom_score_adj, v->oom_score_adj, b->oom_score_adj, 0);
	between(KTHREAD, pid, a->flags & MOTE_TASK_KTHREAD, !!(v->flags & PF_KTHREAD),
		b->flags & MOTE_TASK_KTHREAD, 0);
	compare_state(pid, a->state, v->state, b->state);
	compare_comm(pid, b, v);
	compare_times(pid, a, v, b);
	compare_memory(pid, a, v, b);
	if (v->has_fds && a->flags & b->flags & MOTE_TASK_HAS_FDS)
		between(FDS, pid, a->fds, v->fds, b->fds, 0);
	else
		results[FDS].absent++;
	if (v->has_cgroup)
		between(CGROUP, pid, a->cgroup_id, v->cgroup_id, b->cgroup_id, 0);
	else
		results[CGROUP].absent++;
}

static bool run_iterator(const struct mote_probes_iterator *it, const char *name)
{
	int fd = openat(it->dirfd, name, O_RDONLY | O_CLOEXEC);
	char byte;
	ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);

	if (fd >= 0)
		close(fd);
	return n == 0;
}

#define TABLE 8192

static struct mote_task walks[2][TABLE];

/* All pairs that no reference names are free. */
static void free_pairs(struct mote_probes_iterator *it)
{
	static bool used[TABLE];
	struct mote_walk_ctl *ctl = it->walk_ctl;

	memset(used, 0, sizeof(used));
	for (unsigned int i = 0; i < ctl->tasks; i++)
		used[it->refs[i].pair & ~MOTE_REF_WRITTEN] = true;
	ctl->free = 0;
	for (unsigned int i = 0; i < it->processes; i++)
		if (!used[i])
			it->pairs[ctl->free++].free = i;
}

/* The current record of each process to `to`. */
static unsigned int take_refs(struct mote_probes_iterator *it, struct mote_task *to)
{
	struct mote_walk_ctl *ctl = it->walk_ctl;

	for (unsigned int i = 0; i < ctl->tasks; i++) {
		struct mote_pair *pair = &it->pairs[it->refs[i].pair & ~MOTE_REF_WRITTEN];

		pair->side ^= it->refs[i].pair & MOTE_REF_WRITTEN ? 1 : 0;
		to[i] = it->half[pair->side][pair - it->pairs];
	}
	ctl->taken = ctl->done;
	free_pairs(it);
	return ctl->tasks;
}

static unsigned int walk_list(struct mote_probes_iterator *it, unsigned int half)
{
	struct mote_walk_ctl *ctl = it->walk_ctl;
	unsigned int n = 0;

	for (int i = 0; ctl && i < (way == KEPT && !half ? MOTE_WALK_TURN : 1); i++) {
		ctl->full = way == LIST;
		if (!run_iterator(it, it->tasks) || ctl->done != ctl->begun)
			return 0;
		n = take_refs(it, walks[half]);
	}
	return n;
}

static unsigned int walk_iterator(struct mote_probes_iterator *it, unsigned int half)
{
	struct mote_ctl *ctl = it->ctl;

	ctl->half = half;
	if (!run_iterator(it, it->tasks) || ctl->done != ctl->begun)
		return 0;
	memcpy(walks[half], it->half[half], ctl->tasks * sizeof(walks[half][0]));
	return ctl->tasks;
}

/* A whole walk, its threads added. Returns the number of tasks, 0 on failure. */
static unsigned int walk(struct mote_probes_iterator *it, unsigned int half)
{
	unsigned int n = way == ITERATOR ? walk_iterator(it, half) : walk_list(it, half);

	for (unsigned int i = 0; i < n; i++)
		walks[half][i].shown_utime = walks[half][i].shown_stime = 0;
	mote_task_sort(walks[half], n);
	if (way == ITERATOR)
		mote_task_add_threads(walks[half], n, it->threads, it->ctl->threads);
	return n;
}

enum outcome { COMPARED, GONE, TORN };

static enum outcome look_at(struct mote_probes_iterator *it, int pid)
{
	static struct proc_values v;
	unsigned int na = walk(it, 0), nb;
	bool there = proc_read(&v, pid, cgroup_mount[0] ? cgroup_mount : NULL);
	struct mote_task *a, *b;

	nb = walk(it, 1);
	a = mote_task_find(walks[0], na, pid);
	b = mote_task_find(walks[1], nb, pid);
	if (!there || !a || !b || a->start != b->start)
		return GONE;
	if ((a->flags | b->flags) & MOTE_TASK_TORN || a->exec_id != b->exec_id)
		return TORN;
	compare(pid, a, &v, b);
	return COMPARED;
}

static unsigned int list_pids(int *pids, unsigned int max)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	unsigned int n = 0;

	while (dir && n < max && (e = readdir(dir)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			pids[n++] = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return n;
}

/* A path whose beginning is missing ("...") has the right end. */
static bool same_path(const struct mote_ident *id, const char *path, const char *exe)
{
	size_t cut = id->exe_flags & MOTE_EXE_CUT ? strlen("...") : 0;
	size_t len = strlen(path) - cut, whole = strlen(exe);

	return cut ? len < whole && !strcmp(path + cut, exe + whole - len) : !strcmp(path, exe);
}

/* Paths of executables, of those that the iterator was asked for. */
static void compare_exe(struct mote_probes_iterator *it, const int *pids, unsigned int n)
{
	static struct proc_values v;
	char path[MOTE_EXE_MAX + 32];

	memset(it->want, 0, sizeof(*it->want));
	for (unsigned int i = 0; i < n; i++)
		it->want->bits[pids[i] % MOTE_IDENT_BITS / 64] |= 1ull << pids[i] % 64;
	if (!run_iterator(it, it->idents) || it->ctl->idents_done != it->ctl->idents_begun)
		return;
	for (unsigned int i = 0; i < it->ctl->idents; i++) {
		const struct mote_ident *id = &it->ident[i];
		bool same;
		uint64_t hash = 0;

		v.has_exe = false;
		proc_exe(&v, id->pid);
		path[0] = '\0';
		mote_task_exe(id->exe, id->exe_len, id->exe_flags, path, sizeof(path));
		same = v.has_exe ? same_path(id, path, v.exe) : !path[0];
		if (!v.has_exe && !proc_stat(&v, id->pid))
			continue; /* it has ended */
		for (const char *p = path; *p; p++)
			hash = hash * 31 + *p;
		note(EXE, id->pid, same, same, hash, hash, hash);
		if (!same)
			snprintf(results[EXE].example, sizeof(results[EXE].example),
				 "pid %u: iterator \"%.50s\", /proc \"%.50s\"", id->pid, path,
				 v.exe);
	}
}

/* Some of ours into a cgroup of their own, mounted for the test if it is not. */
static void make_cgroup(void)
{
	static char line[4096];
	char path[400];
	FILE *mounts = fopen("/proc/self/mounts", "r");

	while (mounts && !cgroup_mount[0] && fgets(line, sizeof(line), mounts))
		sscanf(line, "cgroup2 %255s cgroup2 ", cgroup_mount);
	if (mounts)
		fclose(mounts);
	if (!cgroup_mount[0])
		return;
	snprintf(cgroup_dir, sizeof(cgroup_dir), "%s/taskdiff.%d", cgroup_mount, getpid());
	if (mkdir(cgroup_dir, 0755))
		return;
	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup_dir);
	for (unsigned int i = 0; i < load_all.n; i += 5) {
		int fd = open(path, O_WRONLY);

		dprintf(fd, "%d\n", load_all.pids[i]);
		close(fd);
	}
}

static void report(void)
{
	for (unsigned int c = 0; c < COLUMNS; c++) {
		struct result *r = &results[c];

		if (!r->seen) {
			tap(r->constant_ok, "%s: nothing compared%s%s", r->name,
			    r->constant_ok ? ": " : "", r->constant_ok ? r->constant_ok : "");
			continue;
		}
		tap(!r->bad, "%s: %u equal, %u between, %u differ%s%s", r->name, r->equal,
		    r->within, r->bad, r->bad ? ": " : "", r->example);
		if (!r->varies)
			tap(r->constant_ok, "%s: is not the same in all processes%s%s", r->name,
			    r->constant_ok ? ", but may be: " : "",
			    r->constant_ok ? r->constant_ok : "");
	}
}

static void compare_all(struct mote_probes_iterator *it)
{
	static int pids[32768];
	unsigned int n = list_pids(pids, 32768), count[3] = { 0 };

	for (unsigned int i = 0; i < n; i++) {
		enum outcome o = TORN;

		for (unsigned int try = 0; try < 3 && o == TORN; try++)
			o = look_at(it, pids[i]);
		count[o]++;
	}
	for (unsigned int i = 0; i < n && it->idents; i += MOTE_IDENTS / 2)
		compare_exe(it, pids + i, n - i < MOTE_IDENTS / 2 ? n - i : MOTE_IDENTS / 2);
	tap(count[COMPARED] >= MIN_COMPARED,
	    "%u processes compared, at least %d; %u ended, %u moved", count[COMPARED], MIN_COMPARED,
	    count[GONE], count[TORN]);
	tap(count[TORN] <= 2 + n / 50, "few processes move whenever they are looked at: %u",
	    count[TORN]);
	report();
}

/* Too small a table: what does not fit is counted, and what fits is right. */
static void check_bounds(struct mote_probes_config cfg)
{
	struct mote_tiers tiers = { 0 };
	struct mote_probes_iterator *it;
	struct mote_probes *probes;
	static int pids[32768];
	unsigned int n, tasks, lost, filled = way != ITERATOR;

	cfg.processes = 16;
	cfg.threads = 4;
	if (mote_probes_open(&cfg, &tiers, &probes) || !(it = mote_probes_iterator(probes))) {
		tap(false, "a small table: %s", tiers.tier[0].reason);
		return;
	}
	if (way != ITERATOR)
		free_pairs(it);
	memset(it->half[filled], 0x5a, 16 * sizeof(struct mote_task));
	run_iterator(it, it->tasks);
	n = list_pids(pids, 32768);
	tasks = way == ITERATOR ? it->ctl->tasks : it->walk_ctl->tasks;
	lost = way == ITERATOR ? it->ctl->tasks_lost : it->walk_ctl->tasks_lost;
	tap(tasks == 16 && lost + 16 + 20 > n && lost + 16 < n + 20,
	    "a table of 16: %u in it, %u counted as lost, /proc has %u", tasks, lost, n);
	if (way == ITERATOR)
		tap(it->ctl->threads == 4 && it->ctl->threads_lost > 8,
		    "a table of 4 threads: %u in it, %u counted as lost", it->ctl->threads,
		    it->ctl->threads_lost);
	tap(it->half[filled][15].pid && it->half[filled][15].shown_utime == 0x5a5a5a5a5a5a5a5aull &&
		    !it->half[!filled][0].pid,
	    "BPF writes neither to user space's members nor to the other half");
	mote_probes_close(probes);
}

/* All but the first walk of these is of processes of which nothing changes. */
static void check_kept(struct mote_probes_iterator *it)
{
	unsigned int n = walk(it, 0), written = ~0u;

	for (int i = 0; i < 4; i++) {
		n = walk(it, 1);
		written = it->walk_ctl->written < written ? it->walk_ctl->written : written;
	}
	tap(n && written < n / 2, "of %u processes that sleep %u were written", n, written);
}

static enum way way_of(const char *name)
{
	return !strcmp(name, "iterator") ? ITERATOR : !strcmp(name, "kept") ? KEPT : LIST;
}

int main(int argc, char **argv)
{
	struct mote_probes_config cfg = { .iterator = true,
					  .list = true,
					  .events = MOTE_EVENTS_OFF,
					  .processes = TABLE,
					  .threads = 16384,
					  .uid = -1,
					  .gid = -1 };
	struct mote_tiers tiers = { 0 };
	struct mote_probes *probes;
	int err;

	setvbuf(stdout, NULL, _IOLBF, 0);
	ncpu = sysconf(_SC_NPROCESSORS_CONF);
	way = way_of(argc > 2 ? argv[2] : "");
	cfg.list = way != ITERATOR;
	load_start(argc > 1 ? atoi(argv[1]) : 104);
	make_cgroup();
	err = mote_probes_open(&cfg, &tiers, &probes);
	tap(!err && mote_probes_iterator(probes) && !tiers.tier[0].reason[0],
	    "the task iterator loads, nothing left out%s%s", tiers.tier[0].reason[0] ? ": " : "",
	    tiers.tier[0].reason);
	if (!err && mote_probes_iterator(probes)) {
		struct mote_probes_iterator *it = mote_probes_iterator(probes);

		if (argc > 2)
			tap(!it->walk_ctl == (way == ITERATOR), "it is what was asked for: %s",
			    tiers.tier[0].choice);
		if (it->walk_ctl)
			free_pairs(it);
		else
			way = ITERATOR;
		compare_all(it);
		if (way == KEPT)
			check_kept(it);
		check_bounds(cfg);
		mote_probes_close(probes);
	}
	load_stop();
	if (cgroup_dir[0])
		rmdir(cgroup_dir);
	printf("1..%u\n", tap_n);
	return tap_failed > 0;
}
