// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What the host allows, from texts and from made-up roots: kernels of the matrix, containers, and a
 * root where nothing can be read. And what --check prints of it.
 */
#include <errno.h>
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

#include "check.h"
#include "host_features.h"
#include "options.h"
#include "tier.h"

#define VERSION(major, minor) ((major) << 8 | (minor))
#define DYNAMIC               "Linux version 6.1.0 (gcc) #1 SMP PREEMPT_DYNAMIC Debian\n"

static void test_preempt(void **state)
{
	static const struct {
		unsigned int release;
		const char *version, *debugfs, *cmdline, *config, *model;
		bool preemptible;
	} cases[] = {
		/* debugfs is the truth of now */
		{ VERSION(6, 1), DYNAMIC, "none (voluntary) full \n", "preempt=full", NULL,
		  "voluntary", false },
		{ VERSION(6, 1), DYNAMIC, "none voluntary (full) \n", NULL, NULL, "full", true },
		{ VERSION(6, 18), DYNAMIC, "none voluntary full (lazy) \n", NULL, NULL, "lazy",
		  true },
		{ VERSION(6, 1), DYNAMIC, "(none) voluntary full \n", NULL, NULL, "none", false },
		/* the command line, of a kernel that hears it */
		{ VERSION(6, 1), DYNAMIC, NULL, "quiet preempt=voluntary\n", NULL, "voluntary",
		  false },
		{ VERSION(6, 1), DYNAMIC, NULL, "preempt=none preempt=full ro\n", NULL, "full",
		  true },
		{ VERSION(6, 1), DYNAMIC, NULL, "xpreempt=none\n", NULL, "unknown", true },
		{ VERSION(6, 1), DYNAMIC, NULL, "preempt=nonesuch\n", NULL, "unknown", true },
		{ VERSION(6, 1), DYNAMIC, NULL, "quiet -- preempt=none\n", NULL, "unknown", true },
		{ VERSION(5, 10), "Linux version 5.10.0 #1 SMP Debian\n", NULL, "preempt=full\n",
		  NULL, "none or voluntary", false },
		{ VERSION(5, 10), "Linux version 5.10.0 #1 SMP PREEMPT x\n", NULL, "preempt=none\n",
		  NULL, "full or lazy", true },
		{ VERSION(6, 12), "Linux version 6.12 #1 SMP PREEMPT_RT x\n", NULL,
		  "preempt=none\n", NULL, "full (RT)", true },
		/* the version and the configuration */
		{ VERSION(7, 0), DYNAMIC, NULL, "quiet\n", "\nCONFIG_PREEMPT_NONE=y\n",
		  "full or lazy", true },
		{ VERSION(6, 18), DYNAMIC, NULL, "", "#\nCONFIG_PREEMPT_NONE=y\n", "none", false },
		{ VERSION(6, 1), DYNAMIC, NULL, NULL,
		  "#\n# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY=y\n", "voluntary",
		  false },
		{ VERSION(6, 1), DYNAMIC, NULL, NULL, "#\nCONFIG_PREEMPT=y\n", "full", true },
		{ VERSION(6, 18), DYNAMIC, NULL, NULL, "#\nCONFIG_PREEMPT_LAZY=y\n", "lazy", true },
		{ VERSION(6, 1), DYNAMIC, NULL, NULL, "#\nCONFIG_PREEMPT_BUILD=y\n", "unknown",
		  true },
		{ VERSION(6, 1), NULL, NULL, NULL, NULL, "unknown", true },
	};
	struct mote_preempt preempt;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&preempt, 0, sizeof(preempt));
		mote_features_preempt(&preempt, cases[i].release, cases[i].version,
				      cases[i].debugfs, cases[i].cmdline, cases[i].config);
		if (strcmp(preempt.model, cases[i].model) ||
		    preempt.preemptible != cases[i].preemptible)
			fail_msg("case %zu: %s, preemptible %d", i, preempt.model,
				 preempt.preemptible);
		assert_true(*preempt.source);
	}
}

static void test_cgroups(void **state)
{
	assert_int_equal(mote_features_cgroups("22 1 0:21 / /proc rw - proc proc rw\n"),
			 MOTE_CGROUPS_NONE);
	assert_int_equal(mote_features_cgroups("1 2 0:3 / /sys/fs/cgroup rw shared:4 - cgroup2 "
					       "cgroup2 rw,nsdelegate\n"),
			 MOTE_CGROUPS_V2);
	assert_int_equal(mote_features_cgroups("1 2 0:3 / /c/cpu rw - cgroup cgroup rw,cpu\n"),
			 MOTE_CGROUPS_V1);
	assert_int_equal(mote_features_cgroups("1 2 0:3 / /c/cpu rw - cgroup cgroup rw,cpu\n"
					       "1 2 0:3 / /c/unified rw - cgroup2 c rw"),
			 MOTE_CGROUPS_HYBRID);
	/* A path may look like the end of a line. */
	assert_int_equal(mote_features_cgroups("1 2 0:3 / /x-cgroup2 rw - tmpfs tmpfs rw\n"),
			 MOTE_CGROUPS_NONE);
	assert_int_equal(mote_features_cgroups("no dash here\n"), MOTE_CGROUPS_NONE);
	assert_int_equal(mote_features_cgroups(""), MOTE_CGROUPS_NONE);
}

static void test_hidepid(void **state)
{
	assert_int_equal(mote_features_hidepid("22 1 0:21 / /proc rw - proc proc rw\n"), 0);
	assert_int_equal(mote_features_hidepid("22 1 0:21 / /proc rw - proc proc rw,hidepid=2\n"),
			 2);
	assert_int_equal(mote_features_hidepid(
				 "22 1 0:21 / /proc rw - proc proc rw,hidepid=invisible\n"),
			 2);
	assert_int_equal(mote_features_hidepid(
				 "22 1 0:21 / /proc rw - proc proc rw,hidepid=noaccess\n"),
			 1);
	assert_int_equal(mote_features_hidepid(
				 "22 1 0:21 / /proc rw - proc proc rw,hidepid=ptraceable\n"),
			 4);
	/* Another proc's, and one that was covered by the next */
	assert_int_equal(mote_features_hidepid("1 1 0:1 / /proc rw - proc proc rw\n"
					       "2 1 0:2 / /c/proc rw - proc proc rw,hidepid=2\n"),
			 0);
	assert_int_equal(mote_features_hidepid("1 1 0:1 / /proc rw - proc proc rw,hidepid=2\n"
					       "2 1 0:2 / /proc rw - proc proc rw\n"),
			 0);
}

/* EPERM and ENOSYS have different causes, told apart (L9). */
static void test_ring_reasons(void **state)
{
	static const struct {
		int error, disabled, seccomp;
		const char *says;
	} cases[] = {
		{ -EPERM, 2, 0, "sysctl kernel.io_uring_disabled is 2" },
		{ -EPERM, 1, 2, "sysctl kernel.io_uring_disabled is 1" },
		{ -EPERM, 0, 2, "EPERM: a seccomp filter" },
		{ -EPERM, 0, 0, "EPERM: refused by a security module" },
		{ -ENOSYS, 0, 0, "ENOSYS: a seccomp filter" },
		{ -ENOSYS, MOTE_FEATURE_UNKNOWN, 2, "ENOSYS: a seccomp filter" },
		{ -ENOSYS, MOTE_FEATURE_UNKNOWN, 0, "ENOSYS: the kernel is built without" },
		{ -ENOMEM, 0, 0, "ENOMEM: the limit of locked memory" },
	};
	struct mote_features f = { .ring = { .error = 0 } };

	assert_string_equal(mote_features_ring_reason(&f), "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f.ring.error = cases[i].error;
		f.io_uring_disabled = cases[i].disabled;
		f.seccomp = cases[i].seccomp;
		assert_non_null(strstr(mote_features_ring_reason(&f), cases[i].says));
	}
}

static char root[] = "/tmp/mote-test-features.XXXXXX";

static int make_root(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void put(const char *path, const char *text)
{
	char full[256];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_nothing_to_read(void **state)
{
	struct mote_options options;
	struct mote_features f;

	mote_options_default(&options);
	mote_features_read(&f, &options, "/nonexistent");
	assert_string_equal(f.release, "");
	assert_string_equal(f.btf, "");
	assert_int_equal(f.lockdown, MOTE_LOCKDOWN_UNKNOWN);
	assert_false(f.kprobes || f.tracepoints || *f.tracefs);
	assert_int_equal(f.perf_event_paranoid, MOTE_FEATURE_UNKNOWN);
	assert_int_equal(f.capabilities, 0);
	assert_true(f.preempt.preemptible);
	assert_int_equal(f.cgroups, MOTE_CGROUPS_NONE);
}

static void test_a_host(void **state)
{
	struct mote_options options;
	struct mote_features f;

	put("/proc/sys/kernel/osrelease", "6.12.117-cloud\n");
	put("/proc/version", DYNAMIC);
	put("/proc/cmdline", "quiet\n");
	put("/boot/config-6.12.117-cloud", "#\nCONFIG_PREEMPT_VOLUNTARY=y\n");
	put("/sys/kernel/btf/vmlinux", "x");
	put("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	put("/sys/bus/event_source/devices/kprobe/type", "8\n");
	put("/sys/bus/event_source/devices/tracepoint/type", "2\n");
	put("/sys/kernel/debug/tracing/events/sched/enable", "0\n");
	put("/proc/sys/kernel/perf_event_paranoid", "-1\n");
	put("/proc/sys/kernel/io_uring_disabled", "1\n");
	put("/proc/self/status", "Name:\tx\nCapEff:\t0000004000000000\nSeccomp:\t2\n");
	put("/proc/self/mountinfo", "1 1 0:1 / /proc rw - proc proc rw,hidepid=2\n"
				    "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
	mote_options_default(&options);
	mote_features_read(&f, &options, root);
	assert_string_equal(f.release, "6.12.117-cloud");
	assert_int_equal(f.version, VERSION(6, 12));
	assert_string_equal(f.preempt.model, "voluntary");
	assert_string_equal(f.preempt.source, "kernel configuration");
	assert_string_equal(f.btf, "/sys/kernel/btf/vmlinux");
	assert_int_equal(f.lockdown, MOTE_LOCKDOWN_CONFIDENTIALITY);
	assert_true(f.kprobes && f.tracepoints);
	assert_string_equal(f.tracefs, "/sys/kernel/debug/tracing");
	assert_int_equal(f.perf_event_paranoid, -1);
	assert_int_equal(f.kptr_restrict, MOTE_FEATURE_UNKNOWN);
	assert_int_equal(f.io_uring_disabled, 1);
	assert_true(mote_features_capable(&f, 38));
	assert_false(mote_features_capable(&f, 39));
	assert_int_equal(f.seccomp, 2);
	assert_int_equal(f.hidepid, 2);
	assert_int_equal(f.cgroups, MOTE_CGROUPS_V2);
	assert_string_equal(f.clocksource, "hpet");
}

static void test_configured_btf(void **state)
{
	struct mote_options options;
	struct mote_features f;

	mote_options_default(&options);
	snprintf(options.mote_btf, sizeof(options.mote_btf), "%s/proc/version", root);
	mote_features_read(&f, &options, root);
	assert_string_equal(f.btf, options.mote_btf);
}

static void test_tiers(void **state)
{
	struct mote_tiers tiers = { 0 };
	char name[16];

	mote_tiers_add(&tiers, "probes", "none", "x");
	mote_tiers_add(&tiers, "probes", "kprobe", "because of %d", 7);
	assert_int_equal(tiers.n, 1);
	assert_string_equal(mote_tiers_find(&tiers, "probes")->choice, "kprobe");
	assert_string_equal(mote_tiers_find(&tiers, "probes")->reason, "because of 7");
	assert_null(mote_tiers_find(&tiers, "engine"));
	for (int i = 0; i < 2 * MOTE_TIERS_MAX; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		mote_tiers_add(&tiers, name, "a choice that is too long to fit", "%0300d", 1);
	}
	assert_int_equal(tiers.n, MOTE_TIERS_MAX);
	assert_string_equal(tiers.tier[1].choice, "a choice that is too long to fi");
	assert_int_equal(strlen(tiers.tier[1].reason), sizeof(tiers.tier[1].reason) - 1);
}

static char *print(const struct mote_features *f, const struct mote_tiers *tiers, bool json)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(mote_check_print(f, tiers, json, out), 0);
	fclose(out);
	return text;
}

static void test_check(void **state)
{
	struct mote_features f = { .release = "6.1 \"q\\", .hidepid = 2 };
	struct mote_tiers tiers = { 0 };
	char *text;

	mote_tiers_add(&tiers, "probes", "none", "a\tb \xc3\xa9 \xff \xed\xa0\x80");
	text = print(&f, &tiers, false);
	assert_non_null(strstr(text, "  kernel             6.1 \"q\\\n"));
	assert_non_null(strstr(text, "  hidepid            2                  mount option"));
	assert_non_null(strstr(text, "  probes             none                      a\tb"));
	free(text);
	text = print(&f, &tiers, true);
	assert_non_null(strstr(text, "\"value\": \"6.1 \\\"q\\\\\""));
	assert_non_null(strstr(text, "\"reason\": \"a\\u0009b \xc3\xa9 \\ufffd "
				     "\\ufffd\\ufffd\\ufffd\"}]}\n"));
	free(text);
	mote_tiers_add(&tiers, "network", "kprobe", "because");
	text = print(&f, &tiers, true);
	assert_non_null(
		strstr(text, "],\n \"probes\": {\"set\": \"kprobe\", \"reason\": \"because\"}}\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_preempt),         cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_hidepid),         cmocka_unit_test(test_ring_reasons),
		cmocka_unit_test(test_nothing_to_read), cmocka_unit_test(test_a_host),
		cmocka_unit_test(test_configured_btf),  cmocka_unit_test(test_tiers),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
