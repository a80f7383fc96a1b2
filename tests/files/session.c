// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* See session.h. */
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct rows stream_file, stream_total, stream_edge, stream_flow;

static struct rows *const streams[] = { &stream_file, &stream_total, &stream_edge, &stream_flow };
static struct mote_client *client;

pid_t session_moted(char **argv, const char *socket)
{
	char *args[32] = { argv[0], (char *)"--socket", (char *)socket };
	int n = 3;
	pid_t pid;

	for (char **arg = argv + 1; *arg && n < 31; arg++)
		args[n++] = *arg;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(args[0], args);
		_exit(127);
	}
	for (int i = 0; i < 900 && access(socket, F_OK); i++)
		usleep(100000);
	return pid;
}

bool session_open(const char *socket, const char *line)
{
	struct mote_message message;
	int rc = mote_open(socket, &client);

	/* it is bound a moment before it listens */
	for (int i = 0; i < 20 && rc == -ECONNREFUSED; i++) {
		usleep(100000);
		rc = mote_open(socket, &client);
	}
	if (rc) {
		printf("# %s: %s\n", socket, strerror(-rc));
		return false;
	}
	return mote_next(client, &message, 10000) == 1 && mote_hello(client) &&
	       rows_init(&stream_file, mote_hello(client), "file") &&
	       rows_init(&stream_total, mote_hello(client), "file_total") &&
	       rows_init(&stream_edge, mote_hello(client), "edge") &&
	       rows_init(&stream_flow, mote_hello(client), "flow") &&
	       mote_request(client, line) == 0;
}

const char *session_tier(const char *name)
{
	const struct mote_hello *hello = mote_hello(client);

	for (size_t i = 0; i < hello->ntiers; i++) {
		if (!strcmp(hello->tiers[i].tier, name))
			return hello->tiers[i].choice;
	}
	return "none";
}

uint64_t session_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Takes what comes for some time. */
bool session_listen(unsigned int ms)
{
	struct mote_message message;
	uint64_t until = session_ms() + ms;
	int rc;

	while (session_ms() < until) {
		rc = mote_next(client, &message, 50);
		if (rc != 1 && rc != -EAGAIN && rc != -EINTR) {
			printf("# the connection: %s\n", rc ? mote_error(client) : "closed");
			return false;
		}
		if (rc != 1 || message.type != MOTE_MESSAGE_DATA || !message.stream)
			continue;
		for (unsigned int i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
			if (!strcmp(message.stream->name, streams[i]->name))
				rows_take(streams[i], &message);
		}
	}
	return true;
}

void session_close(void)
{
	mote_close(client);
}
