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

/* The linker's; see start.ld. Programs that are linked without it, as tests are, have none. */
extern const char __start_early_text[] __attribute__((weak)),
	__stop_early_text[] __attribute__((weak)), __start_early_rodata[] __attribute__((weak)),
	__stop_early_rodata[] __attribute__((weak));

/* Whole pages of the program that the loop has no use for. */
struct early {
	uintptr_t page;
	struct {
		uintptr_t from, to;
	} span[3];
	unsigned int n;
};

/* Of a page that is early in part, the rest may be the loop's. */
static void add_early(struct early *early, uintptr_t from, uintptr_t to)
{
	uintptr_t in_page = early->page - 1;

	from = (from + in_page) & ~in_page;
	to &= ~in_page;
	if (from < to) {
		early->span[early->n].from = from;
		early->span[early->n++].to = to;
	}
}

static bool is_early(const struct early *early, uintptr_t at)
{
	for (unsigned int i = 0; i < early->n; i++) {
		if (at >= early->span[i].from && at < early->span[i].to)
			return true;
	}
	return false;
}

static bool is_in(const ElfW(Phdr) * segment, uintptr_t vaddr)
{
	return segment->p_type == PT_LOAD && vaddr - segment->p_vaddr < segment->p_memsz;
}

/* What the linker puts at the end of a segment for unwinding, which nobody does. */
static void add_frames(struct early *early, const struct dl_phdr_info *info, uintptr_t vaddr)
{
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		/* nothing follows it in its last page */
		if (is_in(segment, vaddr))
			add_early(early, info->dlpi_addr + vaddr,
				  info->dlpi_addr + segment->p_vaddr + segment->p_memsz +
					  early->page - 1);
	}
}

static void find_early(struct early *early, const struct dl_phdr_info *info)
{
	*early = (struct early){ .page = (uintptr_t)sysconf(_SC_PAGESIZE) };
	add_early(early, (uintptr_t)__start_early_text, (uintptr_t)__stop_early_text);
	add_early(early, (uintptr_t)__start_early_rodata, (uintptr_t)__stop_early_rodata);
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			add_frames(early, info, info->dlpi_phdr[i].p_vaddr);
	}
}

/* Of pages that are touched any byte will do, also one that ASan has put between variables. */
#define UNCHECKED __attribute__((no_sanitize("address")))

UNCHECKED static void touch_rest(const struct early *early, uintptr_t at, uintptr_t end)
{
	for (at &= ~(early->page - 1); at < end; at += early->page) {
		if (!is_early(early, at))
			(void)*(const volatile char *)at;
	}
}

/*
 * After the libraries: the name of one of them, the dynamic linker, is in the program's first
 * segment. What stays is touched before the rest goes: a fault brings pages around it along.
 */
static int forget_program(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct early early;

	find_early(&early, info);
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && segment->p_offset && !(segment->p_flags & PF_W))
			touch_rest(&early, at, at + segment->p_memsz);
	}
	for (unsigned int i = 0; i < early.n; i++)
		forget_segment(early.span[i].from, early.span[i].to - early.span[i].from);
	forget_file(info, false);
	return 1;
}

extern char __data_start, _end; /* the linker's */

/* Written to, as they are when they are used. */
UNCHECKED static void touch_data(uintptr_t page)
{
	for (uintptr_t at = (uintptr_t)&__data_start; at < (uintptr_t)&_end; at += page)
		__atomic_fetch_or((char *)at, 0, __ATOMIC_RELAXED);
}

/* The loop's is deeper than that of other threads: it has messages to format. */
static void touch_stack(void)
{
	char used[12 * 1024];

	memset(used, 0, sizeof(used));
	__asm__ volatile("" : : "r"(used) : "memory"); /* else the compiler leaves it out */
}

void mote_settle_memory(void)
{
	malloc_trim(0);
	dl_iterate_phdr(forget_library, NULL);
	dl_iterate_phdr(forget_program, NULL); /* the first one that there is */
	touch_data((uintptr_t)sysconf(_SC_PAGESIZE));
	touch_stack();
}
