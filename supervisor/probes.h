/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The BPF programs: opened once at start, while mote is privileged. Each piece degrades by itself:
 * what could not be had is NULL, and its tier says why. Nothing here is called on a tick, all that
 * a tick needs is mapped memory and the names of pinned iterators.
 */
#ifndef MOTE_PROBES_H
#define MOTE_PROBES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi.h"
#include "options.h"
#include "ringbuf.h"
#include "tier.h"

struct mote_probes;

struct mote_probes_config {
	bool iterator;                   /* try the task iterator, */
	bool list;                       /* and before it the walk of the list (6.8) */
	enum mote_events_choice events;  /* auto: tracepoint, else tp_btf; connector, off: none */
	unsigned int processes, threads; /* records that task_recs (a half) and thread_recs hold */
	unsigned int event_bytes;        /* of the ring buffer; a power of two, a page at least */
	unsigned int argv_bytes;         /* most bytes of a command line in an exec record */
	const char *btf;    /* file with the kernel's BTF; NULL or "": the kernel's own */
	bool mount_tracefs; /* tracefs not mounted: use a mount that nobody else sees */
	uid_t uid;          /* owner of the pinned iterators; (uid_t)-1: as we are */
	gid_t gid;
	/* For tests: act as if the kernel refused these. */
	bool no_probe_read;
};

/* Pinned iterators and the memory that they fill, mapped until mote_probes_close(). */
struct mote_probes_iterator {
	int dirfd; /* of a detached bpffs; openat(dirfd, name), one read() to its end */
	const char *tasks, *idents; /* names under dirfd; idents NULL if it could not be had */
	struct mote_ctl *ctl;
	struct mote_task *half[2]; /* `processes` records each */
	/* Of the walk of the list, else NULL. `processes` references and pairs. */
	struct mote_walk_ctl *walk_ctl;
	const struct mote_ref *refs;
	struct mote_pair *pairs;
	/* Of the task iterator, else NULL. Which half is filled: ctl->half */
	struct mote_thread *threads;
	struct mote_ident_want *want;
	struct mote_ident *ident; /* MOTE_IDENTS records */
	unsigned int processes, nthreads;
	bool probe_read; /* false, under lockdown: no idents, and see the flags of the records */
};

/* Births, execs and deaths. */
struct mote_probes_lifecycle {
	struct mote_ringbuf ring;
	const struct mote_event_ctl *ctl;
	bool tp_btf; /* else classic tracepoints */
	bool final;  /* MOTE_EVENT_FINAL follows each MOTE_EVENT_EXIT */
	int fd;      /* of the ring buffer, for other programs: until mote_probes_started() */
};

/*
 * Always gives an object, unless there is no memory (-ENOMEM): a host without BPF is no error. Adds
 * the tiers `task_iterator`, `executable` and `process_events`, with why the better choice was not
 * to be had. Call before threads exist.
 */
int mote_probes_open(const struct mote_probes_config *cfg, struct mote_tiers *tiers,
		     struct mote_probes **out);
void mote_probes_close(struct mote_probes *probes);
/* No program is to be loaded any more: gives up the ring buffer's descriptor. */
void mote_probes_started(struct mote_probes *probes);

/* NULL if the tier is not to be had here. */
struct mote_probes_iterator *mote_probes_iterator(struct mote_probes *probes);
struct mote_probes_lifecycle *mote_probes_lifecycle(struct mote_probes *probes);

/*
 * Why BPF could not be had, for a person: what `what` (an action) met was `err`, a negative errno;
 * `log` is what libbpf or the verifier said to it, or "". Names what is missing: capabilities, the
 * memlock limit, BTF, lockdown.
 */
void mote_probes_explain(char *text, size_t size, const char *what, int err, const char *log);

#endif
