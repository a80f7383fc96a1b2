/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Return probes that hold more calls at a time than the kernel's default, which is two for each
 * CPU: only tracefs takes that number. Such a probe has a name that everybody sees,
 * mote/mote_PID_FUNCTION; it is removed when its owner closes, and what an owner left behind that
 * was killed goes when the next one opens.
 */
#ifndef MOTE_PROBES_KRETPROBE_H
#define MOTE_PROBES_KRETPROBE_H

#include <stdbool.h>

struct bpf_link;
struct bpf_program;

#define MOTE_KRETPROBES_MAX 4

/* All zero but for `control` -1: nothing is open. */
struct mote_kretprobes {
	int dir;     /* of tracefs */
	int control; /* kprobe_events, to remove by even without a capability */
	int profile; /* kprobe_profile: a line for each, `NAME HITS MISSES`; -1: not to be read */
	unsigned int n;
	char name[MOTE_KRETPROBES_MAX][64];
};

/* Negative errno: -ENOENT tracefs has no kprobes; else as mote_probes_tracefs() and open(). */
int mote_kretprobes_open(struct mote_kretprobes *probes, bool may_mount);

/* Attaches to the return of `function`, at most `held` calls of which wait at a time. */
int mote_kretprobes_attach(struct mote_kretprobes *probes, struct bpf_program *program,
			   const char *function, unsigned int held, struct bpf_link **link);

/* Removes the probes. Their links are destroyed before: the kernel keeps what is in use. */
void mote_kretprobes_close(struct mote_kretprobes *probes);

/* For tests: the pid in a line of kprobe_events if it is one of ours, whoever's; else 0. */
int mote_kretprobes_owner(const char *line);

#endif
