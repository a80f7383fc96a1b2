// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * network_probes [SET]: the choice of network hooks on this kernel, tried in every way that options
 * allow: bytes of a TCP and a UDP exchange are seen exactly wherever a hook is announced; what is
 * off loads nothing; a hook that is broken behind its back is found by the self-check; nothing is
 * left when it closes. SET: what `auto` must choose here, and only what is about the kernel is
 * tested. Prints TAP. Needs root; runs as well in an initramfs.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "privilege.h"
#include "probes_mount.h"
#include "probes_network.h"
#include "probes_network_impl.h"
#include "tap.h"

/* Of a self-check, on a machine that does little else. */
#define CHECK_MS_MAX 20

static struct mote_features features;
static double limit_ms = 20.0 * CHECK_MS_MAX; /* other tests run beside this one */

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static unsigned int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* One open object with its options and tiers. */
struct fixture {
	struct mote_options options;
	struct mote_tiers tiers;
	struct mote_probes_network *network;
	const struct mote_network_maps *maps;
	double ms; /* that it took to open */
};

static void begin(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	mote_options_default(&f->options);
}

static bool start(struct fixture *f)
{
	const struct mote_probes_network_config cfg = {
		.options = &f->options,
		.features = &features,
		.uid = (uid_t)-1,
		.gid = (gid_t)-1,
		.events = -1,
	};
	double from = now_ms();

	if (mote_probes_network_open(&cfg, &f->tiers, &f->network))
		return false;
	f->ms = now_ms() - from;
	f->maps = mote_probes_network_maps(f->network);
	for (unsigned int i = 0; i < f->tiers.n; i++)
		printf("# %s: %s: %s\n", f->tiers.tier[i].name, f->tiers.tier[i].choice,
		       f->tiers.tier[i].reason);
	return true;
}

static const char *choice(const struct fixture *f, const char *tier)
{
	const struct mote_tier *t = mote_tiers_find(&f->tiers, tier);

	return t ? t->choice : "";
}

static const char *reason(const struct fixture *f, const char *tier)
{
	const struct mote_tier *t = mote_tiers_find(&f->tiers, tier);

	return t ? t->reason : "";
}

static int loopback(int family, int type, struct sockaddr_in6 *address)
{
	const struct timeval limit = { .tv_sec = 5 };
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	socklen_t len = sizeof(*address);
	int fd = socket(family, type, 0);

	memset(address, 0, sizeof(*address));
	address->sin6_family = (sa_family_t)family;
	if (family == AF_INET6)
		address->sin6_addr = in6addr_loopback;
	else
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (fd < 0 || bind(fd, (struct sockaddr *)address, len) ||
	    getsockname(fd, (struct sockaddr *)address, &len))
		return -1;
	return fd;
}

/* `n` messages of `size` bytes; bytes received. */
static size_t exchange(int family, int type, unsigned int n, size_t size)
{
	struct sockaddr_in6 at, from;
	int to = loopback(family, type, &at), client = loopback(family, type, &from), peer = to;
	size_t total = 0;
	char buf[4096] = "";
	ssize_t got;

	if (to < 0 || client < 0)
		return 0;
	if (type == SOCK_STREAM && listen(to, 1))
		return 0;
	if (connect(client, (struct sockaddr *)&at, sizeof(at)))
		return 0;
	if (type == SOCK_STREAM)
		peer = accept(to, NULL, NULL);
	for (unsigned int i = 0; i < n; i++) {
		if (send(client, buf, size, 0) != (ssize_t)size)
			return 0;
		recv(peer, buf, sizeof(buf), MSG_PEEK);
		for (size_t left = size; left; left -= (size_t)got) {
			got = recv(peer, buf, left, 0);
			if (got <= 0)
				return total;
			total += (size_t)got;
		}
	}
	close(client);
	close(to);
	if (peer != to)
		close(peer);
	return total;
}

/* What the flows of a process say. */
static struct mote_traffic flows_of(const struct fixture *f, enum mote_protocol protocol)
{
	struct mote_traffic sum = { 0 };

	for (uint32_t i = 0; i < f->maps->nflows; i++) {
		const struct mote_flow *flow = &f->maps->flows[i];

		if (MOTE_FLOW_TGID(flow->slot.key) != (uint32_t)getpid() ||
		    flow->protocol != protocol || !flow->slot.key)
			continue;
		sum.sent += flow->traffic.sent;
		sum.received += flow->traffic.received;
	}
	return sum;
}

static struct mote_traffic since(struct mote_traffic now, struct mote_traffic before)
{
	now.sent -= before.sent;
	now.received -= before.received;
	return now;
}

/* Each hook that is announced must see just what was moved; one that is not, nothing. */
static void moves(const struct fixture *f, int family, const char *what)
{
	struct mote_traffic tcp0 = flows_of(f, MOTE_TCP), udp0 = flows_of(f, MOTE_UDP), t, u;
	size_t tcp = exchange(family, SOCK_STREAM, 7, 1001);
	size_t udp = exchange(family, SOCK_DGRAM, 5, 503);
	const bool *has = f->maps->has;

	t = since(flows_of(f, MOTE_TCP), tcp0);
	u = since(flows_of(f, MOTE_UDP), udp0);
	if (!tcp && !udp) {
		tap(family == AF_INET6, "%s: IPv6 is not to be had here", what);
		return;
	}
	tap(tcp == 7007 && udp == 2515, "%s: bytes go over loopback: %zu %zu", what, tcp, udp);
	tap(t.sent == (has[MOTE_NET_TCP] ? tcp : 0) && t.received == (has[MOTE_NET_TCP] ? tcp : 0),
	    "%s: TCP: %zu bytes, seen %llu sent, %llu received", what, tcp,
	    (unsigned long long)t.sent, (unsigned long long)t.received);
	tap(u.sent == (has[MOTE_NET_UDP_SEND] ? udp : 0), "%s: UDP: %zu bytes, seen %llu sent",
	    what, udp, (unsigned long long)u.sent);
	tap(u.received == (has[MOTE_NET_UDP_RECV] ? udp : 0),
	    "%s: UDP: %zu bytes, seen %llu received", what, udp, (unsigned long long)u.received);
}

static void stop(struct fixture *f)
{
	mote_probes_network_close(f->network);
}

/* Sockets that are there before anything is loaded. */
struct before {
	int listener, client, udp;
};

static void open_before(struct before *b)
{
	struct sockaddr_in6 at, from;

	b->listener = loopback(AF_INET, SOCK_STREAM, &at);
	b->udp = loopback(AF_INET, SOCK_DGRAM, &from);
	b->client = socket(AF_INET, SOCK_STREAM, 0);
	listen(b->listener, 1);
	tap(!connect(b->client, (struct sockaddr *)&at, sizeof(at)), "seed: a connection");
}

/* They are in the table, with their owner. What waits to be accepted has none. */
static void look_for(const struct fixture *f, struct before *b)
{
	unsigned int tcp = 0, udp = 0;

	for (uint32_t i = 0; i < f->maps->nsockets; i++) {
		const struct mote_socket *s = &f->maps->sockets[i];

		if (!s->slot.key || s->tgid != (uint32_t)getpid())
			continue;
		tcp += s->protocol == MOTE_TCP && s->flags & MOTE_SOCKET_SEEDED;
		udp += s->protocol == MOTE_UDP;
	}
	tap(tcp == 2 && udp == 1, "seed: two TCP sockets and a UDP one are ours: %u %u", tcp, udp);
	close(b->client);
	close(b->listener);
	close(b->udp);
}

static void check_passes(struct fixture *f)
{
	struct mote_traffic tcp = flows_of(f, MOTE_TCP);
	double ms = now_ms();

	mote_probes_network_check(f->network, &f->tiers);
	ms = now_ms() - ms;
	tap(!strcmp(choice(f, "network_check"), "passed"), "self-check: %s in %.1f ms: %s",
	    choice(f, "network_check"), ms, reason(f, "network_check"));
	tap(ms < limit_ms, "self-check: in %.1f ms, limit %.0f", ms, limit_ms);
	tap(f->maps->has[MOTE_NET_TCP] && f->maps->has[MOTE_NET_UDP_SEND] &&
		    f->maps->has[MOTE_NET_UDP_RECV],
	    "self-check: leaves what works");
	tap(flows_of(f, MOTE_TCP).sent == tcp.sent, "self-check: has no traffic of ours");
}

static void test_auto(const char *expected)
{
	struct before before;
	struct fixture f;

	open_before(&before);
	begin(&f);
	if (!tap(start(&f), "auto: opens"))
		return;
	printf("# auto: %.0f ms\n", f.ms);
	if (expected)
		tap(!strcmp(choice(&f, "network"), expected), "auto: chose %s: %s",
		    choice(&f, "network"), reason(&f, "network"));
	if (tap(f.maps, "auto: something counts here")) {
		tap(f.maps->has[MOTE_NET_TCP] && f.maps->has[MOTE_NET_UDP_SEND] &&
			    f.maps->has[MOTE_NET_UDP_RECV] && f.maps->has[MOTE_NET_STATE],
		    "auto: every event has a hook");
		tap(f.maps->tcp && f.maps->udp && f.maps->reap, "auto: every iterator is there");
		tap(f.maps->ctl->live == 1 && f.maps->ctl->seeded >= 3 &&
			    f.maps->sockets[0].slot.gen >= 1,
		    "auto: slots are free, and %llu sockets seeded",
		    (unsigned long long)f.maps->ctl->seeded);
		look_for(&f, &before);
		check_passes(&f);
		moves(&f, AF_INET, "auto, IPv4");
		moves(&f, AF_INET6, "auto, IPv6");
	}
	stop(&f);
}

static void test_forced(enum mote_probes_choice forced, const char *name)
{
	struct fixture f;

	begin(&f);
	f.options.mote_probes = forced;
	if (!tap(start(&f), "%s: opens", name))
		return;
	tap(strcmp(choice(&f, "network"), forced == MOTE_PROBES_FENTRY ? "kprobe" : "fentry") != 0,
	    "%s: is not the other set: %s", name, choice(&f, "network"));
	if (strcmp(choice(&f, "network"), name) != 0)
		tap(reason(&f, "network")[0] && !strchr(reason(&f, "network"), '\n'),
		    "%s: %s, for one reason: %s", name, choice(&f, "network"),
		    reason(&f, "network"));
	if (f.maps)
		moves(&f, AF_INET, name);
	else
		tap(!strcmp(choice(&f, "network"), "none"), "%s: nothing counts", name);
	stop(&f);
}

static void test_none(void)
{
	struct fixture f;

	begin(&f);
	f.options.mote_probes = MOTE_PROBES_NONE;
	tap(start(&f) && !f.maps && !strcmp(choice(&f, "network"), "none") &&
		    !strcmp(reason(&f, "network"), "probes = none") && f.tiers.n == 1,
	    "none: nothing is loaded, and one tier says so");
	stop(&f);
	begin(&f);
	f.options.network_tcp = f.options.network_udp = false;
	tap(start(&f) && !f.maps, "tcp and udp off: nothing is loaded: %s", reason(&f, "network"));
	stop(&f);
}

static bool loads(const struct fixture *f, enum mote_net_program_id program)
{
	return f->network->load.links[program];
}

static void test_off(void)
{
	struct fixture f;

	begin(&f);
	f.options.network_ipv6 = false;
	if (!tap(start(&f) && f.maps, "ipv6 off: opens"))
		return;
	tap(!loads(&f, MOTE_NET_UDPV6_SENDMSG) && !loads(&f, MOTE_NET_UDPV6_SENDMSG_RET),
	    "ipv6 off: no program for it");
	exchange(AF_INET6, SOCK_STREAM, 3, 100);
	exchange(AF_INET6, SOCK_DGRAM, 3, 100);
	tap(!flows_of(&f, MOTE_TCP).sent && !flows_of(&f, MOTE_UDP).sent,
	    "ipv6 off: its bytes are not counted");
	moves(&f, AF_INET, "ipv6 off, IPv4");
	stop(&f);

	begin(&f);
	f.options.network_udp = false;
	if (!tap(start(&f) && f.maps, "udp off: opens"))
		return;
	tap(!loads(&f, MOTE_NET_SKB_CONSUME_UDP) && !loads(&f, MOTE_NET_UDP_SENDMSG) &&
		    !loads(&f, MOTE_NET_UDP_SENDMSG_RET) && !loads(&f, MOTE_NET_DESTRUCT) &&
		    !f.maps->udp,
	    "udp off: no program for it");
	tap(!f.maps->has[MOTE_NET_UDP_SEND] && strstr(f.maps->why[MOTE_NET_UDP_SEND], "udp = off"),
	    "udp off: absent: %s", f.maps->why[MOTE_NET_UDP_SEND]);
	moves(&f, AF_INET, "udp off, IPv4");
	stop(&f);
}

/* A tiny table may be full; it must be all used, and there all the same. */
static void test_small(void)
{
	struct fixture f;

	begin(&f);
	f.options.tables_sockets = f.options.tables_flows = 64;
	tap(start(&f) && f.maps && f.maps->nsockets == 64 && f.maps->nflows == 64,
	    "64 slots: opens");
	stop(&f);
}

static void test_self_check_off(void)
{
	struct fixture f;

	begin(&f);
	f.options.network_self_check = false;
	if (!start(&f) || !f.maps)
		return;
	mote_probes_network_check(f.network, &f.tiers);
	tap(!mote_tiers_find(&f.tiers, "network_check"), "self-check: off does nothing");
	stop(&f);
}

/* The hook of an event is taken away behind its back. */
static void test_broken(enum mote_net_event event, const char *name)
{
	struct mote_net_load *load;
	struct fixture f;

	begin(&f);
	if (!start(&f) || !f.maps || !f.maps->has[event])
		return;
	load = &f.network->load;
	for (unsigned int i = 0; i < MOTE_NET_PROGRAMS; i++) {
		if (!(f.network->pick.hook[event]->programs & MOTE_NET_BIT(i)))
			continue;
		bpf_link__destroy(load->links[i]);
		load->links[i] = NULL;
	}
	mote_probes_network_check(f.network, &f.tiers);
	tap(!strcmp(choice(&f, "network_check"), "failed"), "%s broken: the self-check fails",
	    name);
	tap(!f.maps->has[event] && strstr(f.maps->why[event], "self-check") &&
		    !strcmp(choice(&f, mote_net_tier(event)), "none"),
	    "%s broken: absent: %s", name, reason(&f, mote_net_tier(event)));
	stop(&f);
}

/* A network namespace of its own, whose loopback is down. */
static void test_no_loopback(void)
{
	struct fixture f;
	int status = -1;
	pid_t pid;

	begin(&f);
	if (!start(&f) || !f.maps)
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		bool ok = !unshare(CLONE_NEWNET);

		mote_probes_network_check(f.network, &f.tiers);
		ok = ok && !strcmp(choice(&f, "network_check"), "skipped") &&
		     f.maps->has[MOTE_NET_TCP];
		printf("# %s: %s\n", choice(&f, "network_check"), reason(&f, "network_check"));
		fflush(stdout);
		_exit(!ok);
	}
	waitpid(pid, &status, 0);
	tap(!status, "no loopback: the self-check is skipped, and everything stays");
	stop(&f);
}

/* Lines of kprobe_events that are a mote's. */
static unsigned int probes_in_tracefs(int dir)
{
	int fd = openat(dir, "kprobe_events", O_RDONLY);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned int n = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		printf("# %s", line);
		n += mote_kretprobes_owner(line) > 0;
	}
	if (file)
		fclose(file);
	return n;
}

/* As moted ends: without a capability. */
static void open_and_end(struct fixture *f)
{
	if (!start(f) || !f->maps || mote_privilege_drop())
		_exit(1);
	stop(f);
	_exit(0);
}

/* Return probes are removed at the end, and those of a mote that was killed by the next. */
static void test_kretprobes(void)
{
	int dir = mote_probes_tracefs(true);
	struct fixture f;
	unsigned int during;
	int fd, status = -1;
	pid_t pid;

	begin(&f);
	f.options.mote_probes = MOTE_PROBES_KPROBE;
	fd = dir < 0 ? -1 : openat(dir, "kprobe_events", O_WRONLY | O_APPEND);
	if (fd < 0) {
		printf("# no kprobe_events here\n");
		if (dir >= 0)
			close(dir);
		return;
	}
	close(fd);
	tap(!probes_in_tracefs(dir), "return probes: none before");
	fflush(stdout);
	pid = fork();
	if (!pid)
		open_and_end(&f);
	waitpid(pid, &status, 0);
	tap(!status && !probes_in_tracefs(dir), "return probes: none are left, privileges or not");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!start(&f) || !f.maps)
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, NULL, 0);
	during = probes_in_tracefs(dir);
	if (!start(&f) || !f.maps) {
		tap(false, "return probes: opens");
		return;
	}
	tap(during == f.maps->nkretprobes, "return probes: %u are left by one that was killed",
	    during);
	tap(probes_in_tracefs(dir) == f.maps->nkretprobes,
	    "return probes: these are gone, and ours are there: %u", f.maps->nkretprobes);
	stop(&f);
	tap(!probes_in_tracefs(dir), "return probes: none after");
	close(dir);
}

/* What a kernel's own choice is about; each opening takes seconds in a VM without KVM. */
static void test_kernel(const char *expected)
{
	test_auto(expected);
	if (!expected || strcmp(expected, "fentry") != 0)
		test_forced(MOTE_PROBES_FENTRY, "fentry");
	if (!expected || strcmp(expected, "kprobe") != 0)
		test_forced(MOTE_PROBES_KPROBE, "kprobe");
	test_broken(MOTE_NET_TCP, "TCP");
	test_kretprobes();
}

static void test_choices(void)
{
	test_none();
	test_off();
	test_small();
	test_self_check_off();
	test_broken(MOTE_NET_UDP_SEND, "UDP sent");
	test_broken(MOTE_NET_UDP_RECV, "UDP received");
	test_no_loopback();
}

int main(int argc, char **argv)
{
	static struct mote_options options;
	unsigned int files = count_files();

	mote_options_default(&options);
	mote_features_read(&features, &options, "");
	if (argc > 1)
		limit_ms *= 10;
	test_kernel(argc > 1 ? argv[1] : NULL);
	if (argc < 2)
		test_choices();
	tap(count_files() == files, "no descriptor is left: %u before, %u after", files,
	    count_files());
	printf("1..%u\n", tap_n);
	return tap_failed > 0;
}
