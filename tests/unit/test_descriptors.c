// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The limit goes as high as was asked for or as it may, and the kernel's table grows at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"

static unsigned int soft(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	return (unsigned int)limit.rlim_cur;
}

static void set(unsigned int current, unsigned int most)
{
	struct rlimit limit = { current, most };

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void test_raises_as_far_as_it_may(void **state)
{
	set(100, 300);
	assert_int_equal(mote_descriptors_allow(50), 100);
	assert_int_equal(soft(), 100);
	assert_int_equal(mote_descriptors_allow(200), 200);
	assert_int_equal(soft(), 200);
	assert_int_equal(mote_descriptors_allow(1000), 300);
	assert_int_equal(soft(), 300);
}

/* FDSize of /proc/self/status */
static unsigned int table_size(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned int size = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "FDSize: %u", &size);
	fclose(file);
	return size;
}

static void test_grows_the_table(void **state)
{
	int before;

	set(290, 300);
	assert_in_range(table_size(), 1, 256);
	before = dup(0);
	mote_descriptors_grow(0, 280);
	assert_in_range(table_size(), 280, 4096);
	close(before);
	assert_int_equal(dup(0), before); /* nothing is left open */
	close(before);
	mote_descriptors_grow(0, 5000); /* more than there may be: no harm */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raises_as_far_as_it_may),
		cmocka_unit_test(test_grows_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
