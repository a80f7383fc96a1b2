/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command `mote`: what its subcommands share. Each subcommand is a function from parsed
 * options to an exit code: 0, 1 it failed (one line was printed), 2 the command line is wrong.
 */
#ifndef MOTE_CLI_H
#define MOTE_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmote.h"
#include "output.h"

struct mote_cli {
	const char *command; /* "dump" */
	const char *socket, *input, *streams, *interval;
	uint64_t frames; /* 0: no end */
	bool json, raw, help, version;
};

/* A subcommand's options; the last row has no name. Flags have no `arg`. */
struct mote_cli_option {
	const char *name, *arg, *help;
	enum { MOTE_CLI_FLAG, MOTE_CLI_TEXT, MOTE_CLI_COUNT } kind;
	size_t offset; /* in struct mote_cli */
};

struct mote_cli_command {
	const char *name, *help, *detail;
	const struct mote_cli_option *options;
	int (*run)(struct mote_cli *cli);
};

/*
 * Takes options from argv until the first word that is none; returns its index, or -1 after a
 * line on what is wrong.
 */
int mote_cli_parse(int argc, char **argv, const struct mote_cli_option *options,
		   struct mote_cli *cli);
void mote_cli_print_options(const struct mote_cli_option *options, struct mote_out *out);

/* Prints "mote dump: ..." and a newline to stderr; returns `code`. */
__attribute__((format(printf, 3, 4))) int mote_cli_fail(const struct mote_cli *cli, int code,
							const char *format, ...);

/*
 * Opens the socket, --input, or standard input if it is a file that begins with a recorded frame;
 * *live tells a socket. From now on SIGINT and SIGTERM make mote_cli_next() return MOTE_CLI_STOP,
 * and SIGPIPE is not sent. Returns an exit code.
 */
int mote_cli_open(const struct mote_cli *cli, struct mote_out *out, struct mote_client **client,
		  bool *live);

enum mote_cli_event {
	MOTE_CLI_MESSAGE,
	MOTE_CLI_END,  /* of the frames */
	MOTE_CLI_STOP, /* a signal, or nobody reads the output */
	MOTE_CLI_TIMEOUT,
	MOTE_CLI_ERROR /* a line was printed */
};

/* The next message. Flushes `out` before it waits. timeout_ms -1: for ever. */
enum mote_cli_event mote_cli_next(const struct mote_cli *cli, struct mote_client *client,
				  struct mote_message *message, struct mote_out *out,
				  int timeout_ms);

/* Sends a request; an answer with a code other than 0 is for the caller to see. Exit code. */
int mote_cli_request(const struct mote_cli *cli, struct mote_client *client, const char *format,
		     ...) __attribute__((format(printf, 3, 4)));
/* The supervisor's answer: prints a line and returns 1 if it refused. */
int mote_cli_check_reply(const struct mote_cli *cli, const struct mote_message *reply);

/* Waits for the hello and returns it, or NULL after a line. */
const struct mote_hello *mote_cli_hello(const struct mote_cli *cli, struct mote_client *client,
					struct mote_out *out);

/* Flushes; exit code 0, or 1 after a line. Nobody reading the output is no error. */
int mote_cli_finish(const struct mote_cli *cli, struct mote_out *out);

int mote_cli_dump(struct mote_cli *cli);
int mote_cli_stats(struct mote_cli *cli);
int mote_cli_schema(struct mote_cli *cli);

#endif
