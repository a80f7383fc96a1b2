// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * bpfstat OBJECT...: loads each program of BPF object files alone on the running kernel, and prints
 * its instructions, how many the verifier followed, and what that is of the million that it
 * follows at most. A program whose types this kernel has not got, or that it does not permit, is
 * not for it; one that it refuses, or of which it follows more than FOLLOWED_MAX, is a failure:
 * what explodes on one kernel a little is too much on another, and all of it is paid at start.
 * BPFSTAT_VERBOSE: with what libbpf and the verifier say.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#define VERIFIER_MAX 1000000
#define FOLLOWED_MAX (VERIFIER_MAX / 20)
#define LOG_STATS    4

static char verifier[1 << 20];

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN && getenv("BPFSTAT_VERBOSE") ? vfprintf(stderr, format, args)
								 : 0;
}

static unsigned long processed(void)
{
	const char *at = strstr(verifier, "processed ");

	return at ? strtoul(at + strlen("processed "), NULL, 10) : 0;
}

/* What libbpf puts in place of an access to what the kernel has not got. */
static bool not_for_this_kernel(int err)
{
	return err == -EPERM || err == -ENOENT || err == -ESRCH || strstr(verifier, "195896080") ||
	       strstr(verifier, "invalid CO-RE relocation");
}

/* True: a failure. */
static bool print(const char *object, const struct bpf_program *p, int err)
{
	unsigned long followed = processed();
	bool fine = err ? not_for_this_kernel(err) : followed <= FOLLOWED_MAX;

	printf("%-24s %-24s %6zu ", object, bpf_program__name(p), bpf_program__insn_cnt(p));
	if (err)
		printf("%9s %7s  %s: %s\n", "-", "-", fine ? "not for this kernel" : "REFUSED",
		       strerror(-err));
	else
		printf("%9lu %6.2f%%  %s\n", followed, 100.0 * (double)followed / VERIFIER_MAX,
		       fine ? "ok" : "TOO LARGE");
	return !fine;
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* 5.11, 3ca1032ab7ab: bpf_get_current_task_btf() */
static bool has_current_task(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	return !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 11));
}

/* Without it part of the programs is left out. */
static bool is_whole(const char *name)
{
	size_t len = strlen(name);

	return (len > 6 && !strcmp(name + len - 6, "_by_tp")) || !strcmp(name, "edges_wanted") ||
	       !strcmp(name, "file_filters");
}

/*
 * What moted would set: programs that are left out by a variable are to be looked at whole, and
 * lifecycle.bpf.c does not load directly where it cannot.
 */
static void set_variables(struct bpf_object *object)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	const struct btf *btf = bpf_object__btf(object);
	int id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -1;
	const struct btf_type *section = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);
	size_t size = 0;
	char *data = map ? (char *)(uintptr_t)bpf_map__initial_value((struct bpf_map *)map, &size)
			 : NULL;

	for (unsigned int i = 0; section && data && i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *var = btf_var_secinfos(section) + i;
		const struct btf_type *type = btf__type_by_id(btf, var->type);
		const char *name = btf__name_by_offset(btf, type->name_off);

		if (is_whole(name) && var->offset < size)
			data[var->offset] = 1;
		if (!strcmp(name, "event_direct") && var->offset < size)
			data[var->offset] = has_current_task();
	}
}

/* Loads the program of that number; false: there is none. */
static bool load_one(const char *path, unsigned int number, unsigned int *failed)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *p, *chosen = NULL;
	unsigned int i = 0;
	int err;

	if (!object) {
		printf("%s: %s\n", path, strerror(errno));
		*failed += 1;
		return false;
	}
	bpf_object__for_each_program(p, object)
	{
		bpf_program__set_autoload(p, i == number);
		if (i++ == number)
			chosen = p;
	}
	if (!chosen) {
		bpf_object__close(object);
		return false;
	}
	set_variables(object);
	verifier[0] = '\0';
	bpf_program__set_log_level(chosen, LOG_STATS);
	bpf_program__set_log_buf(chosen, verifier, sizeof(verifier));
	err = bpf_object__load(object);
	*failed += print(base(path), chosen, err);
	if (err && getenv("BPFSTAT_VERBOSE"))
		fprintf(stderr, "%.*s\n", 4000,
			strlen(verifier) > 4000 ? verifier + strlen(verifier) - 4000 : verifier);
	bpf_object__close(object);
	return true;
}

int main(int argc, char **argv)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned int failed = 0;

	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	libbpf_set_print(quiet);
	printf("%-24s %-24s %6s %9s %7s\n", "object", "program", "insns", "followed", "of max");
	for (int i = 1; i < argc; i++)
		for (unsigned int n = 0; load_one(argv[i], n, &failed); n++)
			;
	printf("%u failed\n", failed);
	return failed || argc < 2;
}
