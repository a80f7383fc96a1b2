/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * net_programs tp|kprobe|fentry: loads bpf/net.bpf.c by itself, with that kind of hooks, and looks
 * into its maps after exchanges whose bytes are known: what each socket and process moved, owners,
 * addresses, the kernel's own counts, and that what is closed leaves the index. TAP.
 */
#ifndef MOTE_TEST_EXCHANGE_H
#define MOTE_TEST_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "abi.h"

#define SLOTS 32768 /* others of this machine take some, too */

enum set { TP, KPROBE, FENTRY };

/* load.c: the programs, and what they write to */
extern enum set set;
extern struct mote_socket *sockets;
extern struct mote_flow *flows;
extern struct mote_slot_cpu *cpus;
extern struct mote_net_ctl *ctl;
extern unsigned int ncpus;

void see_tracefs(void);
void load(void);
void hear_states(bool on);
int map_fd(const char *name);
void walk(const char *iterator);

/* look.c: what they know */
extern unsigned int tests, failures;

void check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
void die(const char *what) __attribute__((noreturn));
u64 inode_of(int fd);
struct mote_socket *of(int fd);
struct mote_socket *by_inode(u64 inode);
struct mote_traffic moved_by(const struct mote_socket *s, pid_t pid);
bool in_index(u64 key);
struct mote_socket *by_key(u64 key);
void check_closed(const struct mote_socket *s, u64 key, const char *what);
void check_moved(const char *what, int fd, pid_t pid, u64 sent, u64 received);
void check_truth(const char *what, int fd, s64 accepted, s64 taken);
u64 inside(void);

/* sockets.c */
struct pair {
	int listener, client, server;
	struct sockaddr_storage to;
	socklen_t len;
};

extern char data[1 << 16];

void address(struct sockaddr_storage *to, socklen_t *len, int family, bool mapped);
int listen_on(int type, int family, bool mapped, struct sockaddr_storage *to, socklen_t *len);
void open_pair(struct pair *p, int family, bool mapped);
void close_pair(struct pair *p);
void put(int fd, size_t n);
void get(int fd, size_t n);
void end_of(int fd);

/* The exchanges. */
void before_load(void);
void cases_of_seeds(void);
void cases_of_tcp(void);
void tcp_ends(void);
void tcp_exchange(const char *what, int family, bool mapped);
void tcp_late_look(void);
void cases_of_lost(void);
void cases_of_sharing(void);
void cases_of_udp(void);
void cases_of_room(void);
void cases_of_events(void);

#endif
