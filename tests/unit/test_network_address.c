// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Addresses as text are what inet_ntop() says. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "network_address.h"

static void same(const uint8_t address[16], bool v6)
{
	char text[MOTE_ADDRESS_TEXT], want[INET6_ADDRSTRLEN];
	unsigned int len = mote_address_text(address, v6, text);

	assert_true(len < sizeof(text));
	text[len] = '\0';
	assert_non_null(inet_ntop(v6 ? AF_INET6 : AF_INET, address, want, sizeof(want)));
	assert_string_equal(text, want);
}

static void known_ones(void **state)
{
	static const char *const texts[] = {
		"::",
		"::1",
		"1::",
		"2001:db8::1",
		"1:0:0:2::3",
		"1::2:0:0:3:4",
		"0:1::",
		"::ffff:255.255.255.255",
		"::1.2.3.4",
		"::2:0",
		"fe80::a:b",
		"1:2:3:4:5:6:7:8",
		"1:0:3:4:5:6:7:8",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	};
	uint8_t address[16];

	for (unsigned int i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(inet_pton(AF_INET6, texts[i], address), 1);
		same(address, true);
		same(address, false);
	}
}

static void any(void **state)
{
	srandom(1);
	for (unsigned int i = 0; i < 200000; i++) {
		unsigned int zeros = (unsigned int)random() % 17;
		uint8_t address[16];

		for (unsigned int b = 0; b < 16; b++)
			address[b] = random() % 3 && b < zeros ? 0 : (uint8_t)random();
		same(address, true);
		same(address, false);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known_ones), cmocka_unit_test(any) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
