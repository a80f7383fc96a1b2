/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The schema: streams and their fields, made from schema.def. Field indices are <STREAM>_<FIELD>
 * (CPU_USER, PROCESS_RSS), the number of a stream's fields <STREAM>__FIELDS.
 */
#ifndef MOTE_SCHEMA_H
#define MOTE_SCHEMA_H

#include <stdint.h>

enum mote_type { MOTE_U64, MOTE_I64, MOTE_F64, MOTE_STR, MOTE_LIST };
enum mote_kind { MOTE_KEY, MOTE_COUNTER, MOTE_GAUGE, MOTE_INFO };

struct mote_field {
	const char *name;
	const char *unit; /* UCUM; "" for none */
	const char *help;
	enum mote_type type;
	enum mote_kind kind;
};

struct mote_stream {
	const char *name;
	const char *help;
	const struct mote_field *fields;
	unsigned int nfields;
	unsigned int interval_ms; /* default */
};

#define STREAM(ID, name, interval, help) MOTE_STREAM_##ID,
#define FIELD(STREAM, ID, name, type, kind, unit, help)
#define END(STREAM)
enum mote_stream_id {
#include "schema.def"
	MOTE_STREAMS
};
#undef STREAM
#undef FIELD
#undef END

#define STREAM(ID, name, interval, help)                enum {
#define FIELD(STREAM, ID, name, type, kind, unit, help) STREAM##_##ID,
#define END(STREAM)      \
	STREAM##__FIELDS \
	}                \
	;
#include "schema.def"
#undef STREAM
#undef FIELD
#undef END

extern const struct mote_stream mote_streams[MOTE_STREAMS];

/* Returns the stream's id, or -1. `name` need not end with NUL. */
int mote_stream_find(const char *name, unsigned int len);

const char *mote_type_name(enum mote_type type); /* "u64" "i64" "f64" "str" "list" */
const char *mote_kind_name(enum mote_kind kind); /* "key" "counter" "gauge" "info" */

#endif
