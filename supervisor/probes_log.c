// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * libbpf complains about one fault in several lines, of which the first says most; a program that
 * the verifier refused comes with its whole log, of which the last line before the statistics says
 * why. One static buffer: libbpf's print function takes no argument, and start has one thread.
 */
#include "probes_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

static char kept[160], program[48];

static void keep(const char *line, size_t len)
{
	if (len >= sizeof(kept))
		len = sizeof(kept) - 1;
	memcpy(kept, line, len);
	kept[len] = '\0';
}

/* "0: (85) ...\nunknown func\nprocessed 12 insns ...\n-- END PROG LOAD LOG --": `unknown func` */
static void keep_verdict(const char *log)
{
	const char *end = strstr(log, "\nprocessed ");
	const char *line;

	if (!end)
		end = strstr(log, "\n-- END");
	if (!end)
		return;
	for (line = end; line > log && line[-1] != '\n';)
		line--;
	keep(line, end - line);
}

/* "prog 'NAME': ..." is how libbpf begins what it says of a program. */
static void keep_program(const char *line)
{
	static const char prefix[] = "prog '";
	const char *name = line + strlen(prefix);
	size_t len;

	if (strncmp(line, prefix, strlen(prefix)))
		return;
	len = strcspn(name, "'");
	snprintf(program, sizeof(program), "%.*s", (int)len, name);
}

static int take(enum libbpf_print_level level, const char *fmt, va_list args)
{
	static const char prefix[] = "libbpf: ";
	char *text = NULL;
	const char *line;

	if (level != LIBBPF_WARN || vasprintf(&text, fmt, args) < 0)
		return 0;
	line = strncmp(text, prefix, strlen(prefix)) ? text : text + strlen(prefix);
	keep_program(line);
	if (strstr(line, "BEGIN PROG LOAD LOG"))
		keep_verdict(line);
	else if (!kept[0])
		keep(line, strcspn(line, "\n"));
	free(text);
	return 0;
}

void mote_probes_log_begin(void)
{
	kept[0] = program[0] = '\0';
	libbpf_set_print(take);
}

const char *mote_probes_log_line(void)
{
	return kept;
}

const char *mote_probes_log_program(void)
{
	return program;
}
