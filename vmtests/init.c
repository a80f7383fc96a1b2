// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * PID 1 of a test VM: mounts what a bare machine has (no tracefs, no debugfs), brings up lo, runs
 * /vm/command with sh, prints one line `VERDICT: pass` or `VERDICT: fail REASON`, and powers off.
 * It judges by the command's status alone; vmtests/judge reads the kernel log afterwards.
 * A step of its own that fails is a verdict, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
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

static const struct {
	const char *type, *target, *options;
} filesystems[] = {
	{ "proc", "/proc", NULL },       { "sysfs", "/sys", NULL },
	{ "devtmpfs", "/dev", NULL },    { "tmpfs", "/tmp", "mode=1777" },
	{ "tmpfs", "/run", "mode=755" }, { "cgroup2", "/sys/fs/cgroup", NULL },
};

/*
 * The kernel's console and the terminal share the line, and a message in the middle would break
 * the verdict: only emergencies may pass while it is written.
 */
static void finish(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	klogctl(KLOG_CONSOLE_LEVEL, NULL, LEVEL_EMERGENCIES);
	tcdrain(STDOUT_FILENO);
	dprintf(STDOUT_FILENO, "\nVERDICT: %s\n", text);
	tcdrain(STDOUT_FILENO);
	klogctl(KLOG_CONSOLE_LEVEL, NULL, LEVEL_INFO);
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

static pid_t start_command(void)
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
	execl("/bin/sh", "sh", "/vm/command", NULL);
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
}

/* Reaps everybody's children until the command is done or its time is over. */
static int wait_for(pid_t command, int seconds)
{
	double deadline = now() + seconds;
	const struct timespec pause = { .tv_nsec = 100000000 };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (now() < deadline) {
		int status;
		pid_t pid;

		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == command)
				return status;
		sigtimedwait(&child, NULL, &pause);
	}
	report_blocked();
	finish("fail the command was not done after %d s", seconds);
	return -1;
}

int main(void)
{
	const char *limit = getenv("vm_seconds"); /* from the kernel command line */
	sigset_t child;
	int status;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	mount_all();
	open_console();
	bring_up_lo();
	setenv("PATH", "/bin", 1);
	setenv("HOME", "/", 1);
	status = wait_for(start_command(), limit ? atoi(limit) : 120);
	if (WIFSIGNALED(status))
		finish("fail the command was killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status))
		finish("fail the command ended with status %d", WEXITSTATUS(status));
	finish("pass");
}
