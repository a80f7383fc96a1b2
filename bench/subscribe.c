// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * subscribe SOCKET PID INTERVAL_MS WARM TICKS STREAMS: one subscriber, and what the supervisor PID
 * uses to serve it. Prints "warm" after WARM ticks and, TICKS later, one JSON object: CPU time of
 * each tick, taken when its frames were there and the supervisor sleeps again; the delay from the
 * time in a frame's header to its receipt; faults; bytes of the first keyframes and of updates; the
 * self stream's counters if it was subscribed.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "bench_util.h"
#include "libmote.h"

#define DELAYS_MAX  (1 << 20)
#define STREAMS_MAX 64

struct counters {
	double waits, ticks, overruns, late, cpu_s;
};

static struct {
	int pid, interval_ms, warm, ticks, seen;
	uint64_t time; /* of the tick whose frames are coming */
	int64_t cpu_before, *cpu;
	uint64_t faults;
	int64_t *delays;
	size_t ndelays;
	bool keying[STREAMS_MAX]; /* the keyframe of a stream takes several frames */
	uint64_t key_bytes, key_rows, key_frames, bytes, rows, frames, ended, events;
	struct counters first, last;
	bool has_self;
} run;

/* Minor and major faults of the process so far. */
static uint64_t faults_of(int pid)
{
	unsigned long long minor = 0, major = 0;
	char path[64], text[1024], *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		bench_die("subscribe: the supervisor is gone");
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	end = strrchr(text, ')');
	if (!end ||
	    sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &minor, &major) != 2)
		bench_die("subscribe: cannot read %s", path);
	return minor + major;
}

static double number(const struct mote_record *row, const char *name)
{
	struct mote_value value = mote_value_named(row, name);

	return value.type == MOTE_VALUE_F64 ? value.f64 : (double)value.u64;
}

static void take_self(const struct mote_message *message)
{
	struct mote_record row;

	if (!message->stream || strcmp(message->stream->name, "self") ||
	    !mote_row(message, 0, &row))
		return;
	run.last = (struct counters){
		.waits = number(&row, "mote_engine_waits_total"),
		.ticks = number(&row, "mote_ticks_total"),
		.overruns = number(&row, "mote_ticks_overrun_total"),
		.late = number(&row, "mote_ticks_late_total"),
		.cpu_s = number(&row, "process_cpu_time_seconds_total"),
	};
	if (run.seen < run.warm || !run.has_self)
		run.first = run.last;
	run.has_self = true;
}

/* Whether the frame is one of a keyframe. */
static bool is_key(const struct mote_message *message)
{
	bool *keying = &run.keying[message->stream_id % STREAMS_MAX], key = message->key || *keying;

	*keying = key && message->more;
	return key;
}

static void take_data(const struct mote_message *message, int64_t now)
{
	if (is_key(message)) {
		run.key_bytes += message->raw_size;
		run.key_rows += message->nrows;
		run.key_frames++;
	} else if (run.seen >= run.warm) {
		bool event = message->stream && !strcmp(message->stream->name, "event");

		run.bytes += message->raw_size;
		*(event ? &run.events : &run.rows) += message->nrows;
		run.ended += message->nended;
		run.frames++;
		if (run.ndelays < DELAYS_MAX)
			run.delays[run.ndelays++] = now - (int64_t)message->time;
	}
	take_self(message);
	run.time = message->time;
}

/* All frames of a tick are there. */
static void tick_done(void)
{
	int64_t cpu = bench_cpu_of(run.pid);

	if (run.seen >= run.warm)
		run.cpu[run.seen - run.warm] = cpu - run.cpu_before;
	run.cpu_before = cpu;
	run.time = 0;
	if (++run.seen == run.warm) {
		run.faults = faults_of(run.pid);
		printf("warm\n");
		fflush(stdout);
	}
}

/*
 * Reads until the ticks are over. A tick's frames are there when none comes for a while that is
 * longer than the supervisor takes, and shorter than what is left of the interval.
 */
static int read_ticks(struct mote_client *client)
{
	int settle = run.interval_ms / 3 < 100 ? run.interval_ms / 3 : 100;
	struct mote_message message;

	while (run.seen < run.warm + run.ticks) {
		int rc =
			mote_next(client, &message, run.time ? settle : 3 * run.interval_ms + 5000);

		if (rc == -EAGAIN && run.time) {
			tick_done();
			continue;
		}
		if (rc <= 0)
			return rc ? rc : -EPIPE;
		if (message.type == MOTE_MESSAGE_DATA)
			take_data(&message, bench_clock(CLOCK_MONOTONIC));
		else if (message.type == MOTE_MESSAGE_REPLY && message.code)
			bench_die("subscribe: refused: %.*s", (int)message.text_size, message.text);
		else if (message.type == MOTE_MESSAGE_DROPPED)
			fprintf(stderr, "subscribe: %llu frames were dropped\n",
				(unsigned long long)message.dropped_frames);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void print_result(void)
{
	size_t n = run.ndelays;

	run.faults = faults_of(run.pid) - run.faults;
	qsort(run.delays, n, sizeof(*run.delays), compare);
	printf("{\"cpu_ns\":[");
	for (int i = 0; i < run.ticks; i++)
		printf("%s%lld", i ? "," : "", (long long)run.cpu[i]);
	printf("],\"faults\":%llu", (unsigned long long)run.faults);
	if (n)
		printf(",\"delay_ns\":{\"min\":%lld,\"median\":%lld,\"p99\":%lld,\"max\":%lld}",
		       (long long)run.delays[0], (long long)run.delays[n / 2],
		       (long long)run.delays[n * 99 / 100], (long long)run.delays[n - 1]);
	printf(",\"key\":{\"bytes\":%llu,\"rows\":%llu,\"frames\":%llu}",
	       (unsigned long long)run.key_bytes, (unsigned long long)run.key_rows,
	       (unsigned long long)run.key_frames);
	printf(",\"changed\":{\"bytes\":%llu,\"rows\":%llu,\"frames\":%llu,\"ended\":%llu,\"events\":%llu}",
	       (unsigned long long)run.bytes, (unsigned long long)run.rows,
	       (unsigned long long)run.frames, (unsigned long long)run.ended,
	       (unsigned long long)run.events);
	if (run.has_self)
		printf(",\"self\":{\"waits\":%.0f,\"ticks\":%.0f,\"overruns\":%.0f,\"late\":%.0f}",
		       run.last.waits - run.first.waits, run.last.ticks - run.first.ticks,
		       run.last.overruns - run.first.overruns, run.last.late - run.first.late);
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct mote_client *client;
	char line[512];
	int rc;

	if (argc != 7)
		bench_die("usage: subscribe SOCKET PID INTERVAL_MS WARM TICKS STREAMS");
	run.pid = atoi(argv[2]);
	run.interval_ms = atoi(argv[3]);
	run.warm = atoi(argv[4]);
	run.ticks = atoi(argv[5]);
	run.cpu = calloc((size_t)run.ticks, sizeof(*run.cpu));
	run.delays = calloc(DELAYS_MAX, sizeof(*run.delays));
	rc = mote_open(argv[1], &client);
	if (rc)
		bench_die("subscribe: %s: %s", argv[1], strerror(-rc));
	snprintf(line, sizeof(line), "subscribe %s interval=%dms", argv[6], run.interval_ms);
	rc = mote_request(client, line);
	if (!rc)
		rc = read_ticks(client);
	if (rc)
		bench_die("subscribe: %s: %s", strerror(-rc), mote_error(client));
	print_result();
	mote_close(client);
	return 0;
}
