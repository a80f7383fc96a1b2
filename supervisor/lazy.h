/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of zeros that takes no page before it is written to, unlike the heap's, which was
 * another's before. For large arrays that are filled from the beginning on.
 */
#ifndef MOTE_LAZY_H
#define MOTE_LAZY_H

#include <stddef.h>
#include <unistd.h>
#include <sys/mman.h>

/* NULL without memory. */
static inline void *mote_lazy_alloc(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* What is likely to be used, so that no tick faults: the first `size` bytes. */
static inline void mote_lazy_touch(void *p, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < size; i += page)
		__atomic_fetch_or((char *)p + i, 0, __ATOMIC_RELAXED);
	if (size) /* its end may be on one page more than its length says */
		__atomic_fetch_or((char *)p + size - 1, 0, __ATOMIC_RELAXED);
}

/* `p` may be NULL. */
static inline void mote_lazy_free(void *p, size_t size)
{
	if (p)
		munmap(p, size);
}

#endif
