// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The owner: supervisor/slots.c as the loop uses it, in a thread that is killed if it calls bpf().
 * Its mutants are made around slots.c, which is the one of the product: CPUs that look empty, or a
 * fold that is thrown away.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stress.h"

struct owner {
	struct stress *stress;
	struct mote_slots *slots;
	uint32_t *slot_of; /* by key: slot + 1 */
	uint32_t *ended;   /* keys of this tick's notices */
	uint32_t nended, room;
	bool in_grace;
	struct mote_slot_cpu *shown; /* a mutant's: what slots.c sees of the CPUs */
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void forbid_bpf(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	    !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return;
	perror("# seccomp");
	_exit(2);
}

static void fold(void *ctx, uint32_t slot, bool first)
{
	struct owner *o = ctx;
	struct stress *s = o->stress;
	struct filler_counter *c = &s->counters[slot];
	uint64_t bytes = __atomic_load_n(&c->bytes, __ATOMIC_ACQUIRE) - c->seen_bytes;
	uint64_t events = __atomic_load_n(&c->events, __ATOMIC_ACQUIRE) - c->seen_events;
	uint64_t key = c->slot.key;

	c->seen_bytes += bytes;
	c->seen_events += events;
	if (o->in_grace)
		s->late += events;
	if (o->in_grace && s->config->mutant == MUTANT_FOLD_EARLY)
		return;
	s->seen_bytes[key] += (uint32_t)bytes;
	s->seen_events[key] += (uint32_t)events;
	s->total_bytes += bytes;
	s->total_events += events;
	if (first)
		o->slot_of[key] = slot + 1;
}

static void gone(void *ctx, uint32_t slot)
{
	struct owner *o = ctx;
	uint64_t key = o->stress->counters[slot].slot.key;

	if (o->slot_of[key] == slot + 1)
		o->slot_of[key] = 0;
}

static void take_notices(struct owner *o)
{
	struct stress *s = o->stress;

	o->nended = 0;
	for (uint32_t i = 0; i < s->config->writers; i++) {
		struct stress_notices *n = &s->notices[i];
		uint32_t tail = __atomic_load_n(&n->tail, __ATOMIC_ACQUIRE), head = n->head;

		while (head != tail && o->nended < o->room)
			o->ended[o->nended++] = n->key[head++ % STRESS_NOTICES];
		__atomic_store_n(&n->head, head, __ATOMIC_RELEASE);
	}
}

static void end_keys(struct owner *o)
{
	for (uint32_t i = 0; i < o->nended; i++)
		if (o->slot_of[o->ended[i]])
			mote_slots_end(o->slots, o->slot_of[o->ended[i]] - 1);
}

static void show_cpus(struct owner *o)
{
	const struct stress *s = o->stress;

	if (s->config->mutant != MUTANT_LOOSE_GRACE)
		return;
	for (unsigned int i = 0; i < s->ncpus; i++) {
		uint64_t exit = __atomic_load_n(&s->cpus[i].exit, __ATOMIC_SEQ_CST);
		uint64_t enter = __atomic_load_n(&s->cpus[i].enter, __ATOMIC_SEQ_CST);

		o->shown[i].enter = enter;
		o->shown[i].exit = exit + 1 == enter ? enter : exit;
	}
}

static void grace(struct owner *o)
{
	show_cpus(o);
	o->in_grace = true;
	mote_slots_grace(o->slots, now());
	o->in_grace = false;
}

/* What the loop has its ring do. */
static void run_reap(const struct stress *s)
{
	char buf[64];
	int fd = openat(s->dirfd, "reap", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, buf, sizeof(buf)) < 0) {
		perror("# read of the reaper");
		_exit(2);
	}
	close(fd);
}

static void tick(struct owner *o)
{
	struct mote_slots_stats stats;

	take_notices(o);
	mote_slots_scan(o->slots);
	end_keys(o);
	for (int i = 0; i < 8; i++) {
		grace(o);
		if (!mote_slots_prepare(o->slots))
			break;
		run_reap(o->stress);
		mote_slots_passed(o->slots);
	}
	mote_slots_stats(o->slots, 0, &stats);
	__atomic_store_n(&o->stress->freed, stats.freed, __ATOMIC_RELAXED);
	o->stress->ticks++;
	if (o->stress->ticks >= o->stress->config->ticks)
		__atomic_store_n(&o->stress->enough, true, __ATOMIC_RELAXED);
}

static int make_owner(struct owner *o)
{
	static const struct mote_slots_ops ops = { fold, gone };
	struct stress *s = o->stress;
	struct mote_slots_memory memory = {
		.table = MOTE_SLOTS_FLOWS,
		.slots = s->counters,
		.stride = sizeof(s->counters[0]),
		.own = offsetof(struct filler_counter, own),
		.size = s->config->slots,
		.marks = s->marks,
		.reap = s->reap,
		.cpus = s->cpus,
		.ncpus = s->ncpus,
	};

	o->shown = calloc(s->ncpus, sizeof(*o->shown));
	o->slot_of = calloc(s->config->keys + 1, sizeof(*o->slot_of));
	o->room = s->config->writers * STRESS_NOTICES;
	o->ended = calloc(o->room, sizeof(*o->ended));
	if (!o->shown || !o->slot_of || !o->ended)
		return -ENOMEM;
	if (s->config->mutant == MUTANT_NO_GRACE || s->config->mutant == MUTANT_LOOSE_GRACE)
		memory.cpus = o->shown;
	return mote_slots_new(&memory, &ops, o, &o->slots);
}

static void wait_a_tick(const struct stress *s)
{
	if (s->config->tick_us)
		usleep(s->config->tick_us);
	else
		sched_yield();
}

/* Until nothing waits for its reaping any more, or a second has passed. */
static void settle(struct owner *o)
{
	struct stress *s = o->stress;

	for (int i = 0; i < 1000; i++) {
		tick(o);
		mote_slots_stats(o->slots, now(), &s->end);
		if (i >= 4 && !s->end.waiting)
			return;
		usleep(1000);
	}
}

static void count_unseen(struct owner *o)
{
	struct stress *s = o->stress;
	uint64_t sent = 0;

	tick(o);
	for (uint32_t key = 1; key <= s->config->keys; key++)
		sent += s->sent_events[key];
	s->unseen = sent - s->total_events - STRESS_SUM(s, other[0].sent_calls);
	for (uint32_t slot = 0; slot < s->config->slots; slot++)
		mote_slots_end(o->slots, slot);
}

void *stress_owner(void *stress)
{
	struct owner o = { .stress = stress };
	struct stress *s = stress;
	uint64_t began = now();

	if (make_owner(&o)) {
		printf("# the owner has no memory\n");
		_exit(2);
	}
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	forbid_bpf();
	if (s->config->violate)
		syscall(SYS_bpf, 0, NULL, 0);
	while (__atomic_load_n(&s->running, __ATOMIC_SEQ_CST)) {
		tick(&o);
		wait_a_tick(s);
	}
	s->seconds = (double)(now() - began) / 1e9;
	if (s->config->marks_only)
		count_unseen(&o);
	settle(&o);
	mote_slots_free(o.slots);
	return NULL;
}
