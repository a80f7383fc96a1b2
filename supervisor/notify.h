/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a service manager is told, sd_notify(3) without its library. Where $NOTIFY_SOCKET is not
 * set nothing is sent, and all of it succeeds.
 */
#ifndef MOTE_NOTIFY_H
#define MOTE_NOTIFY_H

/* Connects to $NOTIFY_SOCKET, while descriptors may still be opened. 0 or a negative errno. */
int mote_notify_open(void);

/* "READY=1\nSTATUS=…", "STOPPING=1". One send(), which does not block. 0 or a negative errno. */
int mote_notify(const char *state);

void mote_notify_close(void);

#endif
