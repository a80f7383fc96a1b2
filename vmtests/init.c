// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * PID 1 of a test VM: mounts what a bare machine has (no tracefs, no debugfs), brings up lo, and
 * runs each test of /vm/tests, of lines `NAME SECONDS COMMAND`, with sh. Prints `TEST NAME: begins`
 * and `TEST NAME: pass, N s` or `TEST NAME: fail REASON` of each, at last `VERDICT: pass` or
 * `VERDICT: fail REASON`, and powers off. It judges by the commands' status alone; vmtests/judge
 * reads the kernel log afterwards. A step of its own that fails is a verdict, too. What a test
 * leaves running is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { KLOG_CONSOLE_LEVEL = 8, LEVEL_EMERGENCIES = 1, LEVEL_INFO = 7 };
enum { REAP_SECONDS = 5 }; /* for a killed process to end; one that hangs in the kernel does not */

static const struct {
	const char *type, *target, *options;
} filesystems[] = {
	{ "proc", "/proc", NULL },       { "sysfs", "/sys", NULL },
	{ "devtmpfs", "/dev", NULL },    { "tmpfs", "/tmp", "mode=1777" },
	{ "tmpfs", "/run", "mode=755" }, { "cgroup2", "/sys/fs/cgroup", NULL },
};

/*
 * The kernel's console and the terminal share the line, and a message in the middle would break
 * what is said: only emergencies may pass while it is written.
 */
static void say(const char *text)
{
	klogctl(KLOG_CONSOLE_LEVEL, NULL, LEVEL_EMERGENCIES);
	tcdrain(STDOUT_FILENO);
	dprintf(STDOUT_FILENO, "\n%s\n", text);
	tcdrain(STDOUT_FILENO);
	klogctl(KLOG_CONSOLE_LEVEL, NULL, LEVEL_INFO);
}

static void finish(const char *format, ...)
{
	char text[256] = "VERDICT: ";
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, sizeof(text) - used, format, args);
	va_end(args);
	say(text);
	sync();
	reboot(RB_POWER_OFF);
	exit(1); /* no power-off: the kernel panics, and the runner sees that */
}

static void mount_all(void)
{
	for (size_t i = 0; i < sizeof(filesystems) / sizeof(*filesystems); i++) {
		const char *type = filesystems[i].type, *target = filesystems[i].target;

		mkdir(target, 0755);
		if (mount(type, target, type, 0, filesystems[i].options))
			finish("fail init: mount %s: %s", target, strerror(errno));
	}
}

static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR | O_NOCTTY);

	if (fd < 0)
		finish("fail init: open /dev/console: %s", strerror(errno));
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
}

static void bring_up_lo(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		finish("fail init: bring up lo: %s", strerror(errno));
	close(fd);
}

static pid_t start(const char *const argv[])
{
	pid_t pid = fork();

	if (pid < 0)
		finish("fail init: fork: %s", strerror(errno));
	if (pid)
		return pid;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Blocked tasks go to the kernel log, so that it shows where the command hangs. */
static void report_blocked(void)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "w", 1) == 1)
		sleep(1);
	if (fd >= 0)
		close(fd);
}

/*
 * Reaps everybody's children until `pid` is done, or with pid -1 until there are none; false if
 * that takes longer than `seconds`.
 */
static bool reap(pid_t pid, double seconds, int *status)
{
	double deadline = now() + seconds;
	const struct timespec pause = { .tv_nsec = 100000000 };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (now() < deadline) {
		pid_t ended;

		while ((ended = waitpid(-1, status, WNOHANG)) > 0)
			if (ended == pid)
				return true;
		if (ended < 0 && pid == -1)
			return true;
		sigtimedwait(&child, NULL, &pause);
	}
	return false;
}

/* Runs a test; how it went, or "" if it passed. */
static const char *run_command(const char *command, int seconds)
{
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	static char how[64];
	int status;

	if (!reap(start(argv), seconds, &status)) {
		report_blocked();
		snprintf(how, sizeof(how), "was not done after %d s", seconds);
	} else if (WIFSIGNALED(status)) {
		snprintf(how, sizeof(how), "killed by signal %d", WTERMSIG(status));
	} else if (WEXITSTATUS(status)) {
		snprintf(how, sizeof(how), "ended with status %d", WEXITSTATUS(status));
	} else {
		how[0] = '\0';
	}
	kill(-1, SIGKILL);
	reap(-1, REAP_SECONDS, &status);
	return how;
}

static bool run_test(const char *name, int seconds, const char *command)
{
	double began = now();
	const char *how;
	char text[256];

	snprintf(text, sizeof(text), "TEST %s: begins", name);
	say(text);
	how = run_command(command, seconds);
	if (*how)
		snprintf(text, sizeof(text), "TEST %s: fail %s", name, how);
	else
		snprintf(text, sizeof(text), "TEST %s: pass, %.0f s", name, now() - began);
	say(text);
	return !*how;
}

/* Runs them in order, also after one that failed, and gives the verdict. */
static void run_tests(void)
{
	FILE *tests = fopen("/vm/tests", "re");
	char line[1024], name[64];
	int all = 0, failed = 0, seconds, command;

	if (!tests)
		finish("fail init: open /vm/tests: %s", strerror(errno));
	while (fgets(line, sizeof(line), tests)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%63s %d %n", name, &seconds, &command) != 2)
			finish("fail init: /vm/tests: not understood: %s", line);
		all++;
		failed += !run_test(name, seconds, line + command);
	}
	if (failed || !all)
		finish("fail %d of %d tests failed", failed, all);
	finish("pass");
}

int main(void)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	mount_all();
	open_console();
	bring_up_lo();
	setenv("PATH", "/bin", 1);
	setenv("HOME", "/", 1);
	run_tests();
}
