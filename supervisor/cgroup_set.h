/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cgroups that mote knows: their names and places in the tree, which of them have a row, and
 * the rows. Rows and the index to them are the BPF program's memory where there is one. The source
 * of the stream `cgroup`.
 * Everything is allocated when it is made.
 */
#ifndef MOTE_CGROUP_SET_H
#define MOTE_CGROUP_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "cgroup_names.h"
#include "frame.h"
#include "options.h"
#include "parse_cgroup.h"
#include "table.h"

/* Longer paths are nil: a row must fit the smallest frame. */
#define MOTE_CGROUP_PATH 2048

/* A cgroup that has a name: all that are shown, those above them, and, as there is room, others. */
struct mote_cgroup_node {
	uint64_t id; /* 0: not in use, or ended */
	uint64_t parent_id;
	uint64_t born;   /* when it became known, ns; of one that ended: its id */
	uint32_t parent; /* node, or MOTE_CGROUP_NONE */
	uint32_t row;
	uint32_t name; /* handle */
	uint32_t level;
	uint32_t next; /* of the free ones, and of those that ended */
	bool shown;
};

struct mote_cgroup_ended {
	uint64_t id, time;
};

struct mote_cgroup_set {
	const struct mote_options *options;
	struct mote_cgroup_row *rows; /* `max` and one more, which is `other` */
	struct mote_cgroup_slot *index;
	bool own_memory; /* these two are ours */
	uint32_t max, mask;
	uint32_t *free_rows; /* that were given back; those from fresh_row on never had an owner */
	uint32_t nfree, fresh_row;
	struct mote_cgroup_node *nodes;
	uint32_t nnodes, free_node, fresh_node, used_nodes, peak_nodes;
	uint32_t dead_node, ndead; /* that ended, and still have their name */
	struct mote_cgroup_names names;
	uint64_t known;    /* in the index */
	uint64_t others;   /* of these without a row of their own, though it should be shown */
	uint64_t dropped;  /* cgroups that found no row, since start */
	uint64_t counted;  /* of those that are told of anew */
	uint64_t unplaced; /* of these in the last walk or listing: that are not even known */
	uint64_t peak;
	uint64_t absent; /* values that cannot be had here, bits */
	struct mote_cgroup_ended *ended;
	uint32_t ended_max, ended_at;
	uint64_t forgot;
	struct mote_cgroup_values totals;
	bool any_ended;
	struct mote_cgroup_values sum; /* of `other`, as far as it has come */
};

/* Entries of the walk's index for so many rows. */
uint32_t mote_cgroup_index_size(uint32_t rows);

/* `rows` and `index` are the program's memory, or NULL: own. 0 or -ENOMEM. */
int mote_cgroup_set_open(struct mote_cgroup_set *set, const struct mote_options *options,
			 struct mote_cgroup_row *rows, struct mote_cgroup_slot *index);
void mote_cgroup_set_close(struct mote_cgroup_set *set);
/*
 * Touches the memory of twice as many cgroups as there are, so that it need not be later. What is
 * beyond takes no memory until as many are there.
 */
void mote_cgroup_set_settle(struct mote_cgroup_set *set);
/* Nodes that it makes room for. */
uint32_t mote_cgroup_set_likely(const struct mote_cgroup_set *set);

/* NULL: it is not known. Valid until the next add or removal. */
struct mote_cgroup_slot *mote_cgroup_set_find(const struct mote_cgroup_set *set, uint64_t id);
/*
 * Makes it known, if it is not, and decides whether it is shown. `parent` 0: the root of the
 * hierarchy. False if its parent is not known, or there is no room for it.
 */
bool mote_cgroup_set_add(struct mote_cgroup_set *set, uint64_t id, uint64_t parent,
			 struct mote_text name, uint64_t seen, uint64_t now);
/* Its name is kept until mote_cgroup_set_bury(): events that tell of it need the path. */
void mote_cgroup_set_remove(struct mote_cgroup_set *set, uint64_t id, uint64_t now);
void mote_cgroup_set_bury(struct mote_cgroup_set *set);
/*
 * Rows that are free go to those in `other`. Those that have no name are forgotten if `nameless`:
 * the next walk or listing tells of them anew. True if there were any.
 */
bool mote_cgroup_set_reseat(struct mote_cgroup_set *set, bool nameless, uint64_t now);
/* How many a walk or a listing found that there is no room to know. */
void mote_cgroup_set_unplaced(struct mote_cgroup_set *set, uint64_t n);
/* Its node, or that which it had; MOTE_CGROUP_NONE: not known. */
uint32_t mote_cgroup_set_node(const struct mote_cgroup_set *set, uint64_t id);
/* Removes those that were not seen since `seen`, but for those that became known after `born`. */
void mote_cgroup_set_sweep(struct mote_cgroup_set *set, uint64_t seen, uint64_t born, uint64_t now);

/* Writes the node's path, without a NUL, and returns its length; 0 if it does not fit. */
uint32_t mote_cgroup_set_path(const struct mote_cgroup_set *set, uint32_t node, char *buf,
			      uint32_t size);
/* The same of one of that name below `parent`. */
uint32_t mote_cgroup_set_path_below(const struct mote_cgroup_set *set, uint32_t parent,
				    struct mote_text name, char *buf, uint32_t size);
/* Sets those of a row's values that are in `gives`. A value that is not present becomes absent. */
void mote_cgroup_row_take(struct mote_cgroup_row *row, uint64_t gives,
			  const struct mote_cgroup_values *values, uint64_t now);

/* Values that are settings: there is no sum of these. */
#define MOTE_CGROUP_LIMITS                                                  \
	(1ull << MOTE_CGROUP_CPU_WEIGHT | 1ull << MOTE_CGROUP_CPU_QUOTA |   \
	 1ull << MOTE_CGROUP_CPU_PERIOD | 1ull << MOTE_CGROUP_MEMORY_PEAK | \
	 1ull << MOTE_CGROUP_MEMORY_MAX | 1ull << MOTE_CGROUP_MEMORY_HIGH | \
	 1ull << MOTE_CGROUP_SWAP_MAX | 1ull << MOTE_CGROUP_PIDS_MAX | 1ull << MOTE_CGROUP_FROZEN)

/*
 * `other` is summed anew: clear, add to it, and end, which shows the sum; done: it is in the row
 * already. Its counters fall when one of those that it is the sum of ends or gets a row: it is all
 * that there is no room for now.
 */
void mote_cgroup_other_clear(struct mote_cgroup_set *set);
void mote_cgroup_other_add(struct mote_cgroup_set *set, uint64_t gives,
			   const struct mote_cgroup_values *values);
void mote_cgroup_other_end(struct mote_cgroup_set *set, uint64_t now);
void mote_cgroup_other_done(struct mote_cgroup_set *set, uint64_t now);

void mote_cgroup_set_fill(const struct mote_cgroup_set *set, struct mote_fill *fill);

/* The stream; ctx is the set. */
extern const struct mote_source_ops mote_cgroup_source;

#endif
