// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Helper threads: see thread.h. They have every signal blocked, so that the loop's thread alone
 * gets them, and a small stack. Only starting one can fail.
 */
#include "thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull

/* More than statfs(), pread() and our own frames take, which is some hundred bytes, or snprintf().
 */
#define STACK_USED (4 * 1024)

/* 64 KiB, or the least that the C library takes: 128 KiB on arm64, where pages may be larger. */
static size_t stack_size(void)
{
	const long enough = 64 * 1024, least = sysconf(_SC_THREAD_STACK_MIN);

	return least > enough ? least : enough;
}

int mote_thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	err = pthread_attr_setstacksize(&attr, stack_size());
	if (!err) {
		/* inherited: blocked from the thread's first instruction on */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		err = pthread_create(thread, &attr, fn, arg);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	if (!err)
		pthread_setname_np(*thread, name);
	return -err;
}

void mote_thread_touch_stack(void)
{
	char used[STACK_USED];

	memset(used, 0, sizeof(used));
	__asm__ volatile("" : : "r"(used) : "memory"); /* else the compiler leaves it out */
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

bool mote_thread_join(pthread_t thread, uint64_t ns)
{
	struct timespec until = timespec_of(mote_thread_now() + ns);

	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;
}

uint64_t mote_thread_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int mote_thread_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int err;

	err = pthread_condattr_init(&attr);
	if (err)
		return -err;
	err = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (!err)
		err = pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return -err;
}

void mote_thread_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until)
{
	struct timespec at = timespec_of(until);

	pthread_cond_timedwait(cond, lock, &at);
}
