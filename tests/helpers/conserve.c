// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * conserve [OPTIONS] SOCKET: whether a running moted counts every byte of TCP and UDP, by socket,
 * by process and in total. Moves known totals by every call there is, while subscribers come and
 * go, and compares what the calls returned with moted's rows. One TAP line a case, then a verdict.
 *
 *   -c PATTERN  only cases whose name contains it    -l      list the cases
 *   -e EVENTS   calls, of all bulk cases together    -s N    connections of a storm
 *   -r N        one-byte reads                       -b N    threads blocked in recv()
 *   -t N        threads, 4 to 16                     -m MS   the fastest subscriber's interval
 *   -R          moted runs without reconciliation    -a      nothing else on this machine has
 * traffic -L          losses are reported, not failed      -S      sums only: moted's tables are
 * small -n          no network namespace of its own
 *
 * What a set of hooks cannot attribute to a process, by design, is expected as unattributed:
 *   tracepoint  splice() out of TCP, TCP_ZEROCOPY_RECEIVE: received
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../conserve/check.h"
#include "../conserve/nursery.h"

enum { CASES_MAX = 200, CASE_SECONDS = 120, GONE_MS = 25000, INTERVAL_MS = 10, GUESTS = 4 };

struct plan plan = {
	.events = 100000, .threads = 4, .storm = 2000, .reads = 100001, .blocked = 500
};

static struct {
	const char *path, *pattern, *prefix;
	bool list, isolate, loss;
	unsigned int fastest_ms, settle_ms;
	struct check check;
	const struct test_case *cases[CASES_MAX];
	unsigned int n, bulk, counted;
	struct watch *watch;
	unsigned int tap, failed;
	double lost, moved; /* bytes, of cases that are not exact */
} test = { .prefix = "",
	   .isolate = true,
	   .fastest_ms = 1,
	   .settle_ms = 8000,
	   .check = { .reconcile = true } };

static void collect(const struct test_case *cases)
{
	for (; cases->name && test.n < CASES_MAX; cases++) {
		if (test.pattern && !strstr(cases->name, test.pattern))
			continue;
		test.cases[test.n++] = cases;
		test.bulk += cases->bulk;
		test.counted += cases->counts_sockets;
	}
}

static void collect_all(void)
{
	collect(tcp_cases);
	collect(uring_cases);
	collect(udp_cases);
	collect(failing_cases);
	collect(lives_cases);
	collect(many_cases);
	collect(storm_cases);
	if (test.bulk)
		plan.events = plan.events / test.bulk + 1;
}

static void line(bool ok, const char *name, const char *more)
{
	printf("%sok %u - %s%s%s%s\n", ok ? "" : "not ", ++test.tap, test.prefix,
	       test.prefix[0] ? ": " : "", name, more);
	fflush(stdout);
	test.failed += !ok;
}

static bool accounts_hold(const struct rows *rows, void *ctx)
{
	return check_accounts(ctx, rows);
}

/* Waits for the rows to be right; then they must stay so, for a count can come late and be too
 * many. */
static bool settled(struct check *check)
{
	const struct rows *rows;
	bool ok;

	if (!test.watch)
		return true;
	watch_until(test.watch, accounts_hold, check, test.settle_ms);
	usleep(3 * INTERVAL_MS * 1000);
	rows = watch_lock(test.watch);
	ok = check_accounts(check, rows);
	if (!ok) {
		struct check loud = *check;

		loud.explain = stdout;
		check_accounts(&loud, rows);
	}
	watch_unlock(test.watch);
	return ok;
}

static void describe(unsigned int first, char *text, size_t size)
{
	struct sums tcp = { 0, 0 }, udp = { 0, 0 };

	tcp = ledger_sums(first, 0, true);
	udp = ledger_sums(first, 0, false);
	snprintf(text, size, " (%" PRIu64 " B sent, %" PRIu64 " received)", tcp.sent + udp.sent,
		 tcp.received + udp.received);
}

/* Listens to the case until it has ended. Returns whether it was right. */
static bool attend(struct check *check, char *skipped, size_t size)
{
	bool ok = true;

	for (;;) {
		struct word word = nursery_listen(CASE_SECONDS);

		switch (word.kind) {
		case WORD_COMPARE:
			ok &= settled(check);
			nursery_go();
			break;
		case WORD_NOTE:
			printf("# %s\n", word.text);
			break;
		case WORD_SKIP:
			snprintf(skipped, size, " # SKIP %s", word.text);
			break;
		case WORD_END:
			if (word.text[0] && !skipped[0])
				printf("# the case %s\n", word.text);
			return ok && (!word.text[0] || skipped[0]);
		case WORD_LATE:
			printf("# the case hangs\n");
			nursery_stop();
			printf("Bail out! a case hangs\n");
			exit(1);
		default:
			printf("# the test itself: %s\n", word.text);
			ok = false;
		}
	}
}

static void run_case(unsigned int i)
{
	struct check check = test.check;
	char text[300] = "", skipped[280] = "";
	bool ok;

	check.first = ledger_accounts();
	nursery_begin(i);
	ok = attend(&check, skipped, sizeof(skipped));
	describe(check.first, text, sizeof(text));
	if (!ok && test.loss) {
		printf("# not exact, and not expected to be: %s\n", test.cases[i]->name);
		ok = true;
	}
	line(ok, test.cases[i]->name, skipped[0] ? skipped : text);
}

struct table {
	uint64_t fill, dropped;
};

struct final {
	struct check check;
	struct totals before;
	struct table sockets, flows; /* before */
	uint64_t opened[2];
};

static struct table read_table(const struct rows *rows, const char *name)
{
	uint64_t key = rows_text(name, strlen(name));
	const struct row *row = rows_find(&rows[WATCH_TABLE], &key);

	return row ? (struct table){ rows_value(&rows[WATCH_TABLE], row, "fill"),
				     rows_value(&rows[WATCH_TABLE], row, "dropped") }
		   : (struct table){ 0, 0 };
}

static uint64_t read_opened(const struct rows *rows, const char *protocol)
{
	uint64_t key = rows_text(protocol, 3);
	const struct row *row = rows_find(&rows[WATCH_NETWORK], &key);

	return row ? rows_value(&rows[WATCH_NETWORK], row, "sockets_opened") : 0;
}

static void read_before(struct final *final)
{
	const struct rows *rows = watch_lock(test.watch);

	check_read_totals(rows, &final->before);
	final->sockets = read_table(rows, "sockets");
	final->flows = read_table(rows, "flows");
	final->opened[0] = read_opened(rows, "tcp");
	final->opened[1] = read_opened(rows, "udp");
	watch_unlock(test.watch);
}

static bool slots_are_back(const struct rows *rows, void *ctx)
{
	const struct final *final = ctx;

	return read_table(rows, "sockets").fill <= final->sockets.fill &&
	       read_table(rows, "flows").fill <= final->flows.fill;
}

/* Slots of what is over are free again; with tables that are large enough nothing was turned away.
 */
static bool tables_are_right(struct final *final)
{
	bool back = !test.check.alone || watch_until(test.watch, slots_are_back, final, GONE_MS);
	const struct rows *rows = watch_lock(test.watch);
	struct table sockets = read_table(rows, "sockets"), flows = read_table(rows, "flows");
	bool dropped =
		sockets.dropped != final->sockets.dropped || flows.dropped != final->flows.dropped;

	watch_unlock(test.watch);
	if (!back || (dropped && !test.check.sums_only))
		printf("# sockets: %" PRIu64 " in use, %" PRIu64 " before, %" PRIu64
		       " dropped; flows: %" PRIu64 ", %" PRIu64 ", %" PRIu64 "\n",
		       sockets.fill, final->sockets.fill, sockets.dropped - final->sockets.dropped,
		       flows.fill, final->flows.fill, flows.dropped - final->flows.dropped);
	return back && (!dropped || test.check.sums_only);
}

/* Where all cases know how many sockets they made. */
static bool opened_are_right(const struct final *final)
{
	static const char *const names[] = { "tcp", "udp" };
	const struct rows *rows = watch_lock(test.watch);
	bool ok = true;

	for (int i = 0; i < 2; i++) {
		uint64_t opened = read_opened(rows, names[i]) - final->opened[i];

		if (opened == ledger_made(i == 0))
			continue;
		printf("# sockets of %s opened: %" PRIu64 ", expected %" PRIu64 "\n", names[i],
		       opened, ledger_made(i == 0));
		ok = false;
	}
	watch_unlock(test.watch);
	return ok;
}

static bool totals_hold(const struct rows *rows, void *ctx)
{
	struct final *final = ctx;

	return check_totals(&final->check, rows, &final->before);
}

static bool all_gone(const struct rows *rows, void *ctx)
{
	return check_gone(ctx, rows);
}

/* By their last rows. */
static bool ended_sockets(void)
{
	struct check check = test.check;
	bool ok;

	check.strict = true;
	check.first = 0;
	ok = watch_until(test.watch, accounts_hold, &check, test.settle_ms);
	check.explain = stdout;
	if (!ok)
		check_accounts(&check, watch_lock(test.watch)), watch_unlock(test.watch);
	return ok;
}

/* UDP's ends may be found by a walk every 10 s. */
static bool none_left(void)
{
	struct check check = test.check;
	bool ok = watch_until(test.watch, all_gone, &check, GONE_MS);

	check.explain = stdout;
	if (!ok)
		check_gone(&check, watch_lock(test.watch)), watch_unlock(test.watch);
	return ok;
}

static bool final_check(struct watch *watch, struct final *final)
{
	struct final loud = *final;
	bool ok = watch_until(watch, totals_hold, final, 3 * test.settle_ms);

	if (ok)
		return true;
	loud.check.explain = stdout;
	totals_hold(watch_lock(watch), &loud);
	watch_unlock(watch);
	return false;
}

static void check_the_end(struct final *final, struct watch *lazy)
{
	struct watch *fresh;

	line(none_left() || test.loss, "no socket is left", "");
	line(ended_sockets() || test.loss, "each socket's last row is right", "");
	line(tables_are_right(final) || test.loss,
	     test.check.alone ? "slots are free again, none was wanting" : "no slot was wanting",
	     "");
	if (test.check.alone && !test.check.sums_only && test.counted == test.n)
		line(opened_are_right(final) || test.loss, "every socket was seen to open", "");
	line(final_check(test.watch, final) || test.loss,
	     "totals are the sums of processes, of flows and of sockets", "");
	fresh = watch_start(test.path, INTERVAL_MS, 0);
	line((fresh && final_check(fresh, final)) || test.loss,
	     "a new subscriber has the same totals", "");
	watch_stop(fresh);
	watch_hurry(lazy);
	printf("# %" PRIu64 " frames were dropped of the slow one\n", watch_dropped(lazy));
	line(final_check(lazy, final) || test.loss, "a slow subscriber has the same totals", "");
	watch_stop(lazy);
}

static void check_crowd(struct crowd *crowd)
{
	struct crowd_seen seen;
	const char *wrong = crowd_stop(crowd, &seen);
	char text[120];

	if (wrong)
		printf("# %s\n", wrong);
	snprintf(text, sizeof(text),
		 " (%" PRIu64 " connections, %" PRIu64 " frames; the fastest had %" PRIu64
		 " updates)",
		 seen.connections, seen.frames, seen.updates);
	line(!wrong && seen.updates > 10 && seen.connections > 0, "subscribers came and went",
	     text);
	if (watch_broken(test.watch))
		printf("# %s\n", watch_broken(test.watch));
	line(!watch_broken(test.watch), "moted answers", "");
}

/* The set of hooks, and what it cannot see. */
static bool know_set(void)
{
	const struct mote_hello *hello = watch_hello(test.watch);
	bool any = false;

	for (size_t i = 0; i < hello->ntiers; i++) {
		const struct mote_tier_info *tier = &hello->tiers[i];

		if (!strncmp(tier->tier, "network", 7) || !strncmp(tier->tier, "net_", 4))
			printf("# %s: %s: %s\n", tier->tier, tier->choice, tier->reason);
		if (strcmp(tier->tier, "network") != 0)
			continue;
		any = strcmp(tier->choice, "none") != 0;
		ledger_expect_unseen(strcmp(tier->choice, "tracepoint") != 0);
	}
	if (!any)
		printf("# moted counts no network bytes here\n");
	return any;
}

static bool options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "c:e:s:r:b:t:m:p:w:RaLSnl")) != -1) {
		unsigned long n = optarg ? strtoul(optarg, NULL, 10) : 0;

		switch (c) {
		case 'c':
			test.pattern = optarg;
			break;
		case 'e':
			plan.events = n;
			break;
		case 's':
			plan.storm = n;
			break;
		case 'r':
			plan.reads = n;
			break;
		case 'b':
			plan.blocked = (unsigned int)n;
			break;
		case 't':
			plan.threads = n < 4 ? 4 : n > 16 ? 16 : (unsigned int)n;
			break;
		case 'p':
			test.prefix = optarg;
			break;
		case 'w':
			test.settle_ms = (unsigned int)n;
			break;
		case 'm':
			test.fastest_ms = (unsigned int)n;
			break;
		case 'R':
			test.check.reconcile = false;
			break;
		case 'a':
			test.check.alone = true;
			break;
		case 'L':
			test.loss = true;
			break;
		case 'S':
			test.check.sums_only = true;
			break;
		case 'n':
			test.isolate = false;
			break;
		case 'l':
			test.list = true;
			break;
		default:
			return false;
		}
	}
	test.path = argv[optind];
	return test.list || test.path;
}

static void allow_files(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int run_cases(void)
{
	for (unsigned int i = 0; i < test.n; i++)
		run_case(i);
	return test.failed != 0;
}

static int run_all(void)
{
	struct final final = { .check = test.check };
	struct watch *lazy;
	struct crowd *crowd;

	if (!strcmp(test.path, "-"))
		return run_cases();
	test.watch = watch_start(test.path, INTERVAL_MS, 0);
	if (!test.watch || !know_set()) {
		line(false, "moted counts network bytes", "");
		return 1;
	}
	lazy = watch_start(test.path, INTERVAL_MS, 100);
	read_before(&final);
	crowd = crowd_start(test.path, test.fastest_ms, GUESTS);
	if (!lazy || !crowd) {
		line(false, "the test's subscribers connect", "");
		return 1;
	}
	run_cases();
	check_crowd(crowd);
	check_the_end(&final, lazy);
	watch_stop(test.watch);
	return test.failed != 0;
}

int main(int argc, char **argv)
{
	int rc;

	if (!options(argc, argv)) {
		fprintf(stderr,
			"usage: conserve [-c PATTERN] [-e EVENTS] [-s N] [-r N] [-b N] [-t N] "
			"[-m MS] [-p NAME] [-w MS] [-RaLSn] SOCKET | -l\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	collect_all();
	for (unsigned int i = 0; test.list && i < test.n; i++)
		printf("%s\n", test.cases[i]->name);
	if (test.list)
		return 0;
	allow_files();
	if (!test.n || ledger_create(1 << 16) || !nursery_start(test.cases, test.n, test.isolate)) {
		fprintf(stderr, "conserve: nothing to run, or no memory, or no process\n");
		return 2;
	}
	rc = run_all();
	nursery_stop();
	printf("1..%u\n", test.tap);
	printf("# verdict: %s\n", rc          ? "bytes are missing, or too many"
				  : test.loss ? "reported"
					      : "exact");
	return rc;
}
