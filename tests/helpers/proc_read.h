/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The differential test's own reader of /proc/PID, written apart from mote's parsers so that the
 * two do not share their faults. It reads slowly and all there is.
 */
#ifndef MOTE_TEST_PROC_READ_H
#define MOTE_TEST_PROC_READ_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PF_WQ_WORKER 0x00000020
#define PF_KTHREAD   0x00200000

struct proc_values {
	char state, comm[80], exe[4096];
	bool has_exe, has_fds, has_cgroup;
	uint64_t ppid, session, tty, flags, minflt, majflt, utime, stime, cutime, cstime, threads;
	int64_t priority, nice, oom_score_adj;
	uint64_t start, vsize, rss, shared; /* start in ticks, memory in bytes */
	uint64_t rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled;
	uint64_t uid, gid, fds, cgroup_id;
	/* sums over the threads that /proc/PID/task shows */
	uint64_t living_run, living_delay, living_nvcsw, living_nivcsw;
};

static char proc_text[65536];

static int slurp(const char *path)
{
	int fd = open(path, O_RDONLY), n = 0, k;

	if (fd < 0)
		return -1;
	while ((k = read(fd, proc_text + n, sizeof(proc_text) - 1 - n)) > 0)
		n += k;
	close(fd);
	proc_text[n] = '\0';
	return k < 0 ? -1 : n;
}

static int slurp_pid(int pid, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return slurp(path);
}

/* The number after `key`, which begins a line. */
static uint64_t keyed(const char *key)
{
	size_t len = strlen(key);

	for (char *p = proc_text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!strncmp(p, key, len))
			return strtoull(p + len, NULL, 10);
	}
	return UINT64_MAX;
}

static bool proc_stat(struct proc_values *v, int pid)
{
	int64_t f[53] = { 0 }; /* as proc(5) counts: 4 is ppid */
	char *p;

	if (slurp_pid(pid, "stat") <= 0)
		return false;
	p = strrchr(proc_text, ')') + 2;
	v->state = *p++;
	for (unsigned int i = 4; i < 53; i++)
		f[i] = strtoll(p, &p, 10);
	v->ppid = f[4];
	v->session = f[6];
	v->tty = (uint32_t)f[7];
	v->flags = f[9];
	v->minflt = f[10];
	v->majflt = f[12];
	v->utime = f[14];
	v->stime = f[15];
	v->cutime = f[16];
	v->cstime = f[17];
	v->priority = f[18];
	v->nice = f[19];
	v->threads = f[20];
	v->start = f[22];
	v->vsize = f[23];
	v->rss = f[24] * sysconf(_SC_PAGESIZE);
	return true;
}

static bool proc_more(struct proc_values *v, int pid)
{
	char *p;

	if (slurp_pid(pid, "statm") <= 0)
		return false;
	p = proc_text;
	for (int i = 0; i < 2; i++)
		strtoull(p, &p, 10);
	v->shared = strtoull(p, &p, 10) * sysconf(_SC_PAGESIZE);
	if (slurp_pid(pid, "io") <= 0)
		return false;
	v->rchar = keyed("rchar:");
	v->wchar = keyed("wchar:");
	v->syscr = keyed("syscr:");
	v->syscw = keyed("syscw:");
	v->read_bytes = keyed("read_bytes:");
	v->write_bytes = keyed("write_bytes:");
	v->cancelled = keyed("cancelled_write_bytes:");
	if (slurp_pid(pid, "status") <= 0)
		return false;
	v->uid = keyed("Uid:");
	v->gid = keyed("Gid:");
	if (slurp_pid(pid, "oom_score_adj") <= 0)
		return false;
	v->oom_score_adj = atoi(proc_text);
	if (slurp_pid(pid, "comm") <= 0)
		return false;
	p = strrchr(proc_text, '\n');
	if (p)
		*p = '\0';
	snprintf(v->comm, sizeof(v->comm), "%.*s", (int)sizeof(v->comm) - 1, proc_text);
	return true;
}

static bool proc_threads(struct proc_values *v, int pid)
{
	char path[64];
	struct dirent *e = NULL;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		char name[300], *p;

		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "task/%s/schedstat", e->d_name);
		if (slurp_pid(pid, name) <= 0)
			break;
		v->living_run += strtoull(proc_text, &p, 10);
		v->living_delay += strtoull(p, &p, 10);
		snprintf(name, sizeof(name), "task/%s/status", e->d_name);
		if (slurp_pid(pid, name) <= 0)
			break;
		v->living_nvcsw += keyed("voluntary_ctxt_switches:");
		v->living_nivcsw += keyed("nonvoluntary_ctxt_switches:");
	}
	if (dir)
		closedir(dir);
	return dir && !e;
}

static void proc_fds(struct proc_values *v, int pid)
{
	char path[64];
	struct dirent *e;
	DIR *dir;

	if (pid == getpid()) /* the looking itself takes descriptors */
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((e = readdir(dir)))
		v->fds += e->d_name[0] != '.';
	v->has_fds = true;
	closedir(dir);
}

/* The inode of its directory under `mount`, where the v2 hierarchy is mounted. */
static void proc_cgroup(struct proc_values *v, int pid, const char *mount)
{
	char path[4300], *line;
	struct stat st;

	if (!mount || slurp_pid(pid, "cgroup") <= 0)
		return;
	line = strncmp(proc_text, "0::", 3) ? strstr(proc_text, "\n0::") : proc_text;
	if (!line)
		return;
	line += *line == '\n';
	line[strcspn(line, "\n")] = '\0';
	snprintf(path, sizeof(path), "%s%s", mount, line + 3);
	v->has_cgroup = !stat(path, &st);
	v->cgroup_id = v->has_cgroup ? st.st_ino : 0;
}

static void proc_exe(struct proc_values *v, int pid)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, v->exe, sizeof(v->exe) - 1);
	v->has_exe = n > 0;
	v->exe[n > 0 ? n : 0] = '\0';
}

/* False if it is gone, or was gone while it was read. */
static bool proc_read(struct proc_values *v, int pid, const char *cgroup_mount)
{
	*v = (struct proc_values){ 0 };
	if (!proc_stat(v, pid) || !proc_more(v, pid) || !proc_threads(v, pid))
		return false;
	proc_fds(v, pid);
	proc_cgroup(v, pid, cgroup_mount);
	proc_exe(v, pid);
	return true;
}

#endif
