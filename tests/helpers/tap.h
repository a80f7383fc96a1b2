/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* TAP lines of a helper that is one file; tests/unit has cmocka's. */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static unsigned int tap_n, tap_failed;

__attribute__((format(printf, 2, 3))) static bool tap(bool ok, const char *fmt, ...)
{
	va_list args;

	printf("%sok %u - ", ok ? "" : "not ", ++tap_n);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	tap_failed += !ok;
	return ok;
}

#endif
