// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/meminfo and /proc/vmstat: lines of a name and a number. The schema's field names are the
 * kernel's, so lines are matched with the schema: first with the field after the one before, as
 * both stand in the kernel's order, then with all. Names the schema does not have are passed over.
 */
#include "scan.h"

struct names {
	const struct mote_stream *stream;
	unsigned int expected; /* the field of the next line, most likely */
	uint64_t filter[4];    /* of 256 bits: most names that are not in the schema miss it */
	uint64_t taken;
	uint8_t length[64];
};

static unsigned int filter_bit(const char *name, size_t len)
{
	return len ? (len * 31 + (unsigned char)name[0] * 7 + (unsigned char)name[len - 1]) % 256
		   : 0;
}

static void names_init(struct names *names, enum mote_stream_id stream)
{
	*names = (struct names){ .stream = &mote_streams[stream] };
	for (unsigned int i = 0; i < names->stream->nfields; i++) {
		const char *name = names->stream->fields[i].name;
		size_t len = strlen(name);
		unsigned int bit = filter_bit(name, len);

		names->length[i] = len;
		names->filter[bit / 64] |= 1ull << bit % 64;
	}
}

static bool name_is(const struct names *names, unsigned int field, struct mote_text name)
{
	return names->length[field] == name.len &&
	       !memcmp(names->stream->fields[field].name, name.data, name.len);
}

/* The field of this name, or -1 if there is none or the name came before. */
static int names_find(struct names *names, struct mote_text name)
{
	unsigned int i = names->expected, bit = filter_bit(name.data, name.len);

	if (!(names->filter[bit / 64] & 1ull << bit % 64))
		return -1;
	if (i >= names->stream->nfields || !name_is(names, i, name)) {
		for (i = 0; i < names->stream->nfields; i++) {
			if (name_is(names, i, name))
				break;
		}
	}
	if (i >= names->stream->nfields || !mote_scan_take(&names->taken, i))
		return -1;
	names->expected = i + 1;
	return i;
}

/* `MemTotal:       24683652 kB`, and without a unit where it is a count of huge pages */
int mote_parse_meminfo(struct mote_text meminfo, struct mote_table *memory, uint64_t now)
{
	struct mote_scan text = mote_scan_text(meminfo), line;
	struct names names;
	uint64_t v;

	names_init(&names, MOTE_STREAM_MEMORY);
	mote_table_begin(memory, now);
	struct mote_row *row = mote_table_row(memory, NULL, 0);
	while (mote_scan_line(&text, &line)) {
		int field = names_find(&names, mote_scan_until(&line, ':'));

		if (field >= 0 && mote_scan_u64(&line, &v)) {
			bool kib = mote_text_is(mote_scan_word(&line), "kB");

			mote_scan_set(memory, row, field, v, kib ? 1024 : 1);
		}
	}
	return mote_scan_finish(memory, names.taken && mote_scan_done(&text));
}

/* `pgpgin 1222317` */
int mote_parse_vmstat(struct mote_text vmstat, struct mote_table *vm, uint64_t now)
{
	struct mote_scan text = mote_scan_text(vmstat), line;
	struct names names;
	uint64_t v;

	names_init(&names, MOTE_STREAM_VM);
	mote_table_begin(vm, now);
	struct mote_row *row = mote_table_row(vm, NULL, 0);
	while (mote_scan_line(&text, &line)) {
		int field = names_find(&names, mote_scan_until(&line, ' '));

		if (field >= 0 && mote_scan_u64(&line, &v))
			mote_row_set(vm, row, field, v);
	}
	return mote_scan_finish(vm, names.taken && mote_scan_done(&text));
}
