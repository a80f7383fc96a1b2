/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef MOTE_SETTLE_H
#define MOTE_SETTLE_H

/* Called after what frees much: pieces of the heap become whole, for what is allocated next. */
void mote_settle_heap(void);

/*
 * Called last before the loop, in its thread. After this nothing is allocated and no page is
 * touched for the first time: what libraries freed during start goes back to the kernel, and the
 * pages of variables and of the stack are made.
 */
void mote_settle_memory(void);

#endif
