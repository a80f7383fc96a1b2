// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What this host allows, read from /proc and /sys once at start. Nothing here fails: a file that is
 * not there or not ours to read leaves its member at "unknown", and --check says so.
 */
#include "host_features.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "options.h"

#define TEXT_BYTES (512 << 10) /* a kernel configuration has about 280 KiB */

/* Where to read, and room for one file. */
struct place {
	const char *root;
	char *text;
};

/* The text of a file, good until the next call; NULL if it cannot be read. */
static char *read_text(struct place *place, const char *path)
{
	char full[512];
	size_t len = 0;
	ssize_t n = 0;
	int fd;

	snprintf(full, sizeof(full), "%s%s", place->root, path);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	while (len < TEXT_BYTES && (n = read(fd, place->text + len, TEXT_BYTES - len)) > 0)
		len += (size_t)n;
	close(fd);
	place->text[len] = '\0';
	return n < 0 ? NULL : place->text;
}

static bool exists(struct place *place, const char *path, int mode)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", place->root, path);
	return !access(full, mode);
}

static int read_sysctl(struct place *place, const char *path)
{
	const char *text = read_text(place, path);

	return text && *text ? (int)strtol(text, NULL, 10) : MOTE_FEATURE_UNKNOWN;
}

static void read_word(struct place *place, const char *path, char *buf, size_t size)
{
	const char *text = read_text(place, path);

	snprintf(buf, size, "%.*s", text ? (int)strcspn(text, "\n ") : 0, text ?: "");
}

static void read_kernel(struct mote_features *f, struct place *place)
{
	unsigned int major = 0, minor = 0;

	read_word(place, "/proc/sys/kernel/osrelease", f->release, sizeof(f->release));
	if (sscanf(f->release, "%u.%u", &major, &minor) == 2)
		f->version = major << 8 | (minor & 0xff);
	read_word(place, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		  f->clocksource, sizeof(f->clocksource));
}

/* The kernel's configuration, from where distributions put it, else from CONFIG_IKCONFIG_PROC. */
static const char *read_config(const struct mote_features *f, struct place *place)
{
	char path[512];
	gzFile file;
	int n;

	snprintf(path, sizeof(path), "/boot/config-%s", f->release);
	if (read_text(place, path))
		return place->text;
	snprintf(path, sizeof(path), "%s/proc/config.gz", place->root);
	file = gzopen(path, "re");
	if (!file)
		return NULL;
	n = gzread(file, place->text, TEXT_BYTES);
	gzclose(file);
	place->text[n > 0 ? n : 0] = '\0';
	return n > 0 ? place->text : NULL;
}

static void read_preempt(struct mote_features *f, struct place *place)
{
	static const char *const paths[] = { "/proc/version", "/sys/kernel/debug/sched/preempt",
					     "/proc/cmdline" };
	char *texts[4] = { NULL };
	const char *text;

	for (int i = 0; i < 4; i++) {
		text = i < 3 ? read_text(place, paths[i]) : read_config(f, place);
		texts[i] = text ? strdup(text) : NULL;
	}
	mote_features_preempt(&f->preempt, f->version, texts[0], texts[1], texts[2], texts[3]);
	for (int i = 0; i < 4; i++)
		free(texts[i]);
}

/* "none [integrity] confidentiality" */
static void read_lockdown(struct mote_features *f, struct place *place)
{
	const char *text = read_text(place, "/sys/kernel/security/lockdown");

	if (!text)
		f->lockdown = MOTE_LOCKDOWN_UNKNOWN;
	else if (strstr(text, "[confidentiality]"))
		f->lockdown = MOTE_LOCKDOWN_CONFIDENTIALITY;
	else if (strstr(text, "[integrity]"))
		f->lockdown = MOTE_LOCKDOWN_INTEGRITY;
	else if (strstr(text, "[none]"))
		f->lockdown = MOTE_LOCKDOWN_NONE;
}

static void read_bpf(struct mote_features *f, const struct mote_options *options,
		     struct place *place)
{
	static const char *const tracefs[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char probe[64];

	/* A file that is configured is not under the root of a test. */
	if (*options->mote_btf && !access(options->mote_btf, R_OK))
		snprintf(f->btf, sizeof(f->btf), "%s", options->mote_btf);
	else if (exists(place, "/sys/kernel/btf/vmlinux", R_OK))
		snprintf(f->btf, sizeof(f->btf), "/sys/kernel/btf/vmlinux");
	f->kprobes = exists(place, "/sys/bus/event_source/devices/kprobe/type", F_OK);
	f->tracepoints = exists(place, "/sys/bus/event_source/devices/tracepoint", F_OK);
	for (unsigned int i = 0; i < 2 && !*f->tracefs; i++) {
		snprintf(probe, sizeof(probe), "%s/events/sched", tracefs[i]);
		if (exists(place, probe, R_OK | X_OK))
			snprintf(f->tracefs, sizeof(f->tracefs), "%s", tracefs[i]);
	}
	read_lockdown(f, place);
	f->unprivileged_bpf_disabled =
		read_sysctl(place, "/proc/sys/kernel/unprivileged_bpf_disabled");
	f->perf_event_paranoid = read_sysctl(place, "/proc/sys/kernel/perf_event_paranoid");
	f->kptr_restrict = read_sysctl(place, "/proc/sys/kernel/kptr_restrict");
	f->io_uring_disabled = read_sysctl(place, "/proc/sys/kernel/io_uring_disabled");
}

static void read_status(struct mote_features *f, struct place *place)
{
	const char *text = read_text(place, "/proc/self/status"), *line;

	line = text ? strstr(text, "\nCapEff:") : NULL;
	if (line)
		f->capabilities = strtoull(line + 8, NULL, 16);
	line = text ? strstr(text, "\nSeccomp:") : NULL;
	if (line)
		f->seccomp = (int)strtol(line + 9, NULL, 10);
}

/* The initial namespaces have fixed inodes: PROC_PID_INIT_INO, PROC_USER_INIT_INO. */
static bool in_namespace(struct place *place, const char *path, const char *initial)
{
	char full[512], link[64];
	ssize_t n;

	snprintf(full, sizeof(full), "%s%s", place->root, path);
	n = readlink(full, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = '\0';
	return strcmp(link, initial) != 0;
}

bool mote_features_capable(const struct mote_features *features, unsigned int cap)
{
	return features->capabilities >> cap & 1;
}

const char *mote_features_ring_reason(const struct mote_features *f)
{
	switch (-f->ring.error) {
	case 0:
		return "";
	case EPERM:
		if (f->io_uring_disabled == 2)
			return "EPERM: sysctl kernel.io_uring_disabled is 2";
		if (f->io_uring_disabled == 1)
			return "EPERM: sysctl kernel.io_uring_disabled is 1, and mote is neither CAP_SYS_ADMIN nor in kernel.io_uring_group";
		return f->seccomp ? "EPERM: a seccomp filter of the container or service"
				  : "EPERM: refused by a security module";
	case ENOSYS:
		/* The sysctl is there (6.6) only where the kernel has io_uring. */
		if (f->seccomp || f->io_uring_disabled != MOTE_FEATURE_UNKNOWN)
			return "ENOSYS: a seccomp filter of the container or service";
		return "ENOSYS: the kernel is built without io_uring";
	case ENOMEM:
		return "ENOMEM: the limit of locked memory (ulimit -l) is too low";
	default:
		return "the kernel refused a ring";
	}
}

/* Lines of mountinfo end with " - TYPE SOURCE OPTIONS". */
static const char *next_mount(const char *line, const char **type)
{
	const char *end = strchr(line, '\n'), *dash = strstr(line, " - ");

	*type = dash && (!end || dash < end) ? dash + 3 : NULL;
	return end ? end + 1 : line + strlen(line);
}

enum mote_cgroup_hierarchies mote_features_cgroups(const char *mountinfo)
{
	bool v1 = false, v2 = false;
	const char *type;

	while (*mountinfo) {
		mountinfo = next_mount(mountinfo, &type);
		if (type && !strncmp(type, "cgroup ", 7))
			v1 = true;
		else if (type && !strncmp(type, "cgroup2 ", 8))
			v2 = true;
	}
	if (v1)
		return v2 ? MOTE_CGROUPS_HYBRID : MOTE_CGROUPS_V1;
	return v2 ? MOTE_CGROUPS_V2 : MOTE_CGROUPS_NONE;
}

/* Numbers before 5.8, names since. */
static int hidepid_value(const char *text)
{
	static const struct {
		const char *name;
		int value;
	} names[] = { { "noaccess", 1 }, { "1", 1 },          { "invisible", 2 },
		      { "2", 2 },        { "ptraceable", 4 }, { "4", 4 } };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(text, names[i].name, strlen(names[i].name)))
			return names[i].value;
	}
	return 0;
}

/* The mount at /proc that was made last is the one that is seen. */
int mote_features_hidepid(const char *mountinfo)
{
	const char *line = mountinfo, *next, *type, *option;
	char where[64];
	int hidepid = 0;

	for (; *line; line = next) {
		next = next_mount(line, &type);
		if (!type || strncmp(type, "proc ", 5) ||
		    sscanf(line, "%*s %*s %*s %*s %63s", where) != 1 || strcmp(where, "/proc") != 0)
			continue;
		option = strstr(type, "hidepid=");
		hidepid = option && option < next ? hidepid_value(option + 8) : 0;
	}
	return hidepid;
}

void mote_features_read(struct mote_features *features, const struct mote_options *options,
			const char *root)
{
	struct place place = { root, malloc(TEXT_BYTES + 1) };
	const char *mounts;

	memset(features, 0, sizeof(*features));
	mote_engine_probe_ring(&features->ring);
	if (!place.text)
		return;
	read_kernel(features, &place);
	read_preempt(features, &place);
	read_bpf(features, options, &place);
	read_status(features, &place);
	mounts = read_text(&place, "/proc/self/mountinfo");
	features->cgroups = mounts ? mote_features_cgroups(mounts) : MOTE_CGROUPS_NONE;
	features->hidepid = mounts ? mote_features_hidepid(mounts) : 0;
	features->pid_namespace = in_namespace(&place, "/proc/self/ns/pid", "pid:[4026531836]");
	features->user_namespace = in_namespace(&place, "/proc/self/ns/user", "user:[4026531837]");
	free(place.text);
}
