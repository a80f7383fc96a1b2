// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * An errno of bpf() says little: EPERM may be a capability, a memory limit or a policy. This looks
 * around for what is known to cause it and says what to do. Reads a few files of /proc and /sys, at
 * start only.
 */
#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#	define CAP_PERFMON 38
#	define CAP_BPF     39
#endif

static bool has_cap(const struct __user_cap_data_struct *data, int cap)
{
	return data[cap / 32].effective & 1u << cap % 32;
}

/* "" if all are held, or cannot be asked for. CAP_SYS_ADMIN stands for the other two. */
static const char *missing_caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &head, data) || has_cap(data, CAP_SYS_ADMIN))
		return "";
	if (!has_cap(data, CAP_BPF))
		return has_cap(data, CAP_PERFMON) ? "CAP_BPF" : "CAP_BPF and CAP_PERFMON";
	return has_cap(data, CAP_PERFMON) ? "" : "CAP_PERFMON";
}

static bool file_has(const char *path, const char *word)
{
	char text[128];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return false;
	text[n] = '\0';
	return strstr(text, word);
}

/* Until 5.11 BPF memory counts against RLIMIT_MEMLOCK; libbpf has tried to raise it. */
static bool memlock_counts(void)
{
	struct rlimit limit;
	struct utsname uts;
	int major = 0, minor = 0;

	if (uname(&uts) || sscanf(uts.release, "%d.%d", &major, &minor) != 2)
		return false;
	if (major > 5 || (major == 5 && minor >= 11))
		return false;
	return !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

static void explain_denied(char *text, size_t size, const char *what)
{
	const char *missing = missing_caps();

	if (missing[0])
		snprintf(text, size, "%s: not permitted: needs %s, or CAP_SYS_ADMIN", what,
			 missing);
	else if (memlock_counts())
		snprintf(text, size,
			 "%s: not permitted: RLIMIT_MEMLOCK is too low, set it to infinity", what);
	else if (file_has("/sys/kernel/security/lockdown", "[confidentiality]"))
		snprintf(text, size, "%s: not permitted under lockdown=confidentiality", what);
	else
		snprintf(
			text, size,
			"%s: not permitted, though the capabilities are there: a seccomp filter, a user namespace or a security module refuses it",
			what);
}

void mote_probes_explain(char *text, size_t size, const char *what, int err, const char *log)
{
	if (err == -EPERM)
		explain_denied(text, size, what);
	else if (err == -ENOSYS)
		snprintf(text, size,
			 "%s: this kernel, or a seccomp filter, has no such system call", what);
	else if (access("/sys/kernel/btf/vmlinux", R_OK) && (strstr(log, "BTF") || err == -ESRCH))
		snprintf(text, size,
			 "%s: the kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)",
			 what);
	else if (strstr(log, "unknown func bpf_probe_read"))
		snprintf(text, size,
			 "%s: BPF programs may not read kernel memory: lockdown=confidentiality",
			 what);
	else if (log[0])
		snprintf(text, size, "%s: %s: %s", what, strerror(-err), log);
	else
		snprintf(text, size, "%s: %s", what, strerror(-err));
}
