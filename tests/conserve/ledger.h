/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the calls of the test's own processes returned, by process and socket: what moted must show.
 * The ledger is in memory that all of them share. An account is written by the threads of one
 * process, and counts what has been returned to it, never what was asked for.
 */
#ifndef MOTE_CONSERVE_LEDGER_H
#define MOTE_CONSERVE_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct account {
	pid_t pid;
	uint64_t start; /* of the process, ticks since boot */
	uint64_t inode; /* of the socket; 0: sockets that are not looked at one by one */
	bool tcp;       /* else UDP */
	atomic_bool open;
	uint16_t local_port; /* when the account was made, host order: to say which it is */
	const char *what;    /* the case's name */
	_Atomic uint64_t sent, received;
	_Atomic uint64_t sent_calls, received_calls; /* that moved bytes */
	/* Of these bytes: by a kind of call that some sets of hooks cannot attribute. */
	_Atomic uint64_t unseen_sent, unseen_received;
};

struct sums {
	uint64_t sent, received;
};

int ledger_create(unsigned int accounts);
/* Accounts that are made from now on belong to the case `what`, a literal. */
void ledger_case(const char *what);

/* This process's account of the socket `fd`, made at the first call. Ends the process if it cannot.
 */
struct account *ledger_open(int fd);
/* This process's account of sockets that come and go. */
struct account *ledger_rest(bool tcp);
/* Closes `fd`. The socket is over for every process: its row may be gone. */
void ledger_close(int fd);
/* The same for a descriptor of a socket that others have still open. */
void ledger_forget(int fd);

/* Both give back `n`, what the call returned; only a positive one counts. */
ssize_t ledger_sent(struct account *account, ssize_t n);
ssize_t ledger_received(struct account *account, ssize_t n);
ssize_t ledger_received_unseen(struct account *account, ssize_t n);

/* Sockets that moted can see: that connected, listened, were accepted, or moved a datagram. */
void ledger_make(bool tcp, unsigned int n);
uint64_t ledger_made(bool tcp);

unsigned int ledger_accounts(void);
struct account *ledger_account(unsigned int i);
/* What is expected of an account; sums of the accounts from `first` on, pid 0: of all processes; of
 * a socket. Without the unseen bytes if ledger_expect_unseen(false) was called. */
void ledger_expect_unseen(bool seen);
struct sums ledger_expected(const struct account *account);
struct sums ledger_sums(unsigned int first, pid_t pid, bool tcp);
struct sums ledger_socket(uint64_t inode);
/* The unseen bytes of a socket (0: of all) that are not expected elsewhere. */
struct sums ledger_unattributed(uint64_t inode);

/* Start of a process, ticks since boot, from /proc; 0: there is none. */
uint64_t process_start(pid_t pid);

#endif
