// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The schema table, built from schema.def; see there.
 */
#include "schema.h"

#include <assert.h>
#include <string.h>

/* Read by the start only, for the hello frame: see start.ld. */
#define HELP static const char __attribute__((section("early_rodata")))

#define STREAM(ID, name, interval, help)                HELP help_##ID[] = help;
#define FIELD(STREAM, ID, name, type, kind, unit, help) HELP help_##STREAM##_##ID[] = help;
#define END(STREAM)
#include "schema.def"
#undef STREAM
#undef FIELD
#undef END

#define STREAM(ID, name, interval, help) static const struct mote_field fields_##ID[] = {
#define FIELD(STREAM, ID, name, type, kind, unit, help) \
	[STREAM##_##ID] = { name, unit, help_##STREAM##_##ID, MOTE_##type, MOTE_##kind },
#define END(STREAM) \
	}           \
	;           \
	static_assert(STREAM##__FIELDS <= 64, "rows hold one presence bit a field");
#include "schema.def"
#undef STREAM
#undef FIELD
#undef END

#define STREAM(ID, name, interval, help) \
	[MOTE_STREAM_##ID] = { name, help_##ID, fields_##ID, ID##__FIELDS, interval },
#define FIELD(STREAM, ID, name, type, kind, unit, help)
#define END(STREAM)
const struct mote_stream mote_streams[MOTE_STREAMS] = {
#include "schema.def"
};
#undef STREAM
#undef FIELD
#undef END

int mote_stream_find(const char *name, unsigned int len)
{
	for (int i = 0; i < MOTE_STREAMS; i++) {
		if (strlen(mote_streams[i].name) == len && !memcmp(mote_streams[i].name, name, len))
			return i;
	}
	return -1;
}

const char *mote_type_name(enum mote_type type)
{
	static const char *const names[] = {
		[MOTE_U64] = "u64", [MOTE_I64] = "i64",   [MOTE_F64] = "f64",
		[MOTE_STR] = "str", [MOTE_LIST] = "list",
	};
	static_assert(sizeof(names) / sizeof(names[0]) == MOTE_LIST + 1, "one name a type");
	return names[type];
}

const char *mote_kind_name(enum mote_kind kind)
{
	static const char *const names[] = {
		[MOTE_KEY] = "key",
		[MOTE_COUNTER] = "counter",
		[MOTE_GAUGE] = "gauge",
		[MOTE_INFO] = "info",
	};
	static_assert(sizeof(names) / sizeof(names[0]) == MOTE_INFO + 1, "one name a kind");
	return names[kind];
}
