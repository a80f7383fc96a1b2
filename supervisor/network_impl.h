/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The inside of network*.c, for these files only. */
#ifndef MOTE_NETWORK_IMPL_H
#define MOTE_NETWORK_IMPL_H

#include "file.h"
#include "network.h"
#include "network_ended.h"
#include "slots.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* Of mote_socket.flags_own. */
enum {
	OWN_CLOSED = 1, /* it has ended, and its flows with it */
};

/*
 * When rows last changed, by blocks of 64: who looks for what changed passes over blocks that did
 * not. A row whose `changed` is 0 is not in use.
 */
#define BLOCK_SHIFT 6
#define BLOCK_ROWS  (1u << BLOCK_SHIFT)

struct blocks {
	uint64_t *changed;
	uint32_t rows;
};
int mote_blocks_new(struct blocks *blocks, uint32_t rows);
static inline void blocks_changed(const struct blocks *blocks, uint32_t row, uint64_t now)
{
	blocks->changed[row >> BLOCK_SHIFT] = now;
}
/* The first row from `row` on whose block changed after `since`; `rows` if there is none. */
uint32_t mote_blocks_next(const struct blocks *blocks, uint32_t row, uint64_t since);

/* Last rows. */
struct mote_network_ended_socket {
	struct ended_record at;
	uint64_t id;
	struct mote_socket socket;
};

struct mote_network_ended_flow {
	struct ended_record at;
	uint64_t key, start;
	struct mote_traffic traffic;
	uint32_t protocol, pad;
};

struct mote_network_ended_process {
	struct ended_record at;
	uint64_t start;
	struct mote_traffic traffic[MOTE_PROTOCOLS];
	uint32_t pid, pad;
};

enum network_process_state {
	PROCESS_FREE = 0,
	PROCESS_FRESH, /* no sample of processes was taken since it was first seen */
	PROCESS_ALIVE,
	PROCESS_DEAD, /* it leaves the table with its last flow */
};

/* A process that moved bytes, by (pid, start); network_process.c. Indices are plus 1, 0: none. */
struct network_process {
	uint64_t start;   /* ns; 0: the kernel */
	uint64_t changed; /* as in mote_flow */
	uint64_t since;   /* sample time at which it was made */
	struct mote_traffic traffic[MOTE_PROTOCOLS];
	uint32_t pid : 24, state : 8;
	uint32_t next;  /* of the same hash, or of the free ones */
	uint32_t fresh; /* the next fresh one */
	uint32_t flows; /* the first of its flows */
};

struct network_processes {
	struct network_process *at;
	uint32_t *heads;
	uint32_t mask, size;
	uint32_t free, fresh;
	uint64_t fill, peak, dropped;
	uint64_t made;   /* cumulative */
	uint64_t cursor; /* of mote_process_next_ended() */
	bool reborn;     /* a process came back that had ended */
	struct blocks blocks;
	struct ended ended;
	struct mote_traffic totals[MOTE_PROTOCOLS]; /* of those that ended or found no room */
};

/* A read of the tick's chain that is not a mote_file: what the kernel knows of a program. */
#define FDINFO_BYTES 512
struct network_miss {
	int fd, res;
	char text[FDINFO_BYTES];
};

/* Likewise kprobe_profile, which has the probes of everybody, a line each. */
#define PROFILE_BYTES 4096
struct network_profile {
	int fd, res; /* fd -1: there is none */
	char text[PROFILE_BYTES];
};

enum { FILE_REAP, FILE_TCP, FILE_UDP, NETWORK_FILES };

struct mote_network {
	const struct mote_options *options;
	const struct mote_network_maps *maps;
	struct mote_process *process;
	struct mote_slots *sockets, *flows;
	uint64_t now; /* of the sample that is being taken, or was last */

	/* The streams. */
	struct blocks socket_blocks, flow_blocks;
	struct ended ended_sockets, ended_flows;
	struct mote_traffic socket_totals, flow_totals; /* of rows that ended */
	uint64_t retransmitted_totals;
	uint32_t closed; /* sockets that closed in this sample, slot + 1 */
	struct network_processes processes;
	uint64_t patience; /* ns until a process that no sample has is taken to have ended */

	/* By protocol: all that flows had, and all sockets. */
	struct {
		struct mote_traffic traffic;
		uint64_t sockets, opened, closed;
	} sum[MOTE_PROTOCOLS];
	int64_t unattributed_sent, unattributed_received;
	uint64_t retransmitted;
	struct mote_table *table;

	/* The chain. */
	struct mote_file file[NETWORK_FILES];
	bool has_file[NETWORK_FILES], pushed[NETWORK_FILES];
	bool reap;                                 /* there is something to reap */
	uint64_t read[NETWORK_FILES], misses_read; /* when they were last pushed */
	struct network_miss *programs;
	unsigned int nprograms;
	struct network_profile *profile;
	bool misses_pushed, has_misses;
	uint64_t misses;
	uint64_t claims, made; /* slots and processes, at the last mote_network_pace() */
};

/* network_fold.c */
extern const struct mote_slots_ops mote_network_socket_ops, mote_network_flow_ops;
/* After both scans: what closed in this sample ends, with its flows. */
void mote_network_end_closed(struct mote_network *network);
void mote_traffic_add(struct mote_traffic *to, const struct mote_traffic *from);
bool mote_traffic_any(const struct mote_traffic *traffic);
uint64_t mote_network_socket_id(const struct mote_network *network, uint32_t slot);

/* network_process.c */
int mote_network_processes_new(struct mote_network *network);
void mote_network_processes_free(struct mote_network *network);
#define MOTE_NO_PROCESS UINT32_MAX
/* Links a new flow to its process; MOTE_NO_PROCESS: there is no room, the totals get its bytes. */
void mote_network_process_join(struct mote_network *network, uint32_t slot);
/* Tries again, for one that found no room; true: it has a process now, for what is still to come.
 */
bool mote_network_process_rejoin(struct mote_network *network, uint32_t slot);
void mote_network_process_add(struct mote_network *network, const struct mote_flow *flow,
			      const struct mote_traffic *more);
/* Whether the process of a flow is known to have ended. */
bool mote_network_process_ended(const struct mote_network *network, const struct mote_flow *flow);
void mote_network_process_leave(struct mote_network *network, uint32_t slot);
/* Looks who ended: `tasks` is when the newest sample of processes was taken. */
void mote_network_processes_settle(struct mote_network *network, uint64_t tasks);

/* network_misses.c */
int mote_network_misses_open(struct mote_network *network);
void mote_network_misses_close(struct mote_network *network);
unsigned int mote_network_misses_push(struct mote_network *network, struct mote_engine *engine,
				      uint32_t index, uint64_t time, bool watched);
void mote_network_misses_complete(struct mote_network *network, uint32_t program, int res);
void mote_network_misses_take(struct mote_network *network);

#endif
