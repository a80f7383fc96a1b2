/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cases: each runs in a process of its own, which keeps its sockets open when the calls are
 * over until moted's rows have been compared with the ledger. What moved is told by the calls'
 * return values alone.
 */
#ifndef MOTE_CONSERVE_CASES_H
#define MOTE_CONSERVE_CASES_H

#include <stdbool.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "ledger.h"

struct test_case {
	const char *name;
	void (*run)(int arg);
	int arg;
	bool bulk;           /* takes its share of the events; else it makes few calls */
	bool counts_sockets; /* calls ledger_make() for each socket that moted can see */
};

#define CASE(what, how, with)                               \
	{                                                   \
		.name = (what), .run = (how), .arg = (with) \
	}
#define BULK(what, how, with)                                             \
	{                                                                 \
		.name = (what), .run = (how), .arg = (with), .bulk = true \
	}

extern const struct test_case tcp_cases[], udp_cases[], uring_cases[], failing_cases[],
	lives_cases[], many_cases[], storm_cases[];

/* What the command line says. */
struct plan {
	unsigned long events; /* calls that a bulk case makes, about */
	unsigned int threads; /* 4 to 16 */
	unsigned long storm;  /* connections of a storm */
	unsigned long reads;  /* one-byte reads */
	unsigned int blocked; /* threads that wait in recv() */
	unsigned long idle;   /* sockets that do nothing */
};
extern struct plan plan;

/* Of a case, said to the process that judges it. need() ends the case if `ok` is false. */
void need(bool ok, const char *what);
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The calls so far are over: waits until they have been compared. */
void compare(void);

enum family { V4, V6, MAPPED, FAMILIES };

struct pair {
	int a, b; /* connected; UDP: a to b, which is bound */
	struct account *of_a, *of_b;
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* A loopback address as sockets of the family write it. Returns its length. */
socklen_t loopback(enum family family, uint16_t port, union address *out);
/* A listening TCP socket, and where a client finds it. */
int listen_on(enum family family, union address *at, socklen_t *len);
/*
 * A port that listened once and does not any more, but is held: a free one may be given to the very
 * socket that connects to it, which then talks to itself.
 */
int nobody_on(enum family family, union address *at, socklen_t *len);
void pair_tcp(enum family family, struct pair *pair);
void pair_udp(enum family family, struct pair *pair);
void pair_close(struct pair *pair);
/* recv() until `n` bytes came or it ends; accounts. */
size_t take_all(int fd, struct account *account, size_t n);
void nonblocking(int fd, bool on);
/* Writes `text` into a file of /proc; false: it cannot. */
bool put(const char *path, const char *text);

/* Runs `n` threads, and waits for them. */
void in_threads(unsigned int n, void *(*run)(void *), void *args, size_t stride);
/* Forks a process that runs `run` and then lives until the case ends; waits until it has run. */
void in_child(void (*run)(void *), void *arg);
/* The two halves of it: several may run at once. */
int begin_child(void (*run)(void *), void *arg);
void await_child(int child);

#define S(account, call) ledger_sent(account, call)
#define R(account, call) ledger_received(account, call)

#endif
