// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Request lines: what is understood, what is refused and how it is said. Lines are copied to a
 * block of exactly their length, so that ASan sees a byte read too many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "request.h"
#include "schema.h"

#define BASE        50
#define BIT(stream) (1u << MOTE_STREAM_##stream)
#define EVERY       ((1u << MOTE_STREAMS) - 1)

static char err[160];

static int parse(const char *line, size_t len, struct mote_request *request)
{
	char *copy = malloc(len + !len);
	int ret;

	memcpy(copy, line, len);
	memset(err, 'x', sizeof(err));
	ret = mote_request_parse(copy, len, BASE, request, err, sizeof(err));
	free(copy);
	return ret;
}

static void good(const char *line, enum mote_verb verb, uint32_t streams, uint32_t ms)
{
	struct mote_request request = { MOTE_VERBS, 0, 0 };

	if (parse(line, strlen(line), &request))
		fail_msg("'%s': %s", line, err);
	assert_int_equal(request.verb, verb);
	assert_int_equal(request.streams, streams);
	assert_int_equal(request.interval_ms, ms);
}

/* Refused with one line that has `says`; the request is left alone. */
static void bad(const char *line, size_t len, const char *says)
{
	struct mote_request request = { MOTE_VERBS, 77, 88 };

	assert_int_equal(parse(line, len, &request), -EINVAL);
	assert_int_equal(request.verb, MOTE_VERBS);
	assert_int_equal(request.streams, 77);
	assert_int_equal(request.interval_ms, 88);
	assert_non_null(memchr(err, 0, sizeof(err)));
	for (const char *c = err; *c; c++)
		assert_true(*c >= ' ' && *c < 127);
	if (!strstr(err, says))
		fail_msg("'%s' says '%s', not '%s'", line, err, says);
}

#define BAD(line, says) bad(line, sizeof(line) - 1, says)

static void test_good(void **state)
{
	good("ping", MOTE_PING, 0, 0);
	good("  ping \t\r", MOTE_PING, 0, 0);
	good("subscribe cpu", MOTE_SUBSCRIBE, BIT(CPU), 0);
	good("subscribe cpu,process,cpu", MOTE_SUBSCRIBE, BIT(CPU) | BIT(PROCESS), 0);
	good("subscribe all interval=250ms", MOTE_SUBSCRIBE, EVERY, 250);
	good("subscribe\ttable\tinterval=1s\r", MOTE_SUBSCRIBE, BIT(TABLE), 1000);
	good("unsubscribe all", MOTE_UNSUBSCRIBE, EVERY, 0);
	good("unsubscribe event", MOTE_UNSUBSCRIBE, BIT(EVENT), 0);
	good("poll disk,netdev", MOTE_POLL, BIT(DISK) | BIT(NETDEV), 0);
	good("interval 50ms", MOTE_INTERVAL, 0, 50);
	good("interval 5m", MOTE_INTERVAL, 0, 300000);
	good("interval 1h", MOTE_INTERVAL, 0, 3600000);
	good("interval 3600000ms", MOTE_INTERVAL, 0, 3600000);
	good("interval 0000001s", MOTE_INTERVAL, 0, 1000);
}

static void test_every_stream(void **state)
{
	for (unsigned int i = 0; i < MOTE_STREAMS; i++) {
		char line[64] = "poll ";

		strcat(line, mote_streams[i].name);
		good(line, MOTE_POLL, 1u << i, 0);
		line[strlen(line) - 1] = '!';
		bad(line, strlen(line), "no stream");
	}
}

static void test_bad(void **state)
{
	BAD("", "'' is no request");
	BAD("   ", "'' is no request");
	BAD("pin", "'pin' is no request");
	BAD("pings", "'pings' is no request");
	BAD("PING", "is no request");
	BAD("ping me", "'me' is one word too many");
	BAD("subscribe", "streams are missing");
	BAD("subscribe cpu,", "no stream ''");
	BAD("subscribe ,cpu", "no stream ''");
	BAD("subscribe ,", "no stream ''");
	BAD("subscribe cpu, memory", "no stream ''");
	BAD("subscribe cpux", "no stream 'cpux'");
	BAD("subscribe all,cpu", "no stream 'all'");
	BAD("subscribe cpu interval", "only interval=TIME may follow");
	BAD("subscribe cpu interval=", "multiple of 50ms");
	BAD("subscribe cpu interval=1s x", "'x' is one word too many");
	BAD("unsubscribe cpu interval=1s", "too many");
	BAD("poll cpu interval=1s", "too many");
	BAD("interval", "interval ''");
	BAD("interval 0s", "multiple of 50ms");
	BAD("interval 75ms", "multiple of 50ms");
	BAD("interval 1", "multiple of 50ms");
	BAD("interval s", "multiple of 50ms");
	BAD("interval -1s", "multiple of 50ms");
	BAD("interval 1.5s", "multiple of 50ms");
	BAD("interval 61m", "up to 1h");
	BAD("interval 2h", "up to 1h");
	BAD("interval 3600050ms", "up to 1h");
	BAD("interval 18446744073709551616s", "up to 1h");
	BAD("interval 18446744073709551666ms", "up to 1h");
	BAD("interval 4294967346ms", "up to 1h");
	BAD("interval 1193046471105h", "up to 1h");
}

/* What a client sends is not written to a terminal as it is. */
static void test_hostile(void **state)
{
	char line[600];

	BAD("\x1b[31mred", "'?[31mred' is no request");
	BAD("ping\0", "is no request");
	BAD("ping \0", "'?' is one word too many");
	BAD("subscribe cpu\0", "no stream 'cpu?'");
	BAD("subscribe cpu,\xff\xfe", "no stream '?");
	BAD("interval 1s\0", "'1s?'");
	memset(line, 'a', sizeof(line));
	bad(line, sizeof(line), "is no request");
	strcpy(line, "poll ");
	line[5] = 'a';
	bad(line, sizeof(line), "no stream 'aaaa");
	memset(line + 5, ',', sizeof(line) - 5);
	bad(line, sizeof(line), "no stream ''");
	strcpy(line, "interval ");
	memset(line + 9, '9', sizeof(line) - 9);
	bad(line, sizeof(line), "up to 1h");
	memset(line + 9, '0', sizeof(line) - 9);
	line[598] = '1';
	line[599] = 's';
	{
		struct mote_request request;

		assert_int_equal(parse(line, sizeof(line), &request), 0);
		assert_int_equal(request.interval_ms, 1000);
	}
}

/* A message never exceeds what it is given. */
static void test_small_message(void **state)
{
	static const char *const lines[] = { "what",       "poll x", "poll",
					     "interval 3", "ping x", "subscribe cpu x" };
	struct mote_request request;

	for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		for (size_t size = 1; size < 40; size++) {
			char *small = malloc(size);

			assert_int_equal(mote_request_parse(lines[i], strlen(lines[i]), BASE,
							    &request, small, size),
					 -EINVAL);
			assert_true(strnlen(small, size) < size);
			free(small);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),          cmocka_unit_test(test_every_stream),
		cmocka_unit_test(test_bad),           cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_small_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
