// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Memory between the start and the loop: what only the start needed goes, what the loop may touch
 * is there.
 */
#include "settle.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "thread.h"

/* glibc: a thread keeps up to 7 freed chunks of each of 64 sizes, from 24 bytes in steps of 16. */
#define CACHED_MIN   24
#define CACHED_STEP  16
#define CACHED_SIZES 64
#define CACHED_EACH  7

static void *free_all(void *list)
{
	while (list) {
		void *next = *(void **)list;

		free(list);
		list = next;
	}
	return NULL;
}

/*
 * What libbpf freed is in this thread's cache, in pieces all over the heap that keep what is
 * between them from being one. No call empties the cache but a thread's end: so all of it is taken
 * out, and freed by a thread that ends. It shall have no arena of its own.
 */
void mote_settle_heap(void)
{
	void **list = NULL;
	pthread_t thread;

	mallopt(M_ARENA_MAX, 1);
	for (unsigned int i = 0; i < CACHED_SIZES * CACHED_EACH; i++) {
		void **chunk = malloc(CACHED_MIN + i / CACHED_EACH * CACHED_STEP);

		if (!chunk)
			break;
		*chunk = list;
		list = chunk;
	}
	if (mote_thread_start(&thread, "mote-settle", free_all, list))
		free_all(list);
	else
		pthread_join(thread, NULL);
}

static void forget_segment(uintptr_t at, size_t size)
{
	uintptr_t in_page = at & ((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	madvise((void *)(at - in_page), size + in_page, MADV_DONTNEED);
}

/*
 * Clean pages of files can go: they are back when somebody needs them. Of libraries that only the
 * start needs all of them; of every file the first segment, which is the dynamic linker's, who is
 * done. It goes last, as it has the list of the others. What was written to is in segments that are
 * writable, and stays. The C library stays as well: which of its pages come back together depends
 * on where it lies, and a tick must not fault.
 */
static void forget_file(const struct dl_phdr_info *info, bool whole)
{
	ElfW(Phdr) first = { 0 };

	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
			continue;
		if (!segment->p_offset)
			first = *segment;
		else if (whole)
			forget_segment(info->dlpi_addr + segment->p_vaddr, segment->p_memsz);
	}
	if (first.p_type == PT_LOAD)
		forget_segment(info->dlpi_addr + first.p_vaddr, first.p_memsz);
}

static int forget_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	static const char *const start[] = { "/libbpf.so",  "/libelf.so",  "/libelf-",  "/libz.so",
					     "/libzstd.so", "/libinih.so", "/ld-linux-" };
	bool whole = false;

	for (unsigned int i = 0; i < sizeof(start) / sizeof(start[0]); i++)
		whole |= strstr(info->dlpi_name, start[i]) != NULL;
	if (info->dlpi_name[0])
		forget_file(info, whole);
	return 0;
}

/* After the libraries: the name of one of them, the dynamic linker, is in the program's first. */
static int forget_program(struct dl_phdr_info *info, size_t size, void *unused)
{
	forget_file(info, false);
	return 1;
}

extern char __data_start, _end; /* the linker's */

void mote_settle_memory(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	malloc_trim(0);
	dl_iterate_phdr(forget_library, NULL);
	dl_iterate_phdr(forget_program, NULL); /* the first one that there is */
	for (uintptr_t at = (uintptr_t)&__data_start; at < (uintptr_t)&_end; at += page)
		__atomic_fetch_or((char *)at, 0, __ATOMIC_RELAXED);
	mote_thread_touch_stack();
}
