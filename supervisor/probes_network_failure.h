/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Why a hook could not be had: which program, the errno, and one line for a person, in the words of
 * the hook.
 */
#ifndef MOTE_PROBES_NETWORK_FAILURE_H
#define MOTE_PROBES_NETWORK_FAILURE_H

#include "probes_network_choice.h"

#define MOTE_ENOTSUPP 524 /* the kernel's own, in no header of user space */

struct mote_net_failure {
	int program; /* enum mote_net_program_id; -1: none of them */
	int err;
	char reason[160];
};

/* These fill `failure` and return `err`. `what`: the action that failed, as mote_probes_explain()
 * has it. */
int mote_net_fail(struct mote_net_failure *failure, int program, const char *what, int err);
int mote_net_fail_for(struct mote_net_failure *failure, int program, int err, const char *why);
/* Of bpf_object__load(): libbpf's log says which program it was. */
int mote_net_fail_load(struct mote_net_failure *failure, enum mote_net_set set, int err);
/* Of attaching a program. */
int mote_net_fail_attach(struct mote_net_failure *failure, enum mote_net_set set, int program,
			 int err);

#endif
