// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The queue of process events, see events.h. It is a BPF ring buffer's memory, or, with the
 * connector, memory of our own in the same form. The room of an event is given back when both
 * readers are done with it.
 */
#include "events.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "connector.h"
#include "network_ends.h"
#include "parse.h"
#include "tag.h"
#include "task.h"

/* Reads of the connector at first; twice as many a round while all of them bring something. */
#define DATAGRAMS 64
#define ROUNDS    32 /* most a tick */

void mote_events_open_ring(struct mote_events *events, const struct mote_ringbuf *ring,
			   const struct mote_event_ctl *ctl)
{
	*events = (struct mote_events){ .ring = *ring, .ctl = ctl, .fd = -1 };
	events->seen = *ring->consumer;
}

/* The same pages twice in a row, as the kernel maps a ring buffer. */
static void *map_twice(uint32_t bytes)
{
	int fd = memfd_create("mote-events", MFD_CLOEXEC);
	char *base = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, bytes))
		base = mmap(NULL, 2 * (size_t)bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int half = 0; half < 2 && base != MAP_FAILED; half++) {
		if (mmap(base + (size_t)half * bytes, bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED) {
			munmap(base, 2 * (size_t)bytes);
			base = MAP_FAILED;
		}
	}
	if (fd >= 0)
		close(fd);
	return base == MAP_FAILED ? NULL : base;
}

int mote_events_open_connector(struct mote_events *events, int fd, uint32_t bytes)
{
	void *memory = map_twice(bytes);
	char(*datagrams)[256] = malloc(2 * DATAGRAMS * sizeof(*datagrams));

	if (!memory || !datagrams) {
		free(datagrams);
		if (memory)
			munmap(memory, 2 * (size_t)bytes);
		return -ENOMEM;
	}
	memset(datagrams, 0, 2 * DATAGRAMS * sizeof(*datagrams));
	*events = (struct mote_events){ .fd = fd, .memory = memory, .datagrams = datagrams };
	events->ring = (struct mote_ringbuf){ .consumer = &events->own_consumer,
					      .producer = &events->own_producer,
					      .data = memory,
					      .size = bytes };
	return 0;
}

void mote_events_close(struct mote_events *events)
{
	if (events->memory)
		munmap(events->memory, 2 * events->ring.size);
	free(events->datagrams);
	if (events->fd >= 0)
		mote_connector_close(events->fd);
}

const struct mote_event *mote_events_next(struct mote_events *events, uint64_t until)
{
	uint64_t position = events->seen;
	uint32_t len;
	const struct mote_event *event = mote_ringbuf_next(&events->ring, &position, &len);

	if (event && event->time > until)
		return NULL;
	events->seen = position;
	return event;
}

bool mote_events_pending(const struct mote_events *events)
{
	return __atomic_load_n(events->ring.producer, __ATOMIC_RELAXED) > events->seen;
}

void mote_events_release(struct mote_events *events, uint64_t position)
{
	uint64_t fill = mote_ringbuf_fill(&events->ring);

	if (fill > events->ring.peak)
		events->ring.peak = fill;
	__atomic_store_n(events->ring.consumer, position, __ATOMIC_RELEASE);
}

uint64_t mote_events_dropped(const struct mote_events *events)
{
	uint64_t dropped = events->overruns;

	for (unsigned int i = 0; events->ctl && i < MOTE_EVENT_PROCESS_KINDS; i++)
		dropped += __atomic_load_n(&events->ctl->dropped[i], __ATOMIC_RELAXED);
	return dropped;
}

void mote_events_fill(const struct mote_events *events, struct mote_fill *fill)
{
	uint64_t now = mote_ringbuf_fill(&events->ring);

	*fill = (struct mote_fill){ .size = events->ring.size,
				    .fill = now,
				    .peak = now > events->ring.peak ? now : events->ring.peak,
				    .dropped = mote_events_dropped(events) };
}

static unsigned int push_reads(struct mote_events *events, struct mote_engine *engine,
			       uint32_t index, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct mote_sqe sqe = {
			.tag = mote_tag(MOTE_TAG_FILE, index, i),
			.op = MOTE_OP_RECV,
			.flags = MOTE_SQE_LINK | MOTE_SQE_NOWAIT,
			.fd = events->fd,
			.buf = events->datagrams[i],
			.len = sizeof(events->datagrams[i]),
		};

		mote_engine_push(engine, &sqe);
	}
	events->asked = n;
	events->taken = 0;
	return n;
}

unsigned int mote_events_push(struct mote_events *events, struct mote_engine *engine,
			      uint32_t index)
{
	if (events->fd < 0)
		return 0;
	events->rounds = 0;
	return push_reads(events, engine, index, DATAGRAMS);
}

unsigned int mote_events_push_more(struct mote_events *events, struct mote_engine *engine,
				   uint32_t index)
{
	if (events->fd < 0 || events->taken < events->asked || ++events->rounds > ROUNDS)
		return 0;
	return push_reads(events, engine, index, 2 * DATAGRAMS);
}

/* As a BPF program would have put it there. */
static void append(struct mote_events *events, const void *record, uint32_t len)
{
	uint64_t position = events->own_producer;
	uint8_t *at = (uint8_t *)events->memory + (position & (events->ring.size - 1));
	uint64_t end = position + ((len + BPF_RINGBUF_HDR_SZ + 7) & ~7ull);

	if (end - events->own_consumer > events->ring.size) {
		events->overruns++;
		return;
	}
	memcpy(at, &len, sizeof(len));
	memcpy(at + BPF_RINGBUF_HDR_SZ, record, len);
	events->own_producer = end;
}

void mote_events_complete(struct mote_events *events, uint32_t step, int res)
{
	struct mote_event_exit record = { 0 };

	if (res == -ENOBUFS) {
		events->overruns++;
		events->taken = events->asked; /* the round ends here, but there is more */
	}
	if (res <= 0)
		return;
	events->taken++;
	if (mote_connector_parse(events->datagrams[step], (size_t)res, &record) == 1)
		append(events, &record, sizeof(record));
}

static void pack_totals(msgpack_packer *pk, const struct mote_event_exit *out, bool has)
{
	const struct mote_thread_counts *counts = &out->counts;
	uint64_t utime = has ? out->prev_utime : 0, stime = has ? out->prev_stime : 0;

	if (has)
		mote_task_cputime(counts, &utime, &stime);
	mote_pack_known(pk, has, utime);
	mote_pack_known(pk, has, stime);
	mote_pack_known(pk, has, has ? counts->run_time : 0);
	mote_pack_known(pk, has, has ? counts->minflt : 0);
	mote_pack_known(pk, has, has ? counts->majflt : 0);
	mote_pack_known(pk, has, has ? counts->rchar : 0);
	mote_pack_known(pk, has, has ? counts->wchar : 0);
	mote_pack_known(pk, has, has ? counts->syscr : 0);
	mote_pack_known(pk, has, has ? counts->syscw : 0);
	mote_pack_known(pk, has, has ? counts->read_bytes : 0);
	mote_pack_known(pk, has, has ? counts->write_bytes : 0);
	mote_pack_known(pk, has, has ? counts->nvcsw : 0);
	mote_pack_known(pk, has, has ? counts->nivcsw : 0);
}

static void pack_socket(msgpack_packer *pk, const struct mote_event_socket *event)
{
	_Static_assert(EVENT__FIELDS - EVENT_PROTOCOL == MOTE_ENDS_FIELDS, "mote_pack_ends()");
	mote_pack_known(pk, event && event->socket, event ? event->socket : 0);
	if (event) {
		mote_pack_ends(pk, &event->ends);
		return;
	}
	for (unsigned int i = 0; i < MOTE_ENDS_FIELDS; i++)
		msgpack_pack_nil(pk);
}

static void pack_event(const struct mote_events *events, const struct mote_event *event,
		       msgpack_packer *pk)
{
	static const char *const names[MOTE_EVENT_KINDS] = {
		[0] = "?",
		[MOTE_EVENT_FORK] = "fork",
		[MOTE_EVENT_EXEC] = "exec",
		[MOTE_EVENT_EXIT] = "exit",
		[MOTE_EVENT_FINAL] = "final",
		[MOTE_EVENT_OPENED] = "socket_opened",
		[MOTE_EVENT_CLOSED] = "socket_closed",
		[MOTE_EVENT_FAILED] = "connect_failed",
	};
	const struct mote_event_exec *exec = (const struct mote_event_exec *)event;
	const struct mote_event_exit *out = (const struct mote_event_exit *)event;
	bool bpf = events->fd < 0, final = event->kind == MOTE_EVENT_FINAL;
	bool of_socket = event->kind >= MOTE_EVENT_OPENED;
	bool is_exit = final || event->kind == MOTE_EVENT_EXIT;

	_Static_assert(EVENT__FIELDS == 30 && EVENT_UTIME == 9 && EVENT_SOCKET == 22,
		       "pack_event follows schema.def");
	msgpack_pack_array(pk, EVENT__FIELDS);
	mote_pack_word(pk, names[event->kind % MOTE_EVENT_KINDS]);
	msgpack_pack_uint64(pk, event->time);
	mote_pack_known(pk, event->pid || !of_socket, event->pid);
	mote_pack_known(pk, event->start != 0, event->start / MOTE_NS_PER_TICK);
	mote_pack_known(pk, !final && !of_socket && (event->ppid != 0 || bpf), event->ppid);
	mote_pack_known(pk, bpf, event->uid);
	if (event->comm[0])
		mote_pack_text(pk, event->comm, strnlen(event->comm, sizeof(event->comm)));
	else
		msgpack_pack_nil(pk);
	if (bpf && event->kind == MOTE_EVENT_EXEC)
		mote_pack_list(pk, exec->argv, exec->argv_len);
	else
		msgpack_pack_nil(pk);
	mote_pack_known(pk, is_exit, is_exit ? out->exit_code : 0);
	pack_totals(pk, out, bpf && is_exit);
	pack_socket(pk, of_socket ? (const struct mote_event_socket *)event : NULL);
}

/* A keyframe (`since` 0) is empty. The cursor is the position. */
static bool event_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	struct mote_events *events = ctx;
	uint64_t position = *cursor;
	const struct mote_event *event;
	uint32_t len;

	if (since == 0 || position >= events->seen)
		return false;
	event = mote_ringbuf_next(&events->ring, &position, &len);
	if (!event || position > events->seen)
		return false;
	*cursor = position;
	pack_event(events, event, pk);
	return true;
}

static uint64_t event_head(void *ctx)
{
	return ((const struct mote_events *)ctx)->seen;
}

static void event_trim(void *ctx, uint64_t cursor)
{
	mote_events_release(ctx, cursor);
}

/* Half of the buffer may be kept for those who read; the other half is the kernel's. */
static bool event_patient(void *ctx)
{
	const struct mote_events *events = ctx;

	return mote_ringbuf_fill(&events->ring) < events->ring.size / 2;
}

const struct mote_source_ops mote_events_source = {
	.row = event_row,
	.ended = mote_source_no_more,
	.totals = mote_source_no_totals,
	.forgot = mote_source_remembers,
	.epoch = NULL,
	.head = event_head,
	.trim = event_trim,
	.patient = event_patient,
};
