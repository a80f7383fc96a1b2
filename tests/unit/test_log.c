// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Log lines: always one, cut where too long, the journal's prefix only for the journal, and at most
 * one a minute of a limited kind, with what was left out counted (E3).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "log.h"

#define SECOND 1000000000ull

static FILE *file;
static int saved = -1;

static int capture(void **state)
{
	file = tmpfile();
	saved = dup(STDERR_FILENO);
	return file && dup2(fileno(file), STDERR_FILENO) >= 0 ? 0 : -1;
}

/* What was written since the last call. */
static const char *logged(void)
{
	static char text[8192];
	ssize_t n = pread(fileno(file), text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	if (ftruncate(fileno(file), 0) || lseek(fileno(file), 0, SEEK_SET))
		fail();
	return text;
}

static int restore(void **state)
{
	dup2(saved, STDERR_FILENO);
	close(saved);
	fclose(file);
	unsetenv("JOURNAL_STREAM");
	mote_log_open();
	return 0;
}

static void test_one_line(void **state)
{
	mote_log(MOTE_LOG_ERROR, "cannot read %s: %d", "a\nb\x1b[31m", 5);
	assert_string_equal(logged(), "moted: cannot read a b [31m: 5\n");
}

static void test_long_line(void **state)
{
	char text[4000];
	const char *line;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	mote_log(MOTE_LOG_ERROR, "%s", text);
	line = logged();
	assert_in_range(strlen(line), 1000, 1024);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void test_journal(void **state)
{
	struct stat st;
	char stream[64];

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	mote_log_open();
	mote_log(MOTE_LOG_WARNING, "x");
	assert_string_equal(logged(), "<4>x\n");
	/* Inherited by a shell's child whose stderr is something else */
	setenv("JOURNAL_STREAM", "1:2", 1);
	mote_log_open();
	mote_log(MOTE_LOG_WARNING, "x");
	assert_string_equal(logged(), "moted: x\n");
}

static void test_limit(void **state)
{
	struct mote_limit limit = { 0 }, other = { 0 };
	unsigned int lines = 0;

	mote_log_limited(&limit, 5 * SECOND, "dropped %d", 1);
	assert_string_equal(logged(), "moted: dropped 1\n");
	for (int i = 1; i < 60; i++)
		mote_log_limited(&limit, (5 + i) * SECOND, "dropped %d", i);
	assert_string_equal(logged(), "");
	mote_log_limited(&other, 6 * SECOND, "refused"); /* has its own minute */
	assert_string_equal(logged(), "moted: refused\n");
	mote_log_limited(&limit, 65 * SECOND, "dropped %d", 60);
	assert_string_equal(logged(), "moted: dropped 60 (59 such lines left out)\n");
	mote_log_limited(&limit, 125 * SECOND, "dropped %d", 61);
	assert_string_equal(logged(), "moted: dropped 61\n");
	/* An hour of a drop each millisecond */
	for (uint64_t t = 200 * SECOND; t < 3800 * SECOND; t += SECOND / 1000) {
		mote_log_limited(&limit, t, "x");
		lines += *logged() != '\0';
	}
	assert_int_equal(lines, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_line, capture, restore),
		cmocka_unit_test_setup_teardown(test_long_line, capture, restore),
		cmocka_unit_test_setup_teardown(test_journal, capture, restore),
		cmocka_unit_test_setup_teardown(test_limit, capture, restore),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
