/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One try of a set of the file programs: opened, loaded, mapped and attached, as a whole or not at
 * all; which part it was that failed is said, so that it can be left out.
 */
#ifndef MOTE_PROBES_FILE_LOAD_H
#define MOTE_PROBES_FILE_LOAD_H

#include "probes_file.h"
#include "probes_kretprobe.h"
#include "probes_network_choice.h"

struct bpf_link;
struct bpf_object;

enum mote_file_program_id {
	MOTE_FILE_PERMISSION,
	MOTE_FILE_KERNEL_READ,
	MOTE_FILE_KERNEL_WRITE,
	MOTE_FILE_INTEGRITY,
	MOTE_FILE_COREDUMP,
	MOTE_FILE_VFS_COREDUMP,
	MOTE_FILE_ACCT,
	MOTE_FILE_COPY,
	MOTE_FILE_EXIT,
	MOTE_FILE_EXEC,
	MOTE_FILE_DO_SENDFILE,
	MOTE_FILE_DO_SPLICE,
	MOTE_FILE_DO_SPLICE_RET,
	MOTE_FILE_IO_READ,
	MOTE_FILE_IO_WRITE,
	MOTE_FILE_IO_COMPLETE,
	MOTE_FILE_KIOCB_DONE,
	MOTE_FILE_COMPLETE_RW,
	MOTE_FILE_AIO_READ,
	MOTE_FILE_AIO_WRITE,
	MOTE_FILE_AIO_COMPLETE,
	MOTE_FILE_WALK,
	MOTE_FILE_REAP_RUN,
	MOTE_FILE_PROGRAMS,
};

struct mote_file_program {
	const char *name; /* in all objects */
	enum mote_net_way way;
	const char *target; /* function, or CATEGORY/NAME of a tracepoint; "" for iterators */
	enum mote_file_event event;
	unsigned int since, before; /* versions, major << 8 | minor; before 0: no end */
	bool may_lack;              /* the kernel may do without it */
};

extern const struct mote_file_program mote_file_programs[MOTE_FILE_PROGRAMS];

struct mote_file_pick {
	enum mote_net_set set;
	bool event[MOTE_FILE_EVENTS];
	unsigned int without; /* bits: programs whose functions this kernel has not got */
};

/* Whether a pick has a program. */
bool mote_file_wants(const struct mote_file_pick *pick, unsigned int version, unsigned int program);

#define MOTE_FILE_MAPS 9

struct mote_file_load {
	struct bpf_object *object; /* NULL once it is settled */
	struct bpf_link *links[MOTE_FILE_PROGRAMS];
	struct mote_kretprobes kretprobes;
	void *map[MOTE_FILE_MAPS];
	size_t len[MOTE_FILE_MAPS];
	unsigned int nmaps;
	int shared[MOTE_FILE_SHARED]; /* descriptors, 0: none */
	int dirfd;
	struct mote_file_maps maps;
};

struct mote_file_failure {
	int program; /* enum mote_file_program_id; -1: none of them */
	int err;
	char reason[160];
};

/* 0, or a negative errno with `failure`; then nothing is left. Hooks count from here on. */
int mote_file_load(struct mote_file_load *load, const struct mote_probes_file_config *cfg,
		   const struct mote_file_pick *pick, struct mote_file_failure *failure);
void mote_file_unload(struct mote_file_load *load);

/* Whether the hooks see what a child does; false: `why` says what they did not. */
bool mote_file_check(const struct mote_file_maps *maps, const struct mote_options *options,
		     char *why, size_t size);

/* Names of the maps that the network's programs use, too. */
extern const char *const mote_file_shared_names[MOTE_FILE_SHARED];

/* The images are not read again. */
void mote_file_object_forget(void);

#endif
