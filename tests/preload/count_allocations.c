// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Preloaded into moted by tests/it/steady.py: counts the calls of the heap and of mmap() that any
 * of its threads makes while the test has set `counting` in the shared file $MOTE_COUNT_FILE, and
 * keeps who made the first. glibc's own mmap() calls for the heap go past this, but they follow
 * from a call that is counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ALLOCATE, FREE, MAP, KINDS };

static struct counts {
	uint64_t counting, calls[KINDS];
	uint64_t first; /* the first call's return address */
} nowhere, *counts = &nowhere;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

__attribute__((constructor)) static void open_counts(void)
{
	const char *path = getenv("MOTE_COUNT_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED
			 : (void *)syscall(SYS_mmap, NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_POPULATE, fd, 0L);

	if (p != MAP_FAILED)
		counts = p;
	if (fd >= 0)
		close(fd);
}

static void count(int kind, void *caller)
{
	if (!__atomic_load_n(&counts->counting, __ATOMIC_RELAXED))
		return;
	if (!__atomic_fetch_add(&counts->calls[kind], 1, __ATOMIC_RELAXED) && !counts->first)
		counts->first = (uint64_t)(uintptr_t)caller;
}

void *malloc(size_t size)
{
	count(ALLOCATE, __builtin_return_address(0));
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	count(ALLOCATE, __builtin_return_address(0));
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	count(ALLOCATE, __builtin_return_address(0));
	return __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	count(ALLOCATE, __builtin_return_address(0));
	return __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
	void *p;

	count(ALLOCATE, __builtin_return_address(0));
	p = __libc_memalign(align, size);
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

void free(void *p)
{
	if (p)
		count(FREE, __builtin_return_address(0));
	__libc_free(p);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	count(MAP, __builtin_return_address(0));
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}
