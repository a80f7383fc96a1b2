/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the programs of bench/ share: clocks in ns, and an end with a reason.
 */
#ifndef MOTE_BENCH_UTIL_H
#define MOTE_BENCH_UTIL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

#define NS_PER_MS 1000000ll
#define NS_PER_S  1000000000ll

static inline int64_t bench_clock(clockid_t clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/*
 * CPU time of another process, in ns: all of its threads, also those that ended and, from Linux
 * 5.12, io_uring's workers. The clock's id is the kernel's MAKE_PROCESS_CPUCLOCK(pid,
 * CPUCLOCK_SCHED); clock_getcpuclockid() gives the same after a system call more.
 */
static inline int64_t bench_cpu_of(pid_t pid)
{
	return bench_clock((clockid_t)(~(unsigned int)pid << 3 | 2));
}

static inline void bench_sleep_until(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void bench_die(const char *format,
									     ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, format);
	vfprintf(stderr, format, args);
	__builtin_va_end(args);
	fputc('\n', stderr);
	exit(1);
}

#endif
