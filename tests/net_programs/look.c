// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What the programs know of a socket, and what they should. */
#include "exchange.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

unsigned int tests, failures;

void check(bool ok, const char *format, ...)
{
	va_list args;

	printf("%sok %u - ", ok ? "" : "not ", ++tests);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	failures += !ok;
}

void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

u64 inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

/* NULL: none, or it has been closed. */
struct mote_socket *by_inode(u64 inode)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (sockets[i].slot.key && !sockets[i].closed && sockets[i].inode == inode)
			return &sockets[i];
	return NULL;
}

struct mote_socket *of(int fd)
{
	return by_inode(inode_of(fd));
}

static u64 id_of(const struct mote_socket *s)
{
	return MOTE_SOCKET_ID((u32)(s - sockets), s->slot.gen);
}

struct mote_traffic moved_by(const struct mote_socket *s, pid_t pid)
{
	for (unsigned int i = 0; s && i < SLOTS; i++)
		if (flows[i].slot.key == MOTE_FLOW_KEY(id_of(s), (u64)pid))
			return flows[i].traffic;
	return (struct mote_traffic){ 0 };
}

bool in_index(u64 key)
{
	u64 value;

	return !bpf_map_lookup_elem(map_fd("net_socket_index"), &key, &value);
}

/* By the kernel's address; NULL: none is in the index. */
struct mote_socket *by_key(u64 key)
{
	u64 value;

	return bpf_map_lookup_elem(map_fd("net_socket_index"), &key, &value)
		       ? NULL
		       : &sockets[(u32)value % SLOTS];
}

/*
 * Within 5 s: sockets are destroyed after a grace period of RCU, or where no probe tells of it,
 * missed by a walk.
 */
void check_closed(const struct mote_socket *s, u64 key, const char *what)
{
	bool closed = false;

	for (int i = 0; s && !closed && i < 500; i++) {
		usleep(10000);
		if (set == TP)
			walk("net_udp");
		closed = s->closed && s->closed >= s->opened && !in_index(key);
	}
	check(closed, "%s: closed, and out of the index", what);
}

void check_moved(const char *what, int fd, pid_t pid, u64 sent, u64 received)
{
	struct mote_socket *s = of(fd);
	struct mote_traffic t = moved_by(s, pid);

	check(s && t.sent == sent && t.received == received,
	      "%s: %llu sent, %llu received (%llu, %llu seen%s)", what, (unsigned long long)sent,
	      (unsigned long long)received, (unsigned long long)t.sent,
	      (unsigned long long)t.received, s ? "" : ", no socket");
}

/* The kernel's own counts, less what it had when mote came. */
void check_truth(const char *what, int fd, s64 accepted, s64 taken)
{
	struct mote_socket *s;

	walk("net_tcp");
	s = of(fd);
	check(s && s->flags & MOTE_SOCKET_TRUTH && (s64)s->accepted == accepted &&
		      (s64)s->taken == taken,
	      "%s: accepted %lld, taken %lld (%lld, %lld)", what, (long long)accepted,
	      (long long)taken, s ? (long long)s->accepted : -1, s ? (long long)s->taken : -1);
}

u64 inside(void)
{
	u64 n = 0;

	for (unsigned int i = 0; i < ncpus; i++)
		n += cpus[i].enter - cpus[i].exit;
	return n;
}
