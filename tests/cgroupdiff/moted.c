// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The moted of tests/helpers/cgroupdiff.c, and what it says. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "groups.h"
#include "libmote.h"

#define SOCKET "/tmp/cgroupdiff.sock"
#define CONFIG "/tmp/cgroupdiff.conf"

static void take_row(const struct mote_record *record)
{
	struct mote_value id = mote_value_named(record, "id");
	struct mote_value path = mote_value_named(record, "path");
	unsigned int n;
	const struct field *fields = text_fields(&n);

	for (unsigned int i = 0; i < ngroups; i++) {
		struct group *group = &groups[i];

		if (group->id != id.u64)
			continue;
		group->row = (struct values){ 0 };
		group->given = path.type == MOTE_VALUE_STR && path.str.bytes[0] == '/' &&
			       path.str.size == strlen(group->path) + 1 &&
			       !memcmp(path.str.bytes + 1, group->path, path.str.size - 1);
		for (unsigned int k = 0; k < n; k++) {
			struct mote_value v = mote_value_named(record, fields[k].name);

			group->row.v[k] = v.u64;
			group->row.present |= (uint64_t)(v.type == MOTE_VALUE_U64) << k;
		}
	}
}

/* All rows of one keyframe. */
bool moted_poll(struct mote_client *client)
{
	struct mote_message message;
	struct mote_record record;

	for (unsigned int i = 0; i < ngroups; i++)
		groups[i].given = false;
	if (mote_request(client, "poll cgroup"))
		return false;
	while (mote_next(client, &message, 60000) == 1) {
		if (message.type != MOTE_MESSAGE_DATA)
			continue;
		for (size_t i = 0; mote_row(&message, i, &record); i++)
			take_row(&record);
		if (!message.more)
			return true;
	}
	return false;
}

pid_t moted_start(const char *path, const char *source, const char *budget)
{
	FILE *file = fopen(CONFIG, "we");
	pid_t moted;

	if (!file)
		bail(CONFIG);
	fprintf(file,
		"[network]\ntcp = off\nudp = off\n[file]\ntrack_read = off\ntrack_write = off\n"
		"[loop]\nbase = 1ms\n"
		"[tables]\ncgroups = %u\n[cgroup]\nsource = %s\nslow = 1s\nfreshness = 0ms\nbudget = %s\n"
		"[socket]\nqueue = 16MiB\narena = 64MiB\n",
		ngroups + 64, source, budget);
	fclose(file);
	unlink(SOCKET);
	moted = fork();
	if (moted)
		return moted;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(path, path, "--socket", SOCKET, "--config", CONFIG, NULL);
	_exit(127);
}

struct mote_client *moted_connect(void)
{
	struct mote_client *client = NULL;

	for (unsigned int i = 0; i < 600; i++) {
		if (!mote_open(SOCKET, &client))
			return client;
		nap(100);
	}
	bail("moted does not listen");
}

const char *moted_tier(struct mote_client *client)
{
	struct mote_message message;
	const struct mote_hello *hello;
	const char *choice = "";

	while (!(hello = mote_hello(client)) && mote_next(client, &message, 60000) == 1)
		;
	for (size_t i = 0; hello && i < hello->ntiers; i++) {
		if (!strncmp(hello->tiers[i].tier, "cgroup", 6))
			printf("# %s: %s %s\n", hello->tiers[i].tier, hello->tiers[i].choice,
			       hello->tiers[i].reason);
		if (!strcmp(hello->tiers[i].tier, "cgroups"))
			choice = hello->tiers[i].choice;
	}
	return choice;
}
