/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Process events from the kernel's proc connector (a netlink socket), for hosts without BPF. They
 * tell fork, exec and exit, but not what an exited process used. The socket is read by the engine
 * on the tick.
 *
 * An exit is that of a process's first thread: the connector does not say when the last one ends.
 * They differ in two cases, where the process goes on to be listed: the first thread called
 * pthread_exit(), or another one has called exec (an exec event with the same pid follows).
 */
#ifndef MOTE_CONNECTOR_H
#define MOTE_CONNECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

/*
 * The subscribed socket, non-blocking, or negative errno: EPERM without CAP_NET_ADMIN (up to 6.5),
 * ENODATA if the kernel does not answer, which it does not do in a container (a user or pid
 * namespace of its own), EPROTONOSUPPORT or ECONNREFUSED without CONFIG_PROC_EVENTS. May take
 * half a second. A receive that gives ENOBUFS says that events were lost.
 */
int mote_connector_open(void);
/* Up to 6.5 the kernel goes on making events for nobody if a socket is just closed. */
void mote_connector_close(int fd);

/*
 * Parses one datagram into `event`. Known are kind, pid and time (CLOCK_MONOTONIC, ns), the parent
 * where the kernel gives it (fork; exit from 4.18 on), and for an exit exit_code, the first
 * thread's wait status; the rest is 0. 1: an event of a process, 0: none (a thread, another kind),
 * -EBADMSG.
 */
int mote_connector_parse(const void *data, size_t len, struct mote_event_exit *event);

#endif
