// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Which devices are leaves, on trees made like /sys/class/net: hardware, bridges, bonds, VLANs,
 * containers, tunnels, no sysfs, another namespace's; devices that come later; too many.
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

#include "leaf.h"
#include "thread.h"

static char root[64];

static const char *in_root(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void make_dir(const char *name)
{
	assert_true(mkdir(in_root(name), 0755) == 0 || errno == EEXIST);
}

static void write_names(const char *const names[])
{
	FILE *file = fopen(in_root("dev"), "r+");

	if (!file)
		file = fopen(in_root("dev"), "w");
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), 0), 0);
	fputs("Inter-|   Receive     |  Transmit\n face |bytes    packets|bytes\n", file);
	for (unsigned int i = 0; names[i]; i++)
		fprintf(file, "%6s:%u 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n", names[i], i);
	assert_int_equal(fclose(file), 0);
}

/*
 * One device: its name and, behind it, what stands in its directory, as `bond0 bonding lower_eth0`.
 * Directories are links in the real sysfs, so here, too.
 */
static void add_device(const char *spec, char *name)
{
	char words[256], path[300], *word, *save;

	strcpy(words, spec);
	word = strtok_r(words, " ", &save);
	strcpy(name, word);
	snprintf(path, sizeof(path), "real/%s", word);
	make_dir(path);
	snprintf(path, sizeof(path), "../real/%s", word);
	assert_int_equal(symlink(path,
				 in_root((snprintf(words + 200, 50, "net/%s", word), words + 200))),
			 0);
	while ((word = strtok_r(NULL, " ", &save))) {
		snprintf(path, sizeof(path), "real/%s/%s", name, word);
		make_dir(path);
	}
}

static void start_tree(void)
{
	strcpy(root, "/tmp/mote-leaf.XXXXXX");
	assert_non_null(mkdtemp(root));
	make_dir("net");
	make_dir("real");
}

static void remove_tree(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", root);
	assert_int_equal(system(command), 0);
}

#define MAX_DEVICES 16

static struct mote_leaves *run_on(const char *const specs[])
{
	static char names[MAX_DEVICES][64];
	const char *list[MAX_DEVICES + 1] = { 0 };
	struct mote_leaves *leaves;
	char sysfs[128];

	start_tree();
	for (unsigned int i = 0; specs[i]; i++) {
		add_device(specs[i], names[i]);
		list[i] = names[i];
	}
	write_names(list);
	strcpy(sysfs, in_root("net"));
	assert_int_equal(mote_leaves_open(sysfs, in_root("dev"), MAX_DEVICES, &leaves), 0);
	assert_int_equal(mote_leaves_run(leaves), 0);
	return leaves;
}

/* `expected` names the leaves among `specs`. */
static void check(const char *const specs[], const char *expected)
{
	struct mote_leaves *leaves = run_on(specs);
	char got[256] = "";

	for (unsigned int i = 0; specs[i]; i++) {
		char name[64];
		int leaf;

		sscanf(specs[i], "%63s", name);
		leaf = mote_leaves_get(leaves, name);
		assert_true(leaf == 0 || leaf == 1);
		if (leaf)
			strcat(strcat(got, *got ? " " : ""), name);
	}
	assert_string_equal(got, expected);
	assert_null(mote_leaves_note(leaves));
	mote_leaves_stop(leaves);
	remove_tree();
}

#define CHECK(expected, ...) check((const char *const[]){ __VA_ARGS__, NULL }, expected)

static void hardware(void **state)
{
	CHECK("eth0 wlan0", "lo", "eth0 device", "wlan0 device", "docker0 bridge lower_veth1",
	      "veth1 brport", "ifb0", "dummy0", "tun0 tun_flags", "wg0");
}

static void bond_and_vlans(void **state)
{
	CHECK("eth0 eth1", "lo", "eth0 device upper_bond0", "eth1 device upper_bond0",
	      "bond0 bonding lower_eth0 lower_eth1", "bond0.10 lower_bond0",
	      "br0 bridge lower_bond0.10");
	/* a bond that is empty still is none; a team shows by what is below it */
	CHECK("p1", "lo", "bond0 bonding", "team0 lower_p1", "p1 device");
}

static void hardware_over_hardware(void **state)
{
	/* Hyper-V: the synthetic device carries its VF's packets and counts them, too */
	CHECK("enP1", "lo", "eth0 device lower_enP1", "enP1 device upper_eth0");
}

static void container(void **state)
{
	CHECK("eth0", "lo", "eth0", "tun0 tun_flags", "sit0", "dummy0", "ifb0");
	/* containers within a container: veth ports carry what eth0 carries */
	CHECK("eth0", "lo", "docker0 bridge lower_veth1", "veth1 brport", "eth0");
	/* the only way out is a port */
	CHECK("v0", "lo", "br0 bridge lower_v0", "v0 brport", "br0.10 lower_br0");
	CHECK("v1", "mv lower_v1", "v1", "lo");
}

static void only_a_tunnel(void **state)
{
	CHECK("tap0", "lo", "tap0 tun_flags");
	CHECK("wg0", "lo", "wg0");
	CHECK("", "lo", "dummy0");
}

static void without_sysfs(void **state)
{
	static const char *const names[] = { "lo", "eth0", "br0", NULL };
	struct mote_leaves *leaves;

	start_tree();
	write_names(names);
	assert_int_equal(mote_leaves_open("/nonexistent", in_root("dev"), 8, &leaves), 0);
	assert_int_equal(mote_leaves_run(leaves), 0);
	assert_int_equal(mote_leaves_get(leaves, "lo"), 0);
	assert_int_equal(mote_leaves_get(leaves, "eth0"), 1);
	assert_int_equal(mote_leaves_get(leaves, "br0"), 1);
	assert_non_null(strstr(mote_leaves_note(leaves), "is not there"));
	mote_leaves_stop(leaves);
	remove_tree();
}

static void sysfs_of_another_namespace(void **state)
{
	static const char *const names[] = { "lo", "veth9", NULL };
	struct mote_leaves *leaves;
	char sysfs[128], name[64];

	start_tree();
	add_device("lo", name);
	add_device("eth0 device", name);
	write_names(names);
	strcpy(sysfs, in_root("net"));
	assert_int_equal(mote_leaves_open(sysfs, in_root("dev"), 8, &leaves), 0);
	assert_int_equal(mote_leaves_run(leaves), 0);
	assert_int_equal(mote_leaves_get(leaves, "lo"), 0);
	assert_int_equal(mote_leaves_get(leaves, "veth9"), 1);
	assert_non_null(strstr(mote_leaves_note(leaves), "another network namespace"));
	mote_leaves_stop(leaves);
	remove_tree();
}

static void a_device_comes_later(void **state)
{
	static const char *const specs[] = { "lo", "eth0 device", NULL };
	static const char *const later[] = { "lo", "eth1", "eth0", NULL };
	struct mote_leaves *leaves = run_on(specs);
	uint64_t began = mote_thread_now();
	char name[64];
	int leaf;

	assert_int_equal(mote_leaves_get(leaves, "eth0"), 1);
	assert_int_equal(mote_leaves_get(leaves, "eth1"), -1);
	add_device("eth1 device", name);
	write_names(later);
	while ((leaf = mote_leaves_get(leaves, "eth1")) < 0 &&
	       mote_thread_now() - began < 8000000000ull)
		usleep(10000);
	assert_int_equal(leaf, 1); /* sooner than the look of every 10 s */
	assert_int_equal(mote_leaves_get(leaves, "eth0"), 1);
	mote_leaves_stop(leaves);
	remove_tree();
}

static void more_than_fit(void **state)
{
	static const char *const names[] = { "a", "b", "c", NULL };
	struct mote_leaves *leaves;

	start_tree();
	write_names(names);
	assert_int_equal(mote_leaves_open("/nonexistent", in_root("dev"), 2, &leaves), 0);
	assert_int_equal(mote_leaves_run(leaves), 0);
	assert_int_equal(mote_leaves_get(leaves, "b"), 1);
	assert_int_equal(mote_leaves_get(leaves, "c"), 0);
	mote_leaves_stop(leaves);
	remove_tree();
}

static void bad_arguments(void **state)
{
	struct mote_leaves *leaves = NULL;

	assert_int_equal(mote_leaves_open("/", "/nonexistent", 8, &leaves), -ENOENT);
	assert_int_equal(mote_leaves_open(NULL, NULL, 0, &leaves), -EINVAL);
	assert_null(leaves);
	mote_leaves_stop(NULL);
}

static void this_machine(void **state)
{
	struct mote_leaves *leaves;

	assert_int_equal(mote_leaves_start(64, &leaves), 0);
	assert_int_equal(mote_leaves_get(leaves, "lo"), 0);
	mote_leaves_stop(leaves);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hardware),
		cmocka_unit_test(bond_and_vlans),
		cmocka_unit_test(hardware_over_hardware),
		cmocka_unit_test(container),
		cmocka_unit_test(only_a_tunnel),
		cmocka_unit_test(without_sysfs),
		cmocka_unit_test(sysfs_of_another_namespace),
		cmocka_unit_test(a_device_comes_later),
		cmocka_unit_test(more_than_fit),
		cmocka_unit_test(bad_arguments),
		cmocka_unit_test(this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
