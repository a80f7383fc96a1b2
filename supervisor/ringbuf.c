// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Reads a mapped BPF ring buffer. The kernel publishes a record by clearing the busy bit of its
 * header, and sees room that became free by our position; both are stores with release here and
 * there. A record that is still busy ends the drain: order is kept, the next drain goes on there.
 */
#include "ringbuf.h"

#include <assert.h>

/* include/uapi/linux/bpf.h; positions are unsigned long there */
#define BUSY    (1u << 31)
#define DISCARD (1u << 30)
#define HEADER  8

static_assert(sizeof(unsigned long) == sizeof(uint64_t), "64-bit kernels only");

static uint64_t record_bytes(uint32_t header)
{
	uint32_t len = header & ~(BUSY | DISCARD);

	return (HEADER + (uint64_t)len + 7) & ~7ull;
}

uint64_t mote_ringbuf_fill(const struct mote_ringbuf *rb)
{
	return __atomic_load_n(rb->producer, __ATOMIC_ACQUIRE) - *rb->consumer;
}

unsigned int mote_ringbuf_drain(struct mote_ringbuf *rb, unsigned int max, mote_ringbuf_fn *record,
				void *ctx)
{
	uint64_t at = *rb->consumer;
	uint64_t end = __atomic_load_n(rb->producer, __ATOMIC_ACQUIRE);
	unsigned int n = 0;

	if (end - at > rb->peak)
		rb->peak = end - at;
	while (at != end && n < max) {
		const uint8_t *p = rb->data + (at & (rb->size - 1));
		uint32_t header = __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);

		if (header & BUSY)
			break;
		if (!(header & DISCARD)) {
			record(ctx, p + HEADER, header);
			n++;
		}
		at += record_bytes(header);
	}
	__atomic_store_n(rb->consumer, at, __ATOMIC_RELEASE);
	return n;
}
