// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The command `mote`: its subcommands and their options, in tables. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define FLAG(name, help)                                                          \
	{                                                                         \
#		name, NULL, help, MOTE_CLI_FLAG, offsetof(struct mote_cli, name) \
	}
#define TEXT(name, arg, help)                                                    \
	{                                                                        \
#		name, arg, help, MOTE_CLI_TEXT, offsetof(struct mote_cli, name) \
	}
#define NUMBER(name, help)                                                        \
	{                                                                         \
#		name, "N", help, MOTE_CLI_COUNT, offsetof(struct mote_cli, name) \
	}
#define SOURCES                                                                        \
	TEXT(socket, "PATH", "the supervisor's socket, by default " MOTE_SOCKET_PATH), \
		TEXT(input, "FILE", "a recording in place of the socket; - is standard input")
#define HELP FLAG(help, "this text")

static const struct mote_cli_option main_options[] = {
	TEXT(socket, "PATH", "the supervisor's socket, by default " MOTE_SOCKET_PATH),
	FLAG(version, "the version"),
	HELP,
	{ 0 },
};

static const struct mote_cli_option dump_options[] = {
	FLAG(json, "one JSON object a line"),
	FLAG(raw, "the frames as they come, to record them"),
	TEXT(streams, "A,B", "only these streams, by default all"),
	TEXT(interval, "TIME", "how often, as 250ms, 1s, 5m; by default each stream's own"),
	NUMBER(frames, "end after N updates"),
	SOURCES,
	HELP,
	{ 0 },
};

static const struct mote_cli_option show_options[] = {
	FLAG(json, "one JSON object"),
	SOURCES,
	HELP,
	{ 0 },
};

static const char dump_detail[] =
	"Standard input is replayed if it is a file that begins with a recorded frame.\n"
	"An update is all data of one sample time. --frames N ends when data of the sample time\n"
	"after the N-th comes (which is not shown), so that the N-th is shown whole.\n"
	"\n"
	"JSON lines, times in ns of CLOCK_MONOTONIC:\n"
	"  {\"stream\":S,\"time\":T,FIELD:VALUE,...}    a row; a field `time` of the stream's own\n"
	"                                         (event) stands for the sample's\n"
	"  {\"stream\":S,\"time\":T,\"ended\":{KEY:VALUE}}\n"
	"  {\"stream\":S,\"time\":T,\"totals\":{COUNTER:VALUE,...}}   of all rows that ever ended\n"
	"  {\"keyframe\":{\"stream\":S,...}}            forget the rows of S; all follow\n"
	"  {\"gap\":{\"stream\":S,...}}                 the time since the last update is not the "
	"interval\n"
	"  {\"missed\":{\"stream\":S,...,\"updates\":N}}  N updates did not come\n"
	"  {\"dropped\":{\"frames\":N,\"bytes\":N}}       lost since the start, as this reader is slow\n"
	"  {\"hello\":{...}}, {\"reply\":{\"code\":N,\"text\":S}}\n"
	"nil, NaN and infinities are null. Integers are whole, also above 2^53. Of text that is not\n"
	"UTF-8 each wrong byte is U+FFFD.\n"
	"\n"
	"Ends with 0 on SIGINT, SIGTERM and when nobody reads the output, 1 on an error, 2 if the\n"
	"command line is wrong.\n";

static const struct mote_cli_command commands[] = {
	{ "dump", "show or record rows as they come", dump_detail, dump_options, mote_cli_dump },
	{ "stats", "what mote costs, its tables, what it reads from and what it lacks",
	  "Takes two samples, one second apart, for the rates.\n", show_options, mote_cli_stats },
	{ "schema", "the streams and their fields", "", show_options, mote_cli_schema },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int print_help(struct mote_cli *cli)
{
	static struct mote_out out = { .fd = 1 };

	mote_out_text(&out, "usage: mote [--socket PATH] COMMAND [OPTION...]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		mote_out_format(&out, "  %-18s %s\n", commands[i].name, commands[i].help);
	mote_out_char(&out, '\n');
	mote_cli_print_options(main_options, &out);
	mote_out_text(&out, "\n`mote COMMAND --help` lists a command's options.\n");
	return mote_cli_finish(cli, &out);
}

static int print_command_help(struct mote_cli *cli, const struct mote_cli_command *command)
{
	static struct mote_out out = { .fd = 1 };

	mote_out_format(&out, "usage: mote %s [OPTION...]: %s\n\n", command->name, command->help);
	mote_cli_print_options(command->options, &out);
	if (command->detail[0])
		mote_out_char(&out, '\n');
	mote_out_text(&out, command->detail);
	return mote_cli_finish(cli, &out);
}

static int run(struct mote_cli *cli, const struct mote_cli_command *command, int argc, char **argv)
{
	int i;

	cli->command = command->name;
	i = mote_cli_parse(argc, argv, command->options, cli);
	if (i < 0)
		return 2;
	if (cli->help)
		return print_command_help(cli, command);
	if (i < argc)
		return mote_cli_fail(cli, 2, "'%s' is one word too many; see mote %s --help",
				     argv[i], command->name);
	return command->run(cli);
}

/*
 * What was closed by who started mote would be the number of the supervisor's socket next, and
 * output would go there. Opened the wrong way round, so that writing and reading fail as before.
 */
static void fill_standard_descriptors(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return;
	}
}

int main(int argc, char **argv)
{
	struct mote_cli cli = { 0 };
	int i;

	fill_standard_descriptors();
	i = mote_cli_parse(argc, argv, main_options, &cli);
	if (i < 0)
		return 2;
	if (cli.help)
		return print_help(&cli);
	if (cli.version)
		return puts("mote " MOTE_VERSION) < 0 || fflush(stdout) != 0;
	if (i == argc)
		return mote_cli_fail(&cli, 2, "no command; see mote --help");
	for (size_t c = 0; c < COMMANDS; c++) {
		if (strcmp(commands[c].name, argv[i]) == 0)
			return run(&cli, &commands[c], argc - i, argv + i);
	}
	return mote_cli_fail(&cli, 2, "unknown command '%s'; see mote --help", argv[i]);
}
