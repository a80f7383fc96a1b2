// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Runs of programs that the kernel left out, because it was in one of them on this CPU: it tells in
 * /proc/self/fdinfo/FD of each program (recursion_misses, from 5.12 on). Read now and then by the
 * tick's chain.
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
}

unsigned int mote_network_misses_push(struct mote_network *network, struct mote_engine *engine,
				      uint32_t index, uint64_t time, bool watched)
{
	network->misses_pushed = watched && time >= network->misses_read + PERIOD_NS;
	if (!network->misses_pushed)
		return 0;
	network->misses_read = time;
	for (unsigned int i = 0; i < network->nprograms; i++) {
		struct mote_sqe sqe = {
			.tag = mote_tag(MOTE_TAG_FILE, index + i, 0),
			.op = MOTE_OP_READ,
			.flags = MOTE_SQE_LINK | MOTE_SQE_ASYNC,
			.fd = network->programs[i].fd,
			.buf = network->programs[i].text,
			.len = FDINFO_BYTES - 1,
			.offset = 0,
		};

		mote_engine_push(engine, &sqe);
	}
	return network->nprograms;
}

void mote_network_misses_complete(struct mote_network *network, uint32_t program, int res)
{
	network->programs[program].res = res;
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

void mote_network_misses_take(struct mote_network *network)
{
	uint64_t misses = 0;
	bool all = network->nprograms;

	if (!network->misses_pushed)
		return;
	network->misses_pushed = false;
	for (unsigned int i = 0; i < network->nprograms; i++)
		all &= parse(&network->programs[i], &misses);
	network->has_misses = all;
	network->misses = misses;
}
