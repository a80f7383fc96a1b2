/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The inside of files*.c, for these files only. */
#ifndef MOTE_FILES_IMPL_H
#define MOTE_FILES_IMPL_H

#include "file.h"
#include "files.h"
#include "network_ended.h"
#include "slots.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* Of mote_access.flags_own. */
enum {
	OWN_EXCLUDED = 1, /* it has no row, and what it moves is in `other` */
	OWN_ASK = 2,      /* what its process is called is not known yet */
};

/* When rows last changed, by blocks of so many: who looks for what changed passes over others. */
#define BLOCK_SHIFT 6

/* A last row. */
struct files_ended {
	struct ended_record at;
	struct mote_access access;
	struct mote_path path;
};

/* A list of words of the configuration. */
#define FILTER_WORDS 90 /* of one letter each, in 180 bytes */
struct files_words {
	const char *word[FILTER_WORDS];
	uint16_t len[FILTER_WORDS];
	unsigned int n;
};

struct files_filter {
	struct files_words processes, excluded, included;
	bool any, by_path; /* of processes: some are paths */
};

struct files_ended_edge {
	struct ended_record at;
	struct mote_edge edge;
};

/* Edges; files_edges.c. slots NULL: there are none here. */
struct files_edges {
	struct mote_slots *slots;
	struct ended ended;
	struct mote_edge_bytes totals; /* of edges that ended */
	uint32_t hand;
};

enum { FILE_REAP, FILE_WALK };

struct mote_files {
	const struct mote_options *options;
	const struct mote_file_maps *maps;
	const struct mote_network_maps *network;
	struct mote_process *process;
	struct mote_slots *slots;
	struct files_edges edges;
	struct files_filter filter;
	uint64_t now; /* of the sample that is being taken, or was last */
	uint64_t patience;

	struct mote_moved sum;      /* all that rows have or had */
	struct mote_moved totals;   /* of rows that ended */
	struct mote_moved excluded; /* of slots that have no row */
	uint64_t rows;
	uint64_t *blocks;
	struct mote_fill threads; /* that were seen at a file */
	struct ended ended;
	struct mote_table *table;

	/* The chain. */
	struct mote_file file[MOTE_FILES_FILES];
	bool has_file[MOTE_FILES_FILES], pushed[MOTE_FILES_FILES];
	bool reap;        /* there is something to reap */
	uint64_t claims;  /* at the last mote_files_pace() */
	uint32_t checked; /* the slot at which the next look for ended processes begins */
	uint32_t hand;    /* and for slots that nobody uses */
};

/* files_fold.c */
extern const struct mote_slots_ops mote_files_ops;
void mote_moved_add(struct mote_moved *to, const struct mote_moved *from);
/* Ends slots of processes that are not in the newest sample, which was taken at `tasks`. */
void mote_files_end_dead(struct mote_files *files, uint64_t tasks);
/* Slots are becoming few. */
bool mote_files_crowded(const struct mote_files *files);
/* Ends slots that were not used for long, if slots are few. */
void mote_files_end_idle(struct mote_files *files);

/* files_edges.c */
int mote_files_edges_open(struct mote_files *files);
void mote_files_edges_close(struct mote_files *files);
/* Folds what is new, and ends what is over; before the grace. */
void mote_files_edges_sample(struct mote_files *files);

/* files_rows.c: pid, start, device, inode, generation */
void mote_files_pack_key(msgpack_packer *pk, uint32_t tgid, uint64_t start, uint32_t dev,
			 uint64_t ino, uint32_t generation);

/* files_filter.c */
void mote_files_filter_open(struct files_filter *filter, const struct mote_options *options);
/* Takes the verdict on a slot: whether it is to have a row. */
void mote_files_judge(struct mote_files *files, uint32_t slot);

/* The path as text, `size` at least 2 * MOTE_PATH_MAX; its length. */
unsigned int mote_files_path(const struct mote_path *path, char *text, unsigned int size);

#endif
