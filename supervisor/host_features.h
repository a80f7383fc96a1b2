/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What this host allows, as far as can be seen without loading a program: read once at start, by
 * --check and by those who choose a tier. What cannot be read is unknown, never guessed; whether
 * trampolines work is for a trial attach to say. (The name features.h is glibc's.)
 */
#ifndef MOTE_HOST_FEATURES_H
#define MOTE_HOST_FEATURES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct mote_options;

#define MOTE_FEATURE_UNKNOWN INT_MIN /* of the sysctls */

enum mote_lockdown {
	MOTE_LOCKDOWN_UNKNOWN, /* no securityfs, or a kernel without it */
	MOTE_LOCKDOWN_NONE,
	MOTE_LOCKDOWN_INTEGRITY,
	MOTE_LOCKDOWN_CONFIDENTIALITY,
};

enum mote_cgroup_hierarchies {
	MOTE_CGROUPS_NONE,
	MOTE_CGROUPS_V1,
	MOTE_CGROUPS_HYBRID,
	MOTE_CGROUPS_V2
};

/* Says nothing about threads in the kernel, but whether a BPF program can be preempted. */
struct mote_preempt {
	bool preemptible; /* true where it is not known */
	char model[24];   /* none, voluntary, full, lazy, "full or lazy", unknown, ... */
	char source[56];  /* where that was read */
};

struct mote_features {
	char release[72];
	unsigned int version; /* major << 8 | minor */
	char btf[256];        /* the kernel's BTF; "" for none */
	enum mote_lockdown lockdown;
	bool kprobes;     /* the kprobe PMU */
	bool tracepoints; /* the tracepoint PMU */
	char tracefs[64]; /* where it is mounted; "" for nowhere */
	int unprivileged_bpf_disabled, perf_event_paranoid, kptr_restrict, io_uring_disabled;
	uint64_t capabilities; /* effective */
	int seccomp;           /* 0 none, 1 strict, 2 a filter */
	struct mote_engine_features ring;
	struct mote_preempt preempt;
	enum mote_cgroup_hierarchies cgroups;
	int hidepid;                        /* 0 off, 1 noaccess, 2 invisible, 4 ptraceable */
	bool pid_namespace, user_namespace; /* in one that is not the initial one */
	char clocksource[32];
};

/*
 * `root` goes before every path: "" but in tests. The ring is probed by mote_engine_probe_ring(),
 * for which no root helps.
 */
void mote_features_read(struct mote_features *features, const struct mote_options *options,
			const char *root);

bool mote_features_capable(const struct mote_features *features, unsigned int cap);

/* Why there is no io_uring, from the probe's error and what else is known. "" if there is one. */
const char *mote_features_ring_reason(const struct mote_features *features);

/*
 * The preemption model from the texts that tell it; each may be NULL. `version` is /proc/version,
 * `debugfs` sched/preempt, `config` the kernel's configuration.
 */
void mote_features_preempt(struct mote_preempt *preempt, unsigned int release, const char *version,
			   const char *debugfs, const char *cmdline, const char *config);

/* From the text of /proc/self/mountinfo. */
enum mote_cgroup_hierarchies mote_features_cgroups(const char *mountinfo);
int mote_features_hidepid(const char *mountinfo);

#endif
