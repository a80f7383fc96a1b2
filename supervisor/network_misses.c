// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Runs of programs that the kernel left out, because it was in one of them on this CPU: it tells in
 * /proc/self/fdinfo/FD of each program (recursion_misses, from 5.12 on); and calls that a return
 * probe had no record for: kprobe_profile of tracefs. Read now and then by the tick's chain.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "network_impl.h"
#include "tag.h"

#define PERIOD_NS (10 * NS_PER_S)

static int open_fdinfo(int program)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", program);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int mote_network_misses_open(struct mote_network *network)
{
	unsigned int n = network->maps->nprograms;

	network->profile = malloc(sizeof(*network->profile));
	if (!network->profile)
		return -ENOMEM;
	memset(network->profile, 0, sizeof(*network->profile));
	network->profile->fd = network->maps->nkretprobes ? network->maps->profile : -1;
	if (!n)
		return 0;
	network->programs = malloc(n * sizeof(*network->programs));
	if (!network->programs)
		return -ENOMEM;
	memset(network->programs, 0, n * sizeof(*network->programs));
	for (unsigned int i = 0; i < n; i++) {
		int fd = open_fdinfo(network->maps->programs[i]);

		if (fd >= 0)
			network->programs[network->nprograms++].fd = fd;
	}
	return 0;
}

void mote_network_misses_close(struct mote_network *network)
{
	for (unsigned int i = 0; i < network->nprograms; i++)
		close(network->programs[i].fd);
	free(network->programs);
	free(network->profile);
}

static void push_read(struct mote_engine *engine, uint32_t index, int fd, void *buf, uint32_t len)
{
	struct mote_sqe sqe = {
		.tag = mote_tag(MOTE_TAG_FILE, index, 0),
		.op = MOTE_OP_READ,
		.flags = MOTE_SQE_LINK | MOTE_SQE_ASYNC,
		.fd = fd,
		.buf = buf,
		.len = len,
		.offset = 0,
	};

	mote_engine_push(engine, &sqe);
}

unsigned int mote_network_misses_push(struct mote_network *network, struct mote_engine *engine,
				      uint32_t index, uint64_t time, bool watched)
{
	network->misses_pushed = watched && time >= network->misses_read + PERIOD_NS;
	if (!network->misses_pushed)
		return 0;
	network->misses_read = time;
	for (unsigned int i = 0; i < network->nprograms; i++)
		push_read(engine, index + i, network->programs[i].fd, network->programs[i].text,
			  FDINFO_BYTES - 1);
	if (network->profile->fd < 0)
		return network->nprograms;
	push_read(engine, index + network->nprograms, network->profile->fd, network->profile->text,
		  PROFILE_BYTES - 1);
	return network->nprograms + 1;
}

void mote_network_misses_complete(struct mote_network *network, uint32_t program, int res)
{
	if (program < network->nprograms)
		network->programs[program].res = res;
	else
		network->profile->res = res;
}

/* False: this kernel does not tell. */
static bool parse(struct network_miss *program, uint64_t *misses)
{
	static const char name[] = "recursion_misses:";
	const char *at;

	if (program->res <= 0)
		return false;
	program->text[program->res] = '\0';
	at = strstr(program->text, name);
	if (at)
		*misses += strtoull(at + sizeof(name) - 1, NULL, 10);
	return at;
}

/* "  mote_123_udp_sendmsg              72            2808": hits and misses. False: not found. */
static bool parse_line(const char *text, const char *name, uint64_t *misses)
{
	const char *at = strstr(text, name);
	char *end, *missed;

	if (!at)
		return false;
	strtoull(at + strlen(name), &end, 10);
	*misses += strtoull(end, &missed, 10);
	return missed != end;
}

static bool parse_profile(struct mote_network *network, uint64_t *misses)
{
	struct network_profile *profile = network->profile;
	bool all = profile->fd >= 0 && profile->res > 0;

	if (!all)
		return false;
	profile->text[profile->res] = '\0';
	for (unsigned int i = 0; i < network->maps->nkretprobes; i++)
		all &= parse_line(profile->text, network->maps->kretprobes[i], misses);
	return all;
}

void mote_network_misses_take(struct mote_network *network)
{
	uint64_t misses = 0;
	bool all = network->nprograms;

	if (!network->misses_pushed)
		return;
	network->misses_pushed = false;
	for (unsigned int i = 0; i < network->nprograms; i++)
		all &= parse(&network->programs[i], &misses);
	/* A kernel before 5.12 leaves out no runs; what its return probes miss it tells. */
	all |= parse_profile(network, &misses);
	network->has_misses = all;
	network->misses = misses;
}
