// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * `mote dump`: frames as JSON, as text, or as they are. A live source is asked for streams once
 * its hello is there; of a recording only the wanted streams are shown.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "text.h"

#define MAX_OPEN 64

/*
 * Counts updates for --frames. An update is all the data of one sample time; it is whole once
 * data of a later time comes, and no update or keyframe of it or of an earlier time still has
 * frames to come (MORE).
 */
struct progress {
	uint64_t wanted; /* 0: no end */
	uint64_t seen;   /* sample times so far, the latest one included */
	uint64_t latest; /* that time, ns */
	bool over;       /* data of the time after the last wanted one came */
	size_t nopen;
	struct open_update {
		uint32_t stream, interval_ms;
		uint64_t sequence;
	} open[MAX_OPEN];
};

static size_t find_open(const struct progress *progress, const struct mote_message *message)
{
	size_t i = 0;

	while (i < progress->nopen && (progress->open[i].stream != message->stream_id ||
				       progress->open[i].interval_ms != message->interval_ms ||
				       progress->open[i].sequence != message->sequence))
		i++;
	return i;
}

static void note_open(struct progress *progress, const struct mote_message *message)
{
	size_t i = find_open(progress, message);

	if (message->more && i == progress->nopen && i < MAX_OPEN)
		progress->open[progress->nopen++] =
			(struct open_update){ message->stream_id, message->interval_ms,
					      message->sequence };
	else if (!message->more && i < progress->nopen)
		progress->open[i] = progress->open[--progress->nopen];
}

/* Whether the message belongs to the updates wanted. */
static bool count(struct progress *progress, const struct mote_message *message)
{
	if (message->type == MOTE_MESSAGE_DROPPED)
		progress->nopen = 0; /* their ends may be among what was lost */
	if (message->type != MOTE_MESSAGE_DATA || progress->wanted == 0)
		return true;
	/* The rest of a long keyframe is of later samples, but belongs to what was begun. */
	if (message->time > progress->latest && find_open(progress, message) == progress->nopen) {
		if (progress->seen == progress->wanted) {
			progress->over = true;
			return false;
		}
		progress->seen++;
		progress->latest = message->time;
	}
	note_open(progress, message);
	return true;
}

static bool is_done(const struct progress *progress)
{
	return progress->over && progress->nopen == 0;
}

/* Whether `name` is in the comma-separated `list`; NULL and "all" have every name. */
static bool is_listed(const char *list, const char *name)
{
	size_t len = strlen(name), n;

	if (!list || strcmp(list, "all") == 0)
		return true;
	for (; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n == len && strncmp(list, name, n) == 0)
			return true;
	}
	return false;
}

static bool is_stream(const struct mote_hello *hello, const char *name, size_t len)
{
	for (size_t i = 0; i < hello->nstreams; i++) {
		if (strlen(hello->streams[i].name) == len &&
		    strncmp(hello->streams[i].name, name, len) == 0)
			return true;
	}
	return false;
}

static int check_streams(const struct mote_cli *cli, const struct mote_hello *hello)
{
	const char *list = cli->streams;
	char names[512] = "";
	size_t n;

	if (is_listed(list, "all"))
		return 0;
	for (; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (is_stream(hello, list, n))
			continue;
		for (size_t i = 0; i < hello->nstreams; i++) {
			if (i)
				strncat(names, " ", sizeof(names) - strlen(names) - 1);
			strncat(names, hello->streams[i].name, sizeof(names) - strlen(names) - 1);
		}
		return mote_cli_fail(cli, 2, "--streams: no stream '%.*s'; there are: %s", (int)n,
				     list, names);
	}
	return 0;
}

static int subscribe(const struct mote_cli *cli, struct mote_client *client)
{
	return mote_cli_request(cli, client, "subscribe %s%s%s",
				cli->streams ? cli->streams : "all",
				cli->interval ? " interval=" : "",
				cli->interval ? cli->interval : "");
}

static void show(const struct mote_cli *cli, struct mote_out *out, struct mote_client *client,
		 const struct mote_message *message)
{
	if (message->type == MOTE_MESSAGE_DATA && message->stream &&
	    !is_listed(cli->streams, message->stream->name))
		return;
	if (cli->raw)
		mote_out_bytes(out, message->raw, message->raw_size);
	else if (cli->json)
		mote_json_message(out, client, message);
	else
		mote_text_message(out, client, message);
}

/* An answer is decoded even where frames are only passed on. */
static int see(const struct mote_cli *cli, struct mote_client *client,
	       const struct mote_message *message, bool live)
{
	int code = 0;

	if (message->type == MOTE_MESSAGE_HELLO) {
		code = check_streams(cli, mote_hello(client));
		if (code == 0 && live)
			code = subscribe(cli, client);
	} else if (message->type == MOTE_MESSAGE_REPLY && live) {
		code = mote_cli_check_reply(cli, message);
	}
	return code;
}

static int dump(const struct mote_cli *cli, struct mote_client *client, bool live,
		struct mote_out *out)
{
	struct progress progress = { .wanted = cli->frames };
	struct mote_message message;
	int code = 0;

	while (code == 0 && !is_done(&progress)) {
		switch (mote_cli_next(cli, client, &message, out, -1)) {
		case MOTE_CLI_MESSAGE:
			code = see(cli, client, &message, live);
			if (code == 0 && count(&progress, &message))
				show(cli, out, client, &message);
			break;
		case MOTE_CLI_END:
			return live ? mote_cli_fail(cli, 1, "the supervisor closed the connection")
				    : 0;
		case MOTE_CLI_ERROR:
			return 1;
		default:
			return 0;
		}
	}
	return code;
}

int mote_cli_dump(struct mote_cli *cli)
{
	static struct mote_out out = { .fd = 1 };
	struct mote_client *client;
	bool live;
	int code, written;

	if (cli->json && cli->raw)
		return mote_cli_fail(cli, 2, "--json and --raw: choose one");
	code = mote_cli_open(cli, &out, &client, &live);
	if (code)
		return code;
	if (cli->interval && !live)
		code = mote_cli_fail(cli, 2,
				     "--interval: a recording has the one it was made with");
	if (code == 0) {
		mote_set_raw(client, cli->raw);
		code = dump(cli, client, live, &out);
	}
	written = mote_cli_finish(cli, &out);
	mote_close(client);
	return code ? code : written;
}
