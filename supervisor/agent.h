/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The agent as a whole: every part is opened by a step of its own, in the order that privilege
 * asks for, and main() lists the steps. A step that fails for good has logged why.
 */
#ifndef MOTE_AGENT_H
#define MOTE_AGENT_H

#include "options.h"

struct mote_agent;

/* The steps return 0 or a negative errno. */
int mote_agent_new(const struct mote_options *options, struct mote_agent **out);
int mote_agent_probes(struct mote_agent *agent);  /* load and attach what tells of processes */
int mote_agent_engine(struct mote_agent *agent);  /* io_uring, or a note that there is none */
int mote_agent_listen(struct mote_agent *agent);  /* the socket */
int mote_agent_drop(struct mote_agent *agent);    /* every capability */
int mote_agent_collect(struct mote_agent *agent); /* files, tables and threads of collectors */
int mote_agent_serve(struct mote_agent *agent);   /* the hello frame and the subscribers' memory */
int mote_agent_run(struct mote_agent *agent);     /* until SIGTERM or SIGINT */
void mote_agent_free(struct mote_agent *agent);

/* Instead of serve and run: prints what this host allows, the choices and the reasons. */
int mote_agent_check(struct mote_agent *agent);

#endif
