// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * slots short|full|vm [CASE]: runs the cases of that plan (or the one), each in a process of its
 * own, and prints TAP. A run is good if bytes and events of every key are what was sent, every slot
 * is back in the queue once and the index is empty, and if what it is to meet was met often enough:
 * else it proves nothing. A mutant is good if its run is not, by its sums or its slots.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "stress.h"

#define WRITERS_MAX 64

/* What a run ends with. */
enum outcome { EXACT = 0, WRONG = 1, CANNOT = 2, PROVES_NOTHING = 3, KILLED = 4 };

enum plan { SHORT, FULL, VM, PLANS };
static const char *const plans[PLANS] = { "short", "full", "vm" };

struct stress_case {
	uint32_t keys[PLANS]; /* in thousands; 0: not in this plan */
	enum outcome expect;
	struct stress_config config; /* minima: for 100,000 keys */
};

/* Longer than a tick, so that keys end and elements are reused while a writer sits. */
#define STALLS .stall_mask = 0x3ff, .stall_us = 1000, .tick_us = 250

static const struct stress_case cases[] = {
	{ { 150, 2000, 100 },
	  EXACT,
	  { .name = "stalls",
	    STALLS,
	    .least = { .lost_races = 5, .mismatches = 2, .grace_waits = 50, .late = 1 } } },
	{ { 200, 2000, 0 }, EXACT, { .name = "no_stalls", .least = { .lost_races = 2 } } },
	{ { 50, 1000, 10 }, EXACT, { .name = "overload", .overload = true, STALLS } },
	{ { 60, 200, 10 },
	  EXACT,
	  { .name = "failures", .failures = true, STALLS, .least = { .orphans = 1 } } },
	{ { 40, 500, 20 },
	  EXACT,
	  { .name = "recall", .recall = true, STALLS, .least = { .recalled = 10000, .late = 1 } } },
	{ { 1, 1, 1 },
	  EXACT,
	  { .name = "marks", .marks_only = true, .stall_mask = 0x3f, .stall_us = 2000 } },
	{ { 0, 100, 0 }, EXACT, { .name = "flips", .ticks = 1000000, .tick_us = 1 } },
	{ { 1, 1, 1 }, KILLED, { .name = "bpf_call", .violate = true } },
	{ { 50, 200, 0 },
	  WRONG,
	  { .name = "no_key_check", .mutant = MUTANT_NO_KEY_CHECK, STALLS } },
	{ { 50, 200, 0 }, WRONG, { .name = "no_check", .mutant = MUTANT_NO_CHECK, STALLS } },
	{ { 30, 100, 0 }, WRONG, { .name = "insert_any", .mutant = MUTANT_INSERT_ANY, STALLS } },
	{ { 1, 1, 0 },
	  WRONG,
	  { .name = "mark_first",
	    .mutant = MUTANT_MARK_FIRST,
	    .marks_only = true,
	    .stall_mask = 0x3f,
	    .stall_us = 2000 } },
	{ { 60, 300, 0 },
	  WRONG,
	  { .name = "no_unlinked_check",
	    .mutant = MUTANT_NO_UNLINKED_CHECK,
	    .recall = true,
	    STALLS } },
	{ { 30, 200, 0 }, WRONG, { .name = "no_grace", .mutant = MUTANT_NO_GRACE, STALLS } },
	{ { 30, 200, 0 }, WRONG, { .name = "loose_grace", .mutant = MUTANT_LOOSE_GRACE, STALLS } },
	{ { 30, 100, 0 }, WRONG, { .name = "fold_early", .mutant = MUTANT_FOLD_EARLY, STALLS } },
};

#define CASES (sizeof(cases) / sizeof(*cases))
#define TRIES 20 /* of mutants, of which one must be wrong, and of runs that prove nothing */

/* Slots that are not exactly once in the queue, and entries left in the index. */
static uint64_t misplaced(const struct stress *s)
{
	uint8_t *seen = calloc(s->config->slots, 1);
	uint64_t wrong = 0, key;
	uint32_t slot;

	while (!bpf_map_lookup_and_delete_elem(s->queue, NULL, &slot))
		if (slot >= s->config->slots || seen[slot]++)
			wrong++;
	for (slot = 0; slot < s->config->slots; slot++)
		wrong += !seen[slot];
	free(seen);
	for (; !bpf_map_get_next_key(s->index, NULL, &key); wrong++)
		bpf_map_delete_elem(s->index, &key);
	return wrong;
}

static uint64_t skipped(const struct stress *s)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	bpf_obj_get_info_by_fd(s->program, &info, &len);
	return info.recursion_misses;
}

/* Keys whose sums are wrong; of those, without `other`, that may only be too small. */
static uint64_t wrong_keys(const struct stress *s, bool with_other)
{
	uint64_t wrong = 0;

	for (uint32_t key = 1; key <= s->config->keys; key++)
		if (with_other)
			wrong += s->seen_bytes[key] > s->sent_bytes[key] ||
				 s->seen_events[key] > s->sent_events[key];
		else
			wrong += s->seen_bytes[key] != s->sent_bytes[key] ||
				 s->seen_events[key] != s->sent_events[key];
	return wrong;
}

static int64_t missing(const struct stress *s, const uint32_t *sent, uint64_t seen, uint64_t other)
{
	uint64_t sum = 0;

	for (uint32_t key = 1; key <= s->config->keys; key++)
		sum += sent[key];
	return (int64_t)(sum - seen - other);
}

static bool met_enough(const struct stress_met *met, const struct stress_met *least)
{
	return met->lost_races >= least->lost_races && met->mismatches >= least->mismatches &&
	       met->grace_waits >= least->grace_waits && met->orphans >= least->orphans &&
	       met->late >= least->late && met->recalled >= least->recalled;
}

static void add_met(struct stress_met *met, const struct stress *s)
{
	met->lost_races += STRESS_SUM(s, lost_races);
	met->mismatches += STRESS_SUM(s, mismatches);
	met->grace_waits += s->end.grace_waits;
	met->orphans += s->end.orphans;
	met->late += s->late;
	met->recalled += s->stats->recalled;
}

static void report(const struct stress *s, const struct stress_met *met)
{
	const struct stress_met *least = &s->config->least;

	printf("# %s: %u keys in %.2f s, %llu claims, %llu freed, %llu events in other, %llu stalls, "
	       "%llu ticks, %llu retried\n",
	       s->config->name, s->config->keys, s->seconds,
	       (unsigned long long)STRESS_SUM(s, claims), (unsigned long long)s->end.freed,
	       (unsigned long long)STRESS_SUM(s, other[0].sent_calls),
	       (unsigned long long)s->stats->stalls, (unsigned long long)s->ticks,
	       (unsigned long long)s->end.retried);
#define MET(field) (unsigned long long)met->field, (unsigned long long)least->field
	printf("# met (at least): lost races %llu (%llu), mismatches %llu (%llu), grace waits %llu "
	       "(%llu), orphans %llu (%llu), late events %llu (%llu), recalled %llu (%llu)\n",
	       MET(lost_races), MET(mismatches), MET(grace_waits), MET(orphans), MET(late),
	       MET(recalled));
#undef MET
}

static enum outcome judge(const struct stress *s, struct stress_met *met)
{
	uint64_t other = STRESS_SUM(s, other[0].sent_calls);
	uint64_t keys = wrong_keys(s, other > 0), lost = misplaced(s);
	int64_t bytes = missing(s, s->sent_bytes, s->total_bytes, STRESS_SUM(s, other[0].sent));
	int64_t events = missing(s, s->sent_events, s->total_events, other);

	add_met(met, s);
	report(s, met);
	if (bytes || events || keys || lost || s->end.fill.fill || s->end.waiting || s->unseen) {
		printf("# WRONG: %lld bytes and %lld events missing, %llu keys wrong, %llu slots or "
		       "index entries misplaced, %llu slots in use, %llu events without a mark, "
		       "%llu runs skipped by the kernel\n",
		       (long long)bytes, (long long)events, (unsigned long long)keys,
		       (unsigned long long)lost, (unsigned long long)s->end.fill.fill,
		       (unsigned long long)s->unseen, (unsigned long long)skipped(s));
		return WRONG;
	}
	return met_enough(met, &s->config->least) ? EXACT : PROVES_NOTHING;
}

static enum outcome run(const struct stress_config *config, struct stress_met *met)
{
	struct stress_writer writers[WRITERS_MAX];
	pthread_t threads[WRITERS_MAX], owner;
	struct stress stress;

	if (stress_open(config, &stress))
		return CANNOT;
	if (pthread_create(&owner, NULL, stress_owner, &stress))
		return CANNOT;
	for (uint32_t i = 0; i < config->writers; i++) {
		writers[i] = (struct stress_writer){ &stress, i };
		if (pthread_create(&threads[i], NULL, stress_writer, &writers[i]))
			return CANNOT;
	}
	for (uint32_t i = 0; i < config->writers; i++)
		pthread_join(threads[i], NULL);
	pthread_join(owner, NULL);
	return judge(&stress, met);
}

static enum outcome run_in_child(const struct stress_config *config, struct stress_met *met)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return CANNOT;
	if (!pid) {
		enum outcome outcome = run(config, met);

		fflush(stdout);
		_exit((int)outcome);
	}
	if (waitpid(pid, &status, 0) != pid)
		return CANNOT;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? KILLED : CANNOT;
	return (enum outcome)WEXITSTATUS(status);
}

static uint64_t at_least(uint64_t per_100000, uint32_t keys)
{
	uint64_t n = per_100000 * keys / 100000;

	return per_100000 && !n ? 1 : n;
}

static struct stress_met scaled_least(const struct stress_met *least, uint32_t keys)
{
	return (struct stress_met){
		.lost_races = at_least(least->lost_races, keys),
		.mismatches = at_least(least->mismatches, keys),
		.grace_waits = at_least(least->grace_waits, keys),
		.orphans = at_least(least->orphans, keys),
		.late = at_least(least->late, keys),
		.recalled = at_least(least->recalled, keys),
	};
}

static struct stress_config scaled(const struct stress_case *c, enum plan plan)
{
	struct stress_config config = c->config;

	config.keys = c->keys[plan] * 1000;
	config.slots = config.slots ? config.slots : 1024;
	config.writers = config.writers ? config.writers : 4;
	config.tick_us = config.tick_us ? config.tick_us : 1000;
	config.least = scaled_least(&config.least, config.keys);
	return config;
}

/*
 * What a run meets is a matter of luck: exact runs are repeated until they have met enough
 * together, and a mutant's until one is wrong.
 */
static bool passes(const struct stress_case *c, enum plan plan)
{
	struct stress_config config = scaled(c, plan);
	struct stress_met *met =
		mmap(NULL, sizeof(*met), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum outcome outcome = CANNOT;

	if (met == MAP_FAILED)
		return false;
	for (int i = 0; i < TRIES; i++) {
		outcome = run_in_child(&config, met);
		if (outcome == c->expect)
			return true;
		if (outcome != PROVES_NOTHING && !(c->expect == WRONG && outcome == EXACT))
			break;
	}
	return false;
}

static enum plan plan_of(const char *name)
{
	enum plan plan = SHORT;

	while (plan < PLANS && strcmp(plans[plan], name))
		plan++;
	return plan;
}

static const char *says(enum outcome expect)
{
	switch (expect) {
	case WRONG:
		return "is found out";
	case KILLED:
		return "is killed";
	default:
		return "is exact";
	}
}

int main(int argc, char **argv)
{
	enum plan plan = argc < 2 ? PLANS : plan_of(argv[1]);
	unsigned int n = 0, failed = 0;

	if (plan == PLANS) {
		fprintf(stderr, "usage: slots short|full|vm [CASE]\n");
		return 2;
	}
	for (size_t i = 0; i < CASES; i++) {
		const struct stress_case *c = &cases[i];
		bool ok;

		if (!c->keys[plan] || (argc > 2 && strcmp(argv[2], c->config.name)))
			continue;
		ok = passes(c, plan);
		failed += !ok;
		printf("%sok %u - %s %s\n", ok ? "" : "not ", ++n, c->config.name, says(c->expect));
	}
	printf("1..%u\n", n);
	return failed || !n;
}
