// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* What can be told of the probes without BPF: reasons, libbpf's log, choices that refuse all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/libbpf.h>

#include "probes.h"
#include "probes_log.h"

/* libbpf hands its messages to what was set last. */
__attribute__((format(printf, 2, 3))) static void say(enum libbpf_print_level level,
						      const char *fmt, ...)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	va_list args;

	libbpf_set_print(print);
	va_start(args, fmt);
	print(level, fmt, args);
	va_end(args);
}

static void keeps_the_first_warning(void **state)
{
	mote_probes_log_begin();
	assert_string_equal(mote_probes_log_line(), "");
	say(LIBBPF_INFO, "libbpf: loading\n");
	say(LIBBPF_WARN, "libbpf: prog 'x': BPF program load failed: %s\n", "Invalid argument");
	say(LIBBPF_WARN, "libbpf: failed to load object 'x'\n");
	assert_string_equal(mote_probes_log_line(),
			    "prog 'x': BPF program load failed: Invalid argument");
	mote_probes_log_begin();
	assert_string_equal(mote_probes_log_line(), "");
}

static void keeps_the_verifiers_verdict(void **state)
{
	mote_probes_log_begin();
	say(LIBBPF_WARN, "libbpf: prog 'x': BPF program load failed: %s\n", "Invalid argument");
	say(LIBBPF_WARN, "libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n",
	    "0: (85) call bpf_probe_read_kernel#113\nunknown func bpf_probe_read_kernel#113\nprocessed 1 insns\n");
	say(LIBBPF_WARN, "libbpf: failed to load object 'x'\n");
	assert_string_equal(mote_probes_log_line(), "unknown func bpf_probe_read_kernel#113");
}

static void bounds_a_long_line(void **state)
{
	char text[1000];

	memset(text, 'x', sizeof(text));
	text[999] = '\0';
	mote_probes_log_begin();
	say(LIBBPF_WARN, "%s", text);
	assert_true(strlen(mote_probes_log_line()) > 100);
	assert_true(strlen(mote_probes_log_line()) < 200);
}

static void explains(void **state)
{
	char text[256];

	mote_probes_explain(text, sizeof(text), "bpf()", -ENOSYS, "");
	assert_non_null(strstr(text, "no such system call"));
	mote_probes_explain(text, sizeof(text), "bpf()", -EPERM, "");
	assert_non_null(strstr(text, "not permitted"));
	mote_probes_explain(text, sizeof(text), "bpf()", -EINVAL, "unknown func bpf_x#1");
	assert_string_equal(text, "bpf(): Invalid argument: unknown func bpf_x#1");
	mote_probes_explain(text, sizeof(text), "bpf()", -EINVAL, "unknown func bpf_probe_read#4");
	assert_non_null(strstr(text, "lockdown=confidentiality"));
	mote_probes_explain(text, sizeof(text), "mapping", -ENOMEM, "");
	assert_string_equal(text, "mapping: Cannot allocate memory");
}

/* Nothing asked for: nothing tried, nothing there, and nothing to clean up. */
static void opens_nothing(void **state)
{
	struct mote_probes_config cfg = { .events = MOTE_EVENTS_OFF, .uid = -1, .gid = -1 };
	struct mote_tiers tiers = { 0 };
	struct mote_probes *probes = NULL;

	assert_int_equal(mote_probes_open(&cfg, &tiers, &probes), 0);
	assert_null(mote_probes_iterator(probes));
	assert_null(mote_probes_lifecycle(probes));
	mote_probes_close(probes);
	mote_probes_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_first_warning),
		cmocka_unit_test(keeps_the_verifiers_verdict),
		cmocka_unit_test(bounds_a_long_line),
		cmocka_unit_test(explains),
		cmocka_unit_test(opens_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
