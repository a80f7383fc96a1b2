// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The ring buffer's reader on a mapping made here, laid out as the kernel's: data twice in a row.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "ringbuf.h"

#define SIZE    4096
#define BUSY    (1u << 31)
#define DISCARD (1u << 30)

struct fixture {
	struct mote_ringbuf rb;
	uint64_t consumer, producer;
	uint8_t *data;
};

static int setup(void **state)
{
	static struct fixture f;
	int fd = memfd_create("ring", 0);

	f = (struct fixture){ 0 };
	assert_int_equal(ftruncate(fd, SIZE), 0);
	f.data = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f.data, MAP_FAILED);
	for (int i = 0; i < 2; i++)
		assert_ptr_not_equal(mmap(f.data + i * SIZE, SIZE, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_FIXED, fd, 0),
				     MAP_FAILED);
	close(fd);
	f.rb = (struct mote_ringbuf){ &f.consumer, &f.producer, f.data, SIZE, 0 };
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	return munmap(f->data, 2 * SIZE);
}

/* What the kernel does: a header, then the record, then the position. Returns the header. */
static uint32_t *produce(struct fixture *f, uint32_t len, uint8_t fill, uint32_t bits)
{
	uint8_t *p = f->data + f->producer % SIZE;

	assert_true(f->producer + 8 + len - f->consumer <= SIZE);
	*(uint32_t *)p = len | bits;
	memset(p + 8, fill, len);
	f->producer += (8 + len + 7) & ~7u;
	return (uint32_t *)p;
}

struct seen {
	unsigned int n;
	uint32_t len[64];
	uint8_t first[64], last[64];
};

static void take(void *ctx, const void *record, uint32_t len)
{
	struct seen *s = ctx;

	s->len[s->n] = len;
	s->first[s->n] = ((const uint8_t *)record)[0];
	s->last[s->n++] = ((const uint8_t *)record)[len - 1];
}

static void gives_records_in_order(void **state)
{
	struct fixture *f = *state;
	struct seen s = { 0 };

	produce(f, 48, 1, 0);
	produce(f, 61, 2, 0);
	produce(f, 8, 3, 0);
	assert_int_equal(mote_ringbuf_fill(&f->rb), 56 + 72 + 16);
	assert_int_equal(mote_ringbuf_drain(&f->rb, 10, take, &s), 3);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.len[1], 61);
	assert_int_equal(s.first[1], 2);
	assert_int_equal(s.last[1], 2);
	assert_int_equal(s.first[2], 3);
	assert_int_equal(f->consumer, f->producer);
	assert_int_equal(mote_ringbuf_fill(&f->rb), 0);
	assert_int_equal(f->rb.peak, 144);
	assert_int_equal(mote_ringbuf_drain(&f->rb, 10, take, &s), 0);
}

static void stops_at_a_busy_record(void **state)
{
	struct fixture *f = *state;
	struct seen s = { 0 };
	uint32_t *busy;

	produce(f, 16, 1, 0);
	busy = produce(f, 16, 2, BUSY);
	produce(f, 16, 3, 0);
	assert_int_equal(mote_ringbuf_drain(&f->rb, 10, take, &s), 1);
	assert_int_equal(f->consumer, 24);
	assert_int_equal(mote_ringbuf_drain(&f->rb, 10, take, &s), 0);
	*busy &= ~BUSY;
	assert_int_equal(mote_ringbuf_drain(&f->rb, 10, take, &s), 2);
	assert_int_equal(s.first[1], 2);
	assert_int_equal(s.first[2], 3);
}

static void passes_over_discarded_records(void **state)
{
	struct fixture *f = *state;
	struct seen s = { 0 };

	produce(f, 16, 1, DISCARD);
	produce(f, 16, 2, 0);
	produce(f, 16, 3, DISCARD);
	assert_int_equal(mote_ringbuf_drain(&f->rb, 10, take, &s), 1);
	assert_int_equal(s.first[0], 2);
	assert_int_equal(f->consumer, f->producer);
}

static void is_bounded_by_max(void **state)
{
	struct fixture *f = *state;
	struct seen s = { 0 };

	for (uint8_t i = 0; i < 5; i++)
		produce(f, 16, i, 0);
	assert_int_equal(mote_ringbuf_drain(&f->rb, 2, take, &s), 2);
	assert_int_equal(f->consumer, 48);
	assert_int_equal(mote_ringbuf_drain(&f->rb, 0, take, &s), 0);
	assert_int_equal(mote_ringbuf_drain(&f->rb, 2, take, &s), 2);
	assert_int_equal(mote_ringbuf_drain(&f->rb, 2, take, &s), 1);
	assert_int_equal(s.first[4], 4);
}

/* Positions far beyond the size, each record once across the end; positions past 32 bits. */
static void wraps_around(void **state)
{
	struct fixture *f = *state;
	unsigned int split = 0;

	f->consumer = f->producer = (1ull << 32) - 4096 * 3;
	for (unsigned int i = 0; i < 1000; i++) {
		struct seen s = { 0 };
		uint32_t len = 1 + i * 37 % 700;

		split += f->producer % SIZE + 8 + len > SIZE;
		produce(f, len, (uint8_t)i, 0);
		assert_int_equal(mote_ringbuf_drain(&f->rb, 4, take, &s), 1);
		assert_int_equal(s.len[0], len);
		assert_int_equal(s.first[0], (uint8_t)i);
		assert_int_equal(s.last[0], (uint8_t)i);
	}
	assert_true(split > 20);
	assert_true(f->producer > 1ull << 32);
	assert_int_equal(f->consumer, f->producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gives_records_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(stops_at_a_busy_record, setup, teardown),
		cmocka_unit_test_setup_teardown(passes_over_discarded_records, setup, teardown),
		cmocka_unit_test_setup_teardown(is_bounded_by_max, setup, teardown),
		cmocka_unit_test_setup_teardown(wraps_around, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
