// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * peerstat PID...: what the processes PID and all below them have used, in one line: CPU time in ns
 * (with that of children that ended, in ticks of USER_HZ), processes, PSS in KiB. PSS is 0 with
 * NOPSS in the environment, as it costs the process that is looked at its mmap lock.
 */
#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "bench_util.h"

struct process {
	int pid, parent;
	bool in;
	long children_ticks;
};

static struct process *processes;
static size_t nprocesses;

static bool read_stat(int pid, struct process *out)
{
	char path[64], text[1024], *end;
	long cutime, cstime;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = 0;
	end = strrchr(text, ')');
	if (!end || sscanf(end + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %ld %ld",
			   &out->parent, &cutime, &cstime) != 3)
		return false;
	out->pid = pid;
	out->in = false;
	out->children_ticks = cutime + cstime;
	return true;
}

static void list(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t room = 0;

	while (dir && (entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		if (nprocesses == room) {
			room = room ? 2 * room : 1024;
			processes = realloc(processes, room * sizeof(*processes));
			if (!processes)
				bench_die("peerstat: out of memory");
		}
		nprocesses += pid > 0 && read_stat(pid, &processes[nprocesses]);
	}
	if (dir)
		closedir(dir);
}

static void mark_below(int pid)
{
	for (size_t i = 0; i < nprocesses; i++) {
		if (processes[i].in || (processes[i].pid != pid && processes[i].parent != pid))
			continue;
		processes[i].in = true;
		if (processes[i].pid != pid)
			mark_below(processes[i].pid);
	}
}

static long pss_kib(int pid)
{
	char path[64], line[256];
	long kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	file = getenv("NOPSS") ? NULL : fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file) && sscanf(line, "Pss: %ld", &kib) != 1)
		;
	fclose(file);
	return kib;
}

int main(int argc, char **argv)
{
	long long ns = 0;
	long n = 0, pss = 0;

	list();
	for (int i = 1; i < argc; i++)
		mark_below(atoi(argv[i]));
	for (size_t i = 0; i < nprocesses; i++) {
		if (!processes[i].in)
			continue;
		ns += bench_cpu_of(processes[i].pid);
		ns += processes[i].children_ticks * (NS_PER_S / sysconf(_SC_CLK_TCK));
		pss += pss_kib(processes[i].pid);
		n++;
	}
	printf("%lld %ld %ld\n", ns, n, pss);
	free(processes);
	return n ? 0 : 1;
}
