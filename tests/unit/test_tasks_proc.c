// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Processes from /proc, on the real one and with both engines: samples are held against reads made
 * before and after them, while processes come and go, change, and have their pids used again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "options.h"
#include "parse_proc.h"
#include "schema.h"
#include "tag.h"
#include "task.h"
#include "tasks.h"

#define HAS(field) (1ull << PROCESS_##field)
#define NOBODY     65534
#define CHILDREN   70
#define MAX        16384 /* processes of this machine that the test can hold */

struct bed {
	struct mote_engine *engine;
	struct mote_tasks *tasks;
	unsigned int half, n;
	unsigned int ops, batches; /* of the last sample */
	int tail;
	unsigned int enters;
};

typedef int open_fn(const struct mote_engine_config *config, struct mote_engine **out);

static struct mote_options options_of(unsigned int processes)
{
	struct mote_options options;

	mote_options_default(&options);
	options.tables_processes = processes;
	options.process_listing = 20;
	return options;
}

static int open_bed(struct bed *bed, open_fn *open_engine, unsigned int processes)
{
	struct mote_engine_config config = { .sq_entries = 256, .workers = 2 };
	struct mote_options options = options_of(processes);
	int err;

	memset(bed, 0, sizeof(*bed));
	err = open_engine(&config, &bed->engine);
	if (err == -EPERM || err == -ENOSYS) {
		print_message("io_uring: %s\n", strerror(-err));
		skip();
	}
	assert_int_equal(err, 0);
	bed->tail = open("/proc/uptime", O_RDONLY | O_CLOEXEC);
	assert_true(bed->tail >= 0);
	return mote_tasks_proc_open(&options, mote_engine_direct(bed->engine), true, &bed->tasks);
}

static void close_bed(struct bed *bed)
{
	if (bed->tasks)
		bed->tasks->ops->close(bed->tasks);
	mote_engine_close(bed->engine);
	close(bed->tail);
}

static void complete_batch(struct bed *bed, unsigned int n)
{
	struct mote_cqe cqes[256];

	while (n) {
		int got = mote_engine_wait(bed->engine, n, cqes, 256);

		assert_true(got >= 0);
		for (int i = 0; i < got; i++, n--) {
			if (mote_tag_kind(cqes[i].tag) != MOTE_TAG_FILE)
				continue;
			assert_int_equal(mote_tag_index(cqes[i].tag), 77);
			bed->tasks->ops->complete(bed->tasks, mote_tag_generation(cqes[i].tag),
						  cqes[i].res);
		}
	}
}

static void sample(struct bed *bed)
{
	const struct mote_tasks_ops *ops = bed->tasks->ops;
	unsigned int n;
	char buf[64];
	int res;

	bed->half = !bed->half;
	bed->ops = bed->batches = 0;
	while ((n = ops->push(bed->tasks, bed->engine, bed->half, 77,
			      mote_engine_room(bed->engine) - 1))) {
		struct mote_sqe tail = { .tag = mote_tag(MOTE_TAG_TIMER, 0, 0),
					 .op = MOTE_OP_READ,
					 .fd = bed->tail,
					 .flags = MOTE_SQE_ASYNC,
					 .buf = buf,
					 .len = sizeof(buf) };

		assert_int_equal(mote_engine_push(bed->engine, &tail), 0);
		complete_batch(bed, n + 1);
		bed->ops += n;
		bed->batches++;
	}
	res = ops->finish(bed->tasks, bed->half);
	assert_true(res >= 0 && (unsigned int)res <= bed->tasks->max);
	bed->n = (unsigned int)res;
	for (unsigned int i = 1; i < bed->n; i++)
		assert_true(bed->tasks->half[bed->half][i - 1].pid <
			    bed->tasks->half[bed->half][i].pid);
}

static const struct mote_task *find(const struct bed *bed, pid_t pid)
{
	return mote_task_find(bed->tasks->half[bed->half], bed->n, (uint32_t)pid);
}

/* Samples until the process is there, as a new listing must be made first. */
static const struct mote_task *await(struct bed *bed, pid_t pid)
{
	for (int i = 0; i < 200; i++) {
		sample(bed);
		if (find(bed, pid))
			return find(bed, pid);
		usleep(10000);
	}
	fail_msg("process %d is not found", pid);
	return NULL;
}

static pid_t spawn(void (*child)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child();
		_exit(0);
	}
	return pid;
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void idle(void)
{
	for (;;)
		pause();
}

/* Direct reads. */

static struct mote_text slurp(uint32_t pid, const char *file, char *buf, size_t size)
{
	char path[64];
	ssize_t len = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, buf, size);
		close(fd);
	}
	return (struct mote_text){ buf, len < 0 ? 0 : (size_t)len };
}

static bool read_task(uint32_t pid, struct mote_task *task)
{
	char buf[8192];

	memset(task, 0, sizeof(*task));
	return !mote_parse_pid_stat(slurp(pid, "stat", buf, sizeof(buf)), task) &&
	       !mote_parse_pid_statm(slurp(pid, "statm", buf, sizeof(buf)),
				     (unsigned int)sysconf(_SC_PAGESIZE), task) &&
	       !mote_parse_pid_status(slurp(pid, "status", buf, sizeof(buf)), task) &&
	       !mote_parse_pid_schedstat(slurp(pid, "schedstat", buf, sizeof(buf)), task) &&
	       !mote_parse_pid_io(slurp(pid, "io", buf, sizeof(buf)), task);
}

static unsigned int read_all(struct mote_task *tasks)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		assert_true(n < MAX);
		if (pid && read_task(pid, &tasks[n]))
			n++;
	}
	closedir(dir);
	mote_task_sort(tasks, n);
	return n;
}

static void assert_within(uint64_t low, uint64_t v, uint64_t high, const char *name, uint32_t pid)
{
	if (v < low || v > high)
		fail_msg("%s of process %u is %llu, not within %llu and %llu", name, pid,
			 (unsigned long long)v, (unsigned long long)low, (unsigned long long)high);
}

#define WITHIN(field) assert_within(a->field, task->field, b->field, #field, task->pid)
/* Of what can move both ways: what did not move meanwhile. */
#define SAME(field)                                                                        \
	do {                                                                               \
		if (a->field == b->field)                                                  \
			assert_within(a->field, task->field, a->field, #field, task->pid); \
	} while (0)

static void compare(const struct mote_task *task, const struct mote_task *a,
		    const struct mote_task *b)
{
	SAME(ppid);
	SAME(session);
	SAME(tty);
	SAME(uid);
	SAME(gid);
	/* the machine's others may go there and back within a moment */
	if (task->ppid == (uint32_t)getpid()) {
		SAME(threads);
		SAME(vsize);
		SAME(rss);
		SAME(shared);
	}
	WITHIN(counts.utime);
	WITHIN(counts.stime);
	WITHIN(cutime);
	WITHIN(cstime);
	WITHIN(counts.minflt);
	WITHIN(counts.majflt);
	WITHIN(counts.rchar);
	WITHIN(counts.wchar);
	WITHIN(counts.syscr);
	WITHIN(counts.syscw);
	WITHIN(counts.read_bytes);
	WITHIN(counts.write_bytes);
	assert_false(task->present & HAS(RUN_DELAY));
	assert_int_equal(task->nice, a->nice);
	assert_false(task->present & (HAS(RUN_TIME) | HAS(NVCSW) | HAS(NIVCSW)));
}

/* Everything that was there before and after, and nothing that was neither. */
static void compare_all(struct bed *bed, unsigned int at_least)
{
	static struct mote_task a[MAX], b[MAX];
	unsigned int na = read_all(a), nb, compared = 0;

	sample(bed);
	nb = read_all(b);
	for (unsigned int i = 0; i < bed->n; i++) {
		const struct mote_task *task = &bed->tasks->half[bed->half][i];
		const struct mote_task *before = mote_task_find(a, na, task->pid);
		const struct mote_task *after = mote_task_find(b, nb, task->pid);

		if (!before || !after || before->start != after->start)
			continue;
		assert_true(task->start == before->start);
		compare(task, before, after);
		compared++;
	}
	/* what no event told of is found by the next listing */
	for (unsigned int i = 0; i < na; i++) {
		const struct mote_task *after = mote_task_find(b, nb, a[i].pid);

		if (after && after->start == a[i].start && a[i].ppid == (uint32_t)getpid())
			assert_non_null(find(bed, (pid_t)a[i].pid));
	}
	assert_true(compared >= at_least);
}

static void equals_proc(open_fn *open_engine)
{
	pid_t child[CHILDREN];
	struct bed bed;

	assert_int_equal(open_bed(&bed, open_engine, MAX), 0);
	for (int i = 0; i < CHILDREN; i++) {
		child[i] = spawn(idle);
		/* half of them by event, the others by the listing */
		if (i % 2)
			bed.tasks->ops->born(bed.tasks, (uint32_t)child[i]);
	}
	sample(&bed);
	for (int i = 1; i < CHILDREN; i += 2)
		assert_non_null(find(&bed, child[i]));
	for (int i = 0; i < CHILDREN; i++)
		await(&bed, child[i]);
	for (int i = 0; i < 10; i++)
		compare_all(&bed, 60);
	for (int i = 0; i < CHILDREN; i += 2)
		reap(child[i]);
	compare_all(&bed, CHILDREN / 2);
	for (int i = 0; i < CHILDREN; i++)
		assert_true(!find(&bed, child[i]) == !(i % 2));
	for (int i = 1; i < CHILDREN; i += 2)
		reap(child[i]);
	sample(&bed);
	for (int i = 0; i < CHILDREN; i++)
		assert_null(find(&bed, child[i]));
	close_bed(&bed);
}

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Our descriptors of that process's /proc files; of one that is gone, too. */
static unsigned int count_proc_fds(pid_t pid)
{
	char path[300], target[300], want[32];
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	snprintf(want, sizeof(want), "/proc/%d/", pid);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		memset(target, 0, sizeof(target));
		if (readlink(path, target, sizeof(target) - 1) > 0)
			n += !strncmp(target, want, strlen(want));
	}
	closedir(dir);
	return n;
}

static void closes_what_it_opened(open_fn *open_engine)
{
	unsigned int before = count_fds();
	pid_t child[CHILDREN];
	struct bed bed;

	assert_int_equal(open_bed(&bed, open_engine, MAX), 0);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < CHILDREN; i++) {
			child[i] = spawn(idle);
			bed.tasks->ops->born(bed.tasks, (uint32_t)child[i]);
		}
		sample(&bed);
		assert_true(count_proc_fds(child[0]) >= 4);
		for (int i = 0; i < CHILDREN; i++)
			assert_non_null(find(&bed, child[i]));
		for (int i = 0; i < CHILDREN; i++)
			reap(child[i]);
		sample(&bed); /* finds that they are gone */
		sample(&bed); /* closes */
		for (int i = 0; i < CHILDREN; i++)
			assert_int_equal(count_proc_fds(child[i]), 0);
	}
	close_bed(&bed);
	assert_int_equal(count_fds(), before);
}

/* What it is told by a pipe: writes to /dev/null, then becomes another user. */
static int orders[2], answers[2];

static void obey(void)
{
	char order;

	while (read(orders[0], &order, 1) == 1) {
		int fd = open("/dev/null", O_WRONLY);

		if (order == 'w' && write(fd, "0123456789", 10) != 10)
			_exit(1);
		if (order == 'u' && setuid(NOBODY))
			_exit(1);
		if (order == 'n' && prctl(PR_SET_NAME, "a) R (\nb"))
			_exit(1);
		close(fd);
		if (write(answers[1], &order, 1) != 1)
			_exit(1);
	}
}

static void order(char c)
{
	assert_int_equal(write(orders[1], &c, 1), 1);
	assert_int_equal(read(answers[0], &c, 1), 1);
	usleep(20000); /* until it sleeps again */
}

static void sees_changes_of_what_sleeps(open_fn *open_engine)
{
	const struct mote_task *task;
	uint64_t wchar, changed;
	struct bed bed;
	pid_t pid;

	if (getuid()) {
		print_message("needs to be root\n");
		skip();
	}
	assert_int_equal(pipe(orders), 0);
	assert_int_equal(pipe(answers), 0);
	pid = spawn(obey);
	usleep(20000);
	assert_int_equal(open_bed(&bed, open_engine, MAX), 0);
	task = await(&bed, pid);
	assert_int_equal(task->uid, 0);
	wchar = task->counts.wchar;
	for (int i = 0; i < 3; i++)
		sample(&bed);
	task = find(&bed, pid);
	assert_int_equal(task->counts.wchar, wchar);
	assert_true(task->present & HAS(UID) && task->present & HAS(WCHAR));

	order('w');
	sample(&bed);
	task = find(&bed, pid);
	assert_int_equal(task->counts.wchar, wchar + 10 + 1);
	order('n');
	sample(&bed);
	task = find(&bed, pid);
	assert_string_equal(task->comm, "a) R (\nb");
	changed = task->exec_id;
	order('u');
	sample(&bed);
	task = find(&bed, pid);
	assert_int_equal(task->uid, NOBODY);
	assert_int_equal(task->exec_id, changed);
	sample(&bed);
	task = find(&bed, pid);
	assert_int_equal(task->uid, NOBODY);
	bed.tasks->ops->born(bed.tasks, (uint32_t)pid);
	sample(&bed);
	assert_int_not_equal(find(&bed, pid)->exec_id, changed);
	/* what others change */
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, 7), 0);
	sample(&bed);
	assert_int_equal(find(&bed, pid)->nice, 7);
	reap(pid);
	close_bed(&bed);
	for (int i = 0; i < 2; i++) {
		close(orders[i]);
		close(answers[i]);
	}
}

static void reads_less_of_what_sleeps(open_fn *open_engine)
{
	pid_t child[CHILDREN];
	unsigned int first;
	struct bed bed;

	for (int i = 0; i < CHILDREN; i++)
		child[i] = spawn(idle);
	usleep(50000);
	assert_int_equal(open_bed(&bed, open_engine, MAX), 0);
	sample(&bed);
	first = bed.ops; /* opens, and reads of all */
	sample(&bed);
	sample(&bed);
	assert_true(bed.n >= CHILDREN);
	assert_true(bed.ops >= 3 * bed.n);
	assert_true(bed.ops <= first - 5 * bed.n - 2 * CHILDREN + 20);
	for (int i = 0; i < CHILDREN; i++)
		reap(child[i]);
	close_bed(&bed);
}

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static void two_threads(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, sleep_on, NULL);
	idle();
}

static void leave_a_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, sleep_on, NULL);
	pthread_exit(NULL);
}

static pid_t other_thread(pid_t pid)
{
	char path[64];
	pid_t tid = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (atoi(entry->d_name) && atoi(entry->d_name) != pid)
			tid = atoi(entry->d_name);
	}
	closedir(dir);
	return tid;
}

static void tells_threads_from_processes(open_fn *open_engine)
{
	pid_t one = spawn(idle), two = spawn(two_threads), left = spawn(leave_a_thread);
	const struct mote_task *task;
	struct bed bed;
	pid_t tid;

	for (int i = 0; i < 100 && !(tid = other_thread(two)); i++)
		usleep(20000);
	assert_true(tid > 0);
	assert_int_equal(open_bed(&bed, open_engine, MAX), 0);
	bed.tasks->ops->born(bed.tasks, (uint32_t)tid);
	for (int i = 0; i < 3; i++) {
		sample(&bed);
		assert_null(find(&bed, tid));
	}
	task = find(&bed, one);
	assert_int_equal(task->threads, 1);
	task = find(&bed, two);
	assert_int_equal(task->threads, 2);
	assert_int_equal(task->counts.run_delay, 0);
	for (int i = 0; i < 100 && find(&bed, left) && find(&bed, left)->state != 'Z'; i++) {
		usleep(20000);
		sample(&bed);
	}
	task = find(&bed, left);
	assert_non_null(task);
	assert_int_equal(task->state, 'Z');
	assert_true(task->present & HAS(UTIME));
	reap(one);
	reap(two);
	reap(left);
	close_bed(&bed);
}

/* What finds no room is counted once, and comes in as soon as there is some. */
static void counts_what_it_turns_away(open_fn *open_engine)
{
	struct mote_fill fill, threads;
	pid_t child[CHILDREN];
	uint64_t dropped;
	struct bed bed;

	for (int i = 0; i < CHILDREN; i++)
		child[i] = spawn(idle);
	assert_int_equal(open_bed(&bed, open_engine, 20), 0);
	for (int i = 0; i < 5; i++) {
		sample(&bed);
		assert_true(bed.n <= 20);
		usleep(30000); /* another listing */
	}
	bed.tasks->ops->fill(bed.tasks, &fill, &threads);
	assert_int_equal(fill.size, 20);
	assert_true(fill.fill <= 20 && fill.peak == 20);
	assert_true(fill.dropped >= CHILDREN - 20);
	dropped = fill.dropped;
	for (int i = 0; i < 5; i++) {
		usleep(30000);
		sample(&bed);
	}
	bed.tasks->ops->fill(bed.tasks, &fill, &threads);
	assert_true(fill.dropped <= dropped + 10); /* others may have been born */
	for (int i = 0; i < CHILDREN; i++)
		reap(child[i]);
	close_bed(&bed);
}

static pid_t clone_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uintptr_t)&pid,
				   .set_tid_size = 1 };
	long res = syscall(SYS_clone3, &args, sizeof(args));

	if (res == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		idle();
	}
	return res < 0 ? -errno : (pid_t)res;
}

static void a_pid_is_used_again(open_fn *open_engine)
{
	uint64_t start;
	struct bed bed;
	pid_t pid;

	assert_int_equal(open_bed(&bed, open_engine, MAX), 0);
	for (int by_event = 0; by_event < 2; by_event++) {
		pid = spawn(idle);
		start = await(&bed, pid)->start;
		reap(pid);
		usleep(30000);
		if (clone_as(pid) != pid) {
			print_message("clone3() with a pid is not to be had\n");
			close_bed(&bed);
			skip();
		}
		if (by_event)
			bed.tasks->ops->born(bed.tasks, (uint32_t)pid);
		sample(&bed);
		assert_true(!find(&bed, pid) || find(&bed, pid)->start > start);
		if (by_event)
			sample(&bed);
		else
			await(&bed, pid);
		assert_non_null(find(&bed, pid));
		assert_true(find(&bed, pid)->start > start);
		reap(pid);
	}
	close_bed(&bed);
}

/* Runs in a child, which the outcome is told of by its exit code. */
static void run_apart(int (*fn)(open_fn *), open_fn *open_engine)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(open_engine));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("line %d, status %x", WEXITSTATUS(status) + 500, (unsigned int)status);
}

/* Exit codes are lines, less 500 so that they fit. */
#define CHECK(cond)                            \
	do {                                   \
		if (!(cond))                   \
			return __LINE__ - 500; \
	} while (0)

static int as_nobody(open_fn *open_engine)
{
	struct bed bed;
	const char *why;

	CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	CHECK(!open_bed(&bed, open_engine, MAX));
	CHECK(bed.tasks->absent & HAS(RCHAR));
	why = mote_tasks_proc_why(bed.tasks, PROCESS_RCHAR);
	CHECK(why && strstr(why, "CAP_SYS_PTRACE"));
	CHECK(!mote_tasks_proc_why(bed.tasks, PROCESS_UTIME));
	sample(&bed);
	CHECK(find(&bed, 1) && find(&bed, getpid()));
	CHECK(find(&bed, 1)->present & HAS(UID) && find(&bed, 1)->uid == 0);
	CHECK(!(find(&bed, getpid())->present & HAS(RCHAR)));
	close_bed(&bed);
	return 0;
}

static int with_hidepid(open_fn *open_engine, const char *option)
{
	struct bed bed;

	CHECK(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(!mount("proc", "/proc", "proc", 0, option));
	CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	/* a process that changed its user is not dumpable: its /proc files are root's */
	CHECK(!prctl(PR_SET_DUMPABLE, 1));
	CHECK(!open_bed(&bed, open_engine, MAX));
	for (int i = 0; i < 3; i++) {
		sample(&bed);
		CHECK(!find(&bed, 1) && !find(&bed, getppid()));
		CHECK(find(&bed, getpid()));
		usleep(30000);
	}
	close_bed(&bed);
	return 0;
}

static int hidepid_1(open_fn *open_engine)
{
	return with_hidepid(open_engine, "hidepid=1");
}

static int hidepid_2(open_fn *open_engine)
{
	return with_hidepid(open_engine, "hidepid=2");
}

/* Opened by root and read by somebody else, as after the privileges are given up. */
static int drops_rights(open_fn *open_engine)
{
	struct bed bed;

	CHECK(!open_bed(&bed, open_engine, MAX));
	sample(&bed);
	CHECK(find(&bed, getppid()) && find(&bed, getppid())->present & HAS(RCHAR));
	CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	for (int i = 0; i < 3; i++) {
		sample(&bed);
		CHECK(find(&bed, getppid()) && find(&bed, getppid())->present & HAS(UTIME));
		CHECK(find(&bed, getppid())->present & HAS(UID));
	}
	close_bed(&bed);
	return 0;
}

static void knows_its_rights(open_fn *open_engine)
{
	if (getuid()) {
		print_message("needs to be root\n");
		skip();
	}
	run_apart(as_nobody, open_engine);
	run_apart(hidepid_1, open_engine);
	run_apart(hidepid_2, open_engine);
	run_apart(drops_rights, open_engine);
}

static void takes_no_memory_later(open_fn *open_engine)
{
#ifndef __SANITIZE_ADDRESS__
	struct rusage before, after;
	size_t in_use;
	struct bed bed;

	assert_int_equal(open_bed(&bed, open_engine, MAX), 0);
	for (int i = 0; i < 3; i++)
		sample(&bed);
	in_use = mallinfo2().uordblks;
	getrusage(RUSAGE_THREAD, &before);
	for (int i = 0; i < 50; i++)
		sample(&bed);
	getrusage(RUSAGE_THREAD, &after);
	assert_int_equal(mallinfo2().uordblks, in_use);
	assert_int_equal(after.ru_minflt, before.ru_minflt);
	close_bed(&bed);
#endif
}

#define BOTH(name)                            \
	static void name##_ring(void **state) \
	{                                     \
		name(mote_engine_open_ring);  \
	}                                     \
	static void name##_sync(void **state) \
	{                                     \
		name(mote_engine_open_sync);  \
	}
BOTH(equals_proc)
BOTH(closes_what_it_opened)
BOTH(sees_changes_of_what_sleeps)
BOTH(reads_less_of_what_sleeps)
BOTH(tells_threads_from_processes)
BOTH(counts_what_it_turns_away)
BOTH(a_pid_is_used_again)
BOTH(knows_its_rights)
BOTH(takes_no_memory_later)

#define TESTS(name) cmocka_unit_test(name##_ring), cmocka_unit_test(name##_sync)

/*
 * In a pid namespace with a /proc of its own, if it may: what else runs on the machine, thousands
 * of processes perhaps, is none of the test's.
 */
static int run_alone(int (*run)(void))
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		return run();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("proc", "/proc", "proc", 0, NULL))
			_exit(99);
		exit(run());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 98;
	/* at once: a leak check would fail here, where its helper is in the other namespace */
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 97);
}

static int test_all(void)
{
	const struct CMUnitTest tests[] = {
		TESTS(equals_proc),
		TESTS(closes_what_it_opened),
		TESTS(sees_changes_of_what_sleeps),
		TESTS(reads_less_of_what_sleeps),
		TESTS(tells_threads_from_processes),
		TESTS(counts_what_it_turns_away),
		TESTS(a_pid_is_used_again),
		TESTS(knows_its_rights),
		TESTS(takes_no_memory_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	return run_alone(test_all);
}
