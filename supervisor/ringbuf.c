// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Reads a mapped BPF ring buffer. The kernel publishes a record by clearing the busy bit of its
 * header, and sees room that became free by our position; both are stores with release here and
 * there. A record that is still busy ends the drain: order is kept, the next drain goes on there.
 */
#include "ringbuf.h"

#include <assert.h>
#include <linux/bpf.h>
#include <stddef.h>

/* What positions are in the kernel. */
static_assert(sizeof(unsigned long) == sizeof(uint64_t), "64-bit kernels only");

const void *mote_ringbuf_next(const struct mote_ringbuf *rb, uint64_t *position, uint32_t *len)
{
	uint64_t end = __atomic_load_n(rb->producer, __ATOMIC_ACQUIRE);

	while (*position < end) {
		const uint8_t *at = rb->data + (*position & (rb->size - 1));
		uint32_t header = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);

		if (header & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		*len = header & ~BPF_RINGBUF_DISCARD_BIT;
		*position += (BPF_RINGBUF_HDR_SZ + (uint64_t)*len + 7) & ~7ull;
		if (!(header & BPF_RINGBUF_DISCARD_BIT))
			return at + BPF_RINGBUF_HDR_SZ;
	}
	return NULL;
}

uint64_t mote_ringbuf_fill(const struct mote_ringbuf *rb)
{
	return __atomic_load_n(rb->producer, __ATOMIC_ACQUIRE) - *rb->consumer;
}

unsigned int mote_ringbuf_drain(struct mote_ringbuf *rb, unsigned int max, mote_ringbuf_fn *record,
				void *ctx)
{
	uint64_t at = *rb->consumer, fill = mote_ringbuf_fill(rb);
	unsigned int n = 0;
	const void *next;
	uint32_t len;

	if (fill > rb->peak)
		rb->peak = fill;
	for (; n < max && (next = mote_ringbuf_next(rb, &at, &len)); n++)
		record(ctx, next, len);
	__atomic_store_n(rb->consumer, at, __ATOMIC_RELEASE);
	return n;
}
