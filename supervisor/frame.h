/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Encodes frames (protocol.h) into memory given by the caller, with msgpack-c. An update of a
 * stream is one frame or several; an encoder is told where to go on.
 */
#ifndef MOTE_FRAME_H
#define MOTE_FRAME_H

#include <msgpack.h>

#include "protocol.h"
#include "schema.h"
#include "table.h"

/* Where msgpack-c writes to; what does not fit sets `full` and is cut off. */
struct mote_writer {
	char *buf;
	uint32_t len, size;
	bool full;
};
void mote_writer_init(struct mote_writer *writer, msgpack_packer *pk, char *buf, uint32_t size);

/*
 * What the encoder asks of a stream. `cursor` is the source's own, 0 to begin with; a call that
 * gives false or whose row does not fit may be repeated with the same cursor.
 */
struct mote_source_ops {
	/* Packs the next row that changed after `since` (0: every row); false: no more. */
	bool (*row)(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk);
	/* Packs the key of the next row that ended after `since`; false: no more. */
	bool (*ended)(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk);
	/* Packs the totals of ended rows, or nil. */
	void (*totals)(void *ctx, msgpack_packer *pk);
	/* Whether keys that ended after `since` were forgotten: only a keyframe will do. */
	bool (*forgot)(void *ctx, uint64_t since);
	/* Grows when cursors of before can no longer be used; NULL: they always can. */
	uint64_t (*epoch)(void *ctx);
	/*
	 * A log, NULL for a table of rows: the cursor after its newest row. Its rows are given
	 * once; a class goes on from where it was, and the log keeps them until all have.
	 */
	uint64_t (*head)(void *ctx);
	/* What is before the cursor is not needed any more. */
	void (*trim)(void *ctx, uint64_t cursor);
	/* Whether a log can wait with what it has until somebody takes it. */
	bool (*patient)(void *ctx);
};

struct mote_source {
	const struct mote_source_ops *ops;
	void *ctx;
};

struct mote_update {
	enum mote_stream_id stream;
	const struct mote_source *source;
	uint64_t since;
	uint64_t time;
	uint64_t sequence;
	uint32_t interval_ms;
	uint16_t flags; /* MOTE_FRAME_KEY, MOTE_FRAME_GAP of the first frame */
};

/* Where an update that takes several frames goes on. All zero to begin with. */
struct mote_progress {
	uint64_t cursor, ended; /* the source's, of rows and of ended keys */
	uint64_t epoch;
	bool begun;
	bool in_ended; /* rows are done, ended keys follow */
};

/*
 * Writes one frame of at most `size` bytes and returns its length. `*done` says whether it was
 * the update's last. A row that does not fit an empty frame is left out: the sources' rows are
 * smaller than the smallest frame.
 */
uint32_t mote_frame_data(char *buf, uint32_t size, const struct mote_update *update,
			 struct mote_progress *progress, bool *done);
uint32_t mote_frame_dropped(char *buf, uint32_t size, uint64_t frames, uint64_t bytes,
			    uint64_t time);
uint32_t mote_frame_reply(char *buf, uint32_t size, int code, const char *text, uint64_t time);

/* The header's place is kept free at the start of the buffer. */
void mote_frame_header(char *buf, uint32_t len, enum mote_frame_type type, uint16_t flags,
		       uint32_t stream, uint64_t sequence, uint64_t time);

/* Text as msgpack str, or as bin if it is not UTF-8. */
void mote_pack_text(msgpack_packer *pk, const char *text, size_t len);
/* The same of a string with its NUL. */
void mote_pack_word(msgpack_packer *pk, const char *word);
/* nil if it is not known. */
void mote_pack_known(msgpack_packer *pk, bool known, uint64_t value);
/* NUL-separated text as an array. */
void mote_pack_list(msgpack_packer *pk, const char *text, size_t len);

/* The source of a table's rows; ctx is the table. */
extern const struct mote_source_ops mote_table_source;
/* For sources without rows, ended keys or totals, and those that forget no key. */
bool mote_source_no_more(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk);
void mote_source_no_totals(void *ctx, msgpack_packer *pk);
bool mote_source_remembers(void *ctx, uint64_t since);

/* The source of a stream that this host does not have: no rows, ever. */
extern const struct mote_source_ops mote_empty_source;

#endif
