/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Helper threads that do what may block, and how the loop takes what they found without waiting
 * and without a system call.
 */
#ifndef MOTE_THREAD_H
#define MOTE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Starts `fn(arg)` with a small stack and every signal blocked; `name` has at most 15
 * characters. The stack comes from mmap(), so that this is for the start only. 0 or negative errno.
 */
int mote_thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg);
/* To be called first in `fn`: faults in the stack it will use, so that it never does so later. */
void mote_thread_touch_stack(void);

/* Waits at most `ns` for the thread's end; false if it has not come (it hangs in the kernel). */
bool mote_thread_join(pthread_t thread, uint64_t ns);

uint64_t mote_thread_now(void); /* CLOCK_MONOTONIC, ns */
/* A condition variable whose time-outs are CLOCK_MONOTONIC. 0 or negative errno. */
int mote_thread_cond_init(pthread_cond_t *cond);
/* Waits until woken or `until` (ns); may return early. */
void mote_thread_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until);

/*
 * Three buffers: the writer fills one, the reader has one, the third is the newest that was handed
 * over. Neither side ever waits for the other. One writer and one reader at a time.
 */
struct mote_triple {
	_Atomic unsigned int middle; /* index, and MOTE_TRIPLE_NEW if the reader has not had it */
	unsigned int back;           /* the writer's */
	unsigned int front;          /* the reader's */
};
#define MOTE_TRIPLE_NEW 4u

static inline void mote_triple_init(struct mote_triple *triple)
{
	*triple = (struct mote_triple){ .middle = 0, .back = 1, .front = 2 };
}

/* The writer hands over buffer `back` and has another one as `back` then. */
static inline void mote_triple_publish(struct mote_triple *triple)
{
	unsigned int old = atomic_exchange_explicit(&triple->middle, triple->back | MOTE_TRIPLE_NEW,
						    memory_order_acq_rel);

	triple->back = old & ~MOTE_TRIPLE_NEW;
}

/* The reader takes the newest buffer as `front`; false, with `front` as it was, if it has it. */
static inline bool mote_triple_take(struct mote_triple *triple)
{
	if (!(atomic_load_explicit(&triple->middle, memory_order_relaxed) & MOTE_TRIPLE_NEW))
		return false;
	triple->front =
		atomic_exchange_explicit(&triple->middle, triple->front, memory_order_acq_rel) &
		~MOTE_TRIPLE_NEW;
	return true;
}

#endif
