/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A part of abi.h: what the file programs and the supervisor share. */
#ifndef MOTE_ABI_FILE_H
#define MOTE_ABI_FILE_H

#include "abi.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/* Cumulative; bytes are what calls returned. */
struct mote_moved {
	u64 read, written; /* bytes */
	u64 reads, writes; /* calls, as the kernel counts them: those that returned nothing, too */
};

/*
 * What one process moved from and to one file. What is known for certain is in `moved`: a thread's
 * bytes get there when it turns to another file, or ends. What living threads have beyond that, the
 * walk of the threads (`file_walk`) finds: `settled` + `pending` is never above the truth, nor is
 * `moved`, and the larger of both is shown.
 */
struct mote_access {
	struct mote_slot slot; /* key: a hash of the five below, which tell */
	u32 tgid;              /* 0: the kernel */
	u32 dev;               /* as the kernel has it: major << 20 | minor */
	u64 start;             /* start_boottime of the process, ns; 0: the kernel */
	u64 ino;
	u32 generation; /* of the inode: a number is used again when a file was deleted */
	u32 pad0;
	char comm[MOTE_COMM_LEN]; /* of the process when the slot was claimed */
	struct mote_moved moved;

	/* The walk's only. */
	struct mote_moved settled; /* `moved` when the walk came to the first of the threads */
	struct mote_moved pending;
	u64 walk; /* the walk that these two are of */

	/* User space's own; BPF never writes below. */
	struct mote_moved seen; /* what has been added up */
	u64 changed;            /* sample time at which a value last changed; 0: no row */
	u64 touched;            /* and at which a thread was at it */
	u32 state;              /* of slots.c */
	u32 flags_own;
};

/* Tables of slots of the file programs: struct mote_slot_cpu counts by these. */
enum mote_file_table {
	MOTE_FILE_ACCESSES = 0,
	MOTE_FILE_EDGES = 1,
	MOTE_FILE_TABLES = 2,
};

enum mote_edge_kind {
	MOTE_EDGE_SENDFILE = 1, /* for certain: sendfile() */
	MOTE_EDGE_SPLICE = 3,   /* for certain: splice() through a pipe */
	MOTE_EDGE_CREDIT = 2,   /* read and then sent, or received and then written, by a thread */
};

struct mote_edge_bytes {
	u64 sent, received; /* bytes of the file over the socket, and of the socket into the file */
	u64 sends, receives; /* parts in which they went */
};

/* Bytes that a process moved between a file and a socket. */
struct mote_edge {
	struct mote_slot slot; /* key: a hash of the rest, which tells */
	u64 socket;            /* MOTE_SOCKET_ID, or MOTE_NO_SOCKET */
	u64 start, ino;        /* as in struct mote_access, and the three below */
	u32 tgid, dev, generation;
	u32 kind; /* MOTE_EDGE_* */
	u64 sent, received, sends, receives;

	/* User space's own; BPF never writes below. */
	struct mote_edge_bytes seen;
	u64 changed, touched; /* as in struct mote_access */
	u32 state;            /* of slots.c */
	u32 pad0;
};

#define MOTE_PATH_MAX 256

enum mote_path_flags {
	MOTE_PATH_CUT = 1,      /* its beginning is missing */
	MOTE_PATH_DELETED = 2,  /* the file was deleted or replaced when it was first used */
	MOTE_PATH_DETACHED = 4, /* not below any root: its mount is gone */
};

/* As in struct mote_ident: names from the file up to the process's root, each with its NUL. */
struct mote_path {
	u32 len, flags;
	char names[MOTE_PATH_MAX];
};

/* Keys of a process, and of a process and a file (process 0: of a file); never 0. */
static inline __attribute__((always_inline)) u64 mote_mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static inline __attribute__((always_inline)) u64 mote_process_key(u32 tgid, u64 start)
{
	return mote_mix(mote_mix(0xc2b2ae3d27d4eb4full, start), tgid) | 1;
}

static inline __attribute__((always_inline)) u64 mote_access_key(u64 process, u32 dev, u64 ino,
								 u32 generation)
{
	return mote_mix(mote_mix(process, (u64)dev << 32 | generation), ino) | 1;
}

/*
 * What user space has decided on: keys of files and processes that get no slot. A key has one
 * place (MOTE_VERDICT_AT); one that was written over is decided on again.
 */
#define MOTE_VERDICTS        1024 /* a power of two */
#define MOTE_VERDICT_AT(key) ((u32)((key) >> 54))

struct mote_file_verdicts {
	u64 key[MOTE_VERDICTS];
};

/* The array map `file_ctl`, one value. */
struct mote_file_ctl {
	u64 walk, walked; /* walks of threads begun, and the last that came to its end */
	u64 no_thread;    /* calls of threads that found no room: what they move is not seen */
	u64 threads;      /* entries in file_threads */
	u64 edge_threads; /* so many, and who only receives gets none; written by user space */
	u64 no_request;   /* io_uring requests likewise */
	u64 collided;     /* accesses that another's key stood in the way of: in `other` */
	u64 late;         /* threads whose slot was gone when they settled: in `other` */
};

#pragma GCC diagnostic pop

_Static_assert(sizeof(struct mote_access) == 224, "mote_access");
_Static_assert(sizeof(struct mote_path) == 264, "mote_path");
_Static_assert(sizeof(struct mote_edge) == 144, "mote_edge");
#endif
