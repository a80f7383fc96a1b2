/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How many descriptors this process may have. Who holds many of them open, and could do with
 * fewer, asks at start.
 */
#ifndef MOTE_DESCRIPTORS_H
#define MOTE_DESCRIPTORS_H

/* For everything but what is held in large numbers: files, sockets, programs, subscribers. */
#define MOTE_DESCRIPTORS_RESERVE 256

/* Raises RLIMIT_NOFILE to `wanted`, or as far as it may be; the limit, 0 if it is not known. */
unsigned int mote_descriptors_allow(unsigned int wanted);

/*
 * Has the kernel make room in its table of descriptors for as many as this now: a table that grows
 * later waits for an RCU grace period, milliseconds, within a tick. `fd`: any that is open.
 */
void mote_descriptors_grow(int fd, unsigned int descriptors);

#endif
