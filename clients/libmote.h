/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libmote: reads the frames of the supervisor moted, live from its socket or from a recording.
 * docs/PROTOCOL.md says what they mean.
 *
 *	struct mote_client *client;
 *	struct mote_message message;
 *	struct mote_record row;
 *
 *	if (mote_open(NULL, &client) < 0)
 *		...
 *	mote_request(client, "subscribe process interval=1s");
 *	while (mote_next(client, &message, -1) > 0)
 *		for (size_t i = 0; mote_row(&message, i, &row); i++)
 *			use(mote_value_named(&row, "rss"));
 *	mote_close(client);
 *
 * Functions that can fail return a negative errno and leave their out-parameters alone;
 * mote_error() then says in words what was wrong. Nothing is printed, no signal is touched. A
 * client may be used by one thread at a time, different clients by different threads.
 */
#ifndef LIBMOTE_H
#define LIBMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOTE_API __attribute__((visibility("default")))

#define MOTE_SOCKET_PATH "/run/mote.sock"
#define MOTE_MAX_BODY    (16u << 20) /* default for the largest body taken, bytes */

struct mote_client; /* a connection or a recording; mote_close() frees it */

/* What the supervisor says of itself in its first frame. Texts are never NULL, "" if not sent. */

enum mote_value_type {
	MOTE_VALUE_NIL, /* this host or this object does not have it */
	MOTE_VALUE_U64,
	MOTE_VALUE_I64,
	MOTE_VALUE_F64,
	MOTE_VALUE_STR,  /* text, UTF-8 by the sender's word */
	MOTE_VALUE_BIN,  /* text that is not UTF-8 */
	MOTE_VALUE_LIST, /* of MOTE_VALUE_STR and MOTE_VALUE_BIN */
	MOTE_VALUE_OTHER /* something a later protocol may bring: pass over it */
};

enum mote_field_kind {
	MOTE_KIND_KEY,     /* identifies a row */
	MOTE_KIND_COUNTER, /* cumulative, never decreases */
	MOTE_KIND_GAUGE,   /* a value of now */
	MOTE_KIND_INFO,    /* describes the object */
	MOTE_KIND_OTHER
};

struct mote_field_info {
	const char *name, *unit, *help; /* unit: UCUM, as OpenTelemetry writes them; "" for none */
	const char *type_name, *kind_name; /* as sent: "u64", "counter" */
	enum mote_value_type type;
	enum mote_field_kind kind;
};

struct mote_stream_info {
	uint32_t id;          /* as in a frame's header */
	uint32_t interval_ms; /* default */
	const char *name, *help;
	const struct mote_field_info *fields;
	size_t nfields;
	size_t nkeys; /* how many fields are of kind key, in the order of an ended key */
};

struct mote_host_info {
	const char *hostname, *kernel, *machine, *boot_id;
	uint64_t cpus;      /* possible CPUs */
	uint64_t page_size; /* bytes */
	uint64_t user_hz;   /* ticks a second of times such as a process's start */
	uint64_t pid_max;
};

struct mote_tier_info {
	const char *tier, *choice, *reason;
};

struct mote_absent_info {
	const char *stream, *field, *reason; /* field "*": all of the stream's */
};

struct mote_table_info {
	const char *name, *unit;
	uint64_t size; /* most it holds, in `unit` */
};

struct mote_hello {
	const char *mote; /* version of the supervisor */
	uint64_t protocol;
	const char *mode, *engine;
	int64_t realtime_offset; /* ns; add it to a sample's time to have CLOCK_REALTIME */
	struct mote_host_info host;
	const struct mote_stream_info *streams;
	size_t nstreams;
	const struct mote_tier_info *tiers;
	size_t ntiers;
	const struct mote_absent_info *absent;
	size_t nabsent;
	const struct mote_table_info *tables;
	size_t ntables;
};

/* One frame. What it points to is the client's and good until the next mote_next(). */

enum mote_message_type {
	MOTE_MESSAGE_HELLO = 1,
	MOTE_MESSAGE_DATA = 2,
	MOTE_MESSAGE_DROPPED = 3,
	MOTE_MESSAGE_REPLY = 4
};

struct mote_cells; /* rows as they came, read by mote_row() and its like */

struct mote_message {
	unsigned int type; /* enum mote_message_type; others only with mote_set_raw() */
	const void *raw;   /* the frame's bytes, header and body */
	size_t raw_size;   /* bytes */

	/* DATA */
	const struct mote_stream_info *stream; /* NULL: a stream that the hello did not name */
	uint32_t stream_id;
	uint32_t interval_ms;
	uint64_t sequence;
	uint64_t time;   /* of the sample, CLOCK_MONOTONIC ns */
	uint64_t missed; /* updates of this stream and interval lost before this one */
	bool key;        /* begins a keyframe: forget the rows of this stream */
	bool more;       /* more frames of the same update follow */
	bool gap;        /* the time since the update before is not the interval */
	size_t nrows, nended;
	bool has_totals;
	const struct mote_cells *rows, *ended, *totals;

	/* DROPPED: lost by this client since it connected, because it was slow */
	uint64_t dropped_frames, dropped_bytes;

	/* REPLY */
	int code;         /* 0 or a positive errno */
	const char *text; /* text_size bytes, no NUL */
	size_t text_size;
};

struct mote_value {
	enum mote_value_type type;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		struct {
			const char *bytes; /* no NUL at the end */
			size_t size;
		} str; /* STR and BIN */
		struct {
			const struct mote_cells *cells;
			size_t size;
		} list;
	};
};

struct mote_record {                           /* a row, a key that ended, or totals */
	const struct mote_stream_info *stream; /* may be NULL */
	const struct mote_cells *cells;
	size_t ncells;
	bool is_key; /* the cells are the key fields only */
};

/*
 * Connects to the socket at `path`, NULL for MOTE_SOCKET_PATH. On success *client is to be closed
 * with mote_close(). Errors: those of socket() and connect(); -ENOENT and -ECONNREFUSED: no
 * supervisor there; -EACCES: not permitted; -ENAMETOOLONG; -ENOMEM.
 */
MOTE_API int mote_open(const char *path, struct mote_client **client);

/*
 * Reads frames from `fd`: a connected socket, or a pipe or file of recorded frames. The
 * descriptor becomes the client's on success: mote_close() closes it. Errors: -EBADF, -ENOMEM.
 */
MOTE_API int mote_open_fd(int fd, struct mote_client **client);

/* Closes the descriptor and frees all that messages pointed to. NULL is allowed. */
MOTE_API void mote_close(struct mote_client *client);

/*
 * The descriptor to poll for POLLIN. Frames can already be in the client's buffer: call
 * mote_next(client, m, 0) until it returns -EAGAIN, then poll.
 */
MOTE_API int mote_fd(const struct mote_client *client);

/* Refuses bodies above `bytes` from now on; 0 for MOTE_MAX_BODY. */
MOTE_API void mote_set_max_body(struct mote_client *client, uint32_t bytes);

/*
 * For recorders and relays: bodies of data are not decoded (rows are not to be
 * had), and frames of types this library does not know are given too, not passed over.
 */
MOTE_API void mote_set_raw(struct mote_client *client, bool raw);

/*
 * Waits for the next frame and fills *message. timeout_ms: 0 does not block, -1 waits for ever;
 * the descriptor's O_NONBLOCK does not matter. Returns 1: a frame; 0: the other side closed after
 * a whole frame. Errors:
 *   -EAGAIN          nothing whole within the time
 *   -EINTR           a signal came while waiting; call again
 *   -EBADMSG         this frame's body is malformed; the next call goes on behind it
 *   -EPROTO          these are not mote's frames     (and every call after it)
 *   -EPROTONOSUPPORT another version of the protocol (and every call after it)
 *   -EMSGSIZE        a body above the limit          (and every call after it)
 *   -ENODATA         it ended within a frame         (and every call after it)
 *   -ENOMEM, and those of read()
 */
MOTE_API int mote_next(struct mote_client *client, struct mote_message *message, int timeout_ms);

/*
 * The hello, or NULL as long as none was read. It is the client's, good until the next hello (a
 * recording may hold several, one after the other) or mote_close().
 */
MOTE_API const struct mote_hello *mote_hello(const struct mote_client *client);

/*
 * Sends one request line, without its newline; the answer comes as a REPLY message. Blocks until
 * the kernel took it. Errors: -EMSGSIZE over 511 bytes, -EINVAL a newline or NUL within,
 * -ENOTSOCK a recording, and those of send().
 */
MOTE_API int mote_request(struct mote_client *client, const char *line);

/*
 * What was wrong, for a person: of the last call that failed on this client ("frame 3 at byte
"), good until the next call. "" if nothing was. For errors of mote_open(), use
 * strerror().
 */
MOTE_API const char *mote_error(const struct mote_client *client);

/* Row `i` of a DATA message; false behind the last. The record is good as long as the message. */
MOTE_API bool mote_row(const struct mote_message *message, size_t i, struct mote_record *row);

/* Key `i` of the rows that ended; false behind the last. Its cells are the key fields. */
MOTE_API bool mote_ended(const struct mote_message *message, size_t i, struct mote_record *key);

/* The sums of the counters of all rows that ever ended; false if the message has none. */
MOTE_API bool mote_totals(const struct mote_message *message, struct mote_record *totals);

/*
 * Cell `i` of a record, nil behind its end. If the schema says so a number is converted without
 * loss to I64 or F64. Bytes are not copied: good as long as the message.
 */
MOTE_API struct mote_value mote_value(const struct mote_record *record, size_t i);

/* The cell of the field `name`; nil if the stream has no such field or is not known. */
MOTE_API struct mote_value mote_value_named(const struct mote_record *record, const char *name);

/* Field `i` of the record's stream (of its key fields, for a key); NULL behind the last. */
MOTE_API const struct mote_field_info *mote_field(const struct mote_record *record, size_t i);

/* Element `i` of a LIST value; nil behind its end. */
MOTE_API struct mote_value mote_element(const struct mote_value *list, size_t i);

#ifdef __cplusplus
}
#endif

#endif
