/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * About a hundred processes of every kind that a process table must get right. They die with the
 * process that made them.
 */
#ifndef MOTE_TEST_LOAD_H
#define MOTE_TEST_LOAD_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOAD_MAX     128
#define LOAD_KINDS_N 13 /* load_kinds below */

struct load {
	pid_t pids[LOAD_MAX];
	unsigned int n;
	int ready[2]; /* a pipe: each process writes a byte when it is what it shall be */
	char dir[64];
};

static struct load load_all;

static void burn(unsigned int ms)
{
	struct timespec from, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

static void sleep_ms(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l }, NULL);
}

static void *burn_for_ever(void *arg)
{
	for (;;) {
		burn(1);
		sleep_ms(60);
	}
	return arg;
}

static void *sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Faults, reads and runs, and then ends: its counts live on in signal_struct only. */
static void *short_life(void *arg)
{
	char *mem = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/status", O_RDONLY);

	burn(15);
	if (mem != MAP_FAILED && fd >= 0) {
		memset(mem, 1, 1 << 20);
		while (read(fd, mem, 100) > 0)
			;
	}
	close(fd);
	return arg;
}

static void with_threads(unsigned int i)
{
	pthread_t t;

	for (unsigned int j = 0; j < 3; j++)
		pthread_create(&t, NULL, j ? sleep_for_ever : burn_for_ever, NULL);
	for (unsigned int j = 0; j < 3; j++) {
		pthread_create(&t, NULL, short_life, NULL);
		pthread_join(t, NULL);
	}
}

static void only_ended_threads(unsigned int i)
{
	pthread_t t;

	pthread_create(&t, NULL, short_life, NULL);
	pthread_join(t, NULL);
}

static void many_descriptors(unsigned int i)
{
	struct rlimit limit = { 4096, 4096 };

	setrlimit(RLIMIT_NOFILE, &limit);
	for (unsigned int j = 0; j < 20 + i * 11; j++)
		if (dup(0) < 0)
			_exit(1);
	for (int fd = 10; fd < 60; fd += 3) /* with holes */
		close(fd);
}

static void other_user(unsigned int i)
{
	if (setpriority(PRIO_PROCESS, 0, i % 39 - 19) || setgid(3000 + i) || setuid(2000 + i))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user takes it back */
}

static void stopped(unsigned int i)
{
}

/* Its child is dead and not waited for, after it has run. */
static void zombie_parent(unsigned int i)
{
	siginfo_t info;

	if (fork() == 0) {
		burn(5);
		_exit(3);
	}
	waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
}

static void waited_for(unsigned int i)
{
	for (unsigned int j = 0; j < 2; j++) {
		pid_t pid = fork();

		if (!pid) {
			burn(20 + i);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* The leader has ended, a thread goes on: a zombie that runs. */
static void dead_leader(unsigned int i)
{
	pthread_t t;

	pthread_create(&t, NULL, sleep_for_ever, NULL);
}

static void strange_name(unsigned int i)
{
	static const char *const names[] = { "a b c",      "x) R 1 (y",    "((()",
					     "two\nlines", "\xff\xfe\x80", "123456789012345",
					     " ",          "tab\there",    "\\n",
					     "caf\xc3\xa9" };

	prctl(PR_SET_NAME, names[i / LOAD_KINDS_N % 10]);
}

static void input_output(unsigned int i)
{
	char path[128], block[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/io.%u", load_all.dir, i);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	memset(block, 'x', sizeof(block));
	for (unsigned int j = 0; j < 20 + i; j++)
		if (write(fd, block, sizeof(block)) < 0)
			_exit(1);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	lseek(fd, 0, SEEK_SET);
	while (read(fd, block, 1000) > 0)
		;
	memset(block, 'y', sizeof(block));
	for (unsigned int j = 0; j < 10; j++)
		if (pwrite(fd, block, sizeof(block), j * 4096) < 0)
			_exit(1);
	if (ftruncate(fd, 0)) /* written and dropped before it reached the disk */
		_exit(1);
	unlink(path);
}

static void memory_of_kinds(unsigned int i)
{
	size_t len = (1 + i) << 14;
	char *mine = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared =
		mmap(NULL, len / 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);
	char text[16];

	if (mine == MAP_FAILED || shared == MAP_FAILED)
		_exit(1);
	memset(mine, 1, len);
	memset(shared, 1, len / 2);
	if (write(fd, text, snprintf(text, sizeof(text), "%u", 100 + i)) < 0)
		_exit(1);
	close(fd);
}

static void with_terminal(unsigned int i)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	int slave;

	setsid();
	if (master < 0 || grantpt(master) || unlockpt(master))
		return; /* no devpts here: the test then misses the column's variety and says so */
	slave = open(ptsname(master), O_RDWR);
	if (slave >= 0)
		ioctl(slave, TIOCSCTTY, 0);
}

static void plain(unsigned int i)
{
	burn(i);
}

struct kind {
	void (*become)(unsigned int i);
	bool threads_ended; /* some, which /proc/PID/task no longer shows */
	bool stop, leader_ends;
};

static const struct kind load_kinds[] = {
	{ .become = plain },
	{ .become = with_threads, .threads_ended = true },
	{ .become = only_ended_threads, .threads_ended = true },
	{ .become = many_descriptors },
	{ .become = other_user },
	{ .become = stopped, .stop = true },
	{ .become = zombie_parent },
	{ .become = waited_for },
	{ .become = strange_name },
	{ .become = input_output },
	{ .become = memory_of_kinds },
	{ .become = with_terminal },
	{ .become = dead_leader, .leader_ends = true },
};

_Static_assert(sizeof(load_kinds) / sizeof(load_kinds[0]) == LOAD_KINDS_N, "kinds");

static void load_child(unsigned int i)
{
	const struct kind *kind = &load_kinds[i % LOAD_KINDS_N];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	kind->become(i);
	if (write(load_all.ready[1], "", 1) != 1)
		_exit(1);
	if (kind->stop)
		raise(SIGSTOP);
	if (kind->leader_ends)
		pthread_exit(NULL);
	for (;;)
		pause();
}

/* Makes them and waits until each is ready. Returns how many there are. */
__attribute__((unused)) static unsigned int load_start(unsigned int n)
{
	char byte;

	snprintf(load_all.dir, sizeof(load_all.dir), "%s/taskdiff.XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	mkdir("/tmp", 0755);
	if (!mkdtemp(load_all.dir) || pipe(load_all.ready))
		return 0;
	fflush(stdout);
	for (unsigned int i = 0; i < n && i < LOAD_MAX; i++) {
		pid_t pid = fork();

		if (!pid)
			load_child(i);
		if (pid > 0)
			load_all.pids[load_all.n++] = pid;
	}
	close(load_all.ready[1]);
	for (unsigned int i = 0; i < load_all.n; i++)
		if (read(load_all.ready[0], &byte, 1) != 1) {
			printf("# %u of %u processes failed to start\n", load_all.n - i,
			       load_all.n);
			break;
		}
	sleep_ms(200); /* to pause(), to stop, to end */
	rmdir(load_all.dir);
	return load_all.n;
}

__attribute__((unused)) static void load_stop(void)
{
	for (unsigned int i = 0; i < load_all.n; i++)
		kill(load_all.pids[i], SIGKILL);
	for (unsigned int i = 0; i < load_all.n; i++)
		waitpid(load_all.pids[i], NULL, 0);
}

#endif
