/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reader of a mapped BPF ring buffer: memory only, no system call. The kernel's side is
 * kernel/bpf/ringbuf.c: positions only grow, data is mapped twice in a row, so that a record that
 * wraps is contiguous.
 */
#ifndef MOTE_RINGBUF_H
#define MOTE_RINGBUF_H

#include <stdint.h>

struct mote_ringbuf {
	uint64_t *consumer;       /* ours to advance */
	const uint64_t *producer; /* the kernel's */
	const uint8_t *data;
	uint64_t size; /* bytes, a power of two */
	uint64_t peak; /* largest fill that a drain found */
};

/*
 * The record at *position, if it is complete, and its bytes; *position moves behind it. NULL: none,
 * or one that is being written. Its room is not freed.
 */
const void *mote_ringbuf_next(const struct mote_ringbuf *rb, uint64_t *position, uint32_t *len);

typedef void mote_ringbuf_fn(void *ctx, const void *record, uint32_t len);

/*
 * Hands at most `max` records to `record`, oldest first, and frees their room when it has handed
 * over the last. Returns how many; fewer than `max` means that nothing more is ready.
 */
unsigned int mote_ringbuf_drain(struct mote_ringbuf *rb, unsigned int max, mote_ringbuf_fn *record,
				void *ctx);

/* Bytes that wait, headers included. */
uint64_t mote_ringbuf_fill(const struct mote_ringbuf *rb);

#endif
