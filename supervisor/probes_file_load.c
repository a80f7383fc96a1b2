// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Memory is mapped and slots are free before the first program runs. The only place that knows the
 * skeletons of the file programs.
 */
#include "probes_file_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "file_fentry.skel.h"
#include "file_kprobe.skel.h"
#include "probes.h"
#include "probes_attach.h"
#include "probes_log.h"
#include "probes_mount.h"
#include "probes_network_object.h"
#ifdef __aarch64__
#	include "file_fentry_fetch.skel.h"
#	include "file_kprobe_fetch.skel.h"
#endif

#define VERSION(major, minor) ((major) << 8 | (minor))
#define HELD                  512 /* calls of do_splice() that can wait at a time */
#define LATE_MORE             4   /* times as many threads, where each takes memory when it comes */
#define FIRST_SLOT            2   /* bpf/file.h: NOWHERE and OTHER are no places of slots */

const struct mote_file_program mote_file_programs[MOTE_FILE_PROGRAMS] = {
	[MOTE_FILE_PERMISSION] = { "file_permission", MOTE_NET_ENTRY, "security_file_permission",
				   MOTE_FILE_CALLS, 0, 0, false },
	[MOTE_FILE_KERNEL_READ] = { "file_kernel_read", MOTE_NET_ENTRY, "kernel_read",
				    MOTE_FILE_CALLS, 0, 0, false },
	[MOTE_FILE_KERNEL_WRITE] = { "file_kernel_write", MOTE_NET_ENTRY, "kernel_write",
				     MOTE_FILE_CALLS, 0, 0, false },
	[MOTE_FILE_INTEGRITY] = { "file_integrity_read", MOTE_NET_ENTRY, "__kernel_read",
				  MOTE_FILE_CALLS, 0, 0, true },
	[MOTE_FILE_COREDUMP] = { "file_coredump", MOTE_NET_ENTRY, "do_coredump", MOTE_FILE_CALLS, 0,
				 VERSION(6, 17), true },
	[MOTE_FILE_VFS_COREDUMP] = { "file_vfs_coredump", MOTE_NET_ENTRY, "vfs_coredump",
				     MOTE_FILE_CALLS, VERSION(6, 17), 0, true },
	[MOTE_FILE_ACCT] = { "file_acct", MOTE_NET_ENTRY, "acct_process", MOTE_FILE_CALLS, 0, 0,
			     true },
	[MOTE_FILE_COPY] = { "file_copy", MOTE_NET_ENTRY, "vfs_copy_file_range", MOTE_FILE_CALLS, 0,
			     0, true },
	[MOTE_FILE_EXIT] = { "file_exit", MOTE_NET_TRACEPOINT, "sched/sched_process_exit",
			     MOTE_FILE_CALLS, 0, 0, false },
	[MOTE_FILE_EXEC] = { "file_exec", MOTE_NET_TRACEPOINT, "sched/sched_process_exec",
			     MOTE_FILE_CALLS, 0, 0, false },
	[MOTE_FILE_DO_SENDFILE] = { "file_sendfile", MOTE_NET_ENTRY, "do_sendfile",
				    MOTE_FILE_SENDFILE, 0, 0, false },
	[MOTE_FILE_DO_SPLICE] = { "file_splice", MOTE_NET_ENTRY, "do_splice", MOTE_FILE_SPLICE, 0,
				  0, false },
	[MOTE_FILE_DO_SPLICE_RET] = { "file_splice_ret", MOTE_NET_EXIT, "do_splice",
				      MOTE_FILE_SPLICE, 0, 0, false },
	[MOTE_FILE_IO_READ] = { "file_io_read", MOTE_NET_ENTRY, "io_read", MOTE_FILE_URING, 0, 0,
				false },
	[MOTE_FILE_IO_WRITE] = { "file_io_write", MOTE_NET_ENTRY, "io_write", MOTE_FILE_URING, 0, 0,
				 false },
	[MOTE_FILE_IO_COMPLETE] = { "file_io_complete", MOTE_NET_TRACEPOINT,
				    "io_uring/io_uring_complete", MOTE_FILE_URING, VERSION(5, 19),
				    0, false },
	[MOTE_FILE_KIOCB_DONE] = { "file_kiocb_done", MOTE_NET_ENTRY, "kiocb_done", MOTE_FILE_URING,
				   0, VERSION(5, 19), false },
	[MOTE_FILE_COMPLETE_RW] = { "file_complete_rw", MOTE_NET_ENTRY, "io_complete_rw",
				    MOTE_FILE_URING, 0, VERSION(5, 19), false },
	[MOTE_FILE_AIO_READ] = { "file_aio_read", MOTE_NET_ENTRY, "aio_read", MOTE_FILE_AIO, 0, 0,
				 false },
	[MOTE_FILE_AIO_WRITE] = { "file_aio_write", MOTE_NET_ENTRY, "aio_write", MOTE_FILE_AIO, 0,
				  0, false },
	[MOTE_FILE_AIO_COMPLETE] = { "file_aio_complete", MOTE_NET_ENTRY, "aio_complete_rw",
				     MOTE_FILE_AIO, 0, 0, false },
	[MOTE_FILE_WALK] = { "file_walk", MOTE_NET_ITERATOR, "", MOTE_FILE_CALLS, 0, 0, false },
	[MOTE_FILE_REAP_RUN] = { "file_reap_run", MOTE_NET_ITERATOR, "", MOTE_FILE_CALLS, 0, 0,
				 false },
};

struct image {
	enum mote_net_set set;
	unsigned int since;
	const void *(*bytes)(size_t *size);
};

/* As in probes_network_object.c. */
static const struct image images[] = {
#ifdef __aarch64__
	{ MOTE_NET_SET_FENTRY, VERSION(6, 1), file_fentry_fetch_bpf__elf_bytes },
	{ MOTE_NET_SET_KPROBE, VERSION(6, 1), file_kprobe_fetch_bpf__elf_bytes },
#endif
	{ MOTE_NET_SET_FENTRY, 0, file_fentry_bpf__elf_bytes },
	{ MOTE_NET_SET_KPROBE, 0, file_kprobe_bpf__elf_bytes },
};

#define IMAGES (sizeof(images) / sizeof(images[0]))

void mote_file_object_forget(void)
{
	const void *image;
	size_t size;

	for (unsigned int i = 0; i < IMAGES; i++) {
		image = images[i].bytes(&size);
		mote_probes_forget_image(image, size);
	}
}

bool mote_file_wants(const struct mote_file_pick *pick, unsigned int version, unsigned int program)
{
	const struct mote_file_program *p = &mote_file_programs[program];

	return pick->event[p->event] && version >= p->since &&
	       (!p->before || version < p->before) && !(pick->without >> program & 1);
}

static int fail(struct mote_file_failure *failure, int program, const char *what, int err)
{
	failure->program = program;
	failure->err = err;
	mote_probes_explain(failure->reason, sizeof(failure->reason), what, err,
			    mote_probes_log_line());
	return err;
}

/* "kprobe/do_splice: ..." */
static int fail_at(struct mote_file_failure *failure, enum mote_net_set set, int program, int err)
{
	static const char *const names[MOTE_NET_SETS][2] = { { "fentry", "fexit" },
							     { "kprobe", "kretprobe" } };
	const struct mote_file_program *p = &mote_file_programs[program];
	char what[64];

	if (p->way == MOTE_NET_ITERATOR)
		snprintf(what, sizeof(what), "iterator %s", p->name);
	else
		snprintf(what, sizeof(what), "%s/%s",
			 p->way == MOTE_NET_TRACEPOINT ? "tp" : names[set][p->way == MOTE_NET_EXIT],
			 p->target);
	fail(failure, program, what, err);
	if (err == -ENOENT || err == -ESRCH)
		snprintf(failure->reason, sizeof(failure->reason),
			 "%s: the kernel has nothing of that name", what);
	else if (err == -ENODEV && p->way == MOTE_NET_TRACEPOINT)
		snprintf(
			failure->reason, sizeof(failure->reason),
			"tracefs is not mounted and mote may not mount it: mount -t tracefs tracefs /sys/kernel/tracing");
	return err;
}

static int fail_load(struct mote_file_failure *failure, enum mote_net_set set, int err)
{
	for (int i = 0; i < MOTE_FILE_PROGRAMS; i++) {
		if (!strcmp(mote_file_programs[i].name, mote_probes_log_program()))
			return fail_at(failure, set, i, err);
	}
	return fail(failure, -1, "bpf()", err);
}

static struct bpf_program *program_of(const struct mote_file_load *l, unsigned int i)
{
	return bpf_object__find_program_by_name(l->object, mote_file_programs[i].name);
}

static int open_object(struct mote_file_load *l, const struct mote_probes_file_config *cfg,
		       enum mote_net_set set)
{
	const char *btf = cfg->options->mote_btf;
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "mote_file",
		    .btf_custom_path = *btf ? btf : NULL);
	const void *image = NULL;
	size_t size = 0;

	for (unsigned int i = 0; !image && i < IMAGES; i++) {
		if (images[i].set == set && cfg->features->version >= images[i].since)
			image = images[i].bytes(&size);
	}
	l->object = bpf_object__open_mem(image, size, &opts);
	return l->object ? 0 : -errno;
}

const char *const mote_file_shared_names[MOTE_FILE_SHARED] = {
	"file_threads", "file_slots", "file_cpus", "file_ctl",   "edge_slots",
	"edge_marks",   "edge_index", "edge_free", "edge_pipes",
};

static bool wants_edges(const struct mote_options *o)
{
	return o->file_track_sendfile || o->file_attribution;
}

static int set_variables(struct mote_file_load *l, const struct mote_options *o)
{
	const struct {
		const char *name;
		bool value;
	} flags[] = {
		{ "file_reads", o->file_track_read },
		{ "file_writes", o->file_track_write },
		{ "edges_wanted", wants_edges(o) },
		{ "edges_by_credit", o->file_attribution },
		{ "file_filters", *o->filters_exclude_processes || *o->filters_exclude_paths ||
					  *o->filters_include_paths },
	};
	int err = 0;

	for (unsigned int i = 0; !err && i < sizeof(flags) / sizeof(flags[0]); i++)
		err = mote_net_object_set(l->object, flags[i].name, &flags[i].value,
					  sizeof(flags[i].value));
	return err;
}

static int set_sizes(struct mote_file_load *l, const struct mote_options *o, unsigned int ncpus)
{
	const struct {
		const char *name;
		unsigned int entries;
	} sizes[] = {
		{ "file_slots", o->tables_files },
		{ "file_marks", MOTE_MARKS_LINES(o->tables_files) },
		{ "file_paths", o->tables_files },
		{ "file_index", o->tables_files },
		{ "file_free", o->tables_files },
		{ "file_threads", o->tables_file_threads },
		{ "file_requests", o->tables_file_requests },
		{ "file_cpus", ncpus },
		{ "edge_slots", o->tables_edges },
		{ "edge_marks", MOTE_MARKS_LINES(o->tables_edges) },
		{ "edge_index", o->tables_edges },
		{ "edge_free", o->tables_edges },
	};
	struct bpf_map *map;
	int err = 0;

	for (unsigned int i = 0; !err && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		map = bpf_object__find_map_by_name(l->object, sizes[i].name);
		err = map ? bpf_map__set_max_entries(map, sizes[i].entries) : -ENOENT;
	}
	for (unsigned int i = 4; !err && !wants_edges(o) && i < MOTE_FILE_SHARED; i++) {
		map = bpf_object__find_map_by_name(l->object, mote_file_shared_names[i]);
		err = bpf_map__set_autocreate(map, false);
	}
	return err;
}

/*
 * From 6.1 on (fba1a1c6c912) hash tables take memory from an allocator that works in any context,
 * so that threads need as much as there are of them, and room for more of them next to none (16
 * bytes each). A thread for which it has none at once is as
 * one for which there is no room, until its next call.
 */
static int allocate_late(struct mote_file_load *l, unsigned int version)
{
	struct bpf_map *map = bpf_object__find_map_by_name(l->object, "file_threads");

	if (!map)
		return -ENOENT;
	l->maps.nthreads = bpf_map__max_entries(map);
	if (version < VERSION(6, 1))
		return 0;
	l->maps.nthreads *= LATE_MORE;
	return bpf_map__set_max_entries(map, l->maps.nthreads)
		       ?: bpf_map__set_map_flags(map, bpf_map__map_flags(map) | BPF_F_NO_PREALLOC);
}

static int turn_on(struct mote_file_load *l, const struct mote_file_pick *pick,
		   unsigned int version)
{
	for (unsigned int i = 0; i < MOTE_FILE_PROGRAMS; i++) {
		struct bpf_program *program = program_of(l, i);

		if (!program)
			return -ENOENT;
		bpf_program__set_autoload(program, mote_file_wants(pick, version, i));
	}
	return 0;
}

static int map_one(struct mote_file_load *l, const char *name, size_t len, void **at)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(l->object, name);
	int err;

	if (!map || l->nmaps == MOTE_FILE_MAPS)
		return map ? -E2BIG : -ENOENT;
	len = mote_probes_whole_pages(len);
	err = mote_probes_map(bpf_map__fd(map), PROT_READ | PROT_WRITE, 0, len, at);
	if (err)
		return err;
	l->map[l->nmaps] = *at;
	l->len[l->nmaps++] = len;
	return 0;
}

static int map_all(struct mote_file_load *l)
{
	struct mote_file_maps *m = &l->maps;
	const struct {
		const char *name;
		size_t len;
		void **at;
	} all[MOTE_FILE_MAPS] = {
		{ "file_slots", m->size * sizeof(*m->accesses), (void **)&m->accesses },
		{ "file_paths", m->size * sizeof(*m->paths), (void **)&m->paths },
		{ "file_marks", m->size, (void **)&m->marks },
		{ "file_reap", MOTE_FILE_TABLES * sizeof(*m->reaps), (void **)&m->reaps },
		{ "file_cpus", m->ncpus * sizeof(*m->cpus), (void **)&m->cpus },
		{ "file_ctl", sizeof(*m->ctl), (void **)&m->ctl },
		{ "file_verdicts", sizeof(*m->verdicts), (void **)&m->verdicts },
		{ "edge_slots", m->nedges * sizeof(*m->edges), (void **)&m->edges },
		{ "edge_marks", m->nedges, (void **)&m->edge_marks },
	};
	unsigned int n = m->nedges ? MOTE_FILE_MAPS : MOTE_FILE_MAPS - 2;
	int err = 0;

	for (unsigned int i = 0; !err && i < n; i++)
		err = map_one(l, all[i].name, all[i].len, all[i].at);
	return err;
}

static int fill(const struct mote_file_load *l, const char *queue, uint32_t from, uint32_t to)
{
	int fd = bpf_map__fd(bpf_object__find_map_by_name(l->object, queue));

	for (uint32_t slot = from; slot < to; slot++) {
		if (bpf_map_update_elem(fd, NULL, &slot, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int free_slots(struct mote_file_load *l)
{

	for (uint32_t slot = 0; slot < l->maps.size; slot++)
		l->maps.accesses[slot].slot.gen = 1;
	for (uint32_t slot = 0; slot < l->maps.nedges; slot++)
		l->maps.edges[slot].slot.gen = 1;
	return fill(l, "file_free", FIRST_SLOT, l->maps.size)
		       ?: fill(l, "edge_free", 0, l->maps.nedges);
}

static int share(struct mote_file_load *l)
{
	const struct bpf_map *map;

	for (unsigned int i = 0; l->maps.nedges && i < MOTE_FILE_SHARED; i++) {
		map = bpf_object__find_map_by_name(l->object, mote_file_shared_names[i]);
		l->shared[i] = fcntl(bpf_map__fd(map), F_DUPFD_CLOEXEC, 3);
		if (l->shared[i] < 0)
			return -errno;
	}
	return 0;
}

static int attach_return(struct mote_file_load *l, struct bpf_program *program,
			 const char *function, bool may_mount, struct bpf_link **link)
{
	int err = 0;

	if (l->kretprobes.control < 0)
		err = mote_kretprobes_open(&l->kretprobes, may_mount);
	return err ? err : mote_kretprobes_attach(&l->kretprobes, program, function, HELD, link);
}

static int attach_tracepoint(struct bpf_program *program, const char *target, bool may_mount,
			     struct bpf_link **link)
{
	const char *name = strchr(target, '/') + 1;
	char category[16];

	snprintf(category, sizeof(category), "%.*s", (int)(name - target - 1), target);
	return mote_probes_attach_tracepoint(program, category, name, may_mount, link);
}

static int attach_one(struct mote_file_load *l, const struct mote_probes_file_config *cfg,
		      enum mote_net_set set, unsigned int i)
{
	const struct mote_file_program *p = &mote_file_programs[i];
	struct bpf_program *program = program_of(l, i);
	bool may_mount = cfg->options->mote_mount_tracefs;

	if (p->way == MOTE_NET_TRACEPOINT)
		return attach_tracepoint(program, p->target, may_mount, &l->links[i]);
	if (p->way == MOTE_NET_EXIT && set == MOTE_NET_SET_KPROBE)
		return attach_return(l, program, p->target, may_mount, &l->links[i]);
	if (p->way == MOTE_NET_ITERATOR)
		l->links[i] = bpf_program__attach_iter(program, NULL);
	else if (set == MOTE_NET_SET_KPROBE)
		l->links[i] = bpf_program__attach_kprobe(program, false, p->target);
	else
		l->links[i] = bpf_program__attach(program);
	return l->links[i] ? 0 : -errno;
}

static int attach_all(struct mote_file_load *l, const struct mote_probes_file_config *cfg,
		      const struct mote_file_pick *pick, struct mote_file_failure *failure)
{
	for (unsigned int i = 0; i < MOTE_FILE_PROGRAMS; i++) {
		int err;

		if (!mote_file_wants(pick, cfg->features->version, i))
			continue;
		mote_probes_log_begin();
		err = attach_one(l, cfg, pick->set, i);
		if (err) {
			l->links[i] = NULL;
			return fail_at(failure, pick->set, (int)i, err);
		}
	}
	return 0;
}

static int pin(struct mote_file_load *l, const struct mote_probes_file_config *cfg)
{
	int err;

	l->dirfd = mote_probes_mount("bpf");
	if (l->dirfd < 0)
		return l->dirfd;
	l->maps.dirfd = l->dirfd;
	l->maps.reap = "reap";
	l->maps.walk = "walk";
	err = mote_probes_pin(l->links[MOTE_FILE_REAP_RUN], l->dirfd, l->maps.reap, cfg->uid,
			      cfg->gid);
	return err
		       ?: mote_probes_pin(l->links[MOTE_FILE_WALK], l->dirfd, l->maps.walk,
					  cfg->uid, cfg->gid);
}

static int load_and_attach(struct mote_file_load *l, const struct mote_probes_file_config *cfg,
			   const struct mote_file_pick *pick, struct mote_file_failure *failure)
{
	int ncpus = libbpf_num_possible_cpus(), err;

	if (ncpus <= 0)
		return fail(failure, -1, "counting CPUs", ncpus);
	mote_probes_log_begin();
	err = open_object(l, cfg, pick->set);
	err = err ?: set_variables(l, cfg->options);
	err = err ?: set_sizes(l, cfg->options, (unsigned int)ncpus);
	err = err ?: allocate_late(l, cfg->features->version);
	err = err ?: turn_on(l, pick, cfg->features->version);
	if (err)
		return fail(failure, -1, "opening the file programs", err);
	err = bpf_object__load(l->object);
	if (err)
		return fail_load(failure, pick->set, err);
	l->maps.size = cfg->options->tables_files;
	l->maps.ncpus = (unsigned int)ncpus;
	l->maps.nedges = wants_edges(cfg->options) ? cfg->options->tables_edges : 0;
	err = map_all(l) ?: free_slots(l) ?: share(l);
	if (err)
		return fail(failure, -1, "mapping the file tables", err);
	l->maps.ctl->edge_threads = l->maps.nthreads / 2;
	err = attach_all(l, cfg, pick, failure);
	if (err)
		return err;
	err = pin(l, cfg);
	return err ? fail(failure, -1, "pinning an iterator in a private bpffs", err) : 0;
}

int mote_file_load(struct mote_file_load *l, const struct mote_probes_file_config *cfg,
		   const struct mote_file_pick *pick, struct mote_file_failure *failure)
{
	int err;

	*l = (struct mote_file_load){ .dirfd = -1, .kretprobes = { .control = -1 } };
	err = load_and_attach(l, cfg, pick, failure);
	if (err) {
		mote_file_unload(l);
		return err;
	}
	/* What is linked and mapped stays. */
	bpf_object__close(l->object);
	l->object = NULL;
	return 0;
}

void mote_file_unload(struct mote_file_load *l)
{
	for (unsigned int i = 0; i < MOTE_FILE_PROGRAMS; i++)
		bpf_link__destroy(l->links[i]);
	/* The kernel keeps a probe as long as a link is there. */
	mote_kretprobes_close(&l->kretprobes);
	for (unsigned int i = 0; i < l->nmaps; i++)
		munmap(l->map[i], l->len[i]);
	if (l->dirfd >= 0)
		close(l->dirfd);
	for (unsigned int i = 0; i < MOTE_FILE_SHARED; i++) {
		if (l->shared[i] > 0)
			close(l->shared[i]);
	}
	bpf_object__close(l->object);
	*l = (struct mote_file_load){ .dirfd = -1, .kretprobes = { .control = -1 } };
}
