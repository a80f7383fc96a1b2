// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "probes_symbols.h"

static const char text[] = "0000000000000000 T release_sock\n"
			   "0000000000000000 t release_sock_later\n"
			   "0000000000000000 r __ksymtab_release_sock\n"
			   "0000000000000000 d twice\n"
			   "0000000000000000 t twice\n"
			   "0000000000000000 t twice\t[module]\n"
			   "0000000000000000 t cloned\n"
			   "0000000000000000 t cloned.isra.0\n"
			   "0000000000000000 t cold\n"
			   "0000000000000000 t cold.cold\n"
			   "0000000000000000 t gone.constprop.0\n"
			   "nonsense\n"
			   "0000000000000000 W last";

static void counts_functions(void **state)
{
	struct mote_symbol s[] = { { "release_sock", 0, 0 }, { "twice", 0, 0 }, { "cloned", 0, 0 },
				   { "cold", 0, 0 },         { "gone", 0, 0 },  { "last", 0, 0 },
				   { "absent", 0, 0 } };
	FILE *file = fmemopen((void *)text, sizeof(text) - 1, "r");

	mote_symbols_count(file, s, 7);
	fclose(file);
	assert_int_equal(s[0].exact, 1);
	assert_int_equal(s[0].cloned, 0);
	assert_int_equal(s[1].exact, 2);
	assert_int_equal(s[2].exact, 1);
	assert_int_equal(s[2].cloned, 1);
	assert_int_equal(s[3].exact, 1);
	assert_int_equal(s[3].cloned, 0);
	assert_int_equal(s[4].exact, 0);
	assert_int_equal(s[4].cloned, 1);
	assert_int_equal(s[5].exact, 1);
	assert_int_equal(s[6].exact, 0);
}

static void finds_addresses(void **state)
{
	static const char data[] = "ffffffff81000000 T mem_index_of\n"
				   "ffffffff82345678 d mem_index\n"
				   "nonsense\n"
				   "ffffffffc0000010 d mem_index\t[module]\n"
				   "ffffffffc0000018 d other\t[module]\n"
				   "0000000000000000 r hidden\n"
				   "ffffffff82345680 b last";
	struct mote_address a[] = {
		{ "mem_index", 1 }, { "hidden", 1 }, { "other", 1 }, { "last", 1 }
	};
	FILE *file = fmemopen((void *)data, sizeof(data) - 1, "r");

	mote_symbols_find(file, a, 4);
	fclose(file);
	assert_true(a[0].address == 0xffffffff82345678);
	assert_true(a[1].address == 0);
	assert_true(a[2].address == 0); /* a module's is another's */
	assert_true(a[3].address == 0xffffffff82345680);
}

static void finds_fault(void **state)
{
	assert_null(mote_symbols_fault(&(struct mote_symbol){ "f", 1, 0 }));
	assert_non_null(strstr(mote_symbols_fault(&(struct mote_symbol){ "f", 2, 0 }), "several"));
	assert_non_null(strstr(mote_symbols_fault(&(struct mote_symbol){ "f", 1, 1 }), ".isra"));
	/* Not there: the attempt to attach says so. kallsyms may be cut, too. */
	assert_null(mote_symbols_fault(&(struct mote_symbol){ "f", 0, 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_functions),
		cmocka_unit_test(finds_addresses),
		cmocka_unit_test(finds_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
