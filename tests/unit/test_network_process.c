// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* When processes that moved bytes end, and what is left of them. */
#include "network_fixture.h"

#define START(ticks) ((ticks)*MOTE_NS_PER_TICK)

static struct client *clients;

static int setup(void **state)
{
	clients = calloc(2, sizeof(*clients));
	assert_non_null(clients);
	client_open(&clients[0], MOTE_STREAM_PROCESS_NETWORK);
	client_open(&clients[1], MOTE_STREAM_FLOW);
	return 0;
}

static int teardown(void **state)
{
	free(clients);
	return 0;
}

static void update_both(struct fixture *f)
{
	update(&clients[0], f);
	update(&clients[1], f);
}

static struct row *process_row(uint32_t pid, uint64_t start)
{
	struct row *row = client_row(&clients[0], (uint64_t[]){ pid, start, 0 }, false);

	assert_non_null(row);
	return row;
}

static void use(struct fixture *f, uint64_t id, uint32_t pid, uint64_t bytes)
{
	assert_true(move(f, id, MOTE_UDP, pid, processes.lives[pid], bytes, 0));
}

/* A process that samples had ends, while the socket that it used lives on with another. */
static void a_process_ends_with_its_flows(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint64_t id;

	fixture_open(f);
	processes.lives[7] = START(70);
	processes.lives[8] = START(80);
	id = id_of(f, open_socket(f, 0x1000, MOTE_UDP));
	use(f, id, 7, 5);
	use(f, id, 8, 6);
	tick(f, true);
	tick(f, true);
	use(f, id, 7, 1);
	process_dies(7);
	for (int i = 0; i < 5; i++) {
		tick(f, true);
		update_both(f);
	}
	assert_false(process_row(7, 70)->there);
	assert_int_equal(process_row(7, 70)->value[PROCESS_NETWORK_UDP_BYTES_SENT], 6);
	assert_int_equal(clients[0].totals[PROCESS_NETWORK_UDP_BYTES_SENT], 6);
	assert_true(process_row(8, 80)->there);
	assert_int_equal(rows_there(&clients[1]), 1);
	assert_int_equal(f->table[MOTE_SLOTS_FLOWS].nfree, 63);
	fixture_free(f);
}

/* One that was born and died between two samples of processes. */
static void one_that_no_sample_had_ends(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint64_t id;

	fixture_open(f);
	processes.lives[7] = START(70);
	id = id_of(f, open_socket(f, 0x1000, MOTE_UDP));
	use(f, id, 7, 5);
	tick(f, false);
	process_dies(7);
	tick(f, false); /* nobody looked */
	update_both(f);
	assert_true(process_row(7, 70)->there);
	for (int i = 0; i < 4; i++)
		tick(f, i == 0);
	update_both(f);
	assert_false(process_row(7, 70)->there);
	assert_int_equal(clients[0].totals[PROCESS_NETWORK_UDP_BYTES_SENT], 5);
	fixture_free(f);
}

/* A sample without room for all says nothing of who is not in it, a whole one does. */
static void one_that_samples_leave_out_lives_on(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint64_t id, start = START(70);

	fixture_open(f);
	id = id_of(f, open_socket(f, 0x1000, MOTE_UDP));
	processes.cut = true;
	for (int i = 0; i < 5; i++) {
		assert_true(move(f, id, MOTE_UDP, 7, start, 5, 0));
		tick(f, true);
		update_both(f);
	}
	assert_true(process_row(7, 70)->there);
	assert_int_equal(process_row(7, 70)->value[PROCESS_NETWORK_UDP_BYTES_SENT], 25);
	assert_int_equal(rows_there(&clients[1]), 1);
	processes.cut = false;
	for (int i = 0; i < 5; i++)
		tick(f, true);
	update_both(f);
	assert_false(process_row(7, 70)->there);
	assert_int_equal(clients[0].totals[PROCESS_NETWORK_UDP_BYTES_SENT], 25);
	fixture_free(f);
}

/* A listing is late: a process is waited for. */
static void a_listing_is_given_time(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	struct mote_network_config config = { .options = &f->options,
					      .maps = &f->maps,
					      .process = (struct mote_process *)f,
					      .listed = true,
					      .direct = true };
	uint64_t id;

	f->options.process_listing = 1000;
	assert_int_equal(mote_network_open(&config, &f->network), 0);
	id = id_of(f, open_socket(f, 0x1000, MOTE_UDP));
	assert_true(move(f, id, MOTE_UDP, 7, START(70), 5, 0));
	for (int i = 0; i < 8; i++)
		tick(f, true);
	update_both(f);
	assert_true(process_row(7, 70)->there);
	processes.lives[7] = START(70);
	for (int i = 0; i < 8; i++)
		tick(f, true);
	update_both(f);
	assert_true(process_row(7, 70)->there);
	processes.lives[9] = START(90);
	use(f, id, 9, 1);
	processes.lives[9] = 0;
	for (int i = 0; i < 14; i++)
		tick(f, true);
	update_both(f);
	assert_false(client_row(&clients[0], (uint64_t[]){ 9, 90, 0 }, true)->there);
	assert_int_equal(clients[0].totals[PROCESS_NETWORK_UDP_BYTES_SENT], 1);
	fixture_free(f);
}

static void forgotten_ends_are_found_out(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint64_t id;

	fixture_open(f);
	processes.lives[7] = START(70);
	processes.lives[8] = START(80);
	id = id_of(f, open_socket(f, 0x1000, MOTE_UDP));
	use(f, id, 7, 5);
	use(f, id, 8, 5);
	tick(f, true);
	tick(f, true);
	process_dies(7);
	processes.forgot = processes.n;
	for (int i = 0; i < 5; i++)
		tick(f, true);
	update_both(f);
	assert_null(client_row(&clients[0], (uint64_t[]){ 7, 70, 0 }, false));
	assert_true(process_row(8, 80)->there);
	assert_int_equal(clients[0].totals[PROCESS_NETWORK_UDP_BYTES_SENT], 5);
	fixture_free(f);
}

/* The same pid, another process. */
static void a_pid_is_given_again(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint64_t id[2];

	fixture_open(f);
	id[0] = id_of(f, open_socket(f, 0x1000, MOTE_UDP));
	id[1] = id_of(f, open_socket(f, 0x2000, MOTE_UDP));
	processes.lives[7] = START(70);
	use(f, id[0], 7, 5);
	tick(f, true);
	process_dies(7);
	processes.lives[7] = START(75);
	use(f, id[1], 7, 9);
	for (int i = 0; i < 5; i++) {
		tick(f, true);
		update_both(f);
	}
	assert_false(process_row(7, 70)->there);
	assert_true(process_row(7, 75)->there);
	assert_int_equal(process_row(7, 75)->value[PROCESS_NETWORK_UDP_BYTES_SENT], 9);
	fixture_free(f);
}

/* It was taken to have ended (a full process table left it out), and goes on. */
static void one_that_comes_back_is_not_told_as_ended(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint64_t id, start = START(70);

	fixture_open(f);
	id = id_of(f, open_socket(f, 0x1000, MOTE_UDP));
	processes.lives[7] = start;
	use(f, id, 7, 5);
	tick(f, true);
	update_both(f);
	process_dies(7);
	tick(f, true);
	tick(f, true);
	tick(f, true);
	processes.lives[7] = start;
	use(f, id, 7, 2);
	tick(f, true);
	update_both(f); /* its end and its new row would be in one update */
	assert_true(process_row(7, 70)->there);
	assert_int_equal(rows_there(&clients[1]), 1);
	assert_int_equal(sum(&clients[0], PROCESS_NETWORK_UDP_BYTES_SENT), 7);
	assert_int_equal(sum(&clients[1], FLOW_BYTES_SENT), 7);
	fixture_free(f);
}

static void a_full_table_counts_into_totals(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	struct mote_network_stats stats;
	uint64_t id;

	f->options.tables_network_processes = 3; /* one is the kernel's */
	fixture_open(f);
	id = id_of(f, open_socket(f, 0x1000, MOTE_UDP));
	for (uint32_t pid = 1; pid < 6; pid++) {
		processes.lives[pid] = START(pid);
		use(f, id, pid, 10);
	}
	assert_true(move(f, id, MOTE_UDP, 0, 0, 100, 0));
	tick(f, true);
	update_both(f);
	assert_int_equal(rows_there(&clients[0]), 3);
	assert_int_equal(process_row(0, 0)->value[PROCESS_NETWORK_UDP_BYTES_SENT], 100);
	assert_int_equal(clients[0].totals[PROCESS_NETWORK_UDP_BYTES_SENT], 30);
	mote_network_stats(f->network, f->now, &stats);
	assert_int_equal(stats.processes.dropped, 3);
	assert_int_equal(stats.processes.fill, 3);
	fixture_free(f);
}

/* A flow whose process found no room gets it when there is some, for what is still to come. */
static void room_is_found_later(void **state)
{
	struct fixture *f = fixture_new(64, 64);
	uint64_t id;

	f->options.tables_network_processes = 3;
	fixture_open(f);
	assert_false(mote_network_crowded(f->network));
	id = id_of(f, open_socket(f, 0x1000, MOTE_UDP));
	for (uint32_t pid = 1; pid < 4; pid++) {
		processes.lives[pid] = START(pid);
		use(f, id, pid, 10);
	}
	tick(f, true);
	assert_true(mote_network_crowded(f->network));
	use(f, id, 3, 10);
	tick(f, true);
	update_both(f);
	assert_null(client_row(&clients[0], (uint64_t[]){ 3, 3, 0 }, false));
	process_dies(1);
	for (int i = 0; i < 5; i++)
		tick(f, true);
	use(f, id, 3, 5);
	tick(f, true);
	update_both(f);
	assert_true(process_row(3, 3)->there);
	assert_int_equal(process_row(3, 3)->value[PROCESS_NETWORK_UDP_BYTES_SENT], 5);
	assert_int_equal(clients[0].totals[PROCESS_NETWORK_UDP_BYTES_SENT], 30);
	assert_int_equal(sum(&clients[0], PROCESS_NETWORK_UDP_BYTES_SENT), 45);
	assert_int_equal(sum(&clients[1], FLOW_BYTES_SENT), 45);
	/* And its end is its flow's, as of any other. */
	process_dies(3);
	for (int i = 0; i < 5; i++)
		tick(f, true);
	update_both(f);
	assert_false(process_row(3, 3)->there);
	assert_int_equal(rows_there(&clients[1]), 1);
	assert_int_equal(sum(&clients[0], PROCESS_NETWORK_UDP_BYTES_SENT), 45);
	fixture_free(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_process_ends_with_its_flows),
		TEST(one_that_no_sample_had_ends),
		TEST(one_that_samples_leave_out_lives_on),
		TEST(a_listing_is_given_time),
		TEST(forgotten_ends_are_found_out),
		TEST(a_pid_is_given_again),
		TEST(one_that_comes_back_is_not_told_as_ended),
		TEST(a_full_table_counts_into_totals),
		TEST(room_is_found_later),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
