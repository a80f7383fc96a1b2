// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Whose a line of kprobe_events is: only what a mote has made may be removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probes_kretprobe.h"

static void knows_its_own(void **state)
{
	assert_int_equal(mote_kretprobes_owner("r512:mote/mote_123_udp_sendmsg udp_sendmsg\n"),
			 123);
	assert_int_equal(mote_kretprobes_owner("r:mote/mote_4194303_f f"), 4194303);
}

static void leaves_others_alone(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		"r512",
		"r512:",
		"r512:mote/",
		"r512:mote/mote_",
		"r512:mote/mote_x_f f",
		"r512:mote/mote_-1_f f",
		"r512:mote/mote_0_f f",
		"r512:mote/mote_123 f",
		"r512:mote/mote_99999999999999999999_f f",
		"r512:remote/mote_123_f f",
		"r512:kprobes/mote_123_f f",
		"r512:mote/other_123_f f",
		"p:mote/mote_123_f f",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(mote_kretprobes_owner(lines[i]), 0);
}

static void closes_what_was_not_opened(void **state)
{
	struct mote_kretprobes probes = { .control = -1 };

	mote_kretprobes_close(&probes);
	assert_int_equal(probes.control, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_its_own),
		cmocka_unit_test(leaves_others_alone),
		cmocka_unit_test(closes_what_was_not_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
