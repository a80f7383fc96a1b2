/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef MOTE_RUN_H
#define MOTE_RUN_H

#include "loop.h"

/*
 * Ends the start and runs the loop until SIGTERM or SIGINT: 0, or negative errno. Until it is back
 * nothing runs that start.ld has put aside.
 */
int mote_run(struct mote_loop *loop, struct mote_self *self);

#endif
