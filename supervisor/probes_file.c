// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Tries the sets in the order that the network's probes have them. What splice() and io_uring need
 * is left out of a set if that refuses it; without the hooks of plain calls a set is of no use.
 */
#include "probes_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes_file_load.h"
#include "probes_network_choice.h"
#include "probes_network_failure.h"
#include "probes_symbols.h"
#include "probes_trampoline.h"

struct mote_probes_file {
	const struct mote_options *options;
	struct mote_file_load load;
	bool loaded;
	enum mote_net_set set;
	char why[MOTE_FILE_EVENTS][160]; /* an event is not counted */
};

static const char *const set_names[MOTE_NET_SETS] = { "fentry", "kprobe" };

/* Why nothing is to be loaded at all; NULL if something is. */
static const char *refused(const struct mote_options *o, const struct mote_features *features)
{
	if (o->mote_mode == MOTE_MODE_MINIMAL)
		return "mode = minimal";
	if (o->mote_probes == MOTE_PROBES_NONE)
		return "probes = none";
	if (!o->file_track_read && !o->file_track_write)
		return "[file] track_read and track_write are off";
	if (features->pid_namespace)
		return "in a pid namespace of its own: BPF would give the host's pids";
	if (features->lockdown == MOTE_LOCKDOWN_CONFIDENTIALITY)
		return "lockdown=confidentiality: BPF programs may not read kernel memory";
	return NULL;
}

/* Why this set cannot work here, as can be seen without loading it; "" if nothing is known. */
static void unfit(char *why, size_t size, enum mote_net_set set,
		  const struct mote_features *features)
{
	struct mote_net_failure failure;
	int err;

	why[0] = '\0';
	if (set == MOTE_NET_SET_KPROBE) {
		if (!features->kprobes)
			snprintf(why, size,
				 "the kernel has no kprobe event source (CONFIG_KPROBE_EVENTS)");
		return;
	}
	err = *features->btf ? mote_probes_try_trampoline("security_file_permission") : -ENOENT;
	if (!err)
		return;
	mote_net_fail(&failure, -1, "fentry/security_file_permission", err);
	snprintf(
		why, size, "%s",
		err == -MOTE_ENOTSUPP
			? "fentry/security_file_permission: loads, but this kernel does not attach it"
			: failure.reason);
}

/* Up to 6.6 the kernel takes the first of several functions of a name. */
static void check_symbols(struct mote_probes_file *file, const struct mote_probes_file_config *cfg,
			  struct mote_file_pick *pick)
{
	struct mote_symbol symbols[MOTE_FILE_PROGRAMS];
	FILE *text;

	if (pick->set != MOTE_NET_SET_KPROBE || cfg->features->version >= (6 << 8 | 7))
		return;
	text = fopen("/proc/kallsyms", "re");
	if (!text)
		return;
	for (unsigned int i = 0; i < MOTE_FILE_PROGRAMS; i++) {
		bool function = mote_file_programs[i].way <= MOTE_NET_EXIT;

		symbols[i] =
			(struct mote_symbol){ function ? mote_file_programs[i].target : "-", 0, 0 };
	}
	mote_symbols_count(text, symbols, MOTE_FILE_PROGRAMS);
	fclose(text);
	for (unsigned int i = 0; i < MOTE_FILE_PROGRAMS; i++) {
		const char *fault = mote_symbols_fault(&symbols[i]);
		enum mote_file_event event = mote_file_programs[i].event;

		if (!fault || !mote_file_wants(pick, cfg->features->version, i))
			continue;
		pick->event[event] = false;
		snprintf(file->why[event], sizeof(file->why[event]), "kprobe/%s: %s",
			 mote_file_programs[i].target, fault);
	}
}

/* True: without that part it may work. */
static bool leave_out(struct mote_probes_file *file, struct mote_file_pick *pick,
		      const struct mote_file_failure *failure)
{
	const struct mote_file_program *p;

	if (failure->program < 0)
		return false;
	p = &mote_file_programs[failure->program];
	if (p->may_lack && (failure->err == -ENOENT || failure->err == -ESRCH)) {
		pick->without |= 1u << failure->program;
		return true;
	}
	if (p->event == MOTE_FILE_CALLS)
		return false;
	pick->event[p->event] = false;
	snprintf(file->why[p->event], sizeof(file->why[p->event]), "%s", failure->reason);
	return true;
}

static bool try_set(struct mote_probes_file *file, const struct mote_probes_file_config *cfg,
		    struct mote_file_pick *pick, char *why, size_t size)
{
	struct mote_file_failure failure;

	unfit(why, size, pick->set, cfg->features);
	if (why[0])
		return false;
	check_symbols(file, cfg, pick);
	while (pick->event[MOTE_FILE_CALLS]) {
		if (!mote_file_load(&file->load, cfg, pick, &failure))
			return true;
		if (leave_out(file, pick, &failure))
			continue;
		snprintf(why, size, "%s", failure.reason);
		return false;
	}
	snprintf(why, size, "%s", file->why[MOTE_FILE_CALLS]);
	return false;
}

static struct mote_file_pick begin(struct mote_probes_file *file, enum mote_net_set set)
{
	const struct mote_options *o = file->options;
	struct mote_file_pick pick = { .set = set,
				       .event = { true, o->file_track_sendfile, true,
						  o->file_track_sendfile, true } };

	memset(file->why, 0, sizeof(file->why));
	if (!o->file_track_sendfile)
		for (int i = MOTE_FILE_SPLICE; i < MOTE_FILE_EVENTS; i++)
			snprintf(file->why[i], sizeof(file->why[i]), "%s",
				 i == MOTE_FILE_URING || i == MOTE_FILE_AIO
					 ? ""
					 : "[file] track_sendfile = off");
	return pick;
}

static void say(struct mote_probes_file *file, struct mote_tiers *tiers,
		const struct mote_file_pick *pick, const char *reason)
{
	static const char *const names[MOTE_FILE_EVENTS] = { "file", "file_splice", "file_uring",
							     "file_sendfile", "file_aio" };
	struct mote_file_maps *maps = &file->load.maps;

	mote_tiers_add(tiers, "file", set_names[pick->set], "%s", reason);
	for (int i = 0; i < MOTE_FILE_EVENTS; i++) {
		maps->has[i] = pick->event[i];
		if (i != MOTE_FILE_CALLS)
			mote_tiers_add(tiers, names[i],
				       pick->event[i] ? set_names[pick->set] : "none", "%s",
				       file->why[i]);
	}
}

int mote_probes_file_open(const struct mote_probes_file_config *cfg, struct mote_tiers *tiers,
			  struct mote_probes_file **out)
{
	struct mote_probes_file *file = calloc(1, sizeof(*file));
	const char *no = refused(cfg->options, cfg->features);
	struct mote_net_plan plan = { 0 };
	char why[160] = "", first[160] = "";

	if (!file)
		return -ENOMEM;
	*out = file;
	file->options = cfg->options;
	if (!no)
		mote_net_plan(&plan, cfg->options->mote_probes, cfg->features);
	for (unsigned int i = 0; i < plan.nsets && !file->loaded; i++) {
		struct mote_file_pick pick = begin(file, plan.set[i]);

		file->loaded = try_set(file, cfg, &pick, why, sizeof(why));
		if (file->loaded)
			say(file, tiers, &pick, i ? first : plan.reason);
		else if (!i)
			snprintf(first, sizeof(first), "%s", why);
	}
	mote_file_object_forget();
	if (!file->loaded)
		mote_tiers_add(tiers, "file", "none", "%s", no ?: why);
	return 0;
}

void mote_probes_file_close(struct mote_probes_file *file)
{
	if (!file)
		return;
	if (file->loaded)
		mote_file_unload(&file->load);
	free(file);
}

const struct mote_file_maps *mote_probes_file_maps(const struct mote_probes_file *file)
{
	return file && file->loaded ? &file->load.maps : NULL;
}

void mote_probes_file_share(const struct mote_probes_file *file,
			    struct mote_file_shared shared[MOTE_FILE_SHARED])
{
	for (unsigned int i = 0; i < MOTE_FILE_SHARED; i++) {
		bool has = file && file->loaded && file->load.shared[i] > 0;

		shared[i] = (struct mote_file_shared){ mote_file_shared_names[i],
						       has ? file->load.shared[i] : -1 };
	}
}

void mote_probes_file_shared(struct mote_probes_file *file)
{
	for (unsigned int i = 0; i < MOTE_FILE_SHARED; i++) {
		if (file->load.shared[i] > 0)
			close(file->load.shared[i]);
		file->load.shared[i] = 0;
	}
}

void mote_probes_file_check(struct mote_probes_file *file, struct mote_tiers *tiers)
{
	char why[160];

	if (!file->loaded || !file->options->file_self_check ||
	    mote_file_check(&file->load.maps, file->options, why, sizeof(why)))
		return;
	file->loaded = false;
	mote_file_unload(&file->load);
	mote_tiers_add(tiers, "file", "none", "%s", why);
}
