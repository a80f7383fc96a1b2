// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * SIGIO of the sockets, see wake.h.
 */
#include "wake.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t raised;

static void handler(int signal)
{
	(void)signal;
	raised = 1;
}

int mote_wake_open(void)
{
	/* Without SA_RESTART: the wait is to end. */
	struct sigaction action = { .sa_handler = handler };

	return sigaction(SIGIO, &action, NULL) ? -errno : 0;
}

void mote_wake_watch(int fd)
{
	fcntl(fd, F_SETOWN, getpid());
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC);
}

bool mote_wake_taken(void)
{
	bool was = raised;

	raised = 0;
	return was;
}
