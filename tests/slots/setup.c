// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Loads, maps and attaches the filler's programs, as the supervisor does with its own: nothing is
 * left behind when the process ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes_attach.h"
#include "probes_mount.h"
#include "stress.h"

/* these take filler.h for granted */
#include "slots_filler_fetch.skel.h"
#include "slots_filler.skel.h"

static unsigned int kernel_version(void)
{
	struct utsname name;
	unsigned int major = 0, minor = 0;

	if (!uname(&name))
		sscanf(name.release, "%u.%u", &major, &minor);
	return major << 8 | minor;
}

static int complain(const char *what, int err)
{
	printf("# cannot %s: %s\n", what, strerror(-err));
	return err;
}

/* Only there is a plain atomic add no barrier, and a fetching one is taken by the kernel. */
static struct bpf_object *open_object(void)
{
	size_t size;
	const void *elf;

#ifdef __aarch64__
	if (kernel_version() >= 0x601) {
		elf = slots_filler_fetch__elf_bytes(&size);
		return bpf_object__open_mem(elf, size, NULL);
	}
#else
	(void)slots_filler_fetch__elf_bytes;
#endif
	elf = slots_filler__elf_bytes(&size);
	return bpf_object__open_mem(elf, size, NULL);
}

static struct bpf_map *map_named(const struct stress *stress, const char *name)
{
	return bpf_object__find_map_by_name(stress->object, name);
}

static const char *writer_name(void)
{
	return kernel_version() >= 0x700 ? "filler_kprobe" : "filler_tracepoint";
}

static struct bpf_program *program_named(const struct stress *stress, const char *name)
{
	return bpf_object__find_program_by_name(stress->object, name);
}

static void configure(struct stress *stress)
{
	const struct stress_config *config = stress->config;
	const struct filler_config filler = {
		.tgid = (u32)getpid(),
		.mutant = config->mutant,
		.stall_mask = config->stall_mask,
		.stall_us = config->stall_us,
		.failures = config->failures,
		.recall = config->recall,
	};

	bpf_map__set_initial_value(map_named(stress, ".rodata.config"), &filler, sizeof(filler));
	bpf_map__set_max_entries(map_named(stress, "counters"), config->slots);
	bpf_map__set_max_entries(map_named(stress, "counter_marks"),
				 MOTE_MARKS_LINES(config->slots));
	bpf_map__set_max_entries(map_named(stress, "counter_index"), config->slots);
	bpf_map__set_max_entries(map_named(stress, "counter_free"), config->slots);
	bpf_map__set_max_entries(map_named(stress, "cpus"), stress->ncpus);
	bpf_program__set_autoload(program_named(stress, writer_name()), true);
	bpf_program__set_autoload(program_named(stress, "filler_reap"), true);
}

static void *map_memory(const struct stress *stress, const char *name)
{
	const struct bpf_map *map = map_named(stress, name);
	/* the kernel rounds a value up to 8 bytes; these are multiples of it */
	size_t size = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *memory = mmap(NULL, mote_probes_whole_pages(size), PROT_READ | PROT_WRITE, MAP_SHARED,
			    bpf_map__fd(map), 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static int map_all(struct stress *stress)
{
	stress->counters = map_memory(stress, "counters");
	stress->marks = map_memory(stress, "counter_marks");
	stress->cpus = map_memory(stress, "cpus");
	stress->reap = map_memory(stress, "reap_list");
	stress->stats = map_memory(stress, "filler_stats");
	if (!stress->counters || !stress->marks || !stress->cpus || !stress->reap || !stress->stats)
		return -ENOMEM;
	stress->queue = bpf_map__fd(map_named(stress, "counter_free"));
	stress->index = bpf_map__fd(map_named(stress, "counter_index"));
	for (u32 i = 0; i < stress->config->slots; i++) {
		stress->counters[i].slot.gen = 1;
		if (bpf_map_update_elem(stress->queue, NULL, &i, 0))
			return -errno;
	}
	return 0;
}

static int attach_reap(struct stress *stress)
{
	struct bpf_link *link =
		bpf_program__attach_iter(program_named(stress, "filler_reap"), NULL);

	if (!link)
		return -errno;
	stress->dirfd = mote_probes_mount("bpf");
	if (stress->dirfd < 0)
		return stress->dirfd;
	return mote_probes_pin(link, stress->dirfd, "reap", (uid_t)-1, 0);
}

static int attach_writer(struct stress *stress)
{
	struct bpf_program *program = program_named(stress, writer_name());
	struct bpf_link *link = NULL;

	stress->program = bpf_program__fd(program);
	if (!strcmp(writer_name(), "filler_tracepoint"))
		return mote_probes_attach_tracepoint(program, "syscalls", "sys_enter_getpriority",
						     true, &link);
	return bpf_program__attach(program) ? 0 : -errno;
}

static int allocate(struct stress *stress)
{
	size_t keys = stress->config->keys + 1;

	stress->sent_bytes = calloc(keys, sizeof(u32));
	stress->sent_events = calloc(keys, sizeof(u32));
	stress->seen_bytes = calloc(keys, sizeof(u32));
	stress->seen_events = calloc(keys, sizeof(u32));
	stress->notices = calloc(stress->config->writers, sizeof(*stress->notices));
	if (!stress->sent_bytes || !stress->sent_events || !stress->seen_bytes ||
	    !stress->seen_events || !stress->notices)
		return -ENOMEM;
	return 0;
}

int stress_open(const struct stress_config *config, struct stress *stress)
{
	int err;

	*stress = (struct stress){ .config = config, .running = config->writers };
	stress->ncpus = (unsigned int)libbpf_num_possible_cpus();
	err = allocate(stress);
	if (err)
		return complain("have memory", err);
	stress->object = open_object();
	if (!stress->object)
		return complain("open the object", -errno);
	configure(stress);
	err = bpf_object__load(stress->object);
	if (err)
		return complain("load", err);
	err = map_all(stress);
	if (err)
		return complain("map", err);
	err = attach_reap(stress);
	if (err)
		return complain("attach and pin the reaper", err);
	err = attach_writer(stress);
	return err ? complain("attach the writer", err) : 0;
}
