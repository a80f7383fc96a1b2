// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Records of sockets, while somebody wants them. */
#include "exchange.h"

#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#define MANY 40 /* of four records each: more than half of the buffer holds */

static unsigned int told[MOTE_EVENT_KINDS];
static u16 port; /* of those that are meant */

static int take(void *ctx, void *record, size_t len)
{
	const struct mote_event_socket *e = record;

	if (len == sizeof(*e) && (e->ends.local_port == port || e->ends.remote_port == port))
		told[e->event.kind % MOTE_EVENT_KINDS]++;
	return 0;
}

/* Within 5 s there are so many. */
static void take_all(struct ring_buffer *ring, enum mote_event_kind kind, unsigned int n)
{
	for (int i = 0; i < 500 && told[kind] < n; i++) {
		usleep(10000);
		ring_buffer__consume(ring);
	}
}

static u16 port_of(const struct sockaddr_storage *to)
{
	return ntohs(((const struct sockaddr_in *)to)->sin_port);
}

static void opened_and_closed(struct ring_buffer *ring)
{
	struct pair p;

	ctl->events = 1;
	open_pair(&p, AF_INET, false);
	port = port_of(&p.to);
	close_pair(&p);
	take_all(ring, MOTE_EVENT_CLOSED, 3);
	check(told[MOTE_EVENT_OPENED] == 3 && told[MOTE_EVENT_CLOSED] == 3,
	      "records of a connection and its listener: %u opened, %u closed",
	      told[MOTE_EVENT_OPENED], told[MOTE_EVENT_CLOSED]);
}

static void failed(struct ring_buffer *ring)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_storage to;
	socklen_t len;

	close(listen_on(SOCK_STREAM, AF_INET, false, &to, &len));
	take_all(ring, MOTE_EVENT_CLOSED, 4);
	port = port_of(&to);
	memset(told, 0, sizeof(told));
	if (!connect(fd, (struct sockaddr *)&to, len))
		die("connect to nobody");
	take_all(ring, MOTE_EVENT_FAILED, 1);
	close(fd);
	ring_buffer__consume(ring);
	check(told[MOTE_EVENT_FAILED] == 1 && !told[MOTE_EVENT_CLOSED], "and of a refused one");
}

/* More than there is room for; the listener's own is read before. */
static void too_many(struct ring_buffer *ring)
{
	u64 before = ctl->events_dropped;
	unsigned int records;
	struct pair p;

	open_pair(&p, AF_INET, false);
	ring_buffer__consume(ring);
	port = port_of(&p.to);
	memset(told, 0, sizeof(told));
	for (int i = 0; i < MANY; i++) {
		close(p.client);
		close(p.server);
		p.client = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(p.client, (struct sockaddr *)&p.to, p.len))
			die("connect");
		p.server = accept(p.listener, NULL, NULL);
	}
	usleep(100000);
	ring_buffer__consume(ring);
	records = told[MOTE_EVENT_OPENED] + told[MOTE_EVENT_CLOSED];
	check(records && ctl->events_dropped > before &&
		      records + ctl->events_dropped - before >= 4 * MANY,
	      "what finds no room is counted: %u records, %llu dropped", records,
	      (unsigned long long)(ctl->events_dropped - before));
	close_pair(&p);
}

static void nobody_wants(struct ring_buffer *ring)
{
	struct pair p;

	ctl->events = 0;
	usleep(100000);
	ring_buffer__consume(ring);
	open_pair(&p, AF_INET, false);
	port = port_of(&p.to);
	memset(told, 0, sizeof(told));
	close_pair(&p);
	usleep(100000);
	ring_buffer__consume(ring);
	check(!told[MOTE_EVENT_OPENED] && !told[MOTE_EVENT_CLOSED], "none that nobody wants");
}

void cases_of_events(void)
{
	struct ring_buffer *ring = ring_buffer__new(map_fd("events"), take, NULL, NULL);

	if (!ring)
		die("the ring buffer");
	opened_and_closed(ring);
	failed(ring);
	too_many(ring);
	nobody_wants(ring);
	ring_buffer__free(ring);
}
