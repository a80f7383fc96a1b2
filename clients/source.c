// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Where `mote` has its frames from: the socket or a recording, and waiting for them together with
 * signals and a reader of the output that goes away. Prints what fails, in one line.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = number;
}

/* No SA_RESTART: a write that blocks on a stalled reader ends too. */
static void catch_signals(struct mote_out *out)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	out->stop = &stopped;
}

/* A pipe cannot be looked into, and may be somebody else's. */
static bool is_recording(int fd)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	struct stat st;
	char magic[4];

	return at >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       pread(fd, magic, sizeof(magic), at) == sizeof(magic) &&
	       memcmp(magic, "mote", sizeof(magic)) == 0;
}

static int open_socket(const struct mote_cli *cli, struct mote_client **client)
{
	const char *path = cli->socket ? cli->socket : MOTE_SOCKET_PATH;
	int err = mote_open(path, client);

	if (err == -ENOENT || err == -ECONNREFUSED)
		return mote_cli_fail(cli, 1,
				     "no supervisor answers at %s (%s): start moted, or name its "
				     "socket with --socket",
				     path, strerror(-err));
	if (err == -EACCES)
		return mote_cli_fail(cli, 1,
				     "not allowed to connect to %s: run as root or as a member of "
				     "the group of [socket] group",
				     path);
	if (err)
		return mote_cli_fail(cli, 1, "cannot connect to %s: %s", path, strerror(-err));
	return 0;
}

static int open_recording(const struct mote_cli *cli, struct mote_client **client)
{
	int fd, err;

	if (!cli->input || strcmp(cli->input, "-") == 0)
		fd = dup(STDIN_FILENO);
	else
		fd = open(cli->input, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return mote_cli_fail(cli, 1, "cannot open %s: %s",
				     cli->input ? cli->input : "standard input", strerror(errno));
	err = mote_open_fd(fd, client);
	if (err) {
		close(fd);
		return mote_cli_fail(cli, 1, "%s", strerror(-err));
	}
	return 0;
}

int mote_cli_open(const struct mote_cli *cli, struct mote_out *out, struct mote_client **client,
		  bool *live)
{
	bool recording = cli->input || (!cli->socket && is_recording(STDIN_FILENO));

	if (cli->input && cli->socket)
		return mote_cli_fail(cli, 2, "--input and --socket: name one source");
	catch_signals(out);
	*live = !recording;
	return recording ? open_recording(cli, client) : open_socket(cli, client);
}

/* ppoll() with the signals blocked but while it waits, so that none comes just before it. */
static int poll_or_signal(struct pollfd *pfds, nfds_t n, int timeout_ms)
{
	struct timespec ts = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	sigset_t block, old;
	int r = 0;

	sigemptyset(&block);
	sigaddset(&block, SIGINT);
	sigaddset(&block, SIGTERM);
	sigprocmask(SIG_BLOCK, &block, &old);
	if (!stopped)
		r = ppoll(pfds, n, timeout_ms < 0 ? NULL : &ts, &old);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return r;
}

/* Waits for frames, a signal, or the output's reader to go away. */
static enum mote_cli_event wait_for(const struct mote_cli *cli, struct mote_client *client,
				    const struct mote_out *out, int timeout_ms)
{
	struct pollfd pfds[] = {
		{ .fd = mote_fd(client), .events = POLLIN },
		{ .fd = out->fd }, /* POLLERR comes unasked */
	};
	int n = poll_or_signal(pfds, 2, timeout_ms);

	if (n < 0 && errno != EINTR) {
		mote_cli_fail(cli, 1, "poll: %s", strerror(errno));
		return MOTE_CLI_ERROR;
	}
	if (stopped || (n > 0 && pfds[1].revents & (POLLERR | POLLNVAL)))
		return MOTE_CLI_STOP;
	return n == 0 ? MOTE_CLI_TIMEOUT : MOTE_CLI_MESSAGE;
}

enum mote_cli_event mote_cli_next(const struct mote_cli *cli, struct mote_client *client,
				  struct mote_message *message, struct mote_out *out,
				  int timeout_ms)
{
	enum mote_cli_event event;
	int r;

	while (!out->error && !stopped) {
		r = mote_next(client, message, 0);
		if (r == 1)
			return MOTE_CLI_MESSAGE;
		if (r == 0)
			return MOTE_CLI_END;
		if (r == -EBADMSG) { /* this frame is lost, those behind it are not */
			mote_cli_fail(cli, 0, "passed over %s", mote_error(client));
			continue;
		}
		if (r == -EINTR)
			continue;
		if (r != -EAGAIN) {
			mote_cli_fail(cli, 1, "%s", mote_error(client));
			return MOTE_CLI_ERROR;
		}
		mote_out_flush(out);
		event = wait_for(cli, client, out, timeout_ms);
		if (event != MOTE_CLI_MESSAGE)
			return event;
	}
	return MOTE_CLI_STOP;
}

int mote_cli_request(const struct mote_cli *cli, struct mote_client *client, const char *format,
		     ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (mote_request(client, line) < 0)
		return mote_cli_fail(cli, 1, "%s", mote_error(client));
	return 0;
}

int mote_cli_check_reply(const struct mote_cli *cli, const struct mote_message *reply)
{
	if (reply->code == 0)
		return 0;
	return mote_cli_fail(cli, 1, "the supervisor refused: %.*s", (int)reply->text_size,
			     reply->text);
}

const struct mote_hello *mote_cli_hello(const struct mote_cli *cli, struct mote_client *client,
					struct mote_out *out)
{
	struct mote_message message;

	while (!mote_hello(client)) {
		switch (mote_cli_next(cli, client, &message, out, 5000)) {
		case MOTE_CLI_MESSAGE:
			break;
		case MOTE_CLI_END:
			mote_cli_fail(cli, 1,
				      "the supervisor closed before it said hello: too "
				      "many subscribers, or not permitted");
			return NULL;
		case MOTE_CLI_TIMEOUT:
			mote_cli_fail(cli, 1, "no hello within 5 s: is the supervisor stopped?");
			return NULL;
		default:
			return NULL;
		}
	}
	return mote_hello(client);
}

int mote_cli_finish(const struct mote_cli *cli, struct mote_out *out)
{
	mote_out_flush(out);
	if (out->error && out->error != EPIPE && out->error != EINTR)
		return mote_cli_fail(cli, 1, "cannot write the output: %s", strerror(out->error));
	return 0;
}
