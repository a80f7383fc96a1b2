/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a cgroup's path says of it: container, pod and unit, by the rules of docs/CGROUPS.md. A pure
 * function of the path; nothing is asked of a runtime.
 */
#ifndef MOTE_CGROUP_IDENTITY_H
#define MOTE_CGROUP_IDENTITY_H

#include <stddef.h>

#include "parse.h"

#define MOTE_POD_UID_LEN 36

/* Views into the path, or of constants; empty: the path does not say. */
struct mote_cgroup_identity {
	struct mote_text container; /* 64 hexadecimal digits */
	const char *runtime;        /* "docker", "containerd", "cri-o", "podman", or NULL */
	struct mote_text unit;
	char pod[MOTE_POD_UID_LEN + 1]; /* with dashes, however the path writes it; "": none */
};

/* `path` begins with a slash, and is relative to the root of the hierarchy. */
void mote_cgroup_identify(struct mote_text path, struct mote_cgroup_identity *out);

#endif
