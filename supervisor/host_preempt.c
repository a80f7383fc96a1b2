// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The preemption model. A BPF program that is preempted makes every other run of the same program
 * on its CPU be skipped, so it decides which hooks are exact; where it cannot be told, preemptible
 * is assumed, which costs some CPU and no counts.
 */
#include <stdio.h>
#include <string.h>

#include "host_features.h"

static void set(struct mote_preempt *preempt, bool preemptible, const char *model, size_t len,
		const char *source)
{
	preempt->preemptible = preemptible;
	snprintf(preempt->model, sizeof(preempt->model), "%.*s", (int)len, model);
	snprintf(preempt->source, sizeof(preempt->source), "%s", source);
}

/* A model by its name in sched/preempt and on the command line; false: no such model. */
static bool set_named(struct mote_preempt *preempt, const char *name, size_t len,
		      const char *source)
{
	static const struct {
		const char *name;
		bool preemptible;
	} models[] = {
		{ "none", false }, { "voluntary", false }, { "full", true }, { "lazy", true }
	};

	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		if (strlen(models[i].name) == len && !memcmp(models[i].name, name, len)) {
			set(preempt, models[i].preemptible, name, len, source);
			return true;
		}
	}
	return false;
}

/* "none voluntary (full) lazy" */
static bool from_debugfs(struct mote_preempt *preempt, const char *text)
{
	const char *name = text ? strchr(text, '(') : NULL;

	return name &&
	       set_named(preempt, name + 1, strcspn(name + 1, ")"), "debugfs sched/preempt");
}

/* The last preempt= that names a model counts; words behind ` -- ` are init's. */
static bool from_cmdline(struct mote_preempt *preempt, const char *text)
{
	bool found = false;
	size_t len;

	for (; text && *text; text += len + strspn(text + len, " \n")) {
		len = strcspn(text, " \n");
		if (len == 2 && !strncmp(text, "--", 2))
			break;
		if (len > 8 && !strncmp(text, "preempt=", 8))
			found |= set_named(preempt, text + 8, len - 8, "kernel command line");
	}
	return found;
}

/* What PREEMPT_DYNAMIC starts with. */
static bool from_config(struct mote_preempt *preempt, const char *text)
{
	static const struct {
		const char *line, *model;
	} lines[] = {
		{ "\nCONFIG_PREEMPT_NONE=y\n", "none" },
		{ "\nCONFIG_PREEMPT_VOLUNTARY=y\n", "voluntary" },
		{ "\nCONFIG_PREEMPT_LAZY=y\n", "lazy" },
		{ "\nCONFIG_PREEMPT=y\n", "full" },
	};

	for (size_t i = 0; text && i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (strstr(text, lines[i].line))
			return set_named(preempt, lines[i].model, strlen(lines[i].model),
					 "kernel configuration");
	}
	return false;
}

/*
 * The version's text says how the kernel was built (init/Makefile): without the word it cannot
 * preempt itself, and preempt= is heard only by PREEMPT_DYNAMIC (5.12). From 7.0 only full and
 * lazy are left where the architecture has lazy.
 */
void mote_features_preempt(struct mote_preempt *preempt, unsigned int release, const char *version,
			   const char *debugfs, const char *cmdline, const char *config)
{
	const char *built = "kernel version text";

	if (from_debugfs(preempt, debugfs))
		return;
	if (version && !strstr(version, "PREEMPT"))
		set(preempt, false, "none or voluntary", 17, built);
	else if (version && strstr(version, "PREEMPT_RT"))
		set(preempt, true, "full (RT)", 9, built);
	else if (version && !strstr(version, "PREEMPT_DYNAMIC"))
		set(preempt, true, "full or lazy", 12, built);
	else if (from_cmdline(preempt, cmdline))
		return;
	else if (release >= (7 << 8))
		set(preempt, true, "full or lazy", 12, "kernel version 7.0 or later");
	else if (!from_config(preempt, config))
		set(preempt, true, "unknown", 7, "no source readable here; the worst is assumed");
}
