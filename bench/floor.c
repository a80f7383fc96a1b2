// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * floor MODE PASSES PHASE_MS: what no agent that reads /proc can be cheaper than. One pass a
 * second, PHASE_MS after the full second of the monotonic clock, that only reads and neither parses
 * nor sends. Prints "ready" and then the CPU time of each pass in ns, its wake-up included.
 *
 * wake    nothing: the wake-up alone
 * files   pread() of the ten files that the host streams need, held open
 * pooled  that, and pread() of /proc/PID/stat of every process, held open since the start
 * open    the ten files, and open(), read(), close() of every process's
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench_util.h"

#define PIDS_MAX 70000

static const char *const files[] = {
	"/proc/stat",        "/proc/meminfo",      "/proc/vmstat",
	"/proc/loadavg",     "/proc/uptime",       "/proc/diskstats",
	"/proc/net/dev",     "/proc/pressure/cpu", "/proc/pressure/memory",
	"/proc/pressure/io",
};
#define FILES (sizeof(files) / sizeof(files[0]))

static char buf[1 << 18];
static int file_fds[FILES], stat_fds[PIDS_MAX], pids[PIDS_MAX];
static unsigned int npids;

static void list_processes(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		bench_die("floor: cannot list /proc");
	while ((entry = readdir(dir)) && npids < PIDS_MAX) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			pids[npids++] = atoi(entry->d_name);
	}
	closedir(dir);
}

static int open_stat(int proc, int pid)
{
	char name[32];

	snprintf(name, sizeof(name), "%d/stat", pid);
	return openat(proc, name, O_RDONLY | O_CLOEXEC);
}

static void open_all(int proc, bool pooled)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (unsigned int i = 0; i < FILES; i++)
		file_fds[i] = open(files[i], O_RDONLY | O_CLOEXEC);
	list_processes();
	for (unsigned int i = 0; pooled && i < npids; i++) {
		stat_fds[i] = open_stat(proc, pids[i]);
		if (stat_fds[i] < 0 && errno == EMFILE)
			bench_die("floor: %u processes, but only %llu files may be open", npids,
				  (unsigned long long)limit.rlim_max);
	}
}

static void read_pooled(void)
{
	for (unsigned int i = 0; i < npids; i++) {
		if (pread(stat_fds[i], buf, 4096, 0) < 0)
			continue; /* it ended */
	}
}

static void read_opened(int proc)
{
	for (unsigned int i = 0; i < npids; i++) {
		int fd = open_stat(proc, pids[i]);

		if (fd < 0)
			continue;
		if (read(fd, buf, 4096) < 0)
			buf[0] = 0;
		close(fd);
	}
}

static void pass(int proc, const char *mode)
{
	if (!strcmp(mode, "wake"))
		return;
	for (unsigned int i = 0; i < FILES; i++) {
		if (pread(file_fds[i], buf, sizeof(buf), 0) < 0)
			continue; /* this kernel does not have it */
	}
	if (!strcmp(mode, "pooled"))
		read_pooled();
	else if (!strcmp(mode, "open"))
		read_opened(proc);
}

int main(int argc, char **argv)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), passes;
	int64_t at, before, *took;

	if (argc != 4 || (passes = atoi(argv[2])) < 1)
		bench_die("usage: floor wake|files|pooled|open PASSES PHASE_MS");
	took = calloc((size_t)passes, sizeof(*took));
	open_all(proc, !strcmp(argv[1], "pooled"));
	pass(proc, argv[1]);
	printf("ready\n");
	fflush(stdout);
	at = bench_clock(CLOCK_MONOTONIC) / NS_PER_S * NS_PER_S + atoi(argv[3]) * NS_PER_MS;
	before = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < passes; i++) {
		int64_t now;

		bench_sleep_until(at += NS_PER_S);
		pass(proc, argv[1]);
		now = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
		took[i] = now - before;
		before = now;
	}
	for (int i = 0; i < passes; i++)
		printf("%lld\n", (long long)took[i]);
	free(took);
	return 0;
}
