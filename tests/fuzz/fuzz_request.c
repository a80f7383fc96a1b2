// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The request parser on any line: it takes what it can serve and nothing else, and what it refuses
 * it refuses with one printable line, leaving the request alone.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"
#include "schema.h"

#include "fuzz_tables.h"

#define BASE 50

static void refused(const struct mote_request *request, const char *err, size_t size)
{
	size_t len = strnlen(err, size);

	FUZZ_REQUIRE(request->verb == MOTE_VERBS && request->streams == 77 &&
		     request->interval_ms == 88);
	FUZZ_REQUIRE(len > 0 && len < size);
	for (size_t i = 0; i < len; i++)
		FUZZ_REQUIRE(err[i] >= ' ' && err[i] < 127);
}

static void taken(const struct mote_request *request)
{
	bool streams = request->verb == MOTE_SUBSCRIBE || request->verb == MOTE_UNSUBSCRIBE ||
		       request->verb == MOTE_POLL;

	FUZZ_REQUIRE(request->verb < MOTE_VERBS);
	FUZZ_REQUIRE(streams == (request->streams != 0));
	FUZZ_REQUIRE(request->streams < 1u << MOTE_STREAMS);
	FUZZ_REQUIRE(request->interval_ms % BASE == 0 && request->interval_ms <= 3600000);
	FUZZ_REQUIRE(request->verb != MOTE_INTERVAL || request->interval_ms);
	if (request->interval_ms)
		FUZZ_REQUIRE(request->verb == MOTE_INTERVAL || request->verb == MOTE_SUBSCRIBE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mote_request request = { MOTE_VERBS, 77, 88 };
	char err[160] = "";
	char *line = malloc(size + !size); /* of exactly this size */

	memcpy(line, data, size);
	if (mote_request_parse(line, size, BASE, &request, err, sizeof(err)))
		refused(&request, err, sizeof(err));
	else
		taken(&request);
	free(line);
	return 0;
}
