// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * cgroup_churn SOCKET FOLDER RATE SECONDS: makes and removes RATE cgroups a second in FOLDER, and
 * counts what a moted tells of it: every one is created and removed once, or the drop is counted;
 * and there are as many rows afterwards as before. Prints TAP.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libmote.h"
#include "tap.h"

#define PREFIX   "mote-churn-"
#define QUIET_MS 3000

static uint64_t created, removed;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void bail(const char *what)
{
	tap(false, "%s: %s", what, strerror(errno));
	printf("1..%u\n", tap_n);
	exit(1);
}

static void make_and_remove(const char *folder, unsigned int rate, unsigned int n)
{
	double began = now();
	char path[300];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned int i = 0; i < n; i++) {
		while ((now() - began) * rate < i)
			usleep(1000);
		snprintf(path, sizeof(path), "%s/" PREFIX "%u", folder, i);
		if (mkdir(path, 0755) || rmdir(path))
			_exit(1);
	}
	_exit(0);
}

static bool begins(struct mote_value v, const char *with)
{
	return v.type == MOTE_VALUE_STR && v.str.size >= strlen(with) &&
	       !memcmp(v.str.bytes, with, strlen(with));
}

static unsigned int take(const struct mote_message *message)
{
	struct mote_record row;
	unsigned int mine = 0;

	if (message->type != MOTE_MESSAGE_DATA || !message->stream ||
	    strcmp(message->stream->name, "cgroup_event"))
		return 0;
	for (size_t i = 0; mote_row(message, i, &row); i++) {
		if (!begins(mote_value_named(&row, "name"), PREFIX))
			continue;
		mine++;
		if (begins(mote_value_named(&row, "type"), "created"))
			created++;
		else
			removed++;
	}
	return mine;
}

/* Of the table `table`. */
static uint64_t ask(const char *socket, const char *table, const char *field)
{
	struct mote_client *client;
	struct mote_message message;
	struct mote_record row;
	uint64_t v = 0;
	bool more = true;

	if (mote_open(socket, &client) || mote_request(client, "poll table"))
		bail(socket);
	while (more && mote_next(client, &message, 30000) == 1) {
		if (message.type != MOTE_MESSAGE_DATA)
			continue;
		for (size_t i = 0; mote_row(&message, i, &row); i++) {
			struct mote_value name = mote_value_named(&row, "name");

			if (begins(name, table) && name.str.size == strlen(table))
				v = mote_value_named(&row, field).u64;
		}
		more = message.more;
	}
	mote_close(client);
	return v;
}

static void watch(struct mote_client *client, pid_t worker, unsigned int seconds)
{
	double quiet = now(), until = quiet + seconds * 3 + 60;
	struct mote_message message;
	int status = 0, err;
	bool over = false;

	while (now() < until && (!over || now() < quiet + QUIET_MS / 1e3)) {
		err = mote_next(client, &message, 200);
		if (err == 1 && take(&message))
			quiet = now();
		else if (err <= 0 && err != -EAGAIN && err != -EINTR)
			bail("mote_next");
		if (over || waitpid(worker, &status, WNOHANG) != worker)
			continue;
		over = true;
		quiet = now();
	}
	tap(over && !status, "all were made and removed");
}

int main(int argc, char **argv)
{
	struct mote_client *client;
	unsigned int rate, seconds, n;
	uint64_t rows, dropped;
	double began;
	pid_t worker;

	if (argc != 5) {
		fprintf(stderr, "usage: cgroup_churn SOCKET FOLDER RATE SECONDS\n");
		return 2;
	}
	rate = (unsigned int)atoi(argv[3]);
	seconds = (unsigned int)atoi(argv[4]);
	n = rate * seconds;
	if (mote_open(argv[1], &client) || mote_request(client, "subscribe cgroup,cgroup_event"))
		bail(argv[1]);
	sleep(2);
	rows = ask(argv[1], "cgroups", "fill");
	began = now();
	worker = fork();
	if (!worker)
		make_and_remove(argv[2], rate, n);
	watch(client, worker, seconds);
	dropped = ask(argv[1], "cgroup_event_buffer", "dropped");
	tap(created + removed + dropped == 2ull * n,
	    "%u made in %.0f s: %" PRIu64 " + %" PRIu64 " told of, %" PRIu64 " dropped", n,
	    now() - began - QUIET_MS / 1e3, created, removed, dropped);
	tap(rows && ask(argv[1], "cgroups", "fill") == rows, "%" PRIu64 " rows, as before", rows);
	mote_close(client);
	printf("1..%u\n", tap_n);
	return tap_failed ? 1 : 0;
}
