// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The text store beside a model: what was put is what comes back, whatever its length; what was
 * dropped leaves no block behind; what does not fit is counted and harms nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text.h"

#define HANDLES 40

static struct mote_text_entry random_entry(void)
{
	struct mote_text_entry entry = { .has_argv = rand() % 4, .has_exe = rand() % 4 };

	memset(&entry.argv, 'x', sizeof(entry.argv) + sizeof(entry.exe));
	entry.argv_len = (uint16_t)(rand() % 3 ? rand() % 100 : rand() % (MOTE_ARGV_MAX + 1));
	entry.exe_len = (uint16_t)(rand() % 3 ? rand() % 70 : rand() % (MOTE_EXE_MAX + 1));
	for (int i = 0; i < entry.argv_len; i++)
		entry.argv[i] = (char)rand();
	for (int i = 0; i < entry.exe_len; i++)
		entry.exe[i] = (char)rand();
	return entry;
}

static void same(const struct mote_texts *texts, uint32_t handle,
		 const struct mote_text_entry *expected)
{
	struct mote_text_entry entry;

	memset(&entry, 0xa5, sizeof(entry));
	mote_texts_get(texts, handle, &entry);
	assert_int_equal(entry.has_argv, expected->has_argv);
	assert_int_equal(entry.has_exe, expected->has_exe);
	assert_int_equal(entry.argv_len, expected->has_argv ? expected->argv_len : 0);
	assert_int_equal(entry.exe_len, expected->has_exe ? expected->exe_len : 0);
	assert_memory_equal(entry.argv, expected->argv, entry.argv_len);
	assert_memory_equal(entry.exe, expected->exe, entry.exe_len);
}

static void test_lengths(void **state)
{
	struct mote_texts *texts = mote_texts_new(65536);
	struct mote_text_entry entry;
	struct mote_fill fill;
	uint32_t handle = 0;

	srand(1);
	for (unsigned int len = 0; len <= MOTE_ARGV_MAX; len++) {
		entry = random_entry();
		entry.has_argv = true;
		entry.argv_len = (uint16_t)len;
		handle = mote_texts_put(texts, handle, &entry);
		assert_int_not_equal(handle, 0);
		same(texts, handle, &entry);
	}
	for (unsigned int len = 0; len <= MOTE_EXE_MAX; len++) {
		entry = random_entry();
		entry.has_argv = false;
		entry.has_exe = true;
		entry.exe_len = (uint16_t)len;
		handle = mote_texts_put(texts, handle, &entry);
		same(texts, handle, &entry);
	}
	mote_texts_drop(texts, handle);
	mote_texts_drop(texts, 0);
	mote_texts_fill(texts, &fill);
	assert_int_equal(fill.fill, 0);
	assert_int_equal(fill.dropped, 0);
	assert_true(fill.peak >= MOTE_ARGV_MAX && fill.size <= 65536);
	mote_texts_free(texts);
	mote_texts_free(NULL);
}

static void test_none(void **state)
{
	struct mote_texts *texts = mote_texts_new(65536);
	const struct mote_text_entry nothing = { 0 };

	same(texts, 0, &nothing);
	same(texts, mote_texts_put(texts, 0, &nothing), &nothing);
	mote_texts_free(texts);
}

static void test_random(void **state)
{
	static struct mote_text_entry model[HANDLES];
	uint32_t handles[HANDLES] = { 0 };
	struct mote_texts *texts = mote_texts_new(8192);
	struct mote_fill fill;
	uint64_t refused = 0;

	srand(2);
	for (int i = 0; i < 20000; i++) {
		int at = rand() % HANDLES;

		if (rand() % 4 == 0) {
			mote_texts_drop(texts, handles[at]);
			handles[at] = 0;
		} else {
			model[at] = random_entry();
			handles[at] = mote_texts_put(texts, handles[at], &model[at]);
			refused += !handles[at];
		}
		for (int k = 0; k < HANDLES; k++) {
			if (handles[k])
				same(texts, handles[k], &model[k]);
		}
	}
	mote_texts_fill(texts, &fill);
	assert_true(refused > 0);
	assert_int_equal(fill.dropped, refused);
	assert_true(fill.peak > fill.size * 9 / 10 && fill.peak <= fill.size);
	for (int k = 0; k < HANDLES; k++)
		mote_texts_drop(texts, handles[k]);
	mote_texts_fill(texts, &fill);
	assert_int_equal(fill.fill, 0);
	mote_texts_free(texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
