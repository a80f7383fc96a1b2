/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What goes over the socket, shared by the supervisor and libmote; docs/PROTOCOL.md explains it
 * for everybody else. All integers of the header are little-endian, bodies are MessagePack.
 */
#ifndef MOTE_PROTOCOL_H
#define MOTE_PROTOCOL_H

#include <assert.h>
#include <stdint.h>

#define MOTE_MAGIC            0x65746f6du /* "mote" */
#define MOTE_PROTOCOL_VERSION 1

enum mote_frame_type {
	MOTE_FRAME_HELLO = 1,   /* once, on connect: schema, host, tiers, absent fields, tables */
	MOTE_FRAME_DATA = 2,    /* rows of one stream */
	MOTE_FRAME_DROPPED = 3, /* this subscriber lost frames */
	MOTE_FRAME_REPLY = 4,   /* answer to a request line */
	MOTE_FRAME_TYPES
};

enum mote_frame_flags {
	MOTE_FRAME_KEY = 1,  /* DATA: the first frame of a keyframe: forget this stream's rows */
	MOTE_FRAME_MORE = 2, /* DATA: more frames of the same update follow */
	MOTE_FRAME_KEY_PART = 8, /* DATA: every frame of a keyframe; the last is without MORE */
	MOTE_FRAME_GAP = 4,      /* DATA: the time since the update before is not the interval:
				  * ticks were skipped, the machine was suspended or a clock stepped */
};

struct mote_frame_header {
	uint32_t magic;
	uint8_t version;
	uint8_t type;
	uint16_t flags;
	uint32_t length;   /* of the body, bytes */
	uint32_t stream;   /* DATA: id of the stream in the hello; else 0 */
	uint64_t sequence; /* DATA: counts this stream's updates at this interval; a keyframe has
			    * that of the update it includes; else 0 */
	uint64_t time;     /* the sample's time, CLOCK_MONOTONIC ns */
};
static_assert(sizeof(struct mote_frame_header) == 32, "the header is 32 bytes");

/*
 * Bodies:
 * HELLO    map, see docs/PROTOCOL.md
 * DATA     [interval_ms, [row, ...], [ended key, ...], ended totals or nil]
 *          row: array in schema order; ended key: array of the KEY fields;
 *          totals: array in schema order, nil but for the COUNTER fields
 * DROPPED  [frames, bytes] lost by this subscriber since it connected
 * REPLY    [code, text]: code 0 or an errno; text one line
 */

#define MOTE_REQUEST_MAX 512 /* bytes of a request line, its newline included */

#endif
