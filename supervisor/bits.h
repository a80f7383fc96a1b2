/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Masks that say which few of many are there, so that a tick does not look at the others. */
#ifndef MOTE_BITS_H
#define MOTE_BITS_H

#include <stdint.h>

/* The numbers of the bits of `mask`, which is evaluated once, from the lowest; `i` is unsigned. */
#define mote_for_each_bit(i, mask)                                                         \
	for (uint64_t i##_left = (mask); i##_left && ((i) = __builtin_ctzll(i##_left), 1); \
	     i##_left &= i##_left - 1)

#endif
