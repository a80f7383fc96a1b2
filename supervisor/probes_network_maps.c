// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Pages of a mapped array are the map's own and are there from its creation; MAP_POPULATE makes
 * them ours, so that none faults later.
 */
#include "probes_network_maps.h"

#include <errno.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes_attach.h"

int mote_net_maps_size(struct bpf_object *object, const struct mote_options *options,
		       unsigned int ncpus)
{
	const struct {
		const char *name;
		unsigned int entries;
	} sizes[] = {
		{ "net_sockets", options->tables_sockets },
		{ "net_socket_marks", MOTE_MARKS_LINES(options->tables_sockets) },
		{ "net_socket_index", options->tables_sockets },
		{ "net_socket_free", options->tables_sockets },
		{ "net_flows", options->tables_flows },
		{ "net_flow_marks", MOTE_MARKS_LINES(options->tables_flows) },
		{ "net_flow_index", options->tables_flows },
		{ "net_flow_free", options->tables_flows },
		{ "net_cpus", ncpus },
	};
	struct bpf_map *map;
	int err = 0;

	for (unsigned int i = 0; !err && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		map = bpf_object__find_map_by_name(object, sizes[i].name);
		err = map ? bpf_map__set_max_entries(map, sizes[i].entries) : -ENOENT;
	}
	return err;
}

static int map_fd(const struct bpf_object *object, const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__fd(map) : -ENOENT;
}

static int map_memory(struct mote_net_memory *memory, const struct bpf_object *object,
		      const char *name, size_t len, void **out)
{
	int fd = map_fd(object, name);
	int err;

	if (fd < 0)
		return fd;
	if (memory->n == MOTE_NET_MAPS)
		return -E2BIG;
	len = mote_probes_whole_pages(len);
	err = mote_probes_map(fd, PROT_READ | PROT_WRITE, 0, len, out);
	if (err)
		return err;
	memory->map[memory->n] = *out;
	memory->len[memory->n++] = len;
	return 0;
}

static int map_all(struct mote_net_memory *memory, const struct bpf_object *object,
		   struct mote_network_maps *m)
{
	const struct {
		const char *name;
		size_t len;
		void **at;
	} all[] = {
		{ "net_sockets", m->nsockets * sizeof(*m->sockets), (void **)&m->sockets },
		{ "net_flows", m->nflows * sizeof(*m->flows), (void **)&m->flows },
		{ "net_socket_marks", m->nsockets, (void **)&m->socket_marks },
		{ "net_flow_marks", m->nflows, (void **)&m->flow_marks },
		{ "net_reap", MOTE_SLOT_TABLES * sizeof(*m->reaps), (void **)&m->reaps },
		{ "net_cpus", m->ncpus * sizeof(*m->cpus), (void **)&m->cpus },
		{ "net_ctl", sizeof(*m->ctl), (void **)&m->ctl },
	};
	int err = 0;

	for (unsigned int i = 0; !err && i < sizeof(all) / sizeof(all[0]); i++)
		err = map_memory(memory, object, all[i].name, all[i].len, all[i].at);
	return err;
}

static int fill(int queue, uint32_t n)
{
	if (queue < 0)
		return queue;
	for (uint32_t slot = 0; slot < n; slot++) {
		if (bpf_map_update_elem(queue, NULL, &slot, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int free_slots(const struct bpf_object *object, const struct mote_network_maps *maps)
{
	int err;

	for (uint32_t i = 0; i < maps->nsockets; i++)
		maps->sockets[i].slot.gen = 1;
	for (uint32_t i = 0; i < maps->nflows; i++)
		maps->flows[i].slot.gen = 1;
	err = fill(map_fd(object, "net_socket_free"), maps->nsockets);
	return err ? err : fill(map_fd(object, "net_flow_free"), maps->nflows);
}

int mote_net_maps_open(struct mote_net_memory *memory, struct bpf_object *object,
		       const struct mote_options *options, unsigned int ncpus,
		       struct mote_network_maps *maps)
{
	int err;

	maps->nsockets = options->tables_sockets;
	maps->nflows = options->tables_flows;
	maps->ncpus = ncpus;
	err = map_all(memory, object, maps);
	return err ? err : free_slots(object, maps);
}

void mote_net_maps_close(struct mote_net_memory *memory)
{
	for (unsigned int i = 0; i < memory->n; i++)
		munmap(memory->map[i], memory->len[i]);
	memory->n = 0;
}
