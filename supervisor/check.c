// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * `moted --check`. A table of what the host allows, each with a function that says it in words, and
 * below it the choices. Text and JSON have the same rows. The output may not be UTF-8 where a path
 * is not; JSON then has U+FFFD in its place.
 */
#include "check.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <string.h>

#include "host_features.h"
#include "tier.h"

#ifndef CAP_PERFMON
#	define CAP_PERFMON 38 /* Linux 5.8 */
#	define CAP_BPF     39
#endif

struct fact {
	char value[80];
	char note[256];
};

__attribute__((format(printf, 2, 3))) static void note(struct fact *fact, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(fact->note, sizeof(fact->note), fmt, args);
	va_end(args);
}

static void value(struct fact *fact, const char *text)
{
	snprintf(fact->value, sizeof(fact->value), "%s", text);
}

static void say_kernel(const struct mote_features *f, struct fact *fact)
{
	value(fact, *f->release ? f->release : "unknown");
}

static void say_btf(const struct mote_features *f, struct fact *fact)
{
	value(fact, *f->btf ? "yes" : "no");
	note(fact, "%s",
	     *f->btf ? f->btf
		     : "no /sys/kernel/btf/vmlinux and no [mote] btf: no fentry set, no iterators");
}

static void say_trampolines(const struct mote_features *f, struct fact *fact)
{
	value(fact, *f->btf ? "trial" : "no");
	note(fact, "%s",
	     *f->btf ? "a trial attach decides, when the fentry set is loaded" : "they need BTF");
}

static void say_kprobes(const struct mote_features *f, struct fact *fact)
{
	value(fact, f->kprobes ? "yes" : "no");
	if (!f->kprobes)
		note(fact,
		     "no kprobe event source: the kernel is built without CONFIG_KPROBE_EVENTS");
}

static void say_tracepoints(const struct mote_features *f, struct fact *fact)
{
	value(fact, *f->tracefs ? "yes" : f->tracepoints ? "trial" : "no");
	if (*f->tracefs)
		note(fact, "tracefs at %s", f->tracefs);
	else if (f->tracepoints)
		note(fact, "tracefs is not to be seen; [mote] mount_tracefs mounts it privately");
	else
		note(fact,
		     "no tracepoint event source: the kernel is built without CONFIG_TRACEPOINTS");
}

static void say_iterators(const struct mote_features *f, struct fact *fact)
{
	bool has = f->version >= (5 << 8 | 8) && *f->btf;

	value(fact, has ? "yes" : "no");
	note(fact, "%s", has ? "" : "they need BTF and Linux 5.8");
}

static void say_preemption(const struct mote_features *f, struct fact *fact)
{
	value(fact, f->preempt.model);
	note(fact, "from %s; %s", f->preempt.source,
	     f->preempt.preemptible ? "a preempted BPF program makes fentry lose events"
				    : "BPF programs are not preempted");
}

static void say_ring(const struct mote_features *f, struct fact *fact)
{
	value(fact, f->ring.error ? "no" : "yes");
	if (f->ring.error)
		note(fact, "%s", mote_features_ring_reason(f));
	else
		note(fact, "direct descriptors %s, single issuer %s, bounded workers %s",
		     f->ring.direct ? "yes" : "no", f->ring.single_issuer ? "yes" : "no",
		     f->ring.worker_bound ? "yes" : "no");
}

static void say_lockdown(const struct mote_features *f, struct fact *fact)
{
	static const char *const names[] = { "unknown", "none", "integrity", "confidentiality" };

	value(fact, names[f->lockdown]);
	if (f->lockdown == MOTE_LOCKDOWN_UNKNOWN)
		note(fact, "securityfs is not mounted, or the kernel has no lockdown");
	else if (f->lockdown == MOTE_LOCKDOWN_CONFIDENTIALITY)
		note(fact, "BPF programs may not read kernel memory");
}

static void say_capabilities(const struct mote_features *f, struct fact *fact)
{
	static const struct {
		unsigned int cap;
		const char *name;
	} caps[] = { { CAP_BPF, "CAP_BPF" },
		     { CAP_PERFMON, "CAP_PERFMON" },
		     { CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
		     { CAP_NET_ADMIN, "CAP_NET_ADMIN" },
		     { CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE" },
		     { CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
		     { CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" } };
	size_t n = sizeof(caps) / sizeof(caps[0]), has = 0, at = 0;
	const char *sep = "missing: ";

	for (size_t i = 0; i < n; i++) {
		if (mote_features_capable(f, caps[i].cap)) {
			has++;
			continue;
		}
		at += (size_t)snprintf(fact->note + at, sizeof(fact->note) - at, "%s%s", sep,
				       caps[i].name);
		sep = ", ";
	}
	value(fact, has == n ? "all" : has ? "some" : "none");
}

static void say_number(struct fact *fact, int number)
{
	if (number == MOTE_FEATURE_UNKNOWN)
		value(fact, "unknown");
	else
		snprintf(fact->value, sizeof(fact->value), "%d", number);
}

static void say_unprivileged(const struct mote_features *f, struct fact *fact)
{
	say_number(fact, f->unprivileged_bpf_disabled);
	note(fact, "sysctl kernel.unprivileged_bpf_disabled");
}

static void say_paranoid(const struct mote_features *f, struct fact *fact)
{
	say_number(fact, f->perf_event_paranoid);
	note(fact, "sysctl kernel.perf_event_paranoid%s",
	     f->perf_event_paranoid >= 3
		     ? "; some distributions then want CAP_SYS_ADMIN where CAP_PERFMON should do"
		     : "");
}

static void say_kptr(const struct mote_features *f, struct fact *fact)
{
	say_number(fact, f->kptr_restrict);
	note(fact,
	     "sysctl kernel.kptr_restrict; mote needs addresses only to read memory.stat of cgroups in BPF");
}

static void say_cgroups(const struct mote_features *f, struct fact *fact)
{
	static const char *const names[] = { "none", "v1", "hybrid", "v2" };

	value(fact, names[f->cgroups]);
	if (f->cgroups == MOTE_CGROUPS_NONE)
		note(fact, "no cgroup hierarchy is mounted here");
}

static void say_hidepid(const struct mote_features *f, struct fact *fact)
{
	snprintf(fact->value, sizeof(fact->value), "%d", f->hidepid);
	if (f->hidepid)
		note(fact,
		     "mount option of /proc: without CAP_SYS_PTRACE other users' processes are not seen there");
}

static void say_namespaces(const struct mote_features *f, struct fact *fact)
{
	value(fact, f->pid_namespace || f->user_namespace ? "contained" : "initial");
	if (f->user_namespace)
		note(fact, "in a user namespace capabilities do not allow BPF");
	else if (f->pid_namespace)
		note(fact, "in a pid namespace: /proc has its processes only");
}

static void say_clocksource(const struct mote_features *f, struct fact *fact)
{
	value(fact, *f->clocksource ? f->clocksource : "unknown");
}

static const struct {
	const char *name;
	void (*say)(const struct mote_features *features, struct fact *fact);
} facts[] = {
	{ "kernel", say_kernel },
	{ "btf", say_btf },
	{ "trampolines", say_trampolines },
	{ "kprobes", say_kprobes },
	{ "tracepoints", say_tracepoints },
	{ "iterators", say_iterators },
	{ "preemption", say_preemption },
	{ "io_uring", say_ring },
	{ "lockdown", say_lockdown },
	{ "capabilities", say_capabilities },
	{ "unprivileged_bpf", say_unprivileged },
	{ "perf_paranoid", say_paranoid },
	{ "kptr_restrict", say_kptr },
	{ "cgroups", say_cgroups },
	{ "hidepid", say_hidepid },
	{ "namespaces", say_namespaces },
	{ "clocksource", say_clocksource },
};

#define FACTS (sizeof(facts) / sizeof(facts[0]))

/* A tier without a reason is the one that mote tries first. */
static const char *reason_of(const struct mote_tier *tier)
{
	return tier->reason[0] ? tier->reason : "the first choice for this kernel, and it works";
}

static void print_text(const struct mote_features *features, const struct mote_tiers *tiers,
		       FILE *out)
{
	fprintf(out, "This host:\n");
	for (size_t i = 0; i < FACTS; i++) {
		struct fact fact = { "", "" };

		facts[i].say(features, &fact);
		fprintf(out, *fact.note ? "  %-18s %-18s %s\n" : "  %-18s %s\n", facts[i].name,
			fact.value, fact.note);
	}
	fprintf(out, "\nmote's choices:\n");
	for (unsigned int i = 0; i < tiers->n; i++)
		fprintf(out, "  %-18s %-25s %s\n", tiers->tier[i].name, tiers->tier[i].choice,
			reason_of(&tiers->tier[i]));
}

/* Length of the UTF-8 character at `s`, 0 if it is none. */
static unsigned int utf8_len(const unsigned char *s)
{
	unsigned int len = s[0] < 0x80   ? 1
			   : s[0] < 0xc2 ? 0
			   : s[0] < 0xe0 ? 2
			   : s[0] < 0xf0 ? 3
			   : s[0] < 0xf5 ? 4
					 : 0;

	for (unsigned int i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Overlong, surrogates, above U+10FFFF */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static void print_string(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned int len;

	fputc('"', out);
	for (; *s; s += len ?: 1) {
		len = utf8_len(s);
		if (!len)
			fputs("\\ufffd", out);
		else if (*s < ' ' || *s == 0x7f)
			fprintf(out, "\\u%04x", *s);
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else
			fwrite(s, 1, len, out);
	}
	fputc('"', out);
}

static void print_row(FILE *out, bool first, const char *const pairs[][2], unsigned int n)
{
	fputs(first ? "\n  {" : ",\n  {", out);
	for (unsigned int i = 0; i < n; i++) {
		fprintf(out, "%s\"%s\": ", i ? ", " : "", pairs[i][0]);
		print_string(out, pairs[i][1]);
	}
	fputs("}", out);
}

/* The set of hooks that counts bytes, once more by itself. */
static void print_set(const struct mote_tiers *tiers, FILE *out)
{
	const struct mote_tier *tier = mote_tiers_find(tiers, "network");

	if (!tier)
		return;
	fputs(",\n \"probes\": {\"set\": ", out);
	print_string(out, tier->choice);
	fputs(", \"reason\": ", out);
	print_string(out, reason_of(tier));
	fputs("}", out);
}

static void print_json(const struct mote_features *features, const struct mote_tiers *tiers,
		       FILE *out)
{
	fputs("{\"host\": [", out);
	for (size_t i = 0; i < FACTS; i++) {
		struct fact fact = { "", "" };

		facts[i].say(features, &fact);
		print_row(out, !i,
			  (const char *const[][2]){ { "name", facts[i].name },
						    { "value", fact.value },
						    { "note", fact.note } },
			  3);
	}
	fputs("],\n \"tiers\": [", out);
	for (unsigned int i = 0; i < tiers->n; i++)
		print_row(out, !i,
			  (const char *const[][2]){ { "tier", tiers->tier[i].name },
						    { "choice", tiers->tier[i].choice },
						    { "reason", reason_of(&tiers->tier[i]) } },
			  3);
	fputs("]", out);
	print_set(tiers, out);
	fputs("}\n", out);
}

int mote_check_print(const struct mote_features *features, const struct mote_tiers *tiers,
		     bool json, FILE *out)
{
	if (json)
		print_json(features, tiers, out);
	else
		print_text(features, tiers, out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
