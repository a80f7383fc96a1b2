// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * /proc/meminfo and /proc/vmstat: lines of a name and a number. The schema's field names are the
 * kernel's, so lines are matched with the schema: first with the field after the one before, as
 * both stand in the kernel's order, then with all. Names the schema does not have are passed over.
 *
 * Most of vmstat is such names. So the table notes where a sample had its lines, and the next looks
 * there first: a line that begins there, with the same name, is the one, and what lies before it is
 * what lay before it then.
 */
#include "scan.h"

struct names {
	const struct mote_stream *stream;
	char stop;         /* behind a name */
	const char *begin; /* the text */
	uint64_t taken;    /* bit per field */

	struct mote_notes *notes;
	size_t length;        /* of the last sample's text */
	unsigned int from, n; /* of its notes: the next, and how many they are */
	unsigned int to;      /* the next of this sample's */
	ptrdiff_t shift;      /* of this text against the last, by numbers that grew */

	/* For lines that are not where they were. */
	bool ready;
	unsigned int expected; /* the field of the next line, most likely */
	uint64_t filter[4];    /* of 256 bits: most names that are not in the schema miss it */
	uint8_t lengths[64];
};

static unsigned int filter_bit(const char *name, size_t len)
{
	return len ? (len * 31 + (unsigned char)name[0] * 7 + (unsigned char)name[len - 1]) % 256
		   : 0;
}

static void names_init(struct names *names, struct mote_table *table, const struct mote_scan *text,
		       char stop)
{
	names->stream = &mote_streams[mote_table_stream(table)];
	names->stop = stop;
	names->begin = text->at;
	names->taken = 0;
	names->notes = mote_table_notes(table);
	names->length = names->notes->length;
	names->n = names->notes->n;
	names->from = names->to = 0;
	names->shift = 0;
	names->ready = false;
}

static void names_get_ready(struct names *names)
{
	names->ready = true;
	names->expected = 0;
	memset(names->filter, 0, sizeof(names->filter));
	for (unsigned int i = 0; i < names->stream->nfields; i++) {
		const char *name = names->stream->fields[i].name;
		size_t len = strlen(name);
		unsigned int bit = filter_bit(name, len);

		names->lengths[i] = len;
		names->filter[bit / 64] |= 1ull << bit % 64;
	}
}

static bool name_is(const struct names *names, unsigned int field, struct mote_text name)
{
	return names->lengths[field] == name.len &&
	       !memcmp(names->stream->fields[field].name, name.data, name.len);
}

/* The field of this name, or -1 if there is none or the name came before. */
static int names_find(struct names *names, struct mote_text name)
{
	unsigned int i, bit = filter_bit(name.data, name.len);

	if (!names->ready)
		names_get_ready(names);
	if (!(names->filter[bit / 64] & 1ull << bit % 64))
		return -1;
	i = names->expected;
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

/* The line of `field` was found. What is noted takes the place of what was looked at. */
static void names_note(struct names *names, const struct mote_scan *text, struct mote_text name,
		       unsigned int field)
{
	struct mote_note *note = names->notes->note;
	ptrdiff_t next = text->at - names->begin;

	if (names->from < names->n && note[names->from].field == field)
		names->shift = next - note[names->from++].next;
	if (next <= UINT16_MAX)
		note[names->to++] =
			(struct mote_note){ name.data - names->begin, next, field, name.len };
}

/* Whether a line that begins with this name and `stop` is at `at`; `name` is it. */
static bool name_at(const struct names *names, const struct mote_scan *text, ptrdiff_t at,
		    const struct mote_note *note, struct mote_text *name)
{
	if (at < text->at - names->begin || at + note->length >= text->end - names->begin)
		return false;
	*name = (struct mote_text){ names->begin + at, note->length };
	return (!at || name->data[-1] == '\n') && name->data[name->len] == names->stop &&
	       !memcmp(names->stream->fields[note->field].name, name->data, name->len);
}

/*
 * The field whose line is where it was, past lines that are not wanted; -1 if it is not there.
 * After the last field no more lines are wanted.
 */
static int names_look(struct names *names, struct mote_scan *text, struct mote_scan *line)
{
	struct mote_note note;
	struct mote_scan there = *text;
	struct mote_text name;

	if (names->from == names->n) {
		if (names->n && text->end[-1] == '\n' &&
		    text->end - names->begin == (ptrdiff_t)names->length + names->shift)
			text->at = text->end;
		return -1;
	}
	note = names->notes->note[names->from];
	if (!name_at(names, text, note.at + names->shift, &note, &name))
		return -1;
	there.at = name.data;
	if (!mote_scan_line(&there, line) || !mote_scan_take(&names->taken, note.field))
		return -1;
	line->at += name.len + 1;
	text->at = there.at;
	names_note(names, text, name, note.field);
	return note.field;
}

/* The next field that the text has and, in `line`, what stands behind its name; -1 at the end. */
static int names_next(struct names *names, struct mote_scan *text, struct mote_scan *line)
{
	int field = names_look(names, text, line);

	while (field < 0 && mote_scan_line(text, line)) {
		struct mote_text name = mote_scan_until(line, names->stop);

		field = names_find(names, name);
		if (field >= 0)
			names_note(names, text, name, field);
		else
			field = names_look(names, text, line);
	}
	return field;
}

static bool names_end(struct names *names, const struct mote_scan *text)
{
	names->notes->n = names->to;
	names->notes->length = text->end - names->begin;
	return names->taken && mote_scan_done(text);
}

/* `MemTotal:       24683652 kB`, and without a unit where it is a count of huge pages */
int mote_parse_meminfo(struct mote_text meminfo, struct mote_table *memory, uint64_t now)
{
	struct mote_scan text = mote_scan_text(meminfo), line;
	struct names names;
	uint64_t v;
	int field;

	names_init(&names, memory, &text, ':');
	mote_table_begin(memory, now);
	struct mote_row *row = mote_table_row(memory, NULL, 0);
	while ((field = names_next(&names, &text, &line)) >= 0) {
		if (mote_scan_u64(&line, &v)) {
			bool kib = mote_text_is(mote_scan_word(&line), "kB");

			mote_scan_set(memory, row, field, v, kib ? 1024 : 1);
		}
	}
	return mote_scan_finish(memory, names_end(&names, &text));
}

/* `pgpgin 1222317` */
int mote_parse_vmstat(struct mote_text vmstat, struct mote_table *vm, uint64_t now)
{
	struct mote_scan text = mote_scan_text(vmstat), line;
	struct names names;
	uint64_t v;
	int field;

	names_init(&names, vm, &text, ' ');
	mote_table_begin(vm, now);
	struct mote_row *row = mote_table_row(vm, NULL, 0);
	while ((field = names_next(&names, &text, &line)) >= 0) {
		if (mote_scan_u64(&line, &v))
			mote_row_set(vm, row, field, v);
	}
	return mote_scan_finish(vm, names_end(&names, &text));
}
