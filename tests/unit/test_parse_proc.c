// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/PID files: every field, command names that imitate what follows them, texts cut at every
 * byte, and this process's own files.
 */
#include "parse_test.h"

#include <fcntl.h>
#include <unistd.h>

#include "parse_proc.h"

#define NS               MOTE_NS_PER_TICK
#define HAS(task, field) (!!((task)->present & 1ull << PROCESS_##field))
#define AFTER_COMM                                                                                 \
	" S 13314 13315 3243 34816 13330 4194368 126 63 5 6 70 80 -9 11 20 -5 3 0 165600 4874240 " \
	"508 18446744073709551615 1 2 3 0 0 0 65536 0 81922 1 0 0 17 0 0 0 0 0 0 4 5 6 7 8 9 10 0\n"

static const char status_6_18[] = "Name:\tev)il\\nUid:\\t7\n"
				  "Umask:\t0022\n"
				  "State:\tS (sleeping)\n"
				  "Tgid:\t13315\n"
				  "Uid:\t1000\t1001\t1002\t1003\n"
				  "Gid:\t100\t101\t102\t103\n"
				  "Groups:\t \n"
				  "Kthread:\t0\n"
				  "VmPeak:\t    5276 kB\n"
				  "voluntary_ctxt_switches:\t21\n"
				  "nonvoluntary_ctxt_switches:\t34\n"
				  "x86_Thread_features:\t\n";
static const char io[] = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\n"
			 "write_bytes: 6\ncancelled_write_bytes: 7\n";

static int parse_statm(struct mote_text text, struct mote_task *task)
{
	return mote_parse_pid_statm(text, 4096, task);
}

static void stat_fields(void **state)
{
	struct mote_task task = { .flags = MOTE_TASK_KTHREAD | MOTE_TASK_HAS_FDS };

	assert_int_equal(mote_parse_pid_stat(check_text("13315 (bash)" AFTER_COMM), &task), 0);
	assert_int_equal(task.pid, 13315);
	assert_int_equal(task.state, 'S');
	assert_int_equal(task.ppid, 13314);
	assert_int_equal(task.session, 3243);
	assert_int_equal(task.tty, 34816);
	assert_int_equal(task.counts.minflt, 126);
	assert_int_equal(task.counts.majflt, 5);
	assert_int_equal(task.priority, 20);
	assert_int_equal(task.nice, -5);
	assert_int_equal(task.threads, 3);
	assert_int_equal(task.start, 165600 * NS);
	assert_int_equal(task.vsize, 4874240);
	assert_string_equal(task.comm, "bash");
	assert_int_equal(task.flags, MOTE_TASK_HAS_FDS | MOTE_TASK_HAS_MM);
	assert_true(HAS(&task, PID) && HAS(&task, START) && HAS(&task, COMM));
	assert_false(HAS(&task, RSS) || HAS(&task, UID) || HAS(&task, RUN_TIME));
}

/* As the kernel's cputime_adjust() takes prev_* when their sum is not below the run time. */
static void times_are_given_out_as_they_are(void **state)
{
	struct mote_task task = { 0 };

	assert_int_equal(mote_parse_pid_stat(check_text("1 (a)" AFTER_COMM), &task), 0);
	assert_int_equal(task.counts.utime, 70 * NS);
	assert_int_equal(task.counts.stime, 80 * NS);
	assert_int_equal(task.prev_utime, 70 * NS);
	assert_int_equal(task.prev_stime, 80 * NS);
	assert_int_equal(task.counts.run_time, 0);
	assert_int_equal(task.cutime, 0); /* negative on some 32-bit kernels */
	assert_int_equal(task.cstime, 11 * NS);
}

static void a_kernel_thread(void **state)
{
	struct mote_task task = { 0 };
	static const char text[] =
		"2 (kworker/0:1H-events_highpri) I 2 0 0 0 -1 69238880 0 0 0 0 0 "
		"0 0 0 0 -20 1 0 25 0 0 18446744073709551615 0 0 0\n";

	assert_int_equal(mote_parse_pid_stat(check_text(text), &task), 0);
	assert_int_equal(task.flags, MOTE_TASK_KTHREAD);
	assert_string_equal(task.comm, "kworker/0:1H-ev");
	assert_int_equal(task.state, 'I');
}

static void command_names(void **state)
{
	static const char *const names[] = {
		"a b",          "(",         ")",
		"a) R 1 2 (b",  ") S 1 1 1", "new\nline",
		"\xff\xfe\x80", "",          "15bytes---------",
	};
	char text[512];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct mote_task task = { 0 };

		snprintf(text, sizeof(text), "77 (%s)%s", names[i], AFTER_COMM);
		assert_int_equal(mote_parse_pid_stat(check_text(text), &task), 0);
		assert_int_equal(strncmp(task.comm, names[i], 15), 0);
		assert_int_equal(task.comm[15], 0);
		assert_int_equal(task.ppid, 13314);
	}
}

static void stat_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"1 (a\n",
		"1 a) S 1\n",
		") 1 (\n",
		"(a)" AFTER_COMM,
		"x (a)" AFTER_COMM,
		"1(a)" AFTER_COMM,
		"1 (a) SS 1 2\n",
		"1 (a) S 1 2 3\n",
		"1 (a) S 1 2 3 4 5 6 7 8 9 10 99999999999999999999 12 13 14 15 16 17 18 19 20\n",
		"1 (a) S 1 2 3 4 5 6 7 8 9 10 -1 12 13 14 15 16 17 18 19 20\n",
		"1 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 18446744073709551615 20\n",
	};
	struct mote_task task, before;

	memset(&task, 0x5a, sizeof(task));
	before = task;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(mote_parse_pid_stat(check_text(bad[i]), &task), -EBADMSG);
		assert_memory_equal(&task, &before, sizeof(task));
	}
}

static void other_files(void **state)
{
	struct mote_task task = { 0 };

	assert_int_equal(parse_statm(check_text("1190 524 346 193 0 209 0\n"), &task), 0);
	assert_int_equal(task.rss, 524 * 4096);
	assert_int_equal(task.shared, 346 * 4096);
	assert_true(task.flags & MOTE_TASK_HAS_RSS);
	assert_int_equal(mote_parse_pid_status(check_text(status_6_18), &task), 0);
	assert_int_equal(task.uid, 1000);
	assert_int_equal(task.gid, 100);
	assert_int_equal(task.counts.nvcsw, 21);
	assert_int_equal(task.counts.nivcsw, 34);
	assert_int_equal(mote_parse_pid_schedstat(check_text("514584 432392 2\n"), &task), 0);
	assert_int_equal(task.counts.run_time, 514584);
	assert_int_equal(task.counts.run_delay, 432392);
	assert_int_equal(mote_parse_pid_io(check_text(io), &task), 0);
	assert_int_equal(task.counts.rchar, 1);
	assert_int_equal(task.counts.wchar, 2);
	assert_int_equal(task.counts.syscr, 3);
	assert_int_equal(task.counts.syscw, 4);
	assert_int_equal(task.counts.read_bytes, 5);
	assert_int_equal(task.counts.write_bytes, 6);
	assert_int_equal(task.counts.cancelled_write_bytes, 7);
	assert_int_equal(mote_parse_pid_oom_score_adj(check_text("-1000\n"), &task), 0);
	assert_int_equal(task.oom_score_adj, -1000);
	assert_true(HAS(&task, RSS) && HAS(&task, UID) && HAS(&task, NIVCSW) &&
		    HAS(&task, RUN_DELAY) && HAS(&task, OOM_SCORE_ADJ) &&
		    HAS(&task, CANCELLED_WRITE_BYTES));
	assert_false(HAS(&task, PID));
}

static void other_files_refused(void **state)
{
	struct mote_task task = { 0 }, before = { 0 };

	assert_int_equal(parse_statm(check_text("1 18446744073709551615 3\n"), &task), -EBADMSG);
	assert_int_equal(parse_statm(check_text("1 2\n"), &task), -EBADMSG);
	assert_int_equal(mote_parse_pid_oom_score_adj(check_text("2147483648\n"), &task), -EBADMSG);
	assert_int_equal(mote_parse_pid_status(check_text("Uid:\t1 2\nGid:\t3\n"), &task),
			 -EBADMSG);
	assert_int_equal(mote_parse_pid_io(check_text("rchar: 1\n"), &task), -EBADMSG);
	assert_int_equal(mote_parse_pid_schedstat(check_text("5\n"), &task), -EBADMSG);
	assert_memory_equal(&task, &before, sizeof(task));
}

static void cut_anywhere(void **state)
{
	static const struct {
		int (*parse)(struct mote_text, struct mote_task *);
		const char *text;
	} files[] = {
		{ mote_parse_pid_stat, "13315 (b) a(s\nh)" AFTER_COMM },
		{ parse_statm, "1190 524 346 193 0 209 0\n" },
		{ mote_parse_pid_status, status_6_18 },
		{ mote_parse_pid_schedstat, "514584 432392 2\n" },
		{ mote_parse_pid_io, io },
		{ mote_parse_pid_oom_score_adj, "-1000\n" },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct mote_task task = { 0 }, before = { 0 };
		size_t len = strlen(files[i].text);

		for (size_t cut = 0; cut < len; cut++) {
			char *copy = check_copy(files[i].text, cut);
			struct mote_text text = { copy, cut };
			int ret = files[i].parse(text, &task);

			free(copy);
			/* status is whole before its last, unknown line */
			if (ret == 0 && files[i].parse == mote_parse_pid_status &&
			    files[i].text[cut - 1] == '\n') {
				task = before;
				continue;
			}
			assert_int_equal(ret, -EBADMSG);
			assert_memory_equal(&task, &before, sizeof(task));
		}
		assert_int_equal(files[i].parse(check_text(files[i].text), &task), 0);
	}
}

static struct mote_text read_file(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, buffer, size);
	close(fd);
	assert_true(n > 0);
	return (struct mote_text){ buffer, n };
}

static void this_process(void **state)
{
	struct mote_task task = { 0 };
	char buffer[8192];
	unsigned int page = sysconf(_SC_PAGESIZE);

	assert_int_equal(mote_parse_pid_stat(read_file("/proc/self/stat", buffer, sizeof(buffer)),
					     &task),
			 0);
	assert_int_equal(task.pid, getpid());
	assert_int_equal(task.ppid, getppid());
	assert_int_equal(task.session, getsid(0));
	assert_int_equal(task.threads, 1);
	assert_string_equal(task.comm, "test_parse_proc");
	assert_int_equal(mote_parse_pid_statm(read_file("/proc/self/statm", buffer, sizeof(buffer)),
					      page, &task),
			 0);
	assert_true(task.rss > 0 && task.rss < task.vsize);
	assert_int_equal(mote_parse_pid_status(read_file("/proc/self/status", buffer,
							 sizeof(buffer)),
					       &task),
			 0);
	assert_int_equal(task.uid, getuid());
	assert_int_equal(task.gid, getgid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_fields),
		cmocka_unit_test(times_are_given_out_as_they_are),
		cmocka_unit_test(a_kernel_thread),
		cmocka_unit_test(command_names),
		cmocka_unit_test(stat_refused),
		cmocka_unit_test(other_files),
		cmocka_unit_test(other_files_refused),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(this_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
