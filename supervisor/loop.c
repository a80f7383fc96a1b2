// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The loop, see loop.h. A chain is either the timer's, with what is due at its time linked behind
 * it, or one that starts at once, for a subscriber that waits for its first keyframe. There is one
 * chain at a time, so that the files' buffers have one user. Without subscribers the timer's
 * period is [loop] housekeeping, and only processes are sampled, to keep the accounts exact.
 *
 * Time is CLOCK_MONOTONIC; a tick's time is the timer's, a multiple of the period. A tick that is
 * not done when the next is due makes that one be skipped and counted.
 */
#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "tag.h"
#include "wake.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull
#define CQES      512
#define LATE_NS   (2 * NS_PER_MS)
/*
 * Operations of a turn that are not the process source's: 64 subscribers take a receive, a send and
 * a close each, the connector 128, names 72, files of several pages some 30 each. An operation of
 * the chain that found no room would be waited for for ever.
 */
#define OTHERS 512
/* Of these what is pushed while the chain waits, and at its end: all but the files. */
#define LATER 400
/* What clocks may drift apart between two ticks: 10 ms and 0.1 % of the time, twice NTP's slew. */
#define STEP_NS      (10 * NS_PER_MS)
#define STEP_DIVISOR 1000

#define BIT(stream) (1u << MOTE_STREAM_##stream)

struct mote_loop {
	struct mote_loop_parts parts;
	int timer, signals;
	uint64_t expirations;
	struct signalfd_siginfo signal;
	bool stop;

	uint64_t period;  /* ns; 0: the timer has not been set */
	uint64_t last;    /* time of the last tick on schedule */
	uint64_t sampled; /* time of the last sample of any kind; grows */
	uint64_t tasks_sampled;
	uint64_t hastened;        /* time of the last chain for those who would not wait */
	uint64_t longest;         /* most that may pass between two ticks, for the events' buffer */
	uint64_t network_time;    /* of the last chain with the network's part */
	uint64_t network_longest; /* most that may pass between two, for its slots */
	uint64_t network_tasks;   /* the last sample of processes that it has not seen; 0: none */
	uint64_t files_time, files_longest, files_tasks; /* the same of the file part */
	uint64_t left_out;                               /* processes and threads, in all samples */
	struct mote_limit left_out_limit;
	int64_t boot_offset, real_offset;
	bool gap;

	/* The chain. */
	unsigned int outstanding;
	bool armed, timed, kicked;
	bool served; /* the last turn brought a connection or a request */
	bool with_tasks, with_network, with_files, with_cgroups, cgroups_begun;
	uint64_t time;  /* its time: the timer's, or when it was pushed */
	uint64_t began; /* none of its reads was before: `time`, or earlier if it was hastened */
	uint32_t streams;
	uint32_t tasks_index, events_index, naming_index, self_index, network_index, cgroups_index;
	uint32_t files_index;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Read again if something else ran in between: that would look like a step. */
static void read_offsets(int64_t *boot, int64_t *real)
{
	uint64_t mono;
	int tries = 3;

	do {
		mono = clock_ns(CLOCK_MONOTONIC);
		*boot = (int64_t)(clock_ns(CLOCK_BOOTTIME) - mono);
		*real = (int64_t)(clock_ns(CLOCK_REALTIME) - mono);
	} while (clock_ns(CLOCK_MONOTONIC) - mono > NS_PER_MS && --tries);
}

/* What ends the loop. Blocked, SIGHUP would reach it under nohup, too. */
static void stop_signals(sigset_t *mask)
{
	struct sigaction hangup = { 0 };

	sigaction(SIGHUP, NULL, &hangup);
	sigemptyset(mask);
	sigaddset(mask, SIGTERM);
	sigaddset(mask, SIGINT);
	if (hangup.sa_handler != SIG_IGN)
		sigaddset(mask, SIGHUP);
}

void mote_loop_block_signals(void)
{
	sigset_t mask;

	stop_signals(&mask);
	sigprocmask(SIG_BLOCK, &mask, NULL);
}

int mote_loop_open(const struct mote_loop_parts *parts, struct mote_loop **out)
{
	struct mote_loop *loop = calloc(1, sizeof(*loop));
	uint32_t files = parts->host ? mote_host_files(parts->host) : 0;
	sigset_t mask;

	if (!loop)
		return -ENOMEM;
	loop->parts = *parts;
	mote_wake_open();
	stop_signals(&mask);
	loop->signals = signalfd(-1, &mask, SFD_CLOEXEC);
	/* Blocking: a ring reads what is not ready by polling only if it may block. */
	loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (loop->timer < 0 || loop->signals < 0) {
		int err = -errno;

		mote_loop_close(loop);
		return err;
	}
	mote_loop_block_signals();
	loop->tasks_index = files;
	loop->events_index = files + 1;
	loop->naming_index = files + 2;
	loop->self_index = files + 3;
	loop->cgroups_index = loop->self_index + MOTE_SELF_FILES;
	loop->files_index = loop->cgroups_index + MOTE_CGROUPS_INDICES;
	loop->network_index = loop->files_index + MOTE_FILES_FILES;
	if (parts->host)
		mote_host_hold(parts->host, parts->engine);
	read_offsets(&loop->boot_offset, &loop->real_offset);
	loop->last = clock_ns(CLOCK_MONOTONIC);
	loop->longest = loop->network_longest = loop->files_longest = NS_PER_S;
	*out = loop;
	return 0;
}

void mote_loop_close(struct mote_loop *loop)
{
	if (!loop)
		return;
	if (loop->timer >= 0)
		close(loop->timer);
	if (loop->signals >= 0)
		close(loop->signals);
	free(loop);
}

static void push_signal(struct mote_loop *loop)
{
	struct mote_sqe sqe = {
		.tag = mote_tag(MOTE_TAG_SIGNAL, 0, 0),
		.op = MOTE_OP_READ,
		.flags = MOTE_SQE_WAIT,
		.fd = loop->signals,
		.buf = &loop->signal,
		.len = sizeof(loop->signal),
		.offset = 0,
	};

	mote_engine_push(loop->parts.engine, &sqe);
}

static void push_timer(struct mote_loop *loop)
{
	struct mote_sqe sqe = {
		.tag = mote_tag(MOTE_TAG_TIMER, 0, 0),
		.op = MOTE_OP_READ,
		.flags = MOTE_SQE_WAIT | MOTE_SQE_LINK,
		.fd = loop->timer,
		.buf = &loop->expirations,
		.len = sizeof(loop->expirations),
		.offset = 0,
	};

	mote_engine_push(loop->parts.engine, &sqe);
}

static void set_timer(struct mote_loop *loop, uint64_t at, uint64_t period)
{
	struct itimerspec its = {
		.it_value = { (time_t)(at / NS_PER_S), (long)(at % NS_PER_S) },
		.it_interval = { (time_t)(period / NS_PER_S), (long)(period % NS_PER_S) },
	};

	timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &its, NULL);
}

/* What a sample of `streams` needs: the parts that are not files of the host. */
static unsigned int push_tasks(struct mote_loop *loop)
{
	struct mote_loop_parts *parts = &loop->parts;
	unsigned int room = mote_engine_room(parts->engine), n;

	n = parts->tasks->ops->push(parts->tasks, parts->engine, mote_process_half(parts->process),
				    loop->tasks_index, room > OTHERS ? room - OTHERS : room / 2);
	return n;
}

/* When slots of ended sockets must be had again, too, though nobody asks. */
static unsigned int push_network(struct mote_loop *loop)
{
	struct mote_loop_parts *parts = &loop->parts;
	bool watched = mote_server_subscribed(parts->server) & MOTE_NETWORK_STREAMS;

	return mote_network_push(parts->network, parts->engine, loop->network_index, loop->time,
				 watched);
}

static unsigned int push_files(struct mote_loop *loop)
{
	struct mote_loop_parts *parts = &loop->parts;
	bool watched = mote_server_subscribed(parts->server) & MOTE_FILES_STREAMS;

	return mote_files_push(parts->files, parts->engine, loop->files_index, watched);
}

static uint64_t housekeeping(const struct mote_loop *loop)
{
	return loop->parts.options->loop_housekeeping * NS_PER_MS;
}

/* Whether somebody may have ended since the last sample of processes. */
static bool lives_changed(const struct mote_loop *loop)
{
	const struct mote_events *events = loop->parts.events;

	return events ? mote_events_pending(events) : loop->time >= loop->tasks_sampled + NS_PER_S;
}

/*
 * Now and then without anybody who asks: the accounts of the dead must stay exact. And where the
 * dead are about to fill the network's table of processes.
 */
static bool wants_tasks(const struct mote_loop *loop)
{
	return loop->streams & (BIT(PROCESS) | BIT(EVENT)) ||
	       loop->time >= loop->tasks_sampled + loop->longest ||
	       (loop->with_network && mote_network_crowded(loop->parts.network) &&
		lives_changed(loop));
}

/* The time of the sample, as far as it is known yet; it is later than that of the one before. */
static uint64_t cgroups_time(const struct mote_loop *loop)
{
	uint64_t now = loop->timed && !loop->kicked ? loop->time : clock_ns(CLOCK_MONOTONIC);

	return now > loop->sampled ? now : loop->sampled + 1;
}

/* The rest of the chain, and what is pushed until it ends, need no more than this. */
static unsigned int push_cgroups_ahead(struct mote_loop *loop)
{
	unsigned int room = mote_engine_room(loop->parts.engine);

	return mote_cgroups_push_ahead(loop->parts.cgroups, loop->parts.engine, loop->cgroups_index,
				       room > LATER ? room - LATER : 0, loop->time);
}

/*
 * What the chain did not have of cgroups comes after it, in rounds of their own. Who polls does not
 * cause it if what is there is fresh enough.
 */
static unsigned int push_cgroups(struct mote_loop *loop)
{
	struct mote_loop_parts *parts = &loop->parts;
	unsigned int room = mote_engine_room(parts->engine);

	if (!loop->cgroups_begun && loop->with_cgroups)
		mote_cgroups_begin(parts->cgroups, cgroups_time(loop));
	else if (!loop->cgroups_begun)
		mote_cgroups_begin_names(parts->cgroups, cgroups_time(loop));
	loop->cgroups_begun = true;
	return mote_cgroups_push(parts->cgroups, parts->engine, loop->cgroups_index,
				 room > OTHERS ? room - OTHERS : room / 2);
}

/* What somebody waits for; of cgroups that are being read apart, when that is over. */
static uint32_t urgent_streams(const struct mote_loop *loop)
{
	const struct mote_loop_parts *parts = &loop->parts;
	uint32_t urgent = mote_server_urgent(parts->server);

	return urgent & BIT(CGROUP) && parts->cgroups && mote_cgroups_wait(parts->cgroups)
		       ? urgent & ~BIT(CGROUP)
		       : urgent;
}

static bool wants_cgroups(const struct mote_loop *loop, bool timed)
{
	const struct mote_loop_parts *parts = &loop->parts;

	return parts->cgroups && loop->streams & BIT(CGROUP) &&
	       (timed || mote_cgroups_stale(parts->cgroups, loop->time));
}

/* Events may be asked for alone. */
static bool wants_names(const struct mote_loop *loop)
{
	const struct mote_loop_parts *parts = &loop->parts;

	return parts->cgroups && loop->streams & BIT(CGROUP_EVENT) &&
	       (loop->cgroups_begun || mote_cgroups_needs_names(parts->cgroups));
}

/*
 * Pushes a chain: the timer first if `timed`. The events come last: what is not read by then
 * belongs to the next tick anyway.
 */
static void push_chain(struct mote_loop *loop, bool timed, uint32_t streams, uint64_t time)
{
	struct mote_loop_parts *parts = &loop->parts;
	unsigned int n = 0;

	loop->timed = timed;
	loop->streams = streams;
	loop->time = loop->began = time;
	loop->with_network = parts->network && (streams & MOTE_NETWORK_STREAMS ||
						time >= loop->network_time + loop->network_longest);
	loop->with_files = parts->files && (streams & MOTE_FILES_STREAMS ||
					    time >= loop->files_time + loop->files_longest);
	loop->with_tasks = parts->tasks && wants_tasks(loop);
	if (parts->network)
		mote_network_want_events(parts->network,
					 mote_server_subscribed(parts->server) & BIT(EVENT));
	loop->with_cgroups = wants_cgroups(loop, timed);
	loop->cgroups_begun = false;
	if (timed) {
		push_timer(loop);
		n++;
	}
	if (loop->with_tasks && !parts->tasks->apart)
		n += push_tasks(loop);
	if (parts->host)
		n += mote_host_push(parts->host, parts->engine, streams);
	if (parts->naming)
		n += mote_naming_push(parts->naming, loop->naming_index);
	if (streams & (BIT(SELF) | BIT(TABLE)))
		n += mote_self_push(parts->self, parts->engine, loop->self_index);
	if (loop->with_network)
		n += push_network(loop);
	if (loop->with_files)
		n += push_files(loop);
	if (loop->with_cgroups && timed)
		n += push_cgroups_ahead(loop);
	if (parts->events)
		n += mote_events_push(parts->events, parts->engine, loop->events_index);
	if (n)
		mote_engine_end_chain(parts->engine);
	loop->outstanding = n;
	loop->armed = true;
}

/*
 * The time of a tick that fell due while newcomers were served, else 0. It is taken at once: others
 * must not lose a tick to them.
 */
static uint64_t missed_tick(const struct mote_loop *loop, uint64_t now)
{
	uint64_t due;

	if (!loop->kicked || !loop->period)
		return 0;
	due = loop->last - loop->last % loop->period + loop->period;
	return due <= now && now - due < loop->period ? due : 0;
}

/*
 * At the pace of the last ticks the events' buffer should fill to a quarter at most; a burst may
 * be four times as fast. At the first tick the pace is not known.
 */
static void pace_events(struct mote_loop *loop, uint64_t elapsed)
{
	struct mote_fill fill;

	loop->longest = housekeeping(loop);
	if (!loop->parts.events)
		return;
	mote_events_fill(loop->parts.events, &fill);
	if (fill.fill && elapsed < loop->longest * fill.fill / (fill.size / 4))
		loop->longest = elapsed * (fill.size / 4) / fill.fill;
	if (loop->longest < NS_PER_S)
		loop->longest = NS_PER_S;
}

/* The longest period up to `longest` that divides what the subscribers want. */
static uint64_t period_of(const struct mote_loop *loop)
{
	uint64_t ms = mote_server_period_ms(loop->parts.server), longest = loop->longest, parts;

	if (loop->parts.network && loop->network_longest < longest)
		longest = loop->network_longest;
	if (loop->parts.files && loop->files_longest < longest)
		longest = loop->files_longest;
	longest /= NS_PER_MS;
	parts = (ms + longest - 1) / longest;
	if (!ms)
		return longest * NS_PER_MS;
	while (ms % parts)
		parts++;
	return ms / parts * NS_PER_MS;
}

/* The time of the next tick; sets the timer if it is not running towards it. */
static uint64_t schedule(struct mote_loop *loop, uint64_t now)
{
	uint64_t period = period_of(loop);
	uint64_t next = loop->last - loop->last % period + period, missed = missed_tick(loop, now);
	bool late = next <= now;

	if (late && period == loop->period && !missed) {
		loop->parts.stats->overruns += (now - next) / period + 1;
		loop->parts.stats->gaps++;
		loop->gap = true;
	}
	if (missed) {
		next = missed;
	} else if (late) {
		next = now - now % period + period;
		/* Multiples of a shorter period that passed before it was asked for are not due. */
		if (period != loop->period)
			loop->last = now;
	}
	if (late || period != loop->period || loop->kicked)
		set_timer(loop, next, period);
	loop->period = period;
	loop->kicked = false;
	return next;
}

static uint32_t available(const struct mote_loop *loop)
{
	uint32_t streams = BIT(SELF) | BIT(TABLE);

	if (loop->parts.host)
		streams |= mote_host_streams(loop->parts.host);
	if (loop->parts.tasks)
		streams |= BIT(PROCESS) | BIT(EVENT);
	if (loop->parts.network)
		streams |= MOTE_NETWORK_STREAMS;
	if (loop->parts.cgroups)
		streams |= MOTE_CGROUP_STREAMS;
	if (loop->parts.files)
		streams |= MOTE_FILES_STREAMS;
	return streams;
}

static uint64_t base(const struct mote_loop *loop)
{
	return loop->parts.options->loop_base * NS_PER_MS;
}

/* Somebody waits: do not let him wait for the timer, if that is not about to expire. */
static void kick(struct mote_loop *loop)
{
	uint64_t at = loop->hastened + base(loop), now = clock_ns(CLOCK_MONOTONIC);

	if (at < now)
		at = now;
	if (!loop->armed || !loop->timed || loop->kicked || at >= loop->time)
		return;
	loop->kicked = true;
	loop->began = at;
	set_timer(loop, at, 0);
}

/* Whether the clocks moved apart: a suspend, or a step of the wall clock. */
static bool clocks_stepped(struct mote_loop *loop, uint64_t elapsed)
{
	int64_t boot, real, limit = (int64_t)(STEP_NS + elapsed / STEP_DIVISOR);
	bool stepped;

	read_offsets(&boot, &real);
	stepped =
		llabs(boot - loop->boot_offset) > limit || llabs(real - loop->real_offset) > limit;
	loop->boot_offset = boot;
	loop->real_offset = real;
	return stepped;
}

/* What a full table leaves out makes sums too low: somebody should know. */
static void warn_of_full_tables(struct mote_loop *loop, uint64_t now)
{
	struct mote_fill processes, threads;

	loop->parts.tasks->ops->fill(loop->parts.tasks, &processes, &threads);
	if (processes.dropped + threads.dropped == loop->left_out)
		return;
	loop->left_out = processes.dropped + threads.dropped;
	mote_log_limited(&loop->left_out_limit, now,
			 "a table is full: %s are left out: raise [tables] %s",
			 processes.dropped ? "processes" : "threads of processes",
			 processes.dropped ? "processes" : "threads");
}

static void sample_network(struct mote_loop *loop, uint64_t now)
{
	struct mote_network *network = loop->parts.network;

	mote_network_sample(network, loop->network_tasks, now);
	loop->network_tasks = 0;
	loop->network_longest =
		mote_network_pace(network, loop->time - loop->network_time, housekeeping(loop));
	loop->network_time = loop->time;
}

static void sample_files(struct mote_loop *loop, uint64_t now)
{
	struct mote_files *files = loop->parts.files;

	mote_files_sample(files, loop->files_tasks, now);
	loop->files_tasks = 0;
	loop->files_longest =
		mote_files_pace(files, loop->time - loop->files_time, housekeeping(loop));
	loop->files_time = loop->time;
}

static uint32_t sample(struct mote_loop *loop, uint64_t now)
{
	struct mote_loop_parts *parts = &loop->parts;
	uint32_t sampled = loop->streams & ~available(loop); /* absent: nothing to wait for */

	if (loop->with_tasks) {
		int n = parts->tasks->ops->finish(parts->tasks, mote_process_half(parts->process));

		warn_of_full_tables(loop, now);
		if (n >= 0) {
			mote_process_sampled(parts->process, (unsigned int)n, loop->began, now);
			loop->network_tasks = loop->files_tasks = loop->began;
		} else {
			parts->stats->read_errors++;
		}
		sampled |= BIT(PROCESS) | BIT(EVENT);
		pace_events(loop, now - loop->tasks_sampled);
		loop->tasks_sampled = now;
	}
	if (parts->naming)
		mote_naming_take(parts->naming, now);
	if (parts->host)
		sampled |= mote_host_parse(parts->host, loop->streams, now);
	if (loop->with_network) {
		sample_network(loop, now);
		sampled |= MOTE_NETWORK_STREAMS;
	}
	if (loop->with_files) {
		sample_files(loop, now);
		sampled |= MOTE_FILES_STREAMS;
	}
	if (parts->cgroups) {
		if (!loop->cgroups_begun)
			mote_cgroups_drain(parts->cgroups, now);
		sampled |= loop->streams & MOTE_CGROUP_STREAMS;
		if (mote_cgroups_wait(parts->cgroups))
			sampled &= ~BIT(CGROUP);
	}
	if (loop->streams & (BIT(SELF) | BIT(TABLE))) {
		mote_self_sample(parts->self, parts->from, now);
		sampled |= BIT(SELF) | BIT(TABLE);
	}
	return sampled;
}

static void account_delay(struct mote_loop *loop)
{
	struct mote_loop_stats *stats = loop->parts.stats;
	uint64_t delay = clock_ns(CLOCK_MONOTONIC) - loop->time;

	stats->ticks++;
	stats->delay_ns = delay;
	if (delay > stats->delay_peak_ns)
		stats->delay_peak_ns = delay;
	stats->late += delay > LATE_NS;
}

/*
 * Data of a tick that is late are as old as they are, not as they were to be: rates are made from
 * this time.
 */
static uint64_t sample_time(struct mote_loop *loop, uint64_t clock)
{
	if (clock < loop->time + LATE_NS)
		return loop->time;
	if (clock - loop->time >= loop->period)
		loop->gap = true;
	return clock;
}

/* The chain is complete. */
static void tick(struct mote_loop *loop)
{
	struct mote_loop_parts *parts = &loop->parts;
	uint64_t clock = clock_ns(CLOCK_MONOTONIC);
	/* A chain that a newcomer hastened is the tick all the same, if that is due by now. */
	bool on_schedule = loop->timed && (!loop->kicked || clock >= loop->time);
	uint64_t now = loop->time, before = loop->last;
	uint64_t seen = parts->events ? parts->events->seen : 0;
	uint32_t sampled, at_once;

	loop->armed = false;
	if (on_schedule)
		now = sample_time(loop, clock);
	else if (loop->timed)
		loop->time = now = clock;
	if (now <= loop->sampled)
		now = loop->sampled + 1;
	if (on_schedule && clocks_stepped(loop, now - before)) {
		parts->stats->gaps++;
		loop->gap = true;
	}
	loop->sampled = now;
	sampled = sample(loop, now);
	/* Events go out when they are taken, whatever the interval: they hold the buffer's room. */
	at_once = parts->events && parts->events->seen != seen ? BIT(EVENT) : 0;
	if (on_schedule) {
		mote_server_encode(parts->server, before, loop->time, now,
				   loop->kicked ? 0 : sampled, at_once, loop->gap);
		loop->last = loop->time;
		loop->gap = false;
		account_delay(loop);
	} else {
		/* One that was kicked had what was due, not what is urgent: that comes at once. */
		mote_server_encode(parts->server, now, now, now, loop->timed ? 0 : sampled, at_once,
				   false);
	}
	if (parts->naming && loop->with_tasks && loop->streams & BIT(PROCESS))
		mote_naming_ask(parts->naming);
}

/* Sources may take several rounds of operations for one sample. */
static void chain_complete(struct mote_loop *loop)
{
	const struct mote_loop_parts *parts = &loop->parts;

	loop->outstanding = 0;
	if (parts->events)
		loop->outstanding =
			mote_events_push_more(parts->events, parts->engine, loop->events_index);
	if (loop->outstanding) {
		mote_engine_end_chain(parts->engine);
		return;
	}
	if (loop->with_tasks)
		loop->outstanding = push_tasks(loop);
	if (loop->outstanding) {
		if (!parts->tasks->apart)
			mote_engine_end_chain(parts->engine);
		return;
	}
	if (loop->with_cgroups || wants_names(loop))
		loop->outstanding = push_cgroups(loop);
	if (!loop->outstanding)
		tick(loop);
}

static void arm(struct mote_loop *loop)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), next;
	uint32_t urgent = urgent_streams(loop);

	/*
	 * Not before a tick that is due, and once in [loop] base: who polls without a pause would
	 * keep ticks off, and a CPU busy. Those who poll meanwhile share the next.
	 */
	if (urgent && !missed_tick(loop, now) && now >= loop->hastened + base(loop)) {
		loop->kicked = true;
		loop->hastened = now;
		push_chain(loop, false, urgent, now);
		if (!loop->outstanding)
			chain_complete(
				loop); /* streams that this host does not have need no reads */
		if (loop->armed)
			return;
	}
	next = schedule(loop, now);
	push_chain(loop, true, mote_server_due(loop->parts.server, loop->last, next), next);
}

static void file_completed(struct mote_loop *loop, const struct mote_cqe *cqe)
{
	struct mote_loop_parts *parts = &loop->parts;
	uint32_t index = mote_tag_index(cqe->tag), step = mote_tag_generation(cqe->tag);

	if (index < loop->tasks_index)
		mote_host_complete(parts->host, index, step, cqe->res);
	else if (index == loop->tasks_index)
		parts->tasks->ops->complete(parts->tasks, step, cqe->res);
	else if (index == loop->events_index)
		mote_events_complete(parts->events, step, cqe->res);
	else if (index == loop->naming_index)
		mote_naming_complete(parts->naming, step, cqe->res);
	else if (index < loop->cgroups_index)
		mote_self_complete(parts->self, index - loop->self_index, step, cqe->res);
	else if (index < loop->files_index)
		mote_cgroups_complete(parts->cgroups, index - loop->cgroups_index, step, cqe->res);
	else if (index < loop->network_index)
		mote_files_complete(parts->files, index - loop->files_index, step, cqe->res);
	else
		mote_network_complete(parts->network, index - loop->network_index, step, cqe->res);
}

static void dispatch(struct mote_loop *loop, const struct mote_cqe *cqe, uint64_t now)
{
	switch (mote_tag_kind(cqe->tag)) {
	case MOTE_TAG_TIMER:
		loop->outstanding--;
		break;
	case MOTE_TAG_FILE:
		file_completed(loop, cqe);
		loop->outstanding--;
		break;
	case MOTE_TAG_SIGNAL:
		if (cqe->res == (int)sizeof(loop->signal))
			loop->stop = true;
		else
			push_signal(loop);
		break;
	case MOTE_TAG_CGROUP:
		mote_cgroups_apart_complete(loop->parts.cgroups, mote_tag_generation(cqe->tag),
					    cqe->res);
		break;
	case MOTE_TAG_ARGV:
		mote_naming_argv(loop->parts.naming, cqe, now);
		break;
	case MOTE_TAG_ACCEPT:
	case MOTE_TAG_RECV:
		loop->served = true;
		mote_server_complete(loop->parts.server, cqe, now);
		break;
	default:
		mote_server_complete(loop->parts.server, cqe, now);
	}
}

/* No subscribers, or none that is due soon: a new one matters more than one system call a tick. */
static bool idle(const struct mote_loop *loop)
{
	return loop->period > NS_PER_S && loop->timed;
}

/* Sends first: a request's reply may take the room of frames that were sent just now. */
static void dispatch_all(struct mote_loop *loop, const struct mote_cqe *cqes, int n, uint64_t now)
{
	for (int i = 0; i < n; i++) {
		if (mote_tag_kind(cqes[i].tag) == MOTE_TAG_SEND)
			dispatch(loop, &cqes[i], now);
	}
	for (int i = 0; i < n; i++) {
		if (mote_tag_kind(cqes[i].tag) != MOTE_TAG_SEND)
			dispatch(loop, &cqes[i], now);
	}
}

static void go_on_with_cgroups(struct mote_loop *loop)
{
	struct mote_loop_parts *parts = &loop->parts;

	if (parts->cgroups && mote_cgroups_busy(parts->cgroups) &&
	    !mote_cgroups_apart(parts->cgroups))
		mote_cgroups_go_on(parts->cgroups, parts->engine, loop->cgroups_index,
				   loop->sampled + 1);
}

/* One submission, and what it brought. */
static int turn(struct mote_loop *loop)
{
	static struct mote_cqe cqes[CQES];
	struct mote_loop_parts *parts = &loop->parts;
	unsigned int want = mote_server_flush(parts->server);
	unsigned int names = parts->naming ? mote_naming_soon(parts->naming) : 0;
	unsigned int apart;
	uint64_t now;
	int n;

	/* Those that come next are asked for now, not at the next tick; the tick comes first. */
	if (names)
		want += names < loop->outstanding ? names : loop->outstanding;
	else if (!mote_server_more(parts->server) && !idle(loop))
		want += loop->outstanding;
	/* Where one connection or request came from there may be more: do not wait for the tick. */
	if (mote_wake_taken() || loop->served || !want)
		want = 1;
	apart = parts->cgroups ? mote_cgroups_apart(parts->cgroups) : 0;
	if (apart && apart < want)
		want = apart;
	loop->served = false;
	n = mote_engine_wait(parts->engine, want, cqes, CQES);
	if (n < 0)
		return n;
	parts->stats->waits++;
	now = clock_ns(CLOCK_MONOTONIC);
	dispatch_all(loop, cqes, n, now);
	go_on_with_cgroups(loop);
	if (loop->armed && !loop->outstanding)
		chain_complete(loop);
	if (urgent_streams(loop))
		kick(loop);
	return 0;
}

int mote_loop_run(struct mote_loop *loop)
{
	int err = 0;

	push_signal(loop);
	mote_server_start(loop->parts.server);
	while (!loop->stop && !err) {
		if (!loop->armed)
			arm(loop);
		err = turn(loop);
	}
	return err;
}
