// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * net_programs tp|kprobe|fentry: loads bpf/net.bpf.c by itself, with that kind of hooks, and looks
 * into its maps after exchanges whose bytes are known: what each socket and process moved, owners,
 * addresses, the kernel's own counts, and that what is closed leaves the index. TAP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <liburing.h>

#include "abi.h"
#include "net_fentry.skel.h"
#include "net_kprobe.skel.h"

#define SLOTS 32768 /* others of this machine take some, too */

enum set { TP, KPROBE, FENTRY };

static enum set set;
static struct bpf_object *object;
static struct mote_socket *sockets;
static struct mote_flow *flows;
static struct mote_slot_cpu *cpus;
static struct mote_net_ctl *ctl;
static unsigned int tests, failures, ncpus;

static void check(bool ok, const char *format, ...)
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

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the programs ---- */

static int map_fd(const char *name)
{
	return bpf_object__find_map_fd_by_name(object, name);
}

static void *map_memory(const char *name, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (len + page - 1) / page * page;
	void *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd(name), 0);

	if (memory == MAP_FAILED)
		die(name);
	return memory;
}

/* Of the kprobe set's object the classic tracepoints count alone. */
static struct bpf_object *open_object(void)
{
	struct net_fentry_bpf *fentry;
	struct net_kprobe_bpf *kprobe;

	if (set == FENTRY) {
		fentry = net_fentry_bpf__open();
		return fentry ? fentry->obj : NULL;
	}
	kprobe = net_kprobe_bpf__open();
	if (kprobe && set == TP) {
		kprobe->rodata->net_tcp_by_tp = true;
		kprobe->rodata->net_udp_send_by_tp = true;
		kprobe->rodata->net_udp_recv_by_tp = true;
	}
	return kprobe ? kprobe->obj : NULL;
}

struct hook {
	const char *program, *function;
	bool returns;
	unsigned int sets; /* bits of enum set */
};

static const struct hook hooks[] = {
	{ "net_release_sock", "release_sock", false, 1 << KPROBE | 1 << FENTRY },
	{ "net_skb_consume_udp", "skb_consume_udp", false, 1 << KPROBE | 1 << FENTRY },
	{ "net_udp_sendmsg", "udp_sendmsg", false, 1 << KPROBE },
	{ "net_udpv6_sendmsg", "udpv6_sendmsg", false, 1 << KPROBE },
	{ "net_udp_sendmsg_ret", "udp_sendmsg", true, 1 << KPROBE | 1 << FENTRY },
	{ "net_udpv6_sendmsg_ret", "udpv6_sendmsg", true, 1 << KPROBE | 1 << FENTRY },
	{ "net_destruct", "inet_sock_destruct", false, 1 << KPROBE | 1 << FENTRY },
	{ "net_send_length", "sock/sock_send_length", false, 1 << TP },
	{ "net_recv_length", "sock/sock_recv_length", false, 1 << TP },
	{ "net_set_state", "sock/inet_sock_set_state", false, 7 },
	{ "net_destroy", "tcp/tcp_destroy_sock", false, 7 },
};
#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))

static const char *const iterators[] = { "net_tcp", "net_udp", "net_owners", "net_reap_run" };

static struct bpf_program *program(const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(object, name);

	if (!p)
		die(name);
	return p;
}

static void attach(const struct hook *h)
{
	const char *slash = strchr(h->function, '/');
	struct bpf_program *p = program(h->program);
	struct bpf_link *link;
	char category[32] = "";

	if (slash) {
		memcpy(category, h->function, (size_t)(slash - h->function));
		link = bpf_program__attach_tracepoint(p, category, slash + 1);
	} else if (set == KPROBE) {
		link = bpf_program__attach_kprobe(p, h->returns, h->function);
	} else {
		link = bpf_program__attach(p);
	}
	if (!link)
		die(h->program);
}

static void walk(const char *name)
{
	struct bpf_link *link = bpf_program__attach_iter(program(name), NULL);
	char text[64];
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;

	if (fd < 0)
		die(name);
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
	bpf_link__destroy(link);
}

static void free_all(const char *queue)
{
	for (u32 i = 0; i < SLOTS; i++)
		bpf_map_update_elem(map_fd(queue), NULL, &i, 0);
}

static void size_maps(void)
{
	static const char *const sized[] = { "net_sockets", "net_socket_index", "net_socket_free",
					     "net_flows",   "net_flow_index",   "net_flow_free" };

	for (unsigned int i = 0; i < sizeof(sized) / sizeof(sized[0]); i++)
		bpf_map__set_max_entries(bpf_object__find_map_by_name(object, sized[i]), SLOTS);
	ncpus = (unsigned int)libbpf_num_possible_cpus();
	bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "net_cpus"), ncpus);
}

static void load(void)
{
	object = open_object();
	if (!object)
		die("opening the object");
	size_maps();
	for (unsigned int i = 0; i < sizeof(iterators) / sizeof(iterators[0]); i++)
		bpf_program__set_autoload(program(iterators[i]), true);
	for (unsigned int i = 0; i < HOOKS; i++)
		bpf_program__set_autoload(program(hooks[i].program), hooks[i].sets >> set & 1);
	if (bpf_object__load(object))
		die("loading the object");
	sockets = map_memory("net_sockets", SLOTS * sizeof(*sockets));
	flows = map_memory("net_flows", SLOTS * sizeof(*flows));
	cpus = map_memory("net_cpus", ncpus * sizeof(*cpus));
	ctl = map_memory("net_ctl", sizeof(*ctl));
	for (unsigned int i = 0; i < SLOTS; i++)
		sockets[i].slot.gen = flows[i].slot.gen = 1;
	free_all("net_socket_free");
	free_all("net_flow_free");
	for (unsigned int i = 0; i < HOOKS; i++)
		if (hooks[i].sets >> set & 1)
			attach(&hooks[i]);
	walk("net_tcp");
	walk("net_udp");
	walk("net_owners");
	ctl->live = 1;
}

/* ---- what they know ---- */

static u64 inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

/* NULL: none, or it has been closed. */
static struct mote_socket *by_inode(u64 inode)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (sockets[i].slot.key && !sockets[i].closed && sockets[i].inode == inode)
			return &sockets[i];
	return NULL;
}

static struct mote_socket *of(int fd)
{
	return by_inode(inode_of(fd));
}

static u64 id_of(const struct mote_socket *s)
{
	return MOTE_SOCKET_ID((u32)(s - sockets), s->slot.gen);
}

static struct mote_traffic moved_by(const struct mote_socket *s, pid_t pid)
{
	for (unsigned int i = 0; s && i < SLOTS; i++)
		if (flows[i].slot.key == MOTE_FLOW_KEY(id_of(s), (u64)pid))
			return flows[i].traffic;
	return (struct mote_traffic){ 0 };
}

static bool in_index(u64 key)
{
	u64 value;

	return !bpf_map_lookup_elem(map_fd("net_socket_index"), &key, &value);
}

/*
 * Within 5 s: sockets are destroyed after a grace period of RCU, or where no probe tells of it,
 * missed by a walk.
 */
static void check_closed(const struct mote_socket *s, u64 key, const char *what)
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

static void check_moved(const char *what, int fd, pid_t pid, u64 sent, u64 received)
{
	struct mote_socket *s = of(fd);
	struct mote_traffic t = moved_by(s, pid);

	check(s && t.sent == sent && t.received == received,
	      "%s: %llu sent, %llu received (%llu, %llu seen%s)", what, (unsigned long long)sent,
	      (unsigned long long)received, (unsigned long long)t.sent,
	      (unsigned long long)t.received, s ? "" : ", no socket");
}

/* The kernel's own counts, less what it had when mote came. */
static void check_truth(const char *what, int fd, s64 accepted, s64 taken)
{
	struct mote_socket *s;

	walk("net_tcp");
	s = of(fd);
	check(s && s->flags & MOTE_SOCKET_TRUTH && (s64)s->accepted == accepted &&
		      (s64)s->taken == taken,
	      "%s: accepted %lld, taken %lld (%lld, %lld)", what, (long long)accepted,
	      (long long)taken, s ? (long long)s->accepted : -1, s ? (long long)s->taken : -1);
}

static u64 inside(void)
{
	u64 n = 0;

	for (unsigned int i = 0; i < ncpus; i++)
		n += cpus[i].enter - cpus[i].exit;
	return n;
}

/* ---- sockets ---- */

struct pair {
	int listener, client, server;
	struct sockaddr_storage to;
	socklen_t len;
};

static void address(struct sockaddr_storage *to, socklen_t *len, int family, bool mapped)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = (sa_family_t)family;
	if (family == AF_INET) {
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		*len = sizeof(*in);
		return;
	}
	inet_pton(AF_INET6, mapped ? "::ffff:127.0.0.1" : "::1", &in6->sin6_addr);
	*len = sizeof(*in6);
}

static int listen_on(int type, int family, bool mapped, struct sockaddr_storage *to, socklen_t *len)
{
	int fd = socket(family, type, 0);

	address(to, len, family, mapped);
	if (bind(fd, (struct sockaddr *)to, *len) || (type == SOCK_STREAM && listen(fd, 8)) ||
	    getsockname(fd, (struct sockaddr *)to, len))
		die("listening");
	return fd;
}

static void open_pair(struct pair *p, int family, bool mapped)
{
	p->listener = listen_on(SOCK_STREAM, family, mapped, &p->to, &p->len);
	p->client = socket(family, SOCK_STREAM, 0);
	if (connect(p->client, (struct sockaddr *)&p->to, p->len))
		die("connect");
	p->server = accept(p->listener, NULL, NULL);
	if (p->server < 0)
		die("accept");
}

static void close_pair(struct pair *p)
{
	close(p->client);
	close(p->server);
	close(p->listener);
}

static char data[1 << 16];

static void put(int fd, size_t n)
{
	if (send(fd, data, n, MSG_NOSIGNAL) != (ssize_t)n)
		die("send");
}

static void get(int fd, size_t n)
{
	if (recv(fd, data, n, MSG_WAITALL) != (ssize_t)n)
		die("recv");
}

static void end_of(int fd)
{
	if (recv(fd, data, 1, 0) != 0)
		die("recv at the end");
}

/* Tracepoints are attached through it; for this process only. */
static void see_tracefs(void)
{
	if (!access("/sys/kernel/tracing/events", F_OK))
		return;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL))
		die("mounting tracefs");
}

#include "net_programs_cases.h"

int main(int argc, char **argv)
{
	static const char *const names[] = {
		[TP] = "tp", [KPROBE] = "kprobe", [FENTRY] = "fentry"
	};
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	const char *name = argc > 1 ? argv[1] : "tp";

	for (set = TP; set <= FENTRY && strcmp(name, names[set]); set++)
		;
	if (set > FENTRY)
		return fprintf(stderr, "usage: net_programs tp|kprobe|fentry\n"), 2;
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	see_tracefs();
	run_cases();
	printf("1..%u\n", tests);
	return failures != 0;
}
