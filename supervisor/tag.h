/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a completion's tag says: whose operation it was (8 bits), which of them (24), and of which
 * generation (32), so that a completion of a connection that is gone is told from its successor's.
 */
#ifndef MOTE_TAG_H
#define MOTE_TAG_H

#include <stdint.h>

enum mote_tag_kind {
	MOTE_TAG_TIMER = 1,
	MOTE_TAG_SIGNAL,
	MOTE_TAG_FILE, /* an operation of the tick's chain */
	MOTE_TAG_ACCEPT,
	MOTE_TAG_RECV,
	MOTE_TAG_SEND,
	MOTE_TAG_WRITABLE,
	MOTE_TAG_HANGUP,
	MOTE_TAG_CLOSE,
	MOTE_TAG_ARGV, /* a read of /proc/PID/cmdline */
	MOTE_TAG_CONNECTOR,
	MOTE_TAG_CGROUP, /* a read of cgroupfs that no tick waits for */
	MOTE_TAG_KINDS
};

static inline uint64_t mote_tag(enum mote_tag_kind kind, uint32_t index, uint32_t generation)
{
	return (uint64_t)kind << 56 | (uint64_t)(index & 0xffffff) << 32 | generation;
}

static inline enum mote_tag_kind mote_tag_kind(uint64_t tag)
{
	return (enum mote_tag_kind)(tag >> 56);
}

static inline uint32_t mote_tag_index(uint64_t tag)
{
	return (uint32_t)(tag >> 32) & 0xffffff;
}

static inline uint32_t mote_tag_generation(uint64_t tag)
{
	return (uint32_t)tag;
}

#endif
