// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * lifecycle [PROCESSES [strict]]: births, execs and deaths counted exactly, by the classic
 * tracepoints and by tp_btf. Other processes come and go meanwhile: only the children of this one
 * are looked at. `strict`: no final record may be missing, either. A second, tiny ring buffer
 * beside the first must have counted just what it lost. Prints TAP. Needs root; runs as well in an
 * initramfs.
 */
#include <sched.h>
#include <sys/syscall.h>

#include "load.h"
#include "probes.h"
#include "task.h"
#include "tap.h"

#define COMM "lifecycle"

static char self_path[256];
static bool strict;

/* One child of ours, by its pid. */
struct life {
	unsigned int seen[MOTE_EVENT_KINDS];
	uint64_t start[MOTE_EVENT_KINDS], run_time[MOTE_EVENT_KINDS], rchar[MOTE_EVENT_KINDS];
	uint32_t code, final_code, flags, argv_len;
	bool argv_right;
};

#define PIDS (1u << 22)

struct tally {
	struct life *lives; /* by pid */
	uint64_t all[MOTE_EVENT_KINDS];
	unsigned int disorder;
};

/* Its command line and executable, and nothing after them. */
static bool is_right(const struct mote_event_exec *exec, uint32_t len)
{
	const char *end = exec->argv + strlen(self_path) + 1;
	char exe[MOTE_EXE_MAX + 16];

	mote_task_exe(exec->argv + exec->argv_len, exec->exe_len, exec->exe_flags, exe,
		      sizeof(exe));
	return !strcmp(exec->event.comm, COMM) && exec->argv_len == end + 6 - exec->argv &&
	       !strcmp(exec->argv, self_path) && !memcmp(end, "-exit\0", 6) &&
	       !strcmp(exe, self_path) &&
	       len == offsetof(struct mote_event_exec, argv) + exec->argv_len + exec->exe_len;
}

static void take(void *ctx, const void *record, uint32_t len)
{
	const struct mote_event *e = record;
	const struct mote_event_exec *exec = record;
	const struct mote_event_exit *end = record;
	struct tally *t = ctx;
	struct life *l = &t->lives[e->pid % PIDS];

	t->all[e->kind]++;
	if (e->kind == MOTE_EVENT_FORK && e->ppid == (uint32_t)getpid())
		memset(l, 0, sizeof(*l));
	if (e->kind != MOTE_EVENT_FORK && !l->seen[MOTE_EVENT_FORK])
		return;
	if (e->kind == MOTE_EVENT_FORK && e->ppid != (uint32_t)getpid())
		return;
	l->seen[e->kind]++;
	l->start[e->kind] = e->start;
	if (e->kind == MOTE_EVENT_EXEC) {
		l->argv_len = exec->argv_len;
		l->argv_right = is_right(exec, len);
	}
	if (e->kind < MOTE_EVENT_EXIT)
		return;
	l->run_time[e->kind] = end->counts.run_time;
	l->rchar[e->kind] = end->counts.rchar;
	l->flags |= end->flags;
	*(e->kind == MOTE_EVENT_EXIT ? &l->code : &l->final_code) = end->exit_code;
}

static void drain(struct mote_probes *probes, struct tally *t)
{
	mote_ringbuf_drain(&mote_probes_lifecycle(probes)->ring, UINT32_MAX, take, t);
}

static uint64_t children_cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000ull + u.ru_utime.tv_usec +
	       u.ru_stime.tv_usec;
}

/* Forks, execs ourselves, which end with status i % 100. Returns the children's pids. */
static void storm(pid_t *pids, unsigned int n, struct mote_probes *probes, struct tally *t)
{
	for (volatile unsigned int i = 0; i < n; i++) { /* vfork() */
		char code[8];

		snprintf(code, sizeof(code), "%u", i % 100);
		setenv("LIFECYCLE_EXIT", code, 1);
		pids[i] = vfork();
		if (!pids[i]) {
			execl(self_path, self_path, "-exit", (char *)NULL);
			_exit(127);
		}
		waitpid(pids[i], NULL, 0);
		if (i % 256 == 255)
			drain(probes, t);
	}
}

/* Until the last child of ours is gone for the kernel, too, or for 3 s. */
static void settle(const pid_t *pids, unsigned int n, struct mote_probes *probes, struct tally *t)
{
	for (unsigned int ms = 0; ms < 3000; ms += 50) {
		unsigned int left = 0;

		drain(probes, t);
		for (unsigned int i = 0; i < n; i++)
			left += !t->lives[pids[i]].seen[MOTE_EVENT_FINAL];
		if (!left)
			return;
		sleep_ms(50);
	}
}

/*
 * Final records come from an RCU callback, on top of whatever task that interrupted. A kernel may
 * keep programs from running on top of some tasks (seen: those of a sandbox's supervisor), which
 * takes a batch of them at a time. Every process has its exit record all the same.
 */
static bool nearly_all(unsigned int have, unsigned int n)
{
	return have <= n && have >= (strict ? n : n * 4 / 5);
}

static bool is_close(uint64_t have, uint64_t want, unsigned int percent)
{
	return have >= want * (100 - percent) / 100 && have <= want * (100 + percent) / 100;
}

static void check_lives(const char *way, const pid_t *pids, unsigned int n, const struct tally *t,
			uint64_t cpu_us)
{
	unsigned int count[MOTE_EVENT_KINDS] = { 0 }, once = 0, codes = 0, starts = 0, argv = 0;
	uint64_t run = 0;

	for (unsigned int i = 0; i < n; i++) {
		const struct life *l = &t->lives[pids[i]];
		bool final = l->seen[MOTE_EVENT_FINAL];

		for (unsigned int k = MOTE_EVENT_FORK; k < MOTE_EVENT_PROCESS_KINDS; k++)
			count[k] += l->seen[k];
		once += l->seen[1] == 1 && l->seen[2] == 1 && l->seen[3] == 1 && l->seen[4] <= 1;
		codes += l->code == (i % 100) << 8 && (!final || l->final_code == l->code);
		starts += l->start[2] && l->start[2] == l->start[3] &&
			  (!final || l->start[3] == l->start[4]);
		argv += l->argv_right;
		run += l->run_time[MOTE_EVENT_FINAL];
	}
	tap(once == n, "%s: %u processes: %u forks, %u execs, %u exits; %u with one of each", way,
	    n, count[1], count[2], count[3], once);
	tap(nearly_all(count[MOTE_EVENT_FINAL], n), "%s: %u final records", way,
	    count[MOTE_EVENT_FINAL]);
	tap(codes == n, "%s: %u of %u wait statuses are right", way, codes, n);
	tap(starts == n, "%s: %u of %u have one start time", way, starts, n);
	tap(argv == n, "%s: %u of %u command lines are right", way, argv, n);
	/* They have the last moments, too, which are not in what wait() gives. */
	tap(is_close(run / 1000, cpu_us * count[MOTE_EVENT_FINAL] / n, 4),
	    "%s: CPU time of the final records, %llu us, is the children's, %llu us", way,
	    (unsigned long long)run / 1000, (unsigned long long)cpu_us);
}

#define READS 100
static pthread_barrier_t barrier;
static unsigned int exit_code;

static void *reader(void *arg)
{
	int fd = open("/dev/zero", O_RDONLY);
	char byte[64];

	for (int i = 0; i < READS; i++)
		if (read(fd, byte, sizeof(byte)) != sizeof(byte))
			_exit(9);
	close(fd);
	burn(1);
	pthread_barrier_wait(&barrier);
	if (arg) {
		sleep_ms(2); /* the leader has ended */
		_exit(exit_code);
	}
	return sleep_for_ever(arg);
}

/* Nine threads, of which eight read as much each, and end at once. */
static void many_threads(unsigned int code)
{
	bool leader_first = code % 2;
	pthread_t t;

	exit_code = code;
	pthread_barrier_init(&barrier, NULL, 9);
	for (unsigned int i = 0; i < 8; i++)
		pthread_create(&t, NULL, reader, leader_first && !i ? &barrier : NULL);
	pthread_barrier_wait(&barrier);
	if (leader_first)
		syscall(SYS_exit, 0); /* pthread_exit() would read libgcc_s */
	_exit(code);
}

static void check_threads(const char *way, struct mote_probes *probes, struct tally *t)
{
	enum { N = 50 };
	unsigned int exact = 0, final = 0, partial = 0, once = 0, right = 0, seen = 0;
	uint64_t cpu = children_cpu_us(), run = 0;
	pid_t pids[N];

	for (unsigned int i = 0; i < N; i++) {
		fflush(stdout);
		pids[i] = fork();
		if (!pids[i])
			many_threads(i);
		waitpid(pids[i], NULL, 0);
	}
	cpu = children_cpu_us() - cpu;
	settle(pids, N, probes, t);
	for (unsigned int i = 0; i < N; i++) {
		const struct life *l = &t->lives[pids[i]];

		right += l->code == i << 8;
		seen += l->seen[MOTE_EVENT_FINAL];
		run += l->run_time[MOTE_EVENT_FINAL];
		final += l->rchar[MOTE_EVENT_FINAL] == 8 * READS * 64ull && l->final_code == i << 8;
		exact += l->rchar[MOTE_EVENT_EXIT] == l->rchar[MOTE_EVENT_FINAL];
		partial += l->flags & MOTE_EXIT_PARTIAL;
		once += l->seen[MOTE_EVENT_EXIT] == 1;
	}
	/* Up to 6.15 the last two threads of a process can both find nobody alive. */
	tap(right == N && once >= N - N / 5,
	    "%s: %u of %d processes of nine threads have the right wait status, %u told once", way,
	    right, N, once);
	tap(nearly_all(seen, N) && final == seen, "%s: %u final records, %u exact", way, seen,
	    final);
	tap(exact + partial >= final, "%s: at exit %u are exact, %u say that they may not be", way,
	    exact, partial);
	tap(is_close(run / 1000, cpu * seen / N, 8),
	    "%s: CPU time of their final records, %llu us, is the children's, %llu us", way,
	    (unsigned long long)run / 1000, (unsigned long long)cpu);
}

/* `wide` was there before `tiny` and is drained after it, so it sees all that tiny could. */
static void check_drops(struct mote_probes_config cfg, struct mote_probes *wide, struct tally *all)
{
	struct tally few = { .lives = calloc(PIDS, sizeof(struct life)) };
	struct mote_tiers tiers = { 0 };
	struct mote_probes *tiny;
	pid_t pids[200];

	cfg.event_bytes = 4096;
	if (mote_probes_open(&cfg, &tiers, &tiny) || !mote_probes_lifecycle(tiny)) {
		tap(false, "a tiny ring buffer: %s", tiers.tier[0].reason);
		return;
	}
	drain(wide, all);
	memset(all->all, 0, sizeof(all->all));
	drain(tiny, &few);
	memset(few.all, 0, sizeof(few.all));
	storm(pids, 200, wide, all);
	settle(pids, 200, wide, all);
	for (unsigned int k = MOTE_EVENT_FORK; k < MOTE_EVENT_PROCESS_KINDS; k++) {
		uint64_t lost = mote_probes_lifecycle(tiny)->ctl->dropped[k], wide_saw;

		drain(tiny, &few);
		drain(wide, all);
		wide_saw = all->all[k];
		tap(lost > 0 && lost + few.all[k] >= (k < MOTE_EVENT_FINAL ? 200 : 160) &&
			    lost + few.all[k] <= wide_saw,
		    "a tiny ring buffer, kind %u: %llu seen and %llu dropped are the %llu there were",
		    k, (unsigned long long)few.all[k], (unsigned long long)lost,
		    (unsigned long long)wide_saw);
	}
	mote_probes_close(tiny);
	free(few.lives);
}

static void check_way(const char *way, enum mote_events_choice choice, unsigned int n)
{
	struct mote_probes_config cfg = { .events = choice,
					  .event_bytes = 1 << 20,
					  .argv_bytes = MOTE_ARGV_MAX,
					  .mount_tracefs = true,
					  .uid = -1,
					  .gid = -1 };
	struct tally t = { .lives = calloc(PIDS, sizeof(struct life)) };
	pid_t *pids = calloc(n, sizeof(*pids));
	struct mote_tiers tiers = { 0 };
	struct mote_probes *probes;
	uint64_t cpu;

	if (mote_probes_open(&cfg, &tiers, &probes) || !mote_probes_lifecycle(probes)) {
		tap(false, "%s: %s", way, tiers.tier[0].reason);
		return;
	}
	cpu = children_cpu_us();
	storm(pids, n, probes, &t);
	cpu = children_cpu_us() - cpu;
	settle(pids, n, probes, &t);
	check_lives(way, pids, n, &t, cpu);
	check_threads(way, probes, &t);
	for (unsigned int k = 0; k < MOTE_EVENT_PROCESS_KINDS; k++)
		tap(!mote_probes_lifecycle(probes)->ctl->dropped[k],
		    "%s: nothing dropped of kind %u", way, k);
	if (choice == MOTE_EVENTS_TRACEPOINT)
		check_drops(cfg, probes, &t);
	mote_probes_close(probes);
	free(pids);
	free(t.lives);
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? atoi(argv[1]) : 2000;
	ssize_t len;

	if (argc > 1 && !strcmp(argv[1], "-exit"))
		_exit(atoi(getenv("LIFECYCLE_EXIT")));
	setvbuf(stdout, NULL, _IOLBF, 0);
	strict = argc > 2;
	len = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
	if (len < 0)
		return 1;
	check_way("tracepoint", MOTE_EVENTS_TRACEPOINT, n);
	check_way("tp_btf", MOTE_EVENTS_TP_BTF, n);
	printf("1..%u\n", tap_n);
	return tap_failed > 0;
}
