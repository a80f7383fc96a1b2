/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Input between ticks. The loop waits for all of a chain's completions at once, so that a tick is
 * one system call; one more completion, of a connection or a request, does not end that wait. So
 * sockets raise SIGIO, which does. It is a hint: one that comes just before the wait costs the
 * client the rest of the tick, nothing else.
 */
#ifndef MOTE_WAKE_H
#define MOTE_WAKE_H

#include <stdbool.h>

/* Installs the handler. Other threads must have SIGIO blocked. */
int mote_wake_open(void);
/* From now on input on this socket ends the wait. Two system calls. */
void mote_wake_watch(int fd);
/* Whether there was input since this was last asked. */
bool mote_wake_taken(void);

#endif
