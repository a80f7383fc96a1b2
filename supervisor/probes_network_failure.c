// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* An errno of attaching says which of the known faults of a hook it is; others are as for all BPF.
 */
#include "probes_network_failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probes.h"
#include "probes_log.h"

int mote_net_fail(struct mote_net_failure *failure, int program, const char *what, int err)
{
	failure->program = program;
	failure->err = err;
	mote_probes_explain(failure->reason, sizeof(failure->reason), what, err,
			    mote_probes_log_line());
	return err;
}

int mote_net_fail_for(struct mote_net_failure *failure, int program, int err, const char *why)
{
	failure->program = program;
	failure->err = err;
	snprintf(failure->reason, sizeof(failure->reason), "%s", why);
	return err;
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

int mote_net_fail_load(struct mote_net_failure *failure, enum mote_net_set set, int err)
{
	int program = program_complained_of();
	char what[64] = "bpf()";

	if (program >= 0)
		name_hook(what, sizeof(what), set, (unsigned int)program);
	return mote_net_fail(failure, program, what, err);
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

int mote_net_fail_attach(struct mote_net_failure *failure, enum mote_net_set set, int program,
			 int err)
{
	const struct mote_net_program *p = &mote_net_programs[program];
	char what[64];

	name_hook(what, sizeof(what), set, (unsigned int)program);
	mote_net_fail(failure, program, what, err);
	if (meaning(p, err))
		snprintf(failure->reason, sizeof(failure->reason), "%s: %s", what, meaning(p, err));
	return err;
}
