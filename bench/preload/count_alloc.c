// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * LD_PRELOAD=count_alloc.so MOTE_COUNT_ALLOC=FILE: counts the calls of malloc(), calloc(),
 * realloc() and free() in the first 8 bytes of FILE (which must be there, 4096 bytes long), for
 * whoever reads it. The calls themselves are glibc's.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *old);

static uint64_t unmapped, *calls = &unmapped;

__attribute__((constructor)) static void map(void)
{
	const char *path = getenv("MOTE_COUNT_ALLOC");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *page = MAP_FAILED;

	if (fd >= 0) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
		close(fd);
	}
	if (page != MAP_FAILED)
		calls = page;
}

static void count(void)
{
	__atomic_fetch_add(calls, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
	count();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	count();
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	count();
	return __libc_realloc(old, size);
}

void free(void *old)
{
	count();
	__libc_free(old);
}
