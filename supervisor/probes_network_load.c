// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The order matters: memory is mapped and slots are free before the first program runs; hooks are
 * attached before sockets are seeded, so that nothing falls between.
 */
#include "probes_network_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes.h"
#include "probes_attach.h"
#include "probes_log.h"
#include "probes_mount.h"
#include "probes_network_object.h"
#include "probes_symbols.h"

#define ITERATORS                                                            \
	(MOTE_NET_BIT(MOTE_NET_REAP_RUN) | MOTE_NET_BIT(MOTE_NET_ITER_TCP) | \
	 MOTE_NET_BIT(MOTE_NET_ITER_UDP) | MOTE_NET_BIT(MOTE_NET_ITER_OWNERS))

/* Since 6.7 the kernel itself refuses a name that several functions have. */
#define NAMES_ARE_CHECKED (6 << 8 | 7)

static int fail(struct mote_net_failure *failure, int program, const char *what, int err)
{
	failure->program = program;
	failure->err = err;
	mote_probes_explain(failure->reason, sizeof(failure->reason), what, err,
			    mote_probes_log_line());
	return err;
}

static int fail_for(struct mote_net_failure *failure, int program, int err, const char *why)
{
	failure->program = program;
	failure->err = err;
	snprintf(failure->reason, sizeof(failure->reason), "%s", why);
	return err;
}

unsigned int mote_net_pick_programs(const struct mote_net_pick *pick,
				    const struct mote_options *options)
{
	unsigned int programs = ITERATORS;

	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++) {
		if (pick->hook[i])
			programs |= mote_net_hook_programs(pick->hook[i], options);
	}
	if (!options->network_tcp)
		programs &= ~MOTE_NET_BIT(MOTE_NET_ITER_TCP);
	if (!options->network_udp)
		programs &= ~MOTE_NET_BIT(MOTE_NET_ITER_UDP);
	return programs & ~pick->without;
}

static struct bpf_program *program_of(const struct bpf_object *object, unsigned int program)
{
	return bpf_object__find_program_by_name(object, mote_net_programs[program].name);
}

static bool counts_by(const struct mote_net_pick *pick, enum mote_net_event event,
		      enum mote_net_program_id program)
{
	return pick->hook[event] && pick->hook[event]->programs & MOTE_NET_BIT(program);
}

static int set_variables(struct bpf_object *object, const struct mote_options *o,
			 const struct mote_net_pick *pick, unsigned int ncpus)
{
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {
		{ "net_nsockets", o->tables_sockets },
		{ "net_nflows", o->tables_flows },
		{ "net_ncpus", ncpus },
		{ "net_families", (o->network_ipv4 ? 1u : 0) | (o->network_ipv6 ? 2u : 0) },
		{ "net_protocols",
		  (o->network_tcp ? 1u << MOTE_TCP : 0) | (o->network_udp ? 1u << MOTE_UDP : 0) },
	};
	const struct {
		const char *name;
		bool value;
	} flags[] = {
		{ "net_tcp_by_tp", counts_by(pick, MOTE_NET_TCP, MOTE_NET_SEND_LENGTH) },
		{ "net_udp_send_by_tp", counts_by(pick, MOTE_NET_UDP_SEND, MOTE_NET_SEND_LENGTH) },
		{ "net_udp_recv_by_tp", counts_by(pick, MOTE_NET_UDP_RECV, MOTE_NET_RECV_LENGTH) },
		{ "net_by_state", pick->hook[MOTE_NET_STATE] },
	};
	int err = 0;

	for (unsigned int i = 0; !err && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		err = mote_net_object_set(object, numbers[i].name, &numbers[i].value,
					  sizeof(numbers[i].value));
	for (unsigned int i = 0; !err && i < sizeof(flags) / sizeof(flags[0]); i++)
		err = mote_net_object_set(object, flags[i].name, &flags[i].value,
					  sizeof(flags[i].value));
	return err;
}

static int turn_on(const struct bpf_object *object, unsigned int programs)
{
	for (unsigned int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		struct bpf_program *program = program_of(object, i);

		if (!(programs & MOTE_NET_BIT(i)))
			continue;
		if (!program)
			return -ENOENT;
		bpf_program__set_autoload(program, true);
	}
	return 0;
}

static int program_complained_of(void)
{
	for (int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		if (!strcmp(mote_net_programs[i].name, mote_probes_log_program()))
			return i;
	}
	return -1;
}

/* "kprobe/release_sock", "tp/sock/sock_send_length", "iterator net_tcp" */
static void name_hook(char *text, size_t size, enum mote_net_set set, unsigned int program)
{
	static const char *const names[MOTE_NET_SETS][2] = {
		[MOTE_NET_SET_FENTRY] = { "fentry", "fexit" },
		[MOTE_NET_SET_KPROBE] = { "kprobe", "kretprobe" },
	};
	const struct mote_net_program *p = &mote_net_programs[program];

	if (p->way == MOTE_NET_ITERATOR)
		snprintf(text, size, "iterator %s", p->name);
	else
		snprintf(text, size, "%s/%s",
			 p->way == MOTE_NET_TRACEPOINT ? "tp" : names[set][p->way == MOTE_NET_EXIT],
			 p->target);
}

static int load_failed(struct mote_net_failure *failure, enum mote_net_set set, int err)
{
	int program = program_complained_of();
	char what[64] = "bpf()";

	if (program >= 0)
		name_hook(what, sizeof(what), set, (unsigned int)program);
	return fail(failure, program, what, err);
}

static int prepare(struct mote_net_load *l, const struct mote_probes_network_config *cfg,
		   const struct mote_net_pick *pick, unsigned int ncpus)
{
	int err;

	mote_probes_log_begin();
	err = mote_net_object_open(pick->set, cfg->features->version, cfg->options->mote_btf,
				   &l->object);
	if (!err)
		err = turn_on(l->object, mote_net_pick_programs(pick, cfg->options));
	if (!err)
		err = set_variables(l->object, cfg->options, pick, ncpus);
	return err ? err : mote_net_maps_size(l->object, cfg->options, ncpus);
}

/* Functions that kprobes are to be put on, where the kernel would take the wrong one. */
static int check_symbols(const struct mote_probes_network_config *cfg,
			 const struct mote_net_pick *pick, struct mote_net_failure *failure)
{
	unsigned int programs = mote_net_pick_programs(pick, cfg->options);
	struct mote_symbol symbols[MOTE_NET_PROGRAMS];
	unsigned int program[MOTE_NET_PROGRAMS], n = 0;
	FILE *file;

	for (unsigned int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		if (programs & MOTE_NET_BIT(i) && mote_net_programs[i].way <= MOTE_NET_EXIT) {
			symbols[n] = (struct mote_symbol){ mote_net_programs[i].target, 0, 0 };
			program[n++] = i;
		}
	}
	if (pick->set != MOTE_NET_SET_KPROBE || cfg->features->version >= NAMES_ARE_CHECKED || !n)
		return 0;
	file = fopen("/proc/kallsyms", "re");
	if (!file)
		return 0;
	mote_symbols_count(file, symbols, n);
	fclose(file);
	for (unsigned int i = 0; i < n; i++) {
		if (mote_symbols_fault(&symbols[i]))
			return fail_for(failure, (int)program[i], -EADDRNOTAVAIL,
					mote_symbols_fault(&symbols[i]));
	}
	return 0;
}

/* The calls that may wait in a return probe at a time, of the hook whose program this is. */
static unsigned int held_by(const struct mote_net_pick *pick, unsigned int program)
{
	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++) {
		if (counts_by(pick, i, program))
			return pick->hook[i]->held;
	}
	return 0;
}

static int attach_return(struct mote_net_load *l, struct bpf_program *program, const char *function,
			 unsigned int held, bool may_mount, struct bpf_link **link)
{
	int err = 0;

	if (!held) {
		*link = bpf_program__attach_kprobe(program, true, function);
		return *link ? 0 : -errno;
	}
	if (l->kretprobes.control < 0)
		err = mote_kretprobes_open(&l->kretprobes, may_mount);
	return err ? err : mote_kretprobes_attach(&l->kretprobes, program, function, held, link);
}

static int attach_tracepoint(struct bpf_program *program, const char *target, bool may_mount,
			     struct bpf_link **link)
{
	const char *name = strchr(target, '/') + 1;
	char category[16];

	snprintf(category, sizeof(category), "%.*s", (int)(name - target - 1), target);
	return mote_probes_attach_tracepoint(program, category, name, may_mount, link);
}

static int attach_hook(struct mote_net_load *l, const struct mote_probes_network_config *cfg,
		       const struct mote_net_pick *pick, unsigned int i)
{
	const struct mote_net_program *p = &mote_net_programs[i];
	struct bpf_program *program = program_of(l->object, i);
	bool may_mount = cfg->options->mote_mount_tracefs;

	if (p->way == MOTE_NET_TRACEPOINT)
		return attach_tracepoint(program, p->target, may_mount, &l->links[i]);
	if (p->way == MOTE_NET_EXIT && pick->set == MOTE_NET_SET_KPROBE)
		return attach_return(l, program, p->target, held_by(pick, i), may_mount,
				     &l->links[i]);
	l->links[i] = pick->set == MOTE_NET_SET_KPROBE
			      ? bpf_program__attach_kprobe(program, false, p->target)
			      : bpf_program__attach(program);
	return l->links[i] ? 0 : -errno;
}

/* What an errno means for a hook, where that is more than its text. */
static const char *meaning(const struct mote_net_program *p, int err)
{
	if (err == -ENODEV && p->way == MOTE_NET_TRACEPOINT)
		return "tracefs is not mounted and mote may not mount it: mount -t tracefs tracefs /sys/kernel/tracing";
	if (err == -ENOENT && p->way == MOTE_NET_TRACEPOINT)
		return "the kernel has no such tracepoint";
	if (err == -ENOENT || err == -ESRCH)
		return "the kernel has no such function: inlined, renamed or left out";
	if (err == -EADDRNOTAVAIL)
		return "the kernel has several functions of that name";
	if (err == -MOTE_ENOTSUPP)
		return "loads, but this kernel does not attach it";
	return NULL;
}

void mote_net_failure_explain(struct mote_net_failure *failure, enum mote_net_set set)
{
	const struct mote_net_program *p = &mote_net_programs[failure->program];
	char what[64];

	name_hook(what, sizeof(what), set, (unsigned int)failure->program);
	fail(failure, failure->program, what, failure->err);
	if (meaning(p, failure->err))
		snprintf(failure->reason, sizeof(failure->reason), "%s: %s", what,
			 meaning(p, failure->err));
}

static int attach_hooks(struct mote_net_load *l, const struct mote_probes_network_config *cfg,
			const struct mote_net_pick *pick, struct mote_net_failure *failure)
{
	unsigned int programs = mote_net_pick_programs(pick, cfg->options);

	for (unsigned int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		int err;

		if (!(programs & MOTE_NET_BIT(i)) || mote_net_programs[i].way == MOTE_NET_ITERATOR)
			continue;
		mote_probes_log_begin();
		err = attach_hook(l, cfg, pick, i);
		if (err) {
			l->links[i] = NULL;
			*failure = (struct mote_net_failure){ .program = (int)i, .err = err };
			mote_net_failure_explain(failure, pick->set);
			return err;
		}
	}
	return 0;
}

static int attach_iterators(struct mote_net_load *l, const struct mote_probes_network_config *cfg,
			    unsigned int programs, struct mote_net_failure *failure)
{
	static const char *const names[MOTE_NET_PROGRAMS] = {
		[MOTE_NET_REAP_RUN] = "reap",
		[MOTE_NET_ITER_TCP] = "tcp",
		[MOTE_NET_ITER_UDP] = "udp",
	};
	int err = 0;

	for (unsigned int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		if (!(programs & MOTE_NET_BIT(i)) || mote_net_programs[i].way != MOTE_NET_ITERATOR)
			continue;
		mote_probes_log_begin();
		l->links[i] = bpf_program__attach_iter(program_of(l->object, i), NULL);
		if (!l->links[i])
			return fail(failure, (int)i, "attaching an iterator", -errno);
		if (names[i])
			err = mote_probes_pin(l->links[i], l->dirfd, names[i], cfg->uid, cfg->gid);
		if (err)
			return fail(failure, -1, "pinning an iterator in a private bpffs", err);
	}
	l->maps.dirfd = l->dirfd;
	l->maps.reap = names[MOTE_NET_REAP_RUN];
	l->maps.tcp = l->links[MOTE_NET_ITER_TCP] ? names[MOTE_NET_ITER_TCP] : NULL;
	l->maps.udp = l->links[MOTE_NET_ITER_UDP] ? names[MOTE_NET_ITER_UDP] : NULL;
	return 0;
}

/* One walk. EAGAIN: it was long, and goes on with the next read (kernel/bpf/bpf_iter.c). */
static int run(const struct bpf_link *link)
{
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -ENOENT;
	char text[64];
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		n = read(fd, text, sizeof(text));
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	n = n < 0 ? -errno : 0;
	close(fd);
	return (int)n;
}

/* Owners last: they are looked up for what the other two have found. */
static void seed(struct mote_net_load *l)
{
	run(l->links[MOTE_NET_ITER_TCP]);
	run(l->links[MOTE_NET_ITER_UDP]);
	__atomic_store_n(&l->maps.ctl->live, 1, __ATOMIC_RELEASE);
	run(l->links[MOTE_NET_ITER_OWNERS]);
}

/*
 * What is linked and mapped stays; of the programs a descriptor each, whose fdinfo has the runs
 * that the kernel left out. libbpf's memory is not needed again.
 */
static void settle(struct mote_net_load *l)
{
	struct mote_network_maps *maps = &l->maps;
	unsigned int max = sizeof(maps->programs) / sizeof(maps->programs[0]);
	int fd;

	for (unsigned int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		if (!l->links[i] || mote_net_programs[i].way == MOTE_NET_ITERATOR)
			continue;
		fd = fcntl(bpf_program__fd(program_of(l->object, i)), F_DUPFD_CLOEXEC, 0);
		if (fd >= 0 && maps->nprograms < max)
			maps->programs[maps->nprograms++] = fd;
		else if (fd >= 0)
			close(fd);
	}
	bpf_object__close(l->object);
	l->object = NULL;
	bpf_link__destroy(l->links[MOTE_NET_ITER_OWNERS]);
	l->links[MOTE_NET_ITER_OWNERS] = NULL;
	maps->profile = l->kretprobes.control < 0 ? -1 : l->kretprobes.profile;
	maps->nkretprobes = l->kretprobes.n;
	for (unsigned int i = 0; i < l->kretprobes.n; i++)
		maps->kretprobes[i] = l->kretprobes.name[i];
}

static int load_and_attach(struct mote_net_load *l, const struct mote_probes_network_config *cfg,
			   const struct mote_net_pick *pick, struct mote_net_failure *failure)
{
	int ncpus = libbpf_num_possible_cpus(), err;

	if (ncpus <= 0)
		return fail(failure, -1, "counting CPUs", ncpus);
	err = prepare(l, cfg, pick, (unsigned int)ncpus);
	if (err)
		return fail(failure, -1, "opening the network programs", err);
	err = bpf_object__load(l->object);
	if (err)
		return load_failed(failure, pick->set, err);
	err = mote_net_maps_open(&l->memory, l->object, cfg->options, (unsigned int)ncpus,
				 &l->maps);
	if (err)
		return fail(failure, -1, "mapping the network tables", err);
	l->dirfd = mote_probes_mount("bpf");
	if (l->dirfd < 0)
		return fail(failure, -1, "mounting a private bpffs", l->dirfd);
	err = attach_iterators(l, cfg, mote_net_pick_programs(pick, cfg->options), failure);
	return err ? err : attach_hooks(l, cfg, pick, failure);
}

int mote_net_load(struct mote_net_load *l, const struct mote_probes_network_config *cfg,
		  const struct mote_net_pick *pick, struct mote_net_failure *failure)
{
	int err;

	*l = (struct mote_net_load){ .dirfd = -1, .kretprobes = { .control = -1 } };
	err = check_symbols(cfg, pick, failure);
	if (!err)
		err = load_and_attach(l, cfg, pick, failure);
	if (err) {
		mote_net_unload(l);
		return err;
	}
	seed(l);
	settle(l);
	return 0;
}

void mote_net_unload(struct mote_net_load *l)
{
	for (unsigned int i = 0; i < MOTE_NET_PROGRAMS; i++)
		bpf_link__destroy(l->links[i]);
	/* The kernel keeps a probe as long as a link is there. */
	mote_kretprobes_close(&l->kretprobes);
	mote_net_maps_close(&l->memory);
	for (unsigned int i = 0; i < l->maps.nprograms; i++)
		close(l->maps.programs[i]);
	if (l->dirfd >= 0)
		close(l->dirfd);
	bpf_object__close(l->object);
	*l = (struct mote_net_load){ .dirfd = -1, .kretprobes = { .control = -1 } };
}
