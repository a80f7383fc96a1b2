/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is done with files, and what it must come to: by return values alone. An account is one file
 * and the process that used it.
 */
#ifndef MOTE_FILES_ACTOR_H
#define MOTE_FILES_ACTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

struct account {
	char name[64], path[512];
	char flags[32]; /* path_flags that the row must have */
	uint64_t pid, start, ino;
	uint64_t read, written, reads, writes; /* added to by atomic adds */
	bool calls;                            /* reads and writes are known, too */
	bool hidden;                           /* no bytes of it may be seen */
};

#define ACCOUNTS_MAX 256

/* In memory that all processes of the test share. */
struct book {
	struct account account[ACCOUNTS_MAX];
	unsigned int n;
	bool no_splice, no_uring, no_aio;
};

extern struct book *book;

static inline void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(3);
}

/* Of the calling process, for a file that is open. */
struct account *account_of(const char *name, int fd, const char *path);
/* Count a call's return value, and give it back. */
ssize_t took(struct account *account, ssize_t ret);
ssize_t gave(struct account *account, ssize_t ret);

/* The process's start, in ticks. */
uint64_t process_start(void);

/* Do all of it in `folder`, whose file system is called `where`. */
void act_calls(const char *folder, const char *where);
void act_uring(const char *folder, const char *where);
void act_aio(const char *folder, const char *where);
void act_processes(const char *folder, const char *where);
void act_paths(const char *folder, const char *where);
/* `threads` at a time, with `rounds` calls each, on files that they share. */
void act_storm(const char *folder, const char *where, unsigned int threads, unsigned int rounds);

/* A file with `size` bytes in it, made by a process of its own. */
int open_new(const char *folder, const char *name, size_t size, int flags, char path[512]);

#endif
