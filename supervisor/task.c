// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What is left to do with task records in user space: find, sort, sum, and the kernel's cputime
 * arithmetic. Nothing here fails, allocates or calls the kernel.
 */
#include "task.h"

#include <stdbool.h>
#include <string.h>

static void swap(struct mote_task *a, struct mote_task *b)
{
	struct mote_task t = *a;

	*a = *b;
	*b = t;
}

static void sift_down(struct mote_task *tasks, unsigned int root, unsigned int n)
{
	for (unsigned int child; (child = 2 * root + 1) < n; root = child) {
		if (child + 1 < n && tasks[child].pid < tasks[child + 1].pid)
			child++;
		if (tasks[root].pid >= tasks[child].pid)
			return;
		swap(&tasks[root], &tasks[child]);
	}
}

static bool is_sorted(const struct mote_task *tasks, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++) {
		if (tasks[i - 1].pid > tasks[i].pid)
			return false;
	}
	return true;
}

void mote_task_sort(struct mote_task *tasks, unsigned int n)
{
	if (is_sorted(tasks, n))
		return;
	for (unsigned int i = n / 2; i-- > 0;)
		sift_down(tasks, i, n);
	for (unsigned int i = n; i-- > 1;) {
		swap(&tasks[0], &tasks[i]);
		sift_down(tasks, 0, i);
	}
}

struct mote_task *mote_task_find(struct mote_task *tasks, unsigned int n, uint32_t pid)
{
	unsigned int low = 0, high = n;

	while (low < high) {
		unsigned int mid = low + (high - low) / 2;

		if (tasks[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && tasks[low].pid == pid ? &tasks[low] : NULL;
}

void mote_task_add_counts(struct mote_thread_counts *sum, const struct mote_thread_counts *counts)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)counts;

	for (unsigned int i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

static void take_off(struct mote_thread_counts *sum, const struct mote_thread_counts *counts)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)counts;

	for (unsigned int i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] -= from[i];
}

/*
 * A thread that ends between its process's sums and its own turn is in neither; the next walk has
 * it. One that had its turn and then ended would be in both: so the sums have to be those of when
 * the first of the process's tasks came, which is the leader unless pids have wrapped.
 */
static void add_thread(struct mote_task *task, const struct mote_thread *thread)
{
	if (thread->pid && thread->pid != task->pid) {
		mote_task_add_counts(&task->counts, &thread->counts);
		task->seen++;
	} else if (!thread->pid && !(task->flags & MOTE_TASK_TWICE)) {
		mote_task_add_counts(&task->counts, &thread->counts);
		task->flags |= MOTE_TASK_TWICE; /* until the leader's are taken off */
	} else if (thread->pid && task->flags & MOTE_TASK_TWICE) {
		take_off(&task->counts, &thread->counts);
		task->flags &= ~(uint32_t)MOTE_TASK_TWICE;
	}
}

unsigned int mote_task_add_threads(struct mote_task *tasks, unsigned int n,
				   const struct mote_thread *threads, unsigned int m)
{
	struct mote_task *last = NULL;
	unsigned int orphans = 0;

	for (unsigned int i = 0; i < n; i++) {
		tasks[i].seen = 1;
		tasks[i].flags &= ~(uint32_t)(MOTE_TASK_TORN | MOTE_TASK_TWICE);
	}
	for (unsigned int i = 0; i < m; i++) {
		if (!last || last->pid != threads[i].tgid)
			last = mote_task_find(tasks, n, threads[i].tgid);
		if (!last) {
			orphans++;
			continue;
		}
		add_thread(last, &threads[i]);
	}
	for (unsigned int i = 0; i < n; i++)
		tasks[i].flags |= tasks[i].seen != tasks[i].threads ? MOTE_TASK_TORN : 0;
	return orphans;
}

void mote_task_cputime(const struct mote_thread_counts *counts, uint64_t *prev_utime,
		       uint64_t *prev_stime)
{
	uint64_t rtime = counts->run_time, utime = counts->utime, stime = counts->stime;

	/* What was shown stays if the scheduler has not got further. */
	if (*prev_utime + *prev_stime >= rtime)
		return;
	if (stime)
		stime = utime ? (unsigned __int128)stime * rtime / (stime + utime) : rtime;
	if (stime < *prev_stime)
		stime = *prev_stime;
	utime = rtime - stime;
	if (utime < *prev_utime) {
		utime = *prev_utime;
		stime = rtime - utime;
	}
	*prev_utime = utime;
	*prev_stime = stime;
}

/*
 * The kernel's pair moves only when somebody reads /proc, ours with every sample; the one that
 * covers more time is the later one. Then neither component may fall below what was shown, and the
 * sum, which is what the scheduler counted, may not exceed it: the split gives way.
 */
void mote_task_adjust(struct mote_task *task)
{
	uint64_t utime = task->shown_utime, stime = task->shown_stime, sum;

	if (task->prev_utime + task->prev_stime >= utime + stime) {
		utime = task->prev_utime;
		stime = task->prev_stime;
	}
	mote_task_cputime(&task->counts, &utime, &stime);
	sum = utime + stime;
	if (utime < task->shown_utime)
		utime = task->shown_utime;
	else if (stime < task->shown_stime)
		utime = sum - task->shown_stime;
	task->shown_utime = utime;
	task->shown_stime = sum - utime;
}

static unsigned int append(char *path, unsigned int at, unsigned int size, const char *text,
			   unsigned int len)
{
	if (at + 1 >= size)
		return at;
	if (len > size - 1 - at)
		len = size - 1 - at;
	memcpy(path + at, text, len);
	return at + len;
}

unsigned int mote_task_exe(const char *names, unsigned int len, unsigned int flags, char *path,
			   unsigned int size)
{
	unsigned int end = len <= MOTE_EXE_MAX ? len : 0;
	unsigned int n = 0, name;

	if (!end || !size)
		return 0;
	if (flags & MOTE_EXE_CUT)
		n = append(path, n, size, "...", 3);
	/* Names from the file up: the last one is nearest to the root. */
	for (; end > 0; end = name) {
		for (name = end - 1; name > 0 && names[name - 1];)
			name--;
		n = append(path, n, size, "/", 1);
		n = append(path, n, size, names + name, end - 1 - name);
	}
	if (flags & MOTE_EXE_DELETED)
		n = append(path, n, size, " (deleted)", 10);
	path[n] = '\0';
	return n;
}
