// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * moted: the order in which the agent starts, and nothing else.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent.h"
#include "log.h"
#include "options.h"

/*
 * What was closed by who started mote would be the number of a socket next, and messages would go
 * to a subscriber. Opened the wrong way round, so that writing and reading fail as before.
 */
static void fill_standard_descriptors(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return;
	}
}

/* What was printed has arrived. */
static int printed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	mote_log(MOTE_LOG_ERROR, "cannot write the output: %m");
	return 1;
}

static int start(const struct mote_options *options, enum mote_action action)
{
	struct mote_agent *agent;
	int err = mote_agent_new(options, &agent);

	if (err)
		return err;
	err = mote_agent_probes(agent);
	if (!err)
		err = mote_agent_engine(agent);
	if (!err && action == MOTE_ACTION_RUN)
		err = mote_agent_listen(agent);
	if (!err)
		err = mote_agent_drop(agent);
	if (!err)
		err = mote_agent_collect(agent);
	if (!err && action == MOTE_ACTION_CHECK) {
		err = mote_agent_check(agent);
		goto out;
	}
	if (!err)
		err = mote_agent_serve(agent);
	if (!err)
		err = mote_agent_run(agent);
out:
	mote_agent_free(agent);
	return err;
}

int main(int argc, char **argv)
{
	static struct mote_options options;
	enum mote_action action;
	char err[512];

	fill_standard_descriptors();
	mote_log_open();
	if (mote_options_args(&options, argc, argv, &action, err, sizeof(err))) {
		fprintf(stderr, "moted: %s\n", err);
		return 2;
	}
	if (action == MOTE_ACTION_VERSION) {
		printf("moted " MOTE_VERSION "\n");
		return printed();
	}
	if (action == MOTE_ACTION_HELP) {
		mote_options_help(stdout);
		return printed();
	}
	return start(&options, action) ? 1 : 0;
}
