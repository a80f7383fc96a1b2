// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Sockets that were there before, that find no slot, and the self-check's own count. */
#include "exchange.h"

#include <unistd.h>

#include <bpf/bpf.h>

static struct pair old;
static int old_udp;

void before_load(void)
{
	struct sockaddr_storage to;
	socklen_t len;

	open_pair(&old, AF_INET, false);
	put(old.client, 1234);
	get(old.server, 234);
	old_udp = listen_on(SOCK_DGRAM, AF_INET, false, &to, &len);
}

void cases_of_seeds(void)
{
	struct mote_socket *s = of(old.client), *udp = of(old_udp);

	check(s && s->flags & MOTE_SOCKET_SEEDED && s->tgid == (u32)getpid() &&
		      s->accepted_base == s->accepted,
	      "a connection that was there has its owner");
	check(udp && udp->flags & MOTE_SOCKET_SEEDED && udp->tgid == (u32)getpid() &&
		      udp->local_port,
	      "and a UDP socket");
	check(ctl->seeded >= 4 && !ctl->seed_lost, "and each is counted");
	put(old.client, 100);
	get(old.server, 1100);
	check_moved("from then on", old.client, getpid(), 100, 0);
	check_moved("from then on", old.server, getpid(), 0, 1100);
	walk("net_tcp");
	s = of(old.server);
	check(s && s->taken - s->taken_base == 1100, "the kernel's count, too");
	close_pair(&old);
	close(old_udp);
}

/* Of this process's flows, and of what is nobody's. */
static struct mote_traffic total(void)
{
	struct mote_traffic t = { 0 };

	for (unsigned int i = 0; i < SLOTS; i++) {
		if (!flows[i].slot.key || MOTE_FLOW_TGID(flows[i].slot.key) != (u32)getpid())
			continue;
		t.sent += flows[i].traffic.sent;
		t.received += flows[i].traffic.received;
	}
	for (unsigned int i = 0; i < ncpus; i++) {
		t.sent += cpus[i].other[MOTE_TCP].sent;
		t.received += cpus[i].other[MOTE_TCP].received;
	}
	return t;
}

static void check_total(const char *what, const struct mote_traffic *before, u64 sent, u64 received)
{
	struct mote_traffic now = total();

	check(now.sent - before->sent == sent && now.received - before->received == received,
	      "%s: %llu sent, %llu received in all (%llu, %llu)", what, (unsigned long long)sent,
	      (unsigned long long)received, (unsigned long long)(now.sent - before->sent),
	      (unsigned long long)(now.received - before->received));
}

/*
 * Sockets that find no slot: what they move is counted all the same; by calls for the process, by
 * the lock at their end, or when they get a slot late.
 */
static void no_room(void)
{
	struct mote_traffic before = total();
	static u32 slots[SLOTS];
	u32 n = 0;
	struct pair ends, stays;
	struct mote_socket *s;

	while (n < SLOTS &&
	       !bpf_map_lookup_and_delete_elem(map_fd("net_socket_free"), NULL, &slots[n]))
		n++;
	open_pair(&ends, AF_INET, false);
	open_pair(&stays, AF_INET6, false);
	put(ends.client, 100);
	get(ends.server, 100);
	put(ends.server, 10);
	get(ends.client, 10);
	put(stays.client, 2000);
	get(stays.server, 2000);
	put(stays.server, 500);
	get(stays.client, 500);
	check(!of(stays.client) && !of(ends.server) && ctl->turned_away, "no room for sockets");
	close_pair(&ends);
	usleep(20000);
	for (u32 i = 0; i < n; i++)
		bpf_map_update_elem(map_fd("net_socket_free"), NULL, &slots[i], 0);
	put(stays.client, 7);
	get(stays.server, 7);
	s = of(stays.server);
	check(s && s->flags & MOTE_SOCKET_LATE && s->tgid == (u32)getpid() && s->taken == 2007,
	      "room again: a socket comes late");
	put(stays.client, 30);
	get(stays.server, 30);
	check(moved_by(s, getpid()).received == (set == TP ? 37 : 30),
	      "and counts from then on (%llu)", (unsigned long long)moved_by(s, getpid()).received);
	check_total("with and without slots", &before, 2647, 2647);
	close_pair(&stays);
}

static void self_check(void)
{
	struct pair p;

	ctl->check_tgid = (u32)getpid();
	open_pair(&p, AF_INET, false);
	put(p.client, 321);
	get(p.server, 321);
	ctl->check_tgid = 0;
	put(p.client, 1);
	check(ctl->check_sent[MOTE_TCP] == 321 && ctl->check_received[MOTE_TCP] == 321 &&
		      !ctl->check_sent[MOTE_UDP],
	      "the self-check's own count");
	close_pair(&p);
}

/* As if no program had seen its end: it is closed by nobody, and in the index. */
static bool forget_end(struct mote_socket *s)
{
	u64 key = s->slot.key, value = (u64)s->slot.gen << 32 | (u32)(s - sockets);

	s->closed = 0;
	return !bpf_map_update_elem(map_fd("net_socket_index"), &key, &value, BPF_NOEXIST);
}

/* The walk finds sockets that ended unseen, and no others. */
static void ended_unseen(void)
{
	struct sockaddr_storage to;
	socklen_t len;
	int lost = socket(AF_INET, SOCK_STREAM, 0);
	struct mote_socket *s, *stays;
	struct pair p, gone;
	u64 key;

	close(listen_on(SOCK_STREAM, AF_INET, false, &to, &len));
	if (!connect(lost, (struct sockaddr *)&to, len))
		die("connect to nobody");
	open_pair(&p, AF_INET, false);
	open_pair(&gone, AF_INET, false);
	put(gone.client, 5);
	get(gone.server, 5);
	stays = of(lost);
	s = of(gone.server);
	key = s ? s->slot.key : 0;
	close_pair(&gone);
	check_closed(s, key, "a socket");
	check(s && forget_end(s), "and nobody saw it");
	walk("net_tcp");
	check(s && s->closed && !in_index(key), "the walk finds it");
	check(stays && !stays->closed && of(lost) == stays, "one that lost its connection stays");
	check(of(p.client) && of(p.server) && of(p.listener), "and so do others");
	close(lost);
	close_pair(&p);
}

/* A slot of UDP that nobody closed, at the address of a TCP socket. */
static void memory_of_udp(void)
{
	struct mote_socket *s;
	struct pair p;

	open_pair(&p, AF_INET, false);
	s = of(p.client);
	if (s)
		s->protocol = MOTE_UDP;
	put(p.client, 10);
	check(s && s->closed && of(p.client) && of(p.client)->protocol == MOTE_TCP,
	      "a dead UDP socket's slot is not TCP's");
	check_moved("and what it moves counts", p.client, getpid(), 10, 0);
	close_pair(&p);
}

void cases_of_room(void)
{
	ended_unseen();
	memory_of_udp();
	self_check();
	no_room();
}
