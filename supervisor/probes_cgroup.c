// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Loads, attaches and maps the programs of cgroups, see probes_cgroup.h. It owns the links, the
 * mappings and the bpffs; libbpf's objects are gone when it is open.
 */
#include "probes_cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cgroup_events.skel.h"
#include "cgroup_walk.skel.h"
#include "probes.h"
#include "probes_attach.h"
#include "probes_log.h"
#include "probes_mount.h"
#include "probes_symbols.h"

/* Where css_rstat_flush() is new. It may be in an older one, or missing in a newer: both are tried.
 */
#define CSS_FLUSH (6u << 8 | 16)

enum { ROWS, INDEX, WALK_BSS, CONSUMER, PRODUCER, EVENT_BSS, MAPS };

struct mote_probes_cgroup {
	const struct mote_probes_cgroup_config *config;
	struct bpf_link *links[3];
	void *map[MAPS];
	size_t len[MAPS];
	struct mote_cgroup_walk walk;
	struct mote_cgroup_ring ring;
	bool has_walk, has_ring;
};

static int map_one(struct mote_probes_cgroup *p, unsigned int i, const struct bpf_map *map,
		   int prot, off_t at, size_t len)
{
	p->len[i] = mote_probes_whole_pages(len);
	return mote_probes_map(bpf_map__fd(map), prot, at, p->len[i], &p->map[i]);
}

static void unmap(struct mote_probes_cgroup *p, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++) {
		if (p->map[i])
			munmap(p->map[i], p->len[i]);
		p->map[i] = NULL;
	}
}

static void drop_links(struct mote_probes_cgroup *p, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++) {
		bpf_link__destroy(p->links[i]);
		p->links[i] = NULL;
	}
}

/* What btf_custom_path is to be. */
static const char *btf_of(const struct mote_probes_cgroup *p)
{
	return p->config->btf && p->config->btf[0] ? p->config->btf : NULL;
}

static void find_arrays(struct mote_cgroup_walk_bpf *bpf)
{
	struct mote_address address[] = { { "mem_cgroup_stats_index", 0 },
					  { "mem_cgroup_events_index", 0 } };
	FILE *file = fopen("/proc/kallsyms", "re");

	if (!file)
		return;
	mote_symbols_find(file, address, 2);
	fclose(file);
	bpf->rodata->memcg_stats_index = address[0].address;
	bpf->rodata->memcg_events_index = address[1].address;
}

static int load_walk(struct mote_probes_cgroup *p, bool css, struct mote_cgroup_walk_bpf **out)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = btf_of(p));
	struct mote_cgroup_walk_bpf *bpf;
	int err;

	mote_probes_log_begin();
	bpf = mote_cgroup_walk_bpf__open_opts(&opts);
	if (!bpf)
		return errno ? -errno : -EINVAL;
	bpf->rodata->cgroup_max = p->config->rows;
	bpf->rodata->cgroup_mask = p->config->slots - 1;
	bpf->rodata->page_size = (u64)sysconf(_SC_PAGESIZE);
	find_arrays(bpf);
	bpf_map__set_max_entries(bpf->maps.cgroup_rows, p->config->rows + 1);
	bpf_map__set_max_entries(bpf->maps.cgroup_index, p->config->slots);
	bpf_program__set_autoload(css ? bpf->progs.walk_css_flush : bpf->progs.walk_flush, true);
	err = mote_cgroup_walk_bpf__load(bpf);
	if (err)
		mote_cgroup_walk_bpf__destroy(bpf);
	else
		*out = bpf;
	return err;
}

static int map_walk(struct mote_probes_cgroup *p, struct mote_cgroup_walk_bpf *bpf)
{
	size_t rows = (p->config->rows + 1) * sizeof(struct mote_cgroup_row);
	size_t slots = p->config->slots * sizeof(struct mote_cgroup_slot);
	int prot = PROT_READ | PROT_WRITE;
	int err = map_one(p, ROWS, bpf->maps.cgroup_rows, prot, 0, rows);

	if (!err)
		err = map_one(p, INDEX, bpf->maps.cgroup_index, prot, 0, slots);
	if (!err)
		err = map_one(p, WALK_BSS, bpf->maps.bss, prot, 0, sizeof(*bpf->bss));
	return err;
}

/* Runs it once, for it to say what it can read; it finds nobody in the index yet. */
static int try_walk(const struct mote_probes_cgroup *p)
{
	int fd = bpf_iter_create(bpf_link__fd(p->links[0]));
	char buf[64];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf));
	close(fd);
	return n < 0 ? -errno : 0;
}

static int attach_walk(struct mote_probes_cgroup *p, struct bpf_program *program)
{
	union bpf_iter_link_info info = {
		.cgroup = { .order = BPF_CGROUP_ITER_DESCENDANTS_PRE,
			    .cgroup_fd = p->config->root > 0 ? (u32)p->config->root : 0 },
	};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	int err;

	p->links[0] = bpf_program__attach_iter(program, &opts);
	if (!p->links[0])
		return -errno;
	p->walk.dirfd = mote_probes_mount("bpf");
	if (p->walk.dirfd < 0)
		return p->walk.dirfd;
	err = mote_probes_pin(p->links[0], p->walk.dirfd, "cgroups", p->config->uid,
			      p->config->gid);
	return err ? err : try_walk(p);
}

static void close_walk(struct mote_probes_cgroup *p)
{
	drop_links(p, 0, 1);
	unmap(p, ROWS, CONSUMER);
	if (p->walk.dirfd >= 0)
		close(p->walk.dirfd);
	p->walk.dirfd = -1;
}

static int open_walk(struct mote_probes_cgroup *p, bool css)
{
	struct mote_cgroup_walk_bpf *bpf = NULL;
	int err = load_walk(p, css, &bpf);

	if (err || !bpf)
		return err;
	err = map_walk(p, bpf);
	if (!err)
		err = attach_walk(p, css ? bpf->progs.walk_css_flush : bpf->progs.walk_flush);
	if (err) {
		close_walk(p);
	} else {
		p->walk.name = "cgroups";
		p->walk.rows = p->map[ROWS];
		p->walk.index = p->map[INDEX];
		p->walk.ctl = (void *)((char *)p->map[WALK_BSS] +
				       ((char *)&bpf->bss->cgroup_ctl - (char *)bpf->bss));
		p->walk.flushes_all = !css;
	}
	mote_cgroup_walk_bpf__destroy(bpf);
	return err;
}

/* What this kernel should have first: one that is refused costs more than all the rest of the
 * start. */
static int open_best_walk(struct mote_probes_cgroup *p)
{
	bool css = p->config->kernel >= CSS_FLUSH;
	int err = open_walk(p, css);

	if (err && err != -EPERM && err != -ENOMEM)
		err = open_walk(p, !css);
	p->has_walk = !err;
	return err;
}

static int map_ring(struct mote_probes_cgroup *p, struct mote_cgroup_events_bpf *bpf)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = p->config->event_bytes;
	const struct bpf_map *ring = bpf->maps.cgroup_ring;
	int err = map_one(p, CONSUMER, ring, PROT_READ | PROT_WRITE, 0, page);

	if (!err)
		err = map_one(p, PRODUCER, ring, PROT_READ, (off_t)page, page + 2 * size);
	if (!err)
		err = map_one(p, EVENT_BSS, bpf->maps.bss, PROT_READ | PROT_WRITE, 0,
			      sizeof(*bpf->bss));
	if (err)
		return err;
	p->ring.ring = (struct mote_ringbuf){
		.consumer = p->map[CONSUMER],
		.producer = p->map[PRODUCER],
		.data = (const uint8_t *)p->map[PRODUCER] + page,
		.size = size,
	};
	p->ring.dropped = p->map[EVENT_BSS];
	return 0;
}

static int attach_events(struct mote_probes_cgroup *p, struct mote_cgroup_events_bpf *bpf)
{
	p->links[1] = bpf_program__attach(bpf->progs.cgroup_made);
	if (!p->links[1])
		return -errno;
	p->links[2] = bpf_program__attach(bpf->progs.cgroup_removed);
	return p->links[2] ? 0 : -errno;
}

static int open_events(struct mote_probes_cgroup *p)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = btf_of(p));
	struct mote_cgroup_events_bpf *bpf;
	int err;

	mote_probes_log_begin();
	bpf = mote_cgroup_events_bpf__open_opts(&opts);
	if (!bpf)
		return errno ? -errno : -EINVAL;
	bpf->rodata->hierarchy = p->config->hierarchy;
	bpf_map__set_max_entries(bpf->maps.cgroup_ring, p->config->event_bytes);
	bpf_program__set_autoload(bpf->progs.cgroup_made, true);
	bpf_program__set_autoload(bpf->progs.cgroup_removed, true);
	err = mote_cgroup_events_bpf__load(bpf);
	/* Mapped before it is filled: nothing is lost to a slow start. */
	if (!err)
		err = map_ring(p, bpf);
	if (!err)
		err = attach_events(p, bpf);
	if (err) {
		drop_links(p, 1, 3);
		unmap(p, CONSUMER, MAPS);
	}
	p->has_ring = !err;
	mote_cgroup_events_bpf__destroy(bpf);
	return err;
}

static void forget_images(void)
{
	size_t size;
	const void *image = mote_cgroup_walk_bpf__elf_bytes(&size);

	mote_probes_forget_image(image, size);
	image = mote_cgroup_events_bpf__elf_bytes(&size);
	mote_probes_forget_image(image, size);
}

int mote_probes_cgroup_open(const struct mote_probes_cgroup_config *config, char *why, size_t size,
			    struct mote_probes_cgroup **out)
{
	struct mote_probes_cgroup *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return -ENOMEM;
	p->config = config;
	p->walk.dirfd = -1;
	if (config->events)
		err = open_events(p);
	if (err && !config->walk)
		mote_probes_explain(why, size, "bpf()", err, mote_probes_log_line());
	if (config->walk) {
		err = open_best_walk(p);
		if (err)
			mote_probes_explain(why, size, "bpf()", err, mote_probes_log_line());
	}
	p->config = NULL;
	forget_images();
	*out = p;
	return 0;
}

void mote_probes_cgroup_close(struct mote_probes_cgroup *p)
{
	if (!p)
		return;
	close_walk(p);
	drop_links(p, 1, 3);
	unmap(p, CONSUMER, MAPS);
	free(p);
}

const struct mote_cgroup_walk *mote_probes_cgroup_walk(const struct mote_probes_cgroup *p)
{
	return p->has_walk ? &p->walk : NULL;
}

struct mote_cgroup_ring *mote_probes_cgroup_ring(struct mote_probes_cgroup *p)
{
	return p->has_ring ? &p->ring : NULL;
}
