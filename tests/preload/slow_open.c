// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A stand-in for openat() that takes as long as a slow file of cgroupfs does:
 * LD_PRELOAD=slow_open.so with MOTE_SLOW_OPEN=TEXT. While the file MOTE_SLOW_WHILE is there, a call
 * whose path has that text in it takes 2 seconds more; every other call is the kernel's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int slow(int dir, const char *path, int flags, mode_t mode)
{
	const char *text = getenv("MOTE_SLOW_OPEN"), *on = getenv("MOTE_SLOW_WHILE");

	if (text && on && strstr(path, text) && !access(on, F_OK))
		usleep(2000000);
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

#define OPENAT(name)                                                             \
	int name(int dir, const char *path, int flags, ...)                      \
	{                                                                        \
		va_list args;                                                    \
		mode_t mode;                                                     \
                                                                                 \
		va_start(args, flags);                                           \
		mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0; \
		va_end(args);                                                    \
		return slow(dir, path, flags, mode);                             \
	}

OPENAT(openat)
OPENAT(openat64)
