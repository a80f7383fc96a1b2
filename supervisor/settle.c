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
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "thread.h"

/*
 * Libraries that only the start needs: their code and constants, half a megabyte of clean pages of
 * files, can go. What the dynamic linker wrote to is in segments that are writable, and stays.
 */
static int forget_library(struct dl_phdr_info *info, size_t size, void *page)
{
	static const char *const names[] = { "/libbpf.so", "/libelf.so",  "/libelf-",
					     "/libz.so",   "/libzstd.so", "/libinih.so" };
	bool found = false;

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		found |= strstr(info->dlpi_name, names[i]) != NULL;
	for (unsigned int i = 0; found && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t mask = *(uintptr_t *)page - 1, from = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
			madvise((void *)(from & ~mask), segment->p_memsz + (from & mask),
				MADV_DONTNEED);
	}
	return 0;
}

extern char __data_start, _end; /* the linker's */

void mote_settle_memory(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	malloc_trim(0);
	dl_iterate_phdr(forget_library, &page);
	for (uintptr_t at = (uintptr_t)&__data_start; at < (uintptr_t)&_end; at += page)
		__atomic_fetch_or((char *)at, 0, __ATOMIC_RELAXED);
	mote_thread_touch_stack();
}
