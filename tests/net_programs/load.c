// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Loads and attaches one kind of hooks, and maps what they write to. */
#include "exchange.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "net_fentry.skel.h"
#include "net_kprobe.skel.h"

enum set set;
struct mote_socket *sockets;
struct mote_flow *flows;
struct mote_slot_cpu *cpus;
struct mote_net_ctl *ctl;
unsigned int ncpus;
static struct bpf_object *object;

/* Tracepoints are attached through it; for this process only. */
void see_tracefs(void)
{
	if (!access("/sys/kernel/tracing/events", F_OK))
		return;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL))
		die("mounting tracefs");
}

int map_fd(const char *name)
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
	{ "net_destruct", "sk_common_release", false, 1 << KPROBE | 1 << FENTRY },
	{ "net_send_length", "sock/sock_send_length", false, 1 << TP },
	{ "net_recv_length", "sock/sock_recv_length", false, 1 << TP },
	{ "net_set_state", "sock/inet_sock_set_state", false, 7 },
	{ "net_destroy", "tcp/tcp_destroy_sock", false, 7 },
};
#define HOOKS (sizeof(hooks) / sizeof(hooks[0]))

static struct bpf_link *links[HOOKS];

static const char *const iterators[] = { "net_tcp", "net_udp", "net_owners", "net_reap_run" };

static struct bpf_program *program(const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(object, name);

	if (!p)
		die(name);
	return p;
}

static struct bpf_link *attach(const struct hook *h)
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
	return link;
}

/* As the kernel leaves programs out, at a moment of this test's choice. */
void hear_states(bool on)
{
	static const char *const of_states[] = { "net_set_state", "net_destroy" };

	for (unsigned int i = 0; i < HOOKS; i++) {
		if (strcmp(hooks[i].program, of_states[0]) != 0 &&
		    strcmp(hooks[i].program, of_states[1]) != 0)
			continue;
		bpf_link__destroy(links[i]);
		links[i] = on ? attach(&hooks[i]) : NULL;
	}
}

void walk(const char *name)
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

void load(void)
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
			links[i] = attach(&hooks[i]);
	walk("net_tcp");
	walk("net_udp");
	walk("net_owners");
	ctl->live = 1;
}
