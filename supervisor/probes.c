// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Loads, attaches and maps the BPF programs. The two tiers, task iterators and lifecycle programs,
 * are two instances of one skeleton, so that what the kernel refuses of the one does not take the
 * other with it; each is tried in the order of a table, best first, and the reason of the first
 * failure is what the tier reports. struct mote_probes owns skeletons, links, mappings and the
 * bpffs; closing it detaches everything.
 */
#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "mote.skel.h"
#include "probes_attach.h"
#include "probes_log.h"
#include "probes_mount.h"
#include "probes_walk.h"

#define HOOKS          3
#define LINKS_MAX      (HOOKS + 1)
#define LIST_TASKS_MAX 32768
#define INIT_PID_NS    0xEFFFFFFCu /* include/linux/proc_ns.h: PROC_PID_INIT_INO */

/* One instance of the skeleton and what it holds. */
struct piece {
	struct mote_bpf *bpf;
	struct bpf_link *links[LINKS_MAX];
	unsigned int nlinks;
	void *map[3]; /* the third: .bss */
	size_t map_len[3];
};

struct mote_probes {
	struct piece tasks, events;
	struct mote_probes_walk *walk;
	struct mote_probes_iterator iterator;
	struct mote_probes_lifecycle lifecycle;
	bool has_iterator, has_lifecycle;
};

/* The reason of a failure, and whether another way is worth trying. */
struct verdict {
	char reason[256];
	bool final;
};

static int fail(struct verdict *v, const char *what, int err)
{
	mote_probes_explain(v->reason, sizeof(v->reason), what, err, mote_probes_log_line());
	v->final = err == -EPERM || err == -ENOSYS || err == -ENOMEM;
	return err;
}

static void piece_close(struct piece *p)
{
	for (unsigned int i = 0; i < p->nlinks; i++)
		bpf_link__destroy(p->links[i]);
	for (unsigned int i = 0; i < 3; i++) {
		if (p->map[i])
			munmap(p->map[i], p->map_len[i]);
	}
	mote_bpf__destroy(p->bpf);
	*p = (struct piece){ 0 };
}

static int piece_open(struct piece *p, const struct mote_probes_config *cfg)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts,
		    .btf_custom_path = cfg->btf && cfg->btf[0] ? cfg->btf : NULL);

	mote_probes_log_begin();
	p->bpf = mote_bpf__open_opts(&opts);
	return p->bpf ? 0 : -errno;
}

/* Each mapping stays. */
static int piece_map(struct piece *p, unsigned int i, int fd, int prot, off_t at, size_t len)
{
	p->map_len[i] = len;
	return mote_probes_map(fd, prot, at, len, &p->map[i]);
}

static int bss_map(struct piece *p)
{
	return piece_map(p, 2, bpf_map__fd(p->bpf->maps.bss), PROT_READ | PROT_WRITE, 0,
			 mote_probes_whole_pages(sizeof(*p->bpf->bss)));
}

/* Where a variable of the skeleton's .bss is in our own mapping of it. */
static void *in_bss(const struct piece *p, const void *variable)
{
	return (char *)p->map[2] + ((const char *)variable - (const char *)p->bpf->bss);
}

/*
 * The kernel keeps what is linked and what is mapped. libbpf's own half a megabyte, and the
 * descriptors of programs and maps, are not needed again.
 */
static void piece_settle(struct piece *p)
{
	mote_bpf__destroy(p->bpf);
	p->bpf = NULL;
}

static int keep_link(struct piece *p, struct bpf_link *link)
{
	if (!link)
		return -errno;
	p->links[p->nlinks++] = link;
	return 0;
}

/* A way to get at processes; with `list`, this object has the executables only. */
struct task_way {
	bool list, probe_read;
};

static int tasks_load(struct piece *p, const struct mote_probes_config *cfg,
		      const struct task_way *way)
{
	int err = piece_open(p, cfg);

	if (err)
		return err;
	p->bpf->rodata->task_max = cfg->processes;
	p->bpf->rodata->thread_max = cfg->threads;
	p->bpf->rodata->page_size = sysconf(_SC_PAGESIZE);
	p->bpf->rodata->probe_read = way->probe_read;
	bpf_map__set_max_entries(p->bpf->maps.task_recs, 2 * cfg->processes);
	bpf_map__set_max_entries(p->bpf->maps.thread_recs, cfg->threads);
	bpf_map__set_autocreate(p->bpf->maps.events, false);
	bpf_map__set_autocreate(p->bpf->maps.exec_scratch, false);
	bpf_map__set_autocreate(p->bpf->maps.task_recs, !way->list);
	bpf_map__set_autocreate(p->bpf->maps.thread_recs, !way->list);
	bpf_program__set_autoload(p->bpf->progs.tasks, !way->list);
	bpf_program__set_autoload(p->bpf->progs.idents, way->probe_read);
	return mote_bpf__load(p->bpf);
}

static int tasks_attach(struct piece *p, int dirfd, const struct mote_probes_config *cfg,
			struct verdict *v)
{
	struct bpf_program *const progs[] = { p->bpf->progs.tasks, p->bpf->progs.idents };
	static const char *const names[] = { "tasks", "idents" };
	int err;

	for (unsigned int i = 0; i < 2; i++) {
		if (!bpf_program__autoload(progs[i]))
			continue;
		err = keep_link(p, bpf_program__attach(progs[i]));
		if (err)
			return fail(v, "attaching the task iterator", err);
		err = mote_probes_pin(p->links[p->nlinks - 1], dirfd, names[i], cfg->uid, cfg->gid);
		if (err)
			return fail(v, "pinning the task iterator in a private bpffs", err);
	}
	return 0;
}

static int tasks_map(struct piece *p, const struct mote_probes_config *cfg)
{
	size_t tasks = mote_probes_whole_pages(2ul * cfg->processes * sizeof(struct mote_task));
	size_t threads = mote_probes_whole_pages((size_t)cfg->threads * sizeof(struct mote_thread));
	int err;

	if (!bpf_map__autocreate(p->bpf->maps.task_recs))
		return bss_map(p);
	err = piece_map(p, 0, bpf_map__fd(p->bpf->maps.task_recs), PROT_READ | PROT_WRITE, 0,
			tasks);
	if (!err)
		err = piece_map(p, 1, bpf_map__fd(p->bpf->maps.thread_recs), PROT_READ | PROT_WRITE,
				0, threads);
	return err ? err : bss_map(p);
}

/* The walk of the list beside it, under the same roof. */
static int walk_try(struct mote_probes *probes, int dirfd, const struct mote_probes_config *cfg,
		    bool probe_read, struct verdict *v)
{
	const char *what;
	int err = mote_probes_walk_open(cfg, probe_read, &probes->walk, &what);

	if (err)
		return fail(v, what, err);
	err = mote_probes_pin(mote_probes_walk_link(probes->walk), dirfd, "walk", cfg->uid,
			      cfg->gid);
	return err ? fail(v, "pinning the walk of the task list", err) : 0;
}

static void tasks_give(struct mote_probes *probes, int dirfd, const struct mote_probes_config *cfg,
		       const struct task_way *way)
{
	struct piece *p = &probes->tasks;

	probes->iterator = (struct mote_probes_iterator){
		.dirfd = dirfd,
		.tasks = way->list ? "walk" : "tasks",
		.idents = way->probe_read ? "idents" : NULL,
		.ctl = in_bss(p, &p->bpf->bss->task_ctl),
		.want = in_bss(p, &p->bpf->bss->ident_want),
		.ident = in_bss(p, p->bpf->bss->ident_recs),
		.processes = cfg->processes,
		.probe_read = way->probe_read,
	};
	piece_settle(p);
	if (way->list) {
		mote_probes_walk_give(probes->walk, &probes->iterator);
		mote_probes_walk_settle(probes->walk);
		return;
	}
	probes->iterator.half[0] = p->map[0];
	probes->iterator.half[1] = probes->iterator.half[0] + cfg->processes;
	probes->iterator.threads = p->map[1];
	probes->iterator.nthreads = cfg->threads;
}

static int tasks_try(struct mote_probes *probes, const struct mote_probes_config *cfg,
		     const struct task_way *way, struct verdict *v)
{
	struct piece *p = &probes->tasks;
	int dirfd = -1, err;

	err = tasks_load(p, cfg, way);
	if (err) {
		fail(v, "bpf()", err);
		goto out;
	}
	dirfd = mote_probes_mount("bpf");
	if (dirfd < 0) {
		err = fail(v, "mounting a private bpffs for the task iterator", dirfd);
		goto out;
	}
	err = tasks_attach(p, dirfd, cfg, v);
	if (err)
		goto out;
	err = tasks_map(p, cfg);
	if (err) {
		fail(v, "mapping the task records", err);
		goto out;
	}
	if (way->list)
		err = walk_try(probes, dirfd, cfg, way->probe_read, v);
	if (err)
		goto out;
	tasks_give(probes, dirfd, cfg, way);
	probes->has_iterator = true;
	return 0;
out:
	if (dirfd >= 0)
		close(dirfd);
	piece_close(p);
	mote_probes_walk_close(probes->walk);
	probes->walk = NULL;
	return err;
}

/* Programs give the pids of the initial pid namespace: in another they would name strangers. */
static bool in_other_pid_ns(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino != INIT_PID_NS;
}

/*
 * The walk of the list is one run of a program, in which nothing else gets at its CPU on kernels
 * that do not preempt: with very many tasks at start the iterator is better, which gives way.
 */
static bool too_many_tasks(void)
{
	FILE *file = fopen("/proc/loadavg", "r");
	unsigned int tasks = 0;

	if (!file)
		return false;
	if (fscanf(file, "%*s %*s %*s %*u/%u", &tasks) != 1)
		tasks = 0;
	fclose(file);
	return tasks > LIST_TASKS_MAX;
}

static void tasks_tiers(struct mote_tiers *tiers, const struct task_way *way, const char *list,
			const char *probe_read)
{
	const char *choice = way->list ? "list" : "iter/task";

	if (way->probe_read) {
		mote_tiers_add(tiers, "task_iterator", choice, "%s", list);
		mote_tiers_add(tiers, "executable", "iter/task", "%s", "");
		return;
	}
	mote_tiers_add(tiers, "task_iterator", choice,
		       "without descriptors above 64 a process, and memory up to 6.1: %s",
		       probe_read);
	mote_tiers_add(tiers, "executable", "none",
		       "paths of executables need bpf_probe_read_kernel(): %s", probe_read);
}

/*
 * The best that works, in this order. The list walk is left out without a word where the kernel is
 * too old for it (before 6.8: -ESRCH).
 */
static void tasks_open(struct mote_probes *probes, const struct mote_probes_config *cfg,
		       struct mote_tiers *tiers)
{
	static const struct task_way task_ways[] = {
		{ .list = true, .probe_read = true },
		{ .list = false, .probe_read = true },
		{ .list = true, .probe_read = false },
		{ .list = false, .probe_read = false },
	};
	struct verdict list = { 0 }, iterator = { 0 };
	bool crowded = cfg->list && too_many_tasks();

	if (crowded)
		snprintf(list.reason, sizeof(list.reason), "more than %d tasks", LIST_TASKS_MAX);
	for (unsigned int i = 0; i < 4 && !iterator.final; i++) {
		const struct task_way *way = &task_ways[i];
		struct verdict *v = way->list ? &list : &iterator;
		int err;

		if ((way->list && (!cfg->list || crowded)) ||
		    (way->probe_read && cfg->no_probe_read))
			continue;
		err = tasks_try(probes, cfg, way, v);
		if (err == -ESRCH && way->list)
			list.reason[0] = '\0';
		if (err)
			continue;
		tasks_tiers(tiers, way, way->list ? "" : list.reason, iterator.reason);
		return;
	}
	mote_tiers_add(tiers, "task_iterator", "none", "%s", iterator.reason);
	mote_tiers_add(tiers, "executable", "none", "%s", "no task iterator");
}

/* A way to get at births and deaths; see the switches in lifecycle.bpf.c. */
struct way {
	bool tp_btf, direct, probe_read, final;
};

/*
 * Classic tracepoints by direct loads (5.11), by probe_read (5.10), under lockdown, and by a BTF
 * file where the kernel has no BTF of its own; then tp_btf.
 */
static const struct way ways[] = {
	{ .tp_btf = false, .direct = true, .probe_read = true, .final = true },
	{ .tp_btf = false, .direct = false, .probe_read = true, .final = true },
	{ .tp_btf = false, .direct = true, .probe_read = false, .final = true },
	{ .tp_btf = false, .direct = false, .probe_read = true, .final = false },
	{ .tp_btf = true, .direct = true, .probe_read = true, .final = true },
	{ .tp_btf = true, .direct = true, .probe_read = false, .final = true },
};

struct hook {
	const char *category, *name;
	struct bpf_program *classic, *btf;
};

static void hooks_of(const struct mote_bpf *bpf, struct hook hooks[HOOKS])
{
	hooks[0] = (struct hook){ "task", "task_newtask", bpf->progs.fork_tp, bpf->progs.fork_btf };
	hooks[1] = (struct hook){ "sched", "sched_process_exec", bpf->progs.exec_tp,
				  bpf->progs.exec_btf };
	hooks[2] = (struct hook){ "sched", "sched_process_exit", bpf->progs.exit_tp,
				  bpf->progs.exit_btf };
}

static int events_load(struct piece *p, const struct mote_probes_config *cfg, const struct way *way)
{
	struct hook hooks[HOOKS];
	int err = piece_open(p, cfg);

	if (err)
		return err;
	p->bpf->rodata->argv_max =
		cfg->argv_bytes < MOTE_ARGV_MAX ? cfg->argv_bytes : MOTE_ARGV_MAX;
	p->bpf->rodata->event_direct = way->direct;
	p->bpf->rodata->event_probe_read = way->probe_read;
	bpf_map__set_max_entries(p->bpf->maps.events, cfg->event_bytes);
	bpf_map__set_autocreate(p->bpf->maps.task_recs, false);
	bpf_map__set_autocreate(p->bpf->maps.thread_recs, false);
	hooks_of(p->bpf, hooks);
	for (unsigned int i = 0; i < HOOKS; i++)
		bpf_program__set_autoload(way->tp_btf ? hooks[i].btf : hooks[i].classic, true);
	bpf_program__set_autoload(p->bpf->progs.final_btf, way->final);
	return mote_bpf__load(p->bpf);
}

static int attach_classic(struct piece *p, const struct hook *hook, bool may_mount)
{
	struct bpf_link *link;
	int err = mote_probes_attach_tracepoint(hook->classic, hook->category, hook->name,
						may_mount, &link);

	return err ? err : keep_link(p, link);
}

static int events_attach(struct piece *p, const struct mote_probes_config *cfg,
			 const struct way *way, struct verdict *v)
{
	struct hook hooks[HOOKS];
	char what[64];
	int err;

	hooks_of(p->bpf, hooks);
	for (unsigned int i = 0; i < HOOKS; i++) {
		if (way->tp_btf)
			err = keep_link(p, bpf_program__attach(hooks[i].btf));
		else
			err = attach_classic(p, &hooks[i], cfg->mount_tracefs);
		if (err == -ENODEV) {
			snprintf(
				v->reason, sizeof(v->reason),
				"tracefs is not mounted and mote may not mount it: mount -t tracefs tracefs /sys/kernel/tracing");
			return err;
		}
		snprintf(what, sizeof(what), "attaching to %s", hooks[i].name);
		if (err)
			return fail(v, what, err);
	}
	if (!way->final)
		return 0;
	err = keep_link(p, bpf_program__attach(p->bpf->progs.final_btf));
	return err ? fail(v, "attaching to sched_process_free", err) : 0;
}

static int events_map(struct piece *p, struct mote_ringbuf *ring, size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int fd = bpf_map__fd(p->bpf->maps.events);
	int err = piece_map(p, 0, fd, PROT_READ | PROT_WRITE, 0, page);

	if (!err)
		err = piece_map(p, 1, fd, PROT_READ, page, page + 2 * size);
	if (!err)
		err = bss_map(p);
	if (err)
		return err;
	*ring = (struct mote_ringbuf){
		.consumer = p->map[0],
		.producer = p->map[1],
		.data = (const uint8_t *)p->map[1] + page,
		.size = size,
	};
	return 0;
}

static int events_try(struct mote_probes *probes, const struct mote_probes_config *cfg,
		      const struct way *way, struct verdict *v)
{
	struct piece *p = &probes->events;
	int err = events_load(p, cfg, way);

	if (err) {
		fail(v, "bpf()", err);
		goto out;
	}
	/* Mapped before it is filled: nothing is lost to a slow start. */
	err = events_map(p, &probes->lifecycle.ring, cfg->event_bytes);
	if (err) {
		fail(v, "mapping the ring buffer", err);
		goto out;
	}
	err = events_attach(p, cfg, way, v);
	if (err)
		goto out;
	probes->lifecycle.ctl = in_bss(p, &p->bpf->bss->event_ctl);
	probes->lifecycle.tp_btf = way->tp_btf;
	probes->lifecycle.final = way->final;
	probes->lifecycle.fd = fcntl(bpf_map__fd(p->bpf->maps.events), F_DUPFD_CLOEXEC, 0);
	piece_settle(p);
	return 0;
out:
	piece_close(p);
	return err;
}

static bool wanted(const struct mote_probes_config *cfg, const struct way *way)
{
	if (cfg->no_probe_read && (way->probe_read || !way->direct))
		return false;
	return cfg->events == MOTE_EVENTS_AUTO ||
	       cfg->events == (way->tp_btf ? MOTE_EVENTS_TP_BTF : MOTE_EVENTS_TRACEPOINT);
}

static void events_open(struct mote_probes *probes, const struct mote_probes_config *cfg,
			struct mote_tiers *tiers)
{
	struct verdict first = { 0 }, v = { 0 };

	for (unsigned int i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!wanted(cfg, &ways[i]))
			continue;
		if (!events_try(probes, cfg, &ways[i], &v)) {
			probes->has_lifecycle = true;
			mote_tiers_add(tiers, "process_events",
				       ways[i].tp_btf ? "tp_btf" : "tracepoint", "%s",
				       ways[i].tp_btf ? first.reason : "");
			return;
		}
		/* The last of the classic ways knows most: the others are tried for other kernels.
		 */
		if (!first.reason[0] || !ways[i].tp_btf)
			first = v;
		if (v.final)
			break;
	}
	mote_tiers_add(tiers, "process_events", "none", "%s", first.reason);
}

static void refuse(struct mote_tiers *tiers, const char *reason)
{
	static const char *const names[] = { "task_iterator", "executable", "process_events" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		mote_tiers_add(tiers, names[i], "none", "%s", reason);
}

static void forget_image(void)
{
	size_t size;
	const void *image = mote_bpf__elf_bytes(&size);

	mote_probes_forget_image(image, size);
}

int mote_probes_open(const struct mote_probes_config *cfg, struct mote_tiers *tiers,
		     struct mote_probes **out)
{
	struct mote_probes *probes = calloc(1, sizeof(*probes));

	if (!probes)
		return -ENOMEM;
	*out = probes;
	probes->lifecycle.fd = -1;
	if (in_other_pid_ns()) {
		refuse(tiers, "in a pid namespace of its own: BPF would give the host's pids");
		return 0;
	}
	if (cfg->iterator)
		tasks_open(probes, cfg, tiers);
	if (cfg->events <= MOTE_EVENTS_TP_BTF)
		events_open(probes, cfg, tiers);
	forget_image();
	return 0;
}

void mote_probes_started(struct mote_probes *probes)
{
	if (probes->lifecycle.fd >= 0)
		close(probes->lifecycle.fd);
	probes->lifecycle.fd = -1;
}

void mote_probes_close(struct mote_probes *probes)
{
	if (!probes)
		return;
	mote_probes_started(probes);
	piece_close(&probes->tasks);
	piece_close(&probes->events);
	mote_probes_walk_close(probes->walk);
	if (probes->has_iterator)
		close(probes->iterator.dirfd);
	free(probes);
}

struct mote_probes_iterator *mote_probes_iterator(struct mote_probes *probes)
{
	return probes->has_iterator ? &probes->iterator : NULL;
}

struct mote_probes_lifecycle *mote_probes_lifecycle(struct mote_probes *probes)
{
	return probes->has_lifecycle ? &probes->lifecycle : NULL;
}
