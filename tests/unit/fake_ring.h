/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A BPF ring buffer whose kernel is the test: data twice in a row, records put there by hand.
 */
#ifndef FAKE_RING_H
#define FAKE_RING_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ringbuf.h"

#define FAKE_BUSY    (1u << 31)
#define FAKE_DISCARD (1u << 30)

struct fake_ring {
	struct mote_ringbuf ring;
	uint64_t consumer, producer;
	uint8_t *data;
	uint32_t size;
};

static inline int fake_ring_open(struct fake_ring *f, uint32_t size, uint64_t position)
{
	int fd = memfd_create("ring", 0), err = ftruncate(fd, size);

	*f = (struct fake_ring){ .consumer = position, .producer = position, .size = size };
	f->data = mmap(NULL, 2 * (size_t)size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned int i = 0; i < 2 && !err; i++)
		err = mmap(f->data + i * size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			   fd, 0) == MAP_FAILED;
	close(fd);
	f->ring = (struct mote_ringbuf){ &f->consumer, &f->producer, f->data, size, 0 };
	return err;
}

static inline void fake_ring_close(struct fake_ring *f)
{
	munmap(f->data, 2 * (size_t)f->size);
}

/* Puts a record there; NULL if there is no room. Returns its header, for the bits. */
static inline uint32_t *fake_ring_put(struct fake_ring *f, const void *record, uint32_t len,
				      uint32_t bits)
{
	uint8_t *at = f->data + f->producer % f->size;
	uint64_t end = f->producer + ((len + 8 + 7) & ~7ull);
	uint32_t header = len | bits;

	if (end - f->consumer > f->size)
		return NULL;
	memcpy(at, &header, sizeof(header));
	memcpy(at + 8, record, len);
	f->producer = end;
	return (uint32_t *)at;
}

#endif
