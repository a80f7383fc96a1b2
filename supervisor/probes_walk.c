// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Loads and maps the list walk, which is an object of its own: its kernel functions are not in
 * every kernel, and libbpf refuses the whole object then (-ESRCH).
 */
#include "probes_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes_attach.h"
#include "probes_log.h"
#include "walk.skel.h"

enum { RECS, REFS, PAIRS, CTL, MAPS };

struct mote_probes_walk {
	struct mote_walk_bpf *bpf;
	struct bpf_link *link;
	unsigned int processes;
	void *map[MAPS];
	size_t len[MAPS];
	size_t ctl_at; /* of walk_ctl in the .bss */
};

/*
 * 6.8: before, bpf_iter_task_next() never comes to the end of a process's threads when one of them
 * makes an exec meanwhile. Delete when 6.7 is of no interest.
 */
static bool may_never_end(void)
{
	struct utsname name;

	return !uname(&name) && !strncmp(name.release, "6.7.", 4);
}

static int open_object(struct mote_probes_walk *walk, const struct mote_probes_config *cfg)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts,
		    .btf_custom_path = cfg->btf && cfg->btf[0] ? cfg->btf : NULL);

	mote_probes_log_begin();
	walk->bpf = mote_walk_bpf__open_opts(&opts);
	if (walk->bpf)
		return 0;
	return errno ? -errno : -EINVAL;
}

static int load(struct mote_probes_walk *walk, const struct mote_probes_config *cfg,
		bool probe_read)
{
	struct mote_walk_bpf *bpf;
	int err = open_object(walk, cfg);

	if (err)
		return err;
	bpf = walk->bpf;
	walk->ctl_at = (size_t)((char *)&bpf->bss->walk_ctl - (char *)bpf->bss);
	bpf->rodata->task_max = cfg->processes;
	bpf->rodata->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	bpf->rodata->probe_read = probe_read;
	bpf_map__set_max_entries(bpf->maps.walk_recs, 2 * cfg->processes);
	bpf_map__set_max_entries(bpf->maps.walk_refs, cfg->processes);
	bpf_map__set_max_entries(bpf->maps.walk_pairs, cfg->processes);
	bpf_map__set_max_entries(bpf->maps.walk_entries, cfg->processes);
	bpf_program__set_autoload(bpf->progs.walk, true);
	err = mote_walk_bpf__load(bpf);
	/* Which error that is differs between versions of libbpf. */
	return err && strstr(mote_probes_log_line(), "(func ksym)") ? -ESRCH : err;
}

/*
 * The program is run at the end of an iteration over one task, the first: the shortest there is.
 * (An iterator over an array of one element would be another, but not all kernels load these.)
 */
static int attach(struct mote_probes_walk *walk)
{
	union bpf_iter_link_info info = { .task = { .tid = 1 } };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

	walk->link = bpf_program__attach_iter(walk->bpf->progs.walk, &opts);
	return walk->link ? 0 : -errno;
}

static int map_one(struct mote_probes_walk *walk, unsigned int i, const struct bpf_map *map,
		   size_t len)
{
	walk->len[i] = mote_probes_whole_pages(len);
	return mote_probes_map(bpf_map__fd(map), PROT_READ | PROT_WRITE, 0, walk->len[i],
			       &walk->map[i]);
}

static int map_all(struct mote_probes_walk *walk)
{
	struct mote_walk_bpf *bpf = walk->bpf;
	size_t n = walk->processes;
	int err = map_one(walk, RECS, bpf->maps.walk_recs, 2 * n * sizeof(struct mote_task));

	if (!err)
		err = map_one(walk, REFS, bpf->maps.walk_refs, n * sizeof(struct mote_ref));
	if (!err)
		err = map_one(walk, PAIRS, bpf->maps.walk_pairs, n * sizeof(struct mote_pair));
	return err ? err : map_one(walk, CTL, bpf->maps.bss, sizeof(*bpf->bss));
}

int mote_probes_walk_open(const struct mote_probes_config *cfg, bool probe_read,
			  struct mote_probes_walk **out, const char **what)
{
	struct mote_probes_walk *walk = calloc(1, sizeof(*walk));
	int err;

	*what = "bpf()";
	if (!walk)
		return -ENOMEM;
	walk->processes = cfg->processes;
	err = may_never_end() ? -ESRCH : load(walk, cfg, probe_read);
	if (!err) {
		*what = "attaching the walk of the task list";
		err = attach(walk);
	}
	if (!err) {
		*what = "mapping the task records";
		err = map_all(walk);
	}
	if (err)
		mote_probes_walk_close(walk);
	else
		*out = walk;
	return err;
}

struct bpf_link *mote_probes_walk_link(const struct mote_probes_walk *walk)
{
	return walk->link;
}

void mote_probes_walk_give(struct mote_probes_walk *walk, struct mote_probes_iterator *iterator)
{
	iterator->half[0] = walk->map[RECS];
	iterator->half[1] = iterator->half[0] + walk->processes;
	iterator->refs = walk->map[REFS];
	iterator->pairs = walk->map[PAIRS];
	iterator->walk_ctl = (void *)((char *)walk->map[CTL] + walk->ctl_at);
}

void mote_probes_walk_settle(struct mote_probes_walk *walk)
{
	const void *image;
	size_t size;

	mote_walk_bpf__destroy(walk->bpf);
	walk->bpf = NULL;
	image = mote_walk_bpf__elf_bytes(&size);
	mote_probes_forget_image(image, size);
}

void mote_probes_walk_close(struct mote_probes_walk *walk)
{
	if (!walk)
		return;
	bpf_link__destroy(walk->link);
	for (unsigned int i = 0; i < MAPS; i++) {
		if (walk->map[i])
			munmap(walk->map[i], walk->len[i]);
	}
	mote_walk_bpf__destroy(walk->bpf);
	free(walk);
}
