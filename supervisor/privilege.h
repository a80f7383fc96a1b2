/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What mote may do after start: nothing that needs a capability.
 */
#ifndef MOTE_PRIVILEGE_H
#define MOTE_PRIVILEGE_H

/*
 * Gives up every capability of the calling thread, for good, and tries to get one back: -EPERM
 * (the good outcome) is 0, and a success is -ENOTRECOVERABLE. Call it before threads are started,
 * as capabilities are a thread's own.
 */
int mote_privilege_drop(void);

#endif
