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
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes_file_load.h"
#include "probes_log.h"
#include "probes_mount.h"
#include "probes_network_attach.h"
#include "probes_network_object.h"

#define ITERATORS                                                            \
	(MOTE_NET_BIT(MOTE_NET_REAP_RUN) | MOTE_NET_BIT(MOTE_NET_ITER_TCP) | \
	 MOTE_NET_BIT(MOTE_NET_ITER_UDP) | MOTE_NET_BIT(MOTE_NET_ITER_OWNERS))

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

static uint32_t own_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) ? 0 : (uint32_t)st.st_ino;
}

static int set_variables(struct bpf_object *object, const struct mote_options *o,
			 const struct mote_net_pick *pick, unsigned int ncpus, bool events)
{
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {
		{ "net_nsockets", o->tables_sockets },
		{ "net_nflows", o->tables_flows },
		{ "net_ncpus", ncpus },
		{ "net_netns", own_namespace() },
		{ "net_families", (o->network_ipv4 ? 1u : 0) | (o->network_ipv6 ? 2u : 0) },
		{ "net_protocols",
		  (o->network_tcp ? 1u << MOTE_TCP : 0) | (o->network_udp ? 1u << MOTE_UDP : 0) },
	};
	const struct {
		const char *name;
		bool value;
	} flags[] = {
		{ "net_tcp_by_tp", mote_net_counts_by(pick, MOTE_NET_TCP, MOTE_NET_SEND_LENGTH) },
		{ "net_udp_send_by_tp",
		  mote_net_counts_by(pick, MOTE_NET_UDP_SEND, MOTE_NET_SEND_LENGTH) },
		{ "net_udp_recv_by_tp",
		  mote_net_counts_by(pick, MOTE_NET_UDP_RECV, MOTE_NET_RECV_LENGTH) },
		{ "net_by_state", pick->hook[MOTE_NET_STATE] },
		{ "net_udp_pages",
		  mote_net_counts_by(pick, MOTE_NET_UDP_SEND, MOTE_NET_UDP_SENDPAGE) &&
			  !(pick->without & MOTE_NET_BIT(MOTE_NET_UDP_SENDPAGE)) },
		{ "net_events", events },
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

/* Without the file programs nothing of theirs is made, and what would use it is dead code. */
static int share_files(struct bpf_object *object, const struct mote_probes_network_config *cfg)
{
	bool wanted = cfg->shared && cfg->shared[0].fd >= 0;
	bool credit = wanted && cfg->options->file_attribution;
	int err = mote_net_object_set(object, "edges_wanted", &wanted, sizeof(wanted));

	err = err ?: mote_net_object_set(object, "edges_by_credit", &credit, sizeof(credit));
	for (unsigned int i = 0; !err && i < MOTE_FILE_SHARED; i++) {
		struct bpf_map *map =
			bpf_object__find_map_by_name(object, mote_file_shared_names[i]);

		if (!map)
			err = -ENOENT;
		else if (wanted)
			err = bpf_map__reuse_fd(map, cfg->shared[i].fd);
		else
			err = bpf_map__set_autocreate(map, false);
	}
	return err;
}

static int turn_on(const struct bpf_object *object, unsigned int programs)
{
	for (unsigned int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		struct bpf_program *program = mote_net_program(object, i);

		if (!(programs & MOTE_NET_BIT(i)))
			continue;
		if (!program)
			return -ENOENT;
		bpf_program__set_autoload(program, true);
	}
	return 0;
}

/* The buffer that is there already, or none. */
static int share_events(const struct bpf_object *object, int fd)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, "events");

	if (!map)
		return -ENOENT;
	return fd < 0 ? bpf_map__set_autocreate(map, false) : bpf_map__reuse_fd(map, fd);
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
		err = set_variables(l->object, cfg->options, pick, ncpus, cfg->events >= 0);
	if (!err)
		err = share_events(l->object, cfg->events);
	if (!err)
		err = share_files(l->object, cfg);
	return err ? err : mote_net_maps_size(l->object, cfg->options, ncpus);
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
		fd = fcntl(bpf_program__fd(mote_net_program(l->object, i)), F_DUPFD_CLOEXEC, 0);
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
		return mote_net_fail(failure, -1, "counting CPUs", ncpus);
	err = prepare(l, cfg, pick, (unsigned int)ncpus);
	if (err)
		return mote_net_fail(failure, -1, "opening the network programs", err);
	err = bpf_object__load(l->object);
	if (err)
		return mote_net_fail_load(failure, pick->set, err);
	err = mote_net_maps_open(&l->memory, l->object, cfg->options, (unsigned int)ncpus,
				 &l->maps);
	if (err)
		return mote_net_fail(failure, -1, "mapping the network tables", err);
	l->dirfd = mote_probes_mount("bpf");
	if (l->dirfd < 0)
		return mote_net_fail(failure, -1, "mounting a private bpffs", l->dirfd);
	err = mote_net_attach_iterators(l, cfg, mote_net_pick_programs(pick, cfg->options),
					failure);
	return err ? err : mote_net_attach_hooks(l, cfg, pick, failure);
}

int mote_net_load(struct mote_net_load *l, const struct mote_probes_network_config *cfg,
		  const struct mote_net_pick *pick, struct mote_net_failure *failure)
{
	int err;

	*l = (struct mote_net_load){ .dirfd = -1, .kretprobes = { .control = -1 } };
	l->maps.events = cfg->events >= 0;
	err = mote_net_check_symbols(cfg, pick, failure);
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
