// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Options: defaults, every kind of value at and beyond its bounds, each mistake with the exact line
 * it must give, rules between options, the command line over the file, and what is printed read
 * back again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "options.h"
#include "options_table.h"

static char err[1024];

static int parse(struct mote_options *o, const char *text)
{
	mote_options_default(o);
	err[0] = '\0';
	return mote_options_parse(o, "F", text, strlen(text), err, sizeof(err));
}

/* `text` is refused with the line `message`, and nothing is changed. */
static void refused(const char *text, const char *message)
{
	struct mote_options o, before;

	mote_options_default(&before);
	assert_int_equal(parse(&o, text), -EINVAL);
	assert_string_equal(err, message);
	assert_memory_equal(&o, &before, sizeof(o));
}

static void test_defaults(void **state)
{
	struct mote_options o;

	assert_int_equal(parse(&o, ""), 0);
	assert_int_equal(o.mote_mode, MOTE_MODE_STANDARD);
	assert_int_equal(o.mote_probes, MOTE_PROBES_AUTO);
	assert_true(o.mote_mount_tracefs);
	assert_string_equal(o.socket_path, "/run/mote.sock");
	assert_int_equal(o.socket_mode, 0660);
	assert_int_equal(o.loop_base, 50);
	assert_int_equal(o.tables_events, 1048576);
}

static void test_values(void **state)
{
	struct mote_options o;

	assert_int_equal(parse(&o, "\xef\xbb\xbf# comment\r\n[mote]\r\nmode = minimal ; why\r\n"
				   "  probes: kprobe\n\tengine=sync\nmount_tracefs=off\n"
				   "btf = /boot/my btf\n\n[socket]\nmode = 0600\ngroup =\n"
				   "queue = 1MiB\narena = 65536KiB\nframe=4096\n[ loop]\n"),
			 -EINVAL); /* no section ` loop` */
	assert_int_equal(parse(&o, "\xef\xbb\xbf# comment\r\n[mote]\r\nmode = minimal ; why\r\n"
				   "  probes: kprobe\n\tengine=sync\nmount_tracefs=off\n"
				   "btf = /boot/my btf\n\n[socket] ; who\nmode = 0600\ngroup =\n"
				   "queue = 1MiB\narena = 65536KiB\nframe=4096\n"
				   "[interval]\ncpu=1m\nmemory=1h\nload=250ms\ndisk=2s"),
			 0);
	assert_int_equal(o.mote_mode, MOTE_MODE_MINIMAL);
	assert_int_equal(o.mote_probes, MOTE_PROBES_KPROBE);
	assert_int_equal(o.mote_engine, MOTE_ENGINE_SYNC);
	assert_false(o.mote_mount_tracefs);
	assert_string_equal(o.mote_btf, "/boot/my btf");
	assert_int_equal(o.socket_mode, 0600);
	assert_string_equal(o.socket_group, "");
	assert_int_equal(o.socket_queue, 1 << 20);
	assert_int_equal(o.socket_arena, 64 << 20);
	assert_int_equal(o.socket_frame, 4096);
	assert_int_equal(mote_options_interval(&o, MOTE_STREAM_CPU), 60000);
	assert_int_equal(mote_options_interval(&o, MOTE_STREAM_MEMORY), 3600000);
	assert_int_equal(mote_options_interval(&o, MOTE_STREAM_LOAD), 250);
	assert_int_equal(mote_options_interval(&o, MOTE_STREAM_DISK), 2000);
}

/* Every stream has its key in [interval], with the schema's default. */
static void test_every_stream_has_an_interval(void **state)
{
	struct mote_options o;
	char text[128];

	for (int i = 0; i < MOTE_STREAMS; i++) {
		snprintf(text, sizeof(text), "[interval]\n%s = 7s\n", mote_streams[i].name);
		if (parse(&o, text))
			fail_msg("%s", err);
		assert_int_equal(mote_options_interval(&o, i), 7000);
		mote_options_default(&o);
		assert_int_equal(mote_options_interval(&o, i), mote_streams[i].interval_ms);
	}
}

static bool numeric(const struct mote_option *option)
{
	return option->kind == MOTE_OPTION_COUNT || option->kind == MOTE_OPTION_SIZE ||
	       option->kind == MOTE_OPTION_TIME || option->kind == MOTE_OPTION_MODE;
}

static int set(const struct mote_option *option, unsigned long long value, bool raw)
{
	struct mote_options o;
	char text[64];

	mote_options_default(&o);
	if (raw)
		snprintf(text, sizeof(text), option->kind == MOTE_OPTION_MODE ? "%llo" : "%llu%s",
			 value, option->kind == MOTE_OPTION_TIME ? "ms" : "");
	else
		mote_option_format(option, value, text, sizeof(text));
	if (mote_option_set(&o, option, text))
		return -EINVAL;
	return mote_option_get(&o, option) == value ? 0 : -EIO;
}

/* Both bounds are allowed, one beyond is not, and what is printed can be read. */
static void test_bounds_of_every_number(void **state)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < MOTE_OPTS; i++) {
		const struct mote_option *option = &mote_option_table[i];

		if (!numeric(option))
			continue;
		n++;
		assert_in_range(option->def, option->min, option->max);
		for (int raw = 0; raw < 2; raw++) {
			assert_int_equal(set(option, option->min, raw), 0);
			assert_int_equal(set(option, option->max, raw), 0);
			assert_int_equal(set(option, option->def, raw), 0);
			assert_int_equal(set(option, option->max + 1, raw), -EINVAL);
			if (option->min)
				assert_int_equal(set(option, option->min - 1, raw), -EINVAL);
		}
	}
	assert_true(n > 30);
}

static void test_bad_values(void **state)
{
	static const char *const counts[] = {
		"", "-1", "+1", " ", "0x10", "1.5", "1k", "1 1", "18446744073709551617", "on"
	};
	struct mote_options o;
	char text[128];

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		snprintf(text, sizeof(text), "[loop]\nworkers = %s\n", counts[i]);
		assert_int_equal(parse(&o, text), -EINVAL);
	}
	refused("[loop]\nworkers = 17\n",
		"F:2: [loop] workers: '17'; allowed: a number from 1 to 16");
	refused("[loop]\nbase = 50\n",
		"F:2: [loop] base: '50'; allowed: 1ms to 1s, in ms, s, m or h");
	refused("[loop]\n\nhousekeeping = 5124095576030432h\n",
		"F:3: [loop] housekeeping: '5124095576030432h'; allowed: 1s to 1m, in ms, s, m or h");
	refused("[socket]\nframe = 16KB\n",
		"F:2: [socket] frame: '16KB'; allowed: 4KiB to 64KiB, in bytes, KiB or MiB");
	refused("[socket]\nmode = 0888\n",
		"F:2: [socket] mode: '0888'; allowed: an octal mode from 0000 to 0777");
	refused("[mote]\nmode = min\n",
		"F:2: [mote] mode: 'min'; allowed: one of standard, minimal");
	refused("[mote]\nmount_tracefs = yes\n",
		"F:2: [mote] mount_tracefs: 'yes'; allowed: on or off");
	refused("[socket]\npath = mote.sock\n",
		"F:2: [socket] path: 'mote.sock'; allowed: an absolute path of at most 107 bytes");
	refused("[socket]\npath =\n",
		"F:2: [socket] path: ''; allowed: an absolute path of at most 107 bytes");
	refused("[socket]\ngroup = abcdefghijklmnopqrstuvwxyzabcdef\n",
		"F:2: [socket] group: 'abcdefghijklmnopqrstuvwxyzabcdef'; allowed: text of at most 31 bytes");
}

static void test_bad_lines(void **state)
{
	char text[600] = "[mote]\n#", message[64];

	refused("mode = minimal\n",
		"F:1: mode: a key before the first section; [socket] begins one");
	refused("[mote]\nmode\n", "F:2: neither a [section], nor key = value, nor a comment");
	refused("[mote]\nmode\n\nmodus = 1\n",
		"F:2: neither a [section], nor key = value, nor a comment");
	refused("[mote]\nmodus = minimal\n",
		"F:2: [mote] modus: no such key; there are mode, probes, engine, btf, mount_tracefs");
	refused("[mote]\nmode = minimal\n\nmode = minimal\n",
		"F:4: [mote] mode: given before, on line 2; one value is allowed");
	refused("[mote]\nmode = minimal\n[mote]\nmode = standard\n",
		"F:4: [mote] mode: given before, on line 2; one value is allowed");
	/* An indented line is a line like any other. */
	refused("[mote]\nmode = minimal\n  standard\n",
		"F:3: neither a [section], nor key = value, nor a comment");
	refused("\n[sockets]\n",
		"F:2: [sockets]: no such section; there are mote, socket, loop, interval, tables, file, filters, network, process, cgroup");
	refused("[mote\n", "F:1: a section's name ends with ]: [socket]");
	refused("[mote] mode = minimal\n",
		"F:1: 'mode = minimal' after a section's name; a key needs a line of its own");
	refused("[mote]\nmode = minimal # small\n",
		"F:2: [mote] mode: a comment behind a value begins with ;, not #");
	refused("[mote]\nmode = mini\x01mal\n", "F:2: byte 0x01 in column 12 is not text");
	memset(text + 8, 'x', 500);
	snprintf(message, sizeof(message), "F:2: a line of 501 bytes; at most 197 are allowed");
	refused(text, message);
}

static void test_a_nul_is_no_end(void **state)
{
	static const char text[] = "[mote]\nmode = minimal\n\0[nonsense]\n";
	struct mote_options o;

	mote_options_default(&o);
	assert_int_equal(mote_options_parse(&o, "F", text, sizeof(text) - 1, err, sizeof(err)),
			 -EINVAL);
	assert_string_equal(err, "F:3: byte 0x00 in column 1 is not text");
}

static void test_rules(void **state)
{
	struct mote_options o;

	refused("[interval]\n\ncpu = 75ms\n",
		"F:3: [interval] cpu: 75ms, must be a multiple of [loop] base, 50ms");
	refused("[loop]\nbase = 300ms\nhousekeeping = 3s\n[process]\nlisting = 9s\n",
		"F:2: [loop] base: [interval] cpu, 1s, must be a multiple of [loop] base, 300ms");
	refused("[interval]\nload = 10ms\n",
		"F:2: [interval] load: 10ms, must be a multiple of [loop] base, 50ms");
	assert_int_equal(parse(&o, "[loop]\nbase = 10ms\n[interval]\nload = 10ms\n"), 0);
	assert_int_equal(parse(&o, "[loop]\nbase = 100ms\n"), 0); /* does not divide 250 ms */
	assert_int_equal(o.interval_socket, 300);
	refused("[loop]\nbase = 100ms\n[interval]\nflow = 250ms\n",
		"F:4: [interval] flow: 250ms, must be a multiple of [loop] base, 100ms");
	refused("[tables]\nevents = 96KiB\n",
		"F:2: [tables] events: 98304 bytes is not a power of two; allowed: 64KiB, 128KiB and so on to 64MiB");
	refused("[socket]\nqueue = 64KiB\nframe = 64KiB\n",
		"F:2: [socket] queue: 64KiB, must be at least twice [socket] frame, 64KiB");
	refused("[socket]\nqueue = 64KiB\narena = 64KiB\nframe = 32KiB\n",
		"F:3: [socket] arena: 64KiB, must be at least 4 times [socket] frame, 32KiB");
	refused("[socket]\narena = 128KiB\n",
		"F:2: [socket] arena: [socket] queue, 256KiB, must be at most [socket] arena, 128KiB");
	refused("[filters]\nexclude_paths = /tmp/ var/log\n",
		"F:2: [filters] exclude_paths: 'var/log', must begin with /");
	refused("[filters]\ninclude_paths = ./x\n",
		"F:2: [filters] include_paths: './x', must begin with /");
	assert_int_equal(parse(&o, "[filters]\nexclude_paths = /tmp/  /var/log\n"
				   "exclude_processes = cat /bin/sh\n"),
			 0);
}

static int args(struct mote_options *o, enum mote_action *action, const char *config,
		const char *const more[])
{
	char *argv[16] = { (char *)"moted", (char *)"--config", (char *)config };
	int argc = 3;

	while (*more)
		argv[argc++] = (char *)*more++;
	err[0] = '\0';
	return mote_options_args(o, argc, argv, action, err, sizeof(err));
}

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void test_command_line(void **state)
{
	char path[] = "/tmp/mote-test-options.XXXXXX";
	int fd = mkstemp(path);
	enum mote_action action = MOTE_ACTION_HELP;
	struct mote_options o;

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "[mote]\nmode = minimal\nprobes = none\n") > 0);
	close(fd);
	assert_int_equal(args(&o, &action, path, ARGS("--probes", "kprobe", "--socket=/x=y")), 0);
	assert_int_equal(action, MOTE_ACTION_RUN);
	assert_int_equal(o.mote_mode, MOTE_MODE_MINIMAL);    /* the file's */
	assert_int_equal(o.mote_probes, MOTE_PROBES_KPROBE); /* the command line's */
	assert_string_equal(o.socket_path, "/x=y");
	assert_string_equal(o.config, path);
	assert_false(o.json);
	assert_int_equal(args(&o, &action, path, ARGS("--check", "--json")), 0);
	assert_int_equal(action, MOTE_ACTION_CHECK);
	assert_true(o.json);
	unlink(path);
	/* No file is read for these. */
	assert_int_equal(args(&o, &action, path, ARGS("--version")), 0);
	assert_int_equal(action, MOTE_ACTION_VERSION);
	assert_int_equal(args(&o, &action, path, ARGS("--help")), 0);
	assert_int_equal(action, MOTE_ACTION_HELP);
	assert_int_equal(args(&o, &action, path, ARGS("--check")), -ENOENT);
	assert_non_null(strstr(err, ": cannot be read: No such file or directory"));
}

static void test_bad_command_lines(void **state)
{
	static const struct {
		const char *args[3], *message;
	} cases[] = {
		{ { "--mode", "fast" }, "--mode: 'fast'; allowed: one of standard, minimal" },
		{ { "--mode=" }, "--mode: needs a value: --mode VALUE" },
		{ { "--mode" }, "--mode: needs a value: --mode VALUE" },
		{ { "--config=x" }, "--config: given twice; once is allowed" },
		{ { "--mod=minimal" }, "--mod=minimal: no such option; moted --help lists them" },
		{ { "minimal" }, "minimal: no such option; moted --help lists them" },
		{ { "--check=1" }, "--check: takes no value" },
		{ { "--json" }, "--json: goes with --check only; mote dump --json shows rows" },
		{ { "--check", "--help" },
		  "--check, --version and --help: only one of them is allowed" },
		{ { "--socket", "mote.sock" },
		  "--socket: 'mote.sock'; allowed: an absolute path of at most 107 bytes" },
	};
	struct mote_options o, before;
	enum mote_action action = MOTE_ACTION_HELP;

	memset(&before, 0x5a, sizeof(before));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		o = before;
		assert_int_equal(args(&o, &action, "/dev/null", cases[i].args), -EINVAL);
		assert_string_equal(err, cases[i].message);
		assert_memory_equal(&o, &before, sizeof(o));
		assert_int_equal(action, MOTE_ACTION_HELP);
	}
}

static void test_unreadable_files(void **state)
{
	struct mote_options o;
	char path[] = "/tmp/mote-test-options.XXXXXX";
	int fd = mkstemp(path);

	mote_options_default(&o);
	assert_int_equal(mote_options_load(&o, "/", err, sizeof(err)), -EISDIR);
	assert_string_equal(
		err,
		"/: cannot be read: Is a directory; it must be a readable file of at most 256 KiB");
	assert_int_equal(ftruncate(fd, 300 << 10), 0);
	assert_int_equal(mote_options_load(&o, path, err, sizeof(err)), -EFBIG);
	unlink(path);
	close(fd);
	assert_string_equal(o.config, "");
}

/* The sample with every key's comment sign taken away says the defaults. */
static void test_sample_is_the_defaults(void **state)
{
	struct mote_options o, before;
	char *text, *out;
	size_t len, n = 0, keys = 0;
	FILE *file = open_memstream(&text, &len);

	mote_options_sample(file);
	fclose(file);
	out = calloc(1, len + 1);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '#' && text[i + 1] != ' ' && text[i + 1] != '\n') {
			keys++;
			continue;
		}
		out[n++] = text[i];
	}
	assert_int_equal(keys, MOTE_OPTS);
	mote_options_default(&before);
	if (parse(&o, out))
		fail_msg("%s", err);
	assert_memory_equal(&o, &before, sizeof(o));
	free(out);
	free(text);
}

static void test_every_key_is_explained(void **state)
{
	static void (*const prints[])(FILE *) = { mote_options_help, mote_options_sample,
						  mote_options_markdown };
	char *text;
	size_t len;

	for (int i = 0; i < 3; i++) {
		FILE *file = open_memstream(&text, &len);

		prints[i](file);
		fclose(file);
		for (unsigned int k = 0; k < MOTE_OPTS; k++) {
			assert_non_null(strstr(text, mote_option_table[k].key));
			assert_non_null(strstr(text, mote_option_table[k].help));
		}
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_every_stream_has_an_interval),
		cmocka_unit_test(test_bounds_of_every_number),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_a_nul_is_no_end),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_bad_command_lines),
		cmocka_unit_test(test_unreadable_files),
		cmocka_unit_test(test_sample_is_the_defaults),
		cmocka_unit_test(test_every_key_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
