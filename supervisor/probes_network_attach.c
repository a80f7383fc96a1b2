// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * By libbpf, but for tracepoints, whose tracefs may be ours only, and for return probes that hold
 * many calls.
 */
#include "probes_network_attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes_attach.h"
#include "probes_log.h"
#include "probes_symbols.h"

/* Since 6.7 the kernel itself refuses a name that several functions have. */
#define NAMES_ARE_CHECKED (6 << 8 | 7)

struct bpf_program *mote_net_program(const struct bpf_object *object, unsigned int program)
{
	return bpf_object__find_program_by_name(object, mote_net_programs[program].name);
}

bool mote_net_counts_by(const struct mote_net_pick *pick, enum mote_net_event event,
			enum mote_net_program_id program)
{
	return pick->hook[event] && pick->hook[event]->programs & MOTE_NET_BIT(program);
}

int mote_net_check_symbols(const struct mote_probes_network_config *cfg,
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
			return mote_net_fail_for(failure, (int)program[i], -EADDRNOTAVAIL,
						 mote_symbols_fault(&symbols[i]));
	}
	return 0;
}

/* The calls that may wait in a return probe at a time, of the hook whose program this is. */
static unsigned int held_by(const struct mote_net_pick *pick, unsigned int program)
{
	for (unsigned int i = 0; i < MOTE_NET_EVENTS; i++) {
		if (mote_net_counts_by(pick, i, program))
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
	struct bpf_program *program = mote_net_program(l->object, i);
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

int mote_net_attach_hooks(struct mote_net_load *l, const struct mote_probes_network_config *cfg,
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
			return mote_net_fail_attach(failure, pick->set, (int)i, err);
		}
	}
	return 0;
}

int mote_net_attach_iterators(struct mote_net_load *l, const struct mote_probes_network_config *cfg,
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
		l->links[i] = bpf_program__attach_iter(mote_net_program(l->object, i), NULL);
		if (!l->links[i])
			return mote_net_fail(failure, (int)i, "attaching an iterator", -errno);
		if (names[i])
			err = mote_probes_pin(l->links[i], l->dirfd, names[i], cfg->uid, cfg->gid);
		if (err)
			return mote_net_fail(failure, -1, "pinning an iterator in a private bpffs",
					     err);
	}
	l->maps.dirfd = l->dirfd;
	l->maps.reap = names[MOTE_NET_REAP_RUN];
	l->maps.tcp = l->links[MOTE_NET_ITER_TCP] ? names[MOTE_NET_ITER_TCP] : NULL;
	l->maps.udp = l->links[MOTE_NET_ITER_UDP] ? names[MOTE_NET_ITER_UDP] : NULL;
	return 0;
}
