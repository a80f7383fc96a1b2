// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * libFuzzer over the configuration: the input is a file. What is taken is in range and keeps the
 * rules; what is refused changes nothing and gives one line that names the file.
 *
 * SOURCES: supervisor/options.c supervisor/options_table.c supervisor/options_value.c
 * supervisor/schema.c CFLAGS: -Isupervisor -D_GNU_SOURCE LIBS: -linih
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "options_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_taken(const struct mote_options *o)
{
	for (unsigned int i = 0; i < MOTE_OPTS; i++) {
		const struct mote_option *option = &mote_option_table[i];
		const char *text = (const char *)o + option->offset;
		unsigned long long value;

		if (option->text) {
			must(strnlen(text, option->max + 1) <= option->max);
			continue;
		}
		value = mote_option_get(o, option);
		if (option->kind != MOTE_OPTION_CHOICE)
			must(value >= option->min && value <= option->max);
		if (option->kind == MOTE_OPTION_TIME)
			must(value % o->loop_base == 0);
	}
	must(o->socket_path[0] == '/');
	must(o->mote_mode <= MOTE_MODE_MINIMAL && o->process_events <= MOTE_EVENTS_OFF);
	must(!(o->tables_events & (o->tables_events - 1)));
	must(o->socket_arena >= 4 * o->socket_frame && o->socket_queue >= 2 * o->socket_frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mote_options options, before;
	char err[512] = "";

	mote_options_default(&options);
	memcpy(&before, &options, sizeof(before));
	if (!mote_options_parse(&options, "F", (const char *)data, size, err, sizeof(err))) {
		check_taken(&options);
		return 0;
	}
	/* Nothing at all was written, so padding is equal, too. */
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
	must(!memcmp(&options, &before, sizeof(options)));
	must(!strncmp(err, "F:", 2) && !strchr(err, '\n'));
	return 0;
}
