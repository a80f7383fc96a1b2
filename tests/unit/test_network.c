// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Sockets and flows through their lives, and what the streams say of it; the processes' part is
 * in test_network_process.c.
 */
#include "network_fixture.h"

static struct client *sockets, *flows, *of_processes;

static int setup(void **state)
{
	sockets = calloc(3, sizeof(*sockets));
	assert_non_null(sockets);
	flows = sockets + 1;
	of_processes = sockets + 2;
	client_open(sockets, MOTE_STREAM_SOCKET);
	client_open(flows, MOTE_STREAM_FLOW);
	client_open(of_processes, MOTE_STREAM_PROCESS_NETWORK);
	return 0;
}

static int teardown(void **state)
{
	free(sockets);
	return 0;
}

static void update_all(struct fixture *f)
{
	update(sockets, f);
	update(flows, f);
	update(of_processes, f);
}

static uint64_t network_value(struct fixture *f, const char *protocol, unsigned int field)
{
	const struct mote_table *table = mote_network_table(f->network);
	const struct mote_row *row = NULL;

	while ((row = mote_table_next(table, row))) {
		if (!strcmp(mote_row_get_str(table, row, NETWORK_PROTOCOL), protocol)) {
			assert_true(mote_row_has(row, field));
			return mote_row_get(row, field);
		}
	}
	fail_msg("no row %s", protocol);
	return 0;
}

static struct row *row_of(struct client *c, uint64_t a, uint64_t b, uint64_t d)
{
	struct row *row = client_row(c, (uint64_t[]){ a, b, d }, false);

	assert_non_null(row);
	return row;
}

static void bytes_go_to_flow_socket_process_and_protocol(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint32_t tcp, udp;
	struct row *row;

	fixture_open(f);
	processes.lives[7] = 70 * MOTE_NS_PER_TICK;
	tcp = open_socket(f, 0x1000, MOTE_TCP);
	udp = open_socket(f, 0x2000, MOTE_UDP);
	move(f, id_of(f, tcp), MOTE_TCP, 7, processes.lives[7], 100, 3);
	move(f, id_of(f, tcp), MOTE_TCP, 7, processes.lives[7], 10, 0);
	move(f, id_of(f, tcp), MOTE_TCP, 0, 0, 5, 0); /* the kernel, on the same socket */
	move(f, id_of(f, udp), MOTE_UDP, 7, processes.lives[7], 0, 9);
	tick(f, true);
	update_all(f);

	row = row_of(sockets, id_of(f, tcp), 0, 0);
	assert_int_equal(row->value[SOCKET_BYTES_SENT], 115);
	assert_int_equal(row->value[SOCKET_BYTES_RECEIVED], 3);
	assert_int_equal(row->value[SOCKET_CALLS_SENT], 3);
	assert_string_equal(row->text[SOCKET_PROTOCOL], "tcp");
	row = row_of(flows, id_of(f, tcp), 7, 70);
	assert_int_equal(row->value[FLOW_BYTES_SENT], 110);
	assert_int_equal(row->value[FLOW_CALLS_SENT], 2);
	assert_int_equal(row_of(flows, id_of(f, tcp), 0, 0)->value[FLOW_BYTES_SENT], 5);
	row = row_of(of_processes, 7, 70, 0);
	assert_int_equal(row->value[PROCESS_NETWORK_TCP_BYTES_SENT], 110);
	assert_int_equal(row->value[PROCESS_NETWORK_UDP_BYTES_RECEIVED], 9);
	assert_int_equal(row_of(of_processes, 0, 0, 0)->value[PROCESS_NETWORK_TCP_BYTES_SENT], 5);
	assert_int_equal(network_value(f, "tcp", NETWORK_BYTES_SENT), 115);
	assert_int_equal(network_value(f, "udp", NETWORK_BYTES_RECEIVED), 9);
	assert_int_equal(network_value(f, "tcp", NETWORK_SOCKETS), 1);

	/* Only what changed comes again. */
	move(f, id_of(f, udp), MOTE_UDP, 7, processes.lives[7], 1, 0);
	tick(f, true);
	update_all(f);
	assert_int_equal(sockets->last_rows, 1);
	assert_int_equal(flows->last_rows, 1);
	assert_int_equal(of_processes->last_rows, 1);
	assert_int_equal(row_of(flows, id_of(f, udp), 7, 70)->value[FLOW_BYTES_SENT], 1);
	tick(f, true);
	update_all(f);
	assert_int_equal(sockets->last_rows + flows->last_rows + of_processes->last_rows, 0);
	fixture_free(f);
}

static void a_closed_socket_ends_with_its_flows(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint32_t slot;
	uint64_t id;

	fixture_open(f);
	processes.lives[7] = 70 * MOTE_NS_PER_TICK;
	slot = open_socket(f, 0x1000, MOTE_TCP);
	id = id_of(f, slot);
	move(f, id, MOTE_TCP, 7, processes.lives[7], 100, 3);
	tick(f, true);
	update_all(f);
	/* Bytes of its last moments, then its end, all before the next sample. */
	move(f, id, MOTE_TCP, 7, processes.lives[7], 1, 1);
	move(f, id, MOTE_TCP, 9, 90 * MOTE_NS_PER_TICK, 2, 0);
	close_socket(f, slot);
	for (int i = 0; i < 4; i++) {
		tick(f, true);
		update_all(f);
	}
	assert_int_equal(rows_there(sockets), 0);
	assert_int_equal(rows_there(flows), 0);
	/* Its last row has all of it. */
	assert_int_equal(row_of(sockets, id, 0, 0)->value[SOCKET_BYTES_SENT], 103);
	assert_true(row_of(sockets, id, 0, 0)->value[SOCKET_CLOSED] > 0);
	assert_int_equal(row_of(flows, id, 7, 70)->value[FLOW_BYTES_SENT], 101);
	assert_int_equal(row_of(flows, id, 9, 90)->value[FLOW_BYTES_SENT], 2);
	assert_int_equal(sockets->totals[SOCKET_BYTES_SENT], 103);
	assert_int_equal(flows->totals[FLOW_BYTES_SENT], 103);
	assert_int_equal(flows->totals[FLOW_BYTES_RECEIVED], 4);
	assert_int_equal(network_value(f, "tcp", NETWORK_SOCKETS), 0);
	assert_int_equal(network_value(f, "tcp", NETWORK_SOCKETS_CLOSED), 1);
	/* Every slot is back, and clean. */
	assert_int_equal(f->table[0].nfree, 64);
	assert_int_equal(f->table[1].nfree, 64);
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(f->flows[i].traffic.sent, 0);
		assert_int_equal(f->flows[i].changed, 0);
		assert_int_equal(f->sockets[i].flows, 0);
	}
	fixture_free(f);
}

/* A socket that lived between two samples of a slow client: he gets its last row and its end. */
static void who_looks_seldom_sees_last_rows(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint32_t slot;
	uint64_t id;

	fixture_open(f);
	tick(f, true);
	update_all(f);
	slot = open_socket(f, 0x1000, MOTE_UDP);
	id = id_of(f, slot);
	move(f, id, MOTE_UDP, 7, 70 * MOTE_NS_PER_TICK, 100, 3);
	close_socket(f, slot);
	for (int i = 0; i < 5; i++)
		tick(f, true);
	update_all(f);
	assert_int_equal(row_of(sockets, id, 0, 0)->value[SOCKET_BYTES_SENT], 100);
	assert_false(row_of(sockets, id, 0, 0)->there);
	assert_int_equal(row_of(flows, id, 7, 70)->value[FLOW_BYTES_RECEIVED], 3);
	/* A keyframe has no ended ones. */
	client_open(sockets, MOTE_STREAM_SOCKET);
	update(sockets, f);
	assert_int_equal(sockets->last_rows, 0);
	assert_int_equal(sockets->totals[SOCKET_BYTES_SENT], 100);
	fixture_free(f);
}

static void a_flow_may_be_seen_before_its_socket_and_after(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint32_t slot;
	uint64_t id;

	fixture_open(f);
	processes.lives[7] = 70 * MOTE_NS_PER_TICK;
	slot = open_socket(f, 0x1000, MOTE_TCP);
	id = id_of(f, slot);
	f->marks[0].mark[slot] = 0; /* the mark comes later, as it can */
	move(f, id, MOTE_TCP, 7, processes.lives[7], 40, 0);
	tick(f, true);
	mark(f, MOTE_SLOTS_SOCKETS, slot);
	tick(f, true);
	update_all(f);
	assert_int_equal(row_of(sockets, id, 0, 0)->value[SOCKET_BYTES_SENT], 40);
	close_socket(f, slot);
	for (int i = 0; i < 4; i++)
		tick(f, true);
	assert_int_equal(f->table[1].nfree, 64);
	/* Another socket has the slot by now: this is not its. */
	assert_int_equal(open_socket(f, 0x3000, MOTE_TCP), slot);
	move(f, id, MOTE_TCP, 7, processes.lives[7], 2, 0);
	tick(f, true);
	update_all(f);
	assert_int_equal(row_of(sockets, id_of(f, slot), 0, 0)->value[SOCKET_BYTES_SENT], 0);
	assert_int_equal(sum(sockets, SOCKET_BYTES_SENT), 42);
	assert_int_equal(sum(flows, FLOW_BYTES_SENT), 42);
	assert_true(row_of(flows, id, 7, 70)->there);
	for (int i = 0; i < 4; i++) {
		tick(f, true);
		update_all(f);
	}
	assert_int_equal(f->table[1].nfree, 64); /* and it ended by itself */
	assert_int_equal(sum(flows, FLOW_BYTES_SENT), 42);
	assert_int_equal(row_of(of_processes, 7, 70, 0)->value[PROCESS_NETWORK_TCP_BYTES_SENT], 42);
	fixture_free(f);
}

static void full_tables_lose_nothing(void **state)
{
	struct fixture *f = fixture_new(2, 3);
	uint64_t id[2], start = 70 * MOTE_NS_PER_TICK;
	struct mote_network_stats stats;

	fixture_open(f);
	processes.lives[7] = start;
	for (unsigned int i = 0; i < 2; i++)
		id[i] = id_of(f, open_socket(f, 0x1000 + i, MOTE_TCP));
	assert_int_equal(open_socket(f, 0x1002, MOTE_TCP), UINT32_MAX);
	assert_true(move(f, id[0], MOTE_TCP, 7, start, 1, 0));
	assert_true(move(f, id[1], MOTE_TCP, 7, start, 2, 0));
	assert_true(move(f, MOTE_NO_SOCKET(MOTE_TCP), MOTE_TCP, 7, start, 4, 0));
	assert_false(move(f, MOTE_NO_SOCKET(MOTE_UDP), MOTE_UDP, 7, start, 8, 16));
	tick(f, true);
	update_all(f);
	assert_int_equal(sum(sockets, SOCKET_BYTES_SENT), 7);
	assert_int_equal(row_of(flows, 1, 7, 70)->value[FLOW_BYTES_SENT], 4);
	assert_int_equal(row_of(of_processes, 7, 70, 0)->value[PROCESS_NETWORK_TCP_BYTES_SENT], 7);
	assert_int_equal(network_value(f, "tcp", NETWORK_BYTES_SENT), 7);
	assert_int_equal(network_value(f, "tcp", NETWORK_OTHER_SENT), 0);
	assert_int_equal(network_value(f, "udp", NETWORK_BYTES_SENT), 8);
	assert_int_equal(network_value(f, "udp", NETWORK_OTHER_SENT), 8);
	assert_int_equal(network_value(f, "udp", NETWORK_OTHER_RECEIVED), 16);
	mote_network_stats(f->network, f->now, &stats);
	assert_int_equal(stats.sockets.dropped, 1);
	assert_int_equal(stats.flows.dropped, 1);
	assert_int_equal(stats.flows.fill, 3);
	fixture_free(f);
}

static void the_kernels_own_counters_show_what_hooks_missed(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint32_t slot;
	uint64_t id;

	fixture_open(f);
	slot = open_socket(f, 0x1000, MOTE_TCP);
	id = id_of(f, slot);
	f->sockets[slot].flags = MOTE_SOCKET_SEEDED;
	f->sockets[slot].accepted_base = f->sockets[slot].accepted = 1000;
	f->sockets[slot].retransmitted = 50;
	tick(f, true);
	update_all(f);
	assert_true(row_of(sockets, id, 0, 0)->nil[SOCKET_UNATTRIBUTED_SENT]);
	f->sockets[slot].flags |= MOTE_SOCKET_TRUTH;
	f->sockets[slot].accepted = 1100;
	f->sockets[slot].taken = 6;
	f->sockets[slot].retransmitted = 53;
	f->sockets[slot].srtt_us = 77;
	mark(f, MOTE_SLOTS_SOCKETS, slot);
	move(f, id, MOTE_TCP, 7, 70 * MOTE_NS_PER_TICK, 90, 8);
	tick(f, true);
	update_all(f);
	assert_int_equal(row_of(sockets, id, 0, 0)->value[SOCKET_UNATTRIBUTED_SENT], 10);
	/* that the kernel's are behind says nothing of an open socket */
	assert_int_equal(row_of(sockets, id, 0, 0)->value[SOCKET_UNATTRIBUTED_RECEIVED], 0);
	assert_int_equal(row_of(sockets, id, 0, 0)->value[SOCKET_RETRANSMITTED_BYTES], 53);
	assert_int_equal(row_of(sockets, id, 0, 0)->value[SOCKET_SRTT], 77);
	assert_int_equal(network_value(f, "tcp", NETWORK_UNATTRIBUTED_SENT), 10);
	assert_int_equal(network_value(f, "tcp", NETWORK_UNATTRIBUTED_RECEIVED), 0);
	assert_int_equal(network_value(f, "tcp", NETWORK_RETRANSMITTED_BYTES), 3);
	close_socket(f, slot);
	for (int i = 0; i < 4; i++)
		tick(f, true);
	update_all(f);
	/* What it was missing stays in the sum, and what was too much is known at the end. */
	assert_int_equal(network_value(f, "tcp", NETWORK_UNATTRIBUTED_SENT), 10);
	assert_int_equal(network_value(f, "tcp", NETWORK_UNATTRIBUTED_RECEIVED), -2);
	assert_int_equal(sockets->totals[SOCKET_RETRANSMITTED_BYTES], 53);
	fixture_free(f);

	f = fixture_new(64, 64);
	f->options.network_reconciliation = false;
	fixture_open(f);
	slot = open_socket(f, 0x1000, MOTE_TCP);
	f->sockets[slot].flags = MOTE_SOCKET_TRUTH;
	f->sockets[slot].accepted = 1100;
	tick(f, true);
	client_open(sockets, MOTE_STREAM_SOCKET);
	update(sockets, f);
	assert_true(row_of(sockets, id_of(f, slot), 0, 0)->nil[SOCKET_UNATTRIBUTED_SENT]);
	assert_non_null(mote_network_why(f->network, MOTE_STREAM_SOCKET, SOCKET_UNATTRIBUTED_SENT));
	assert_null(mote_network_why(f->network, MOTE_STREAM_SOCKET, SOCKET_RETRANSMITTED_BYTES));
	fixture_free(f);
}

static void rows_say_what_a_socket_is(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	struct mote_socket *s;
	struct row *row;
	uint32_t slot;

	fixture_open(f);
	slot = open_socket(f, 0x1000, MOTE_TCP);
	s = &f->sockets[slot];
	memcpy(s->local, (uint8_t[]){ 127, 0, 0, 1 }, 4);
	s->local_port = 80;
	s->state = 10;
	tick(f, false);
	update(sockets, f);
	row = row_of(sockets, id_of(f, slot), 0, 0);
	assert_string_equal(row->text[SOCKET_LOCAL_ADDRESS], "127.0.0.1");
	assert_string_equal(row->text[SOCKET_STATE], "LISTEN");
	assert_string_equal(row->text[SOCKET_FAMILY], "ipv4");
	assert_int_equal(row->value[SOCKET_LOCAL_PORT], 80);
	for (unsigned int i = 0; i < SOCKET__FIELDS; i++) {
		bool known = i < SOCKET_REMOTE_ADDRESS || i == SOCKET_STATE || i == SOCKET_UID ||
			     i == SOCKET_OPENED ||
			     (i >= SOCKET_BYTES_SENT && i <= SOCKET_RETRANSMITTED_BYTES);

		assert_int_equal(row->nil[i], !known);
	}
	s->family = 10;
	memcpy(s->remote, (uint8_t[16]){ [10] = 255, 255, 10, 1, 2, 3 }, 16);
	memset(s->local, 0, 16);
	s->local[15] = 1;
	s->remote_port = 443;
	s->state = 1;
	s->tgid = 7;
	s->start = 70 * MOTE_NS_PER_TICK + 5;
	s->uid = 1000;
	s->netns = 4026531840;
	s->cgroup_id = 11;
	s->inode = 12;
	s->cookie = 13;
	mark(f, MOTE_SLOTS_SOCKETS, slot);
	tick(f, false);
	update(sockets, f);
	assert_string_equal(row->text[SOCKET_FAMILY], "ipv6");
	assert_string_equal(row->text[SOCKET_LOCAL_ADDRESS], "::1");
	assert_string_equal(row->text[SOCKET_REMOTE_ADDRESS], "::ffff:10.1.2.3");
	assert_string_equal(row->text[SOCKET_STATE], "ESTABLISHED");
	assert_int_equal(row->value[SOCKET_REMOTE_PORT], 443);
	assert_int_equal(row->value[SOCKET_PID], 7);
	assert_int_equal(row->value[SOCKET_PROCESS_START], 70);
	assert_int_equal(row->value[SOCKET_UID], 1000);
	assert_int_equal(row->value[SOCKET_NETNS], 4026531840);
	assert_int_equal(row->value[SOCKET_CGROUP_ID], 11);
	assert_int_equal(row->value[SOCKET_INODE], 12);
	assert_int_equal(row->value[SOCKET_COOKIE], 13);
	slot = open_socket(f, 0x2000, MOTE_UDP);
	f->sockets[slot].state = 7;
	f->sockets[slot].flags = MOTE_SOCKET_KERNEL;
	tick(f, false);
	update(sockets, f);
	row = row_of(sockets, id_of(f, slot), 0, 0);
	assert_string_equal(row->text[SOCKET_STATE], "UNCONN");
	assert_false(row->nil[SOCKET_PID]);
	assert_true(row->nil[SOCKET_RETRANSMITTED_BYTES]);
	fixture_free(f);
}

/* The reaper is in the chain only if it has work, the walks now and then. */
static void the_chain_has_what_there_is_to_do(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint32_t slot;

	f->maps.has[MOTE_NET_DESTROY] = false;
	fixture_open(f);
	assert_int_equal(tick(f, true), 1u << 1 | 1u << 2); /* both walks, as none was made yet */
	slot = open_socket(f, 0x1000, MOTE_TCP);
	for (int i = 0; i < 38; i++)
		assert_int_equal(tick(f, true), 0);
	close_socket(f, slot);
	assert_int_equal(tick(f, true), 0);
	assert_int_equal(tick(f, true), 1u << 0 | 1u << 1 | 1u << 2);
	assert_int_equal(tick(f, true), 1u << 0);
	assert_int_equal(tick(f, true), 0);
	assert_int_equal(f->table[0].nfree, 64);
	fixture_free(f);
}

/* Sockets that ended unseen may be what fills the table: then TCP is walked for nobody, too. */
static bool tcp_is_walked_for_nobody(struct fixture *f)
{
	bool walked = false;

	f->now += 600 * S;
	mote_network_push(f->network, &f->engine.base, 100, f->now, false);
	while (f->engine.n) {
		struct mote_sqe sqe = fake_take(&f->engine, 0);
		uint32_t file = mote_tag_index(sqe.tag) - 100;

		walked |= file == 1;
		mote_network_complete(f->network, file, mote_tag_generation(sqe.tag), 0);
	}
	mote_network_sample(f->network, 0, f->now);
	return walked;
}

static void a_table_half_full_is_walked(void **state)
{
	struct fixture *f = fixture_new(64, 64);

	fixture_open(f);
	for (uint64_t i = 0; i < 32; i++)
		open_socket(f, 0x1000 + i, MOTE_TCP);
	tick(f, true);
	assert_false(tcp_is_walked_for_nobody(f));
	open_socket(f, 0x2000, MOTE_TCP);
	tick(f, true);
	assert_true(tcp_is_walked_for_nobody(f));
	fixture_free(f);
}

static void the_pace_follows_claims(void **state)
{
	struct fixture *f = fixture_new(64, 128);

	fixture_open(f);
	assert_int_equal(mote_network_pace(f->network, S, 10 * S), 10 * S);
	f->cpus[0].claims += 8; /* an eighth of the smaller table */
	assert_int_equal(mote_network_pace(f->network, S, 10 * S), S);
	f->cpus[1].claims += 4;
	assert_int_equal(mote_network_pace(f->network, S, 10 * S), 2 * S);
	f->cpus[1].claims += 1000;
	assert_int_equal(mote_network_pace(f->network, S, 10 * S), 250 * MS);
	assert_int_equal(mote_network_pace(f->network, 250 * MS, 10 * S), 10 * S);
	fixture_free(f);
}

/* Anything in any order, tables too small, clients of all speeds. What is counted is exact. */

struct model {
	struct {
		uint32_t slot; /* UINT32_MAX: it found none */
		uint64_t address;
		enum mote_protocol protocol;
		bool open;
	} socket[48];
	uint64_t sent[MOTE_PROTOCOLS], received[MOTE_PROTOCOLS], other[MOTE_PROTOCOLS];
	uint64_t addresses, starts;
};

static unsigned int dice(unsigned int sides)
{
	return (unsigned int)random() % sides;
}

static void act_on_socket(struct fixture *f, struct model *m)
{
	unsigned int i = dice(48);

	if (!m->socket[i].open) {
		m->socket[i].open = true;
		m->socket[i].protocol = dice(2);
		m->socket[i].address = ++m->addresses << 8;
		m->socket[i].slot = open_socket(f, m->socket[i].address, m->socket[i].protocol);
	} else if (!dice(4)) {
		m->socket[i].open = false;
		if (m->socket[i].slot != UINT32_MAX)
			close_socket(f, m->socket[i].slot);
	}
}

static void act_on_process(struct model *m)
{
	uint32_t pid = 1 + dice(PIDS - 1);

	if (!processes.lives[pid])
		processes.lives[pid] = ++m->starts * MOTE_NS_PER_TICK + dice(1000);
	else if (!dice(3))
		process_dies(pid);
	if (!dice(50))
		processes.forgot = processes.n;
}

static void act_by_moving(struct fixture *f, struct model *m)
{
	unsigned int i = dice(48), sent = dice(1000), received = dice(1000);
	uint32_t pid = dice(PIDS);
	enum mote_protocol protocol = m->socket[i].protocol;
	uint64_t id;

	if (!m->socket[i].open || (pid && !processes.lives[pid]))
		return;
	id = m->socket[i].slot == UINT32_MAX ? MOTE_NO_SOCKET(protocol)
					     : id_of(f, m->socket[i].slot);
	m->sent[protocol] += sent;
	m->received[protocol] += received;
	if (!move(f, id, protocol, pid, pid ? processes.lives[pid] : 0, sent, received))
		m->other[protocol] += sent;
}

static void check_sums(struct fixture *f, const struct model *m, const struct client *c)
{
	static const unsigned int fields[][2] = {
		[MOTE_STREAM_SOCKET] = { SOCKET_BYTES_SENT, SOCKET_BYTES_SENT },
		[MOTE_STREAM_FLOW] = { FLOW_BYTES_SENT, FLOW_BYTES_SENT },
		[MOTE_STREAM_PROCESS_NETWORK] = { PROCESS_NETWORK_TCP_BYTES_SENT,
						  PROCESS_NETWORK_UDP_BYTES_SENT },
	};
	uint64_t counted = m->sent[0] + m->sent[1] - m->other[0] - m->other[1], got;

	got = sum(c, fields[c->stream][0]);
	if (c->stream == MOTE_STREAM_PROCESS_NETWORK)
		got += sum(c, fields[c->stream][1]);
	assert_int_equal(got, counted);
}

static void check_network(struct fixture *f, const struct model *m)
{
	static const char *const names[] = { "tcp", "udp" };

	for (unsigned int p = 0; p < MOTE_PROTOCOLS; p++) {
		assert_int_equal(network_value(f, names[p], NETWORK_BYTES_SENT), m->sent[p]);
		assert_int_equal(network_value(f, names[p], NETWORK_BYTES_RECEIVED),
				 m->received[p]);
		assert_int_equal(network_value(f, names[p], NETWORK_OTHER_SENT), m->other[p]);
	}
}

static void end_all(struct fixture *f, struct model *m)
{
	for (unsigned int i = 0; i < 48; i++) {
		if (m->socket[i].open && m->socket[i].slot != UINT32_MAX)
			close_socket(f, m->socket[i].slot);
		m->socket[i].open = false;
	}
	for (uint32_t pid = 1; pid < PIDS; pid++) {
		if (processes.lives[pid])
			process_dies(pid);
	}
	for (int i = 0; i < 8; i++)
		tick(f, true);
}

static void live(struct fixture *f, struct model *m, struct client *clients)
{
	for (unsigned int step = 0; step < 800; step++) {
		for (unsigned int i = dice(40); i; i--) {
			act_on_socket(f, m);
			act_on_process(m);
			for (unsigned int n = 0; n < 6; n++)
				act_by_moving(f, m);
		}
		tick(f, dice(3) == 0);
		check_network(f, m);
		for (unsigned int i = 0; i < 3 * 3; i++) {
			/* of each stream one at each tick, one now and then, one that is late */
			unsigned int every = (unsigned int[]){ 1, 3, 40 }[i / 3];

			if (step % every)
				continue;
			update(&clients[i], f);
			check_sums(f, m, &clients[i]);
		}
	}
}

static void any_order_is_exact(void **state)
{
	static const uint32_t sizes[][2] = { { 128, 128 }, { 16, 128 }, { 128, 20 }, { 8, 8 } };

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fixture *f = fixture_new(sizes[i][0], sizes[i][1]);
		struct client *clients = calloc(9, sizeof(*clients));
		struct model m = { .starts = 1 };

		assert_non_null(clients);
		srandom(i + 1);
		f->options.tables_network_processes = i % 2 ? 8 : 64;
		fixture_open(f);
		for (unsigned int c = 0; c < 9; c++)
			client_open(&clients[c], MOTE_STREAM_SOCKET + c % 3);
		live(f, &m, clients);
		end_all(f, &m);
		for (unsigned int c = 0; c < 9; c++) {
			update(&clients[c], f);
			check_sums(f, &m, &clients[c]);
			/* The kernel's row of processes stays, and its flows of no socket. */
			assert_true(rows_there(&clients[c]) <=
				    (clients[c].stream == MOTE_STREAM_SOCKET ? 0 : 2));
		}
		assert_int_equal(f->table[0].nfree, sizes[i][0]);
		assert_true(f->table[1].nfree >= sizes[i][1] - 2);
		free(clients);
		fixture_free(f);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(bytes_go_to_flow_socket_process_and_protocol),
		TEST(a_closed_socket_ends_with_its_flows),
		TEST(who_looks_seldom_sees_last_rows),
		TEST(a_flow_may_be_seen_before_its_socket_and_after),
		TEST(full_tables_lose_nothing),
		TEST(the_kernels_own_counters_show_what_hooks_missed),
		TEST(rows_say_what_a_socket_is),
		TEST(the_chain_has_what_there_is_to_do),
		TEST(a_table_half_full_is_walked),
		TEST(the_pace_follows_claims),
		TEST(any_order_is_exact),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
