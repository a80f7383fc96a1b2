/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What cgroup_files.c, which says what is read next, _round.c and _take.c share. */
#ifndef MOTE_CGROUP_FILES_IMPL_H
#define MOTE_CGROUP_FILES_IMPL_H

#include "cgroup_files.h"

#define MOTE_CGROUP_JOBS    512
#define MOTE_CGROUP_TEXT    (512 * 1024)
#define MOTE_CGROUP_PATHS   (64 * 1024)
#define MOTE_CGROUP_HOT_MAX 6
#define MOTE_CGROUP_LAG     2 /* samples: what is left over is not put off for longer */

/* What a job has to do in the next round. */
enum mote_cgroup_stage {
	MOTE_CGROUP_FREE,
	MOTE_CGROUP_DIRECT, /* all: open, read and close, by a slot */
	MOTE_CGROUP_OPEN,   /* the open alone */
	MOTE_CGROUP_READ,   /* and the close, if the file is not kept open */
	MOTE_CGROUP_CLOSE,
};

/* One file of one cgroup. */
struct mote_cgroup_job {
	enum mote_cgroup_stage stage;
	bool flying; /* its operations are under way */
	bool pooled; /* `fd` is the pool's */
	bool keep;   /* the pool is to have it */
	bool full;   /* its last read found no end */
	uint16_t reads;
	uint32_t node, file;
	uint32_t since; /* the sample that it began in */
	uint64_t id;    /* of the node's cgroup, which may be another by then */
	int fd, opened, kept;
	int res;         /* of its last read, or of the first that failed */
	uint32_t len;    /* bytes of each read */
	uint64_t lines;  /* that were counted */
	uint64_t expect; /* and that are to be expected */
	char *text;
};

/* Descriptors of a node, for the files that are read each time. */
struct mote_cgroup_pool {
	uint64_t id;
	int fd1[MOTE_CGROUP_HOT_MAX]; /* and 1; 0: not open */
};

struct mote_cgroup_cursor {
	uint32_t node, file; /* the next to look at; node at the end of all: done */
	uint32_t missing;    /* of the node's files; bits */
};

struct mote_cgroup_files {
	struct mote_cgroup_files_config config;
	const struct mote_cgroup_file *table;
	unsigned int n;
	uint32_t bytes[MOTE_CGROUP_FILES_MAX]; /* most that a file of this kind had, and room */
	struct mote_cgroup_pool *pool;         /* by node; NULL: none */
	unsigned int pooled, pool_max;
	unsigned int hot; /* the first files are those that are read each time */
	unsigned int njobs;
	uint64_t now;     /* of the sample */
	uint64_t planned; /* the same, as it was known when the sample began */
	unsigned int at_a_time;
	struct mote_cgroup_cursor read, slow; /* those that are read each time; now and then */
	uint32_t sample, slow_since;          /* number of the sample; in which `slow` began */
	bool ahead;             /* what is read now and then may be left to the samples after */
	bool all_slow;          /* all have their turn, whether they moved or not */
	bool fresh;             /* `read` looks at those only that became known in this sample */
	unsigned int slow_left; /* nodes whose slow files may still be read in this sample */
	uint64_t last_slow;
	uint32_t text_used, path_used;
	uint32_t text_room, path_room; /* how much of them is used */
	struct mote_cgroup_files_stats stats;
	struct mote_cgroup_job jobs[MOTE_CGROUP_JOBS];
	char text[MOTE_CGROUP_TEXT];
	char paths[MOTE_CGROUP_PATHS];
};

/* A job's operations in a round; the reads are several of a list. */
#define MOTE_CGROUP_READS_MAX 64
enum {
	MOTE_CGROUP_STEP_OPEN,
	MOTE_CGROUP_STEP_KEEP,
	MOTE_CGROUP_STEP_CLOSE,
	MOTE_CGROUP_STEP_READ,
	MOTE_CGROUP_STEPS = MOTE_CGROUP_STEP_READ + MOTE_CGROUP_READS_MAX
};

/* What is summed in `other` of one whose row is not its own. */
static inline uint64_t mote_cgroup_files_summed(const struct mote_cgroup_set *set, uint32_t row)
{
	return row == set->max ? ~0ull : MOTE_CGROUP_LOCAL;
}

/* The next file that is to be read; false: none. */
bool mote_cgroup_files_next(struct mote_cgroup_files *files, uint32_t *node, uint32_t *file);
/* What the cgroup had done when its slow files were read: what they say is of this moment. */
void mote_cgroup_files_remember(struct mote_cgroup_row *row);
/* Whether there are files that this sample cannot be without, beside those of jobs. */
bool mote_cgroup_files_owes(struct mote_cgroup_files *files);
/* The node's descriptors, or NULL: those of whom had the node before are closed first. */
struct mote_cgroup_pool *mote_cgroup_files_pool(struct mote_cgroup_files *files, uint32_t node);
/* A job's file is not for the pool any more, or has left it; what it has open is to be closed. */
void mote_cgroup_files_let_go(struct mote_cgroup_files *files, struct mote_cgroup_job *job);
/* Looks at what the round that is over brought. */
void mote_cgroup_files_take(struct mote_cgroup_files *files);

#endif
