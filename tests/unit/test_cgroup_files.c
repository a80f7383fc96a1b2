// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The reader of cgroupfs: rounds, chains, the pool of open files, files and cgroups that are gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cgroup_files.h"
#include "fake_engine.h"

#define ROOT   1000 /* the descriptor of the hierarchy */
#define OPENED 2000 /* what opens give, and up */

static struct mote_options options;
static struct mote_cgroup_set set;
static struct mote_cgroup_layout layout;
static struct mote_cgroup_files *files;
static struct fake_engine fake;

/* What the kernel has open: the path of each, by descriptor. */
static char open_files[512][128];
static bool at_end[512]; /* and whether it was read */
static int slots[MOTE_ENGINE_SLOTS];
static bool direct;
static unsigned int most_open, now_open, opens;
static const char *missing;          /* files of this name are not there */
static bool vanished;                /* reads give -ENODEV */
static const char *lowest, *highest; /* of the texts, and where they end */

static uint64_t ms(uint64_t n)
{
	return n * 1000000;
}

static void add(uint64_t id, uint64_t parent, const char *name)
{
	assert_true(mote_cgroup_set_add(&set, id, parent, (struct mote_text){ name, strlen(name) },
					1, 1));
}

static void begin_with(unsigned int descriptors)
{
	struct mote_cgroup_files_config config = {
		.options = &options, .layout = &layout, .set = &set, .direct = direct
	};

	mote_options_default(&options);
	options.tables_cgroups = 64;
	options.cgroup_descriptors = descriptors;
	layout = (struct mote_cgroup_layout){ .version = 2, .primary = MOTE_CGROUP_UNIFIED };
	for (unsigned int i = 0; i < MOTE_CGROUP_CONTROLLERS; i++)
		layout.root[i] = i == MOTE_CGROUP_UNIFIED ? ROOT : -1;
	assert_int_equal(mote_cgroup_set_open(&set, &options, NULL, NULL), 0);
	assert_int_equal(mote_cgroup_files_open(&config, &files), 0);
	fake_engine_init(&fake, direct);
	memset(slots, -1, sizeof(slots));
	memset(open_files, 0, sizeof(open_files));
	most_open = now_open = opens = 0;
	missing = NULL;
	vanished = false;
	lowest = highest = NULL;
	add(1, 0, "");
	add(2, 1, "a");
	add(3, 2, "b");
}

static void end(void)
{
	/* what the pool still has is the fake kernel's, and not to be closed by close() */
	struct mote_cgroup_files_stats stats;

	mote_cgroup_files_stats(files, &stats);
	if (!stats.pooled)
		mote_cgroup_files_close(files);
	mote_cgroup_set_close(&set);
}

static int do_open(const struct mote_sqe *sqe)
{
	const char *name = strrchr(sqe->path, '/');

	assert_int_equal(sqe->fd, ROOT);
	assert_int_not_equal(sqe->path[0], '/');
	if (missing && !strcmp(name ? name + 1 : sqe->path, missing))
		return -ENOENT;
	for (unsigned int i = 0; i < 512; i++) {
		if (open_files[i][0])
			continue;
		snprintf(open_files[i], sizeof(open_files[i]), "%s", sqe->path);
		at_end[i] = false;
		opens++;
		if (++now_open > most_open)
			most_open = now_open;
		if (sqe->slot < 0)
			return OPENED + (int)i;
		assert_int_equal(slots[sqe->slot], -1);
		slots[sqe->slot] = OPENED + (int)i;
		return 0;
	}
	return -EMFILE;
}

static int do_read(const struct mote_sqe *sqe)
{
	int fd = sqe->flags & MOTE_SQE_SLOT ? slots[sqe->fd] : sqe->fd;
	bool over = sqe->offset == MOTE_OFFSET_CURRENT && fd >= 0 && at_end[fd - OPENED];
	const char *path = fd < 0 ? NULL : open_files[fd - OPENED];
	const char *text = "0\n";
	size_t len;

	if (!path)
		return -EBADF;
	assert_true(path[0]);
	at_end[fd - OPENED] = true;
	if (!lowest || (const char *)sqe->buf < lowest)
		lowest = sqe->buf;
	if ((const char *)sqe->buf + sqe->len > highest)
		highest = (const char *)sqe->buf + sqe->len;
	if (vanished)
		return -ENODEV;
	if (strstr(path, "cgroup.procs"))
		text = "1\n2\n3\n";
	else if (strstr(path, "cgroup.threads"))
		text = "1\n";
	else if (strstr(path, "cpu.stat"))
		text = "usage_usec 7\nuser_usec 3\nsystem_usec 4\nnr_periods 5\n";
	else if (strstr(path, "memory.current"))
		text = "4096\n";
	else if (strstr(path, "cpu.max"))
		text = "max 100000\n";
	len = over ? 0 : strlen(text);
	if (len > sqe->len)
		len = sqe->len;
	memcpy(sqe->buf, text, len);
	return (int)len;
}

static int do_close(const struct mote_sqe *sqe)
{
	int fd = sqe->flags & MOTE_SQE_SLOT ? slots[sqe->fd] : sqe->fd;
	char *path = open_files[(fd < 0 ? OPENED : fd) - OPENED];

	if (sqe->flags & MOTE_SQE_SLOT)
		slots[sqe->fd] = -1;
	if (fd < 0)
		return -EBADF;
	assert_true(path[0]);
	path[0] = '\0';
	now_open--;
	return 0;
}

/* The round's operations, in order; returns how many there were. */
static unsigned int complete(void)
{
	unsigned int n = fake.n;

	while (fake.n) {
		struct mote_sqe sqe = fake_take(&fake, 0);
		int res = sqe.op == MOTE_OP_OPEN   ? do_open(&sqe)
			  : sqe.op == MOTE_OP_READ ? do_read(&sqe)
						   : do_close(&sqe);

		mote_cgroup_files_complete(files, mote_tag_generation(sqe.tag), res);
	}
	return n;
}

static unsigned int sample(uint64_t now)
{
	unsigned int operations = 0, n;

	mote_cgroup_files_begin(files, now, 1, false);
	while ((n = mote_cgroup_files_push(files, &fake.base, 9, 500, false))) {
		assert_int_equal(n, fake.n);
		operations += complete();
	}
	return operations;
}

static const struct mote_cgroup_row *row_of(uint64_t id)
{
	return &set.rows[mote_cgroup_set_find(&set, id)->row];
}

static void values_come(void **state)
{
	begin_with(0);
	sample(ms(1000));
	for (uint64_t id = 1; id <= 3; id++) {
		assert_int_equal(row_of(id)->v[MOTE_CGROUP_CPU_USAGE], 7000);
		assert_int_equal(row_of(id)->v[MOTE_CGROUP_MEMORY_CURRENT], 4096);
		assert_int_equal(row_of(id)->v[MOTE_CGROUP_PROCESSES], 3);
		assert_int_equal(row_of(id)->v[MOTE_CGROUP_THREADS], 1);
		assert_int_equal(row_of(id)->changed, ms(1000));
	}
	/* without a pool nothing stays open */
	assert_int_equal(now_open, 0);
	end();
}

/* Hot files are opened once; slow ones when their turn comes. */
static void pool(void **state)
{
	unsigned int first, second;

	begin_with(100);
	first = sample(ms(1000));
	assert_int_equal(now_open, 3 * 4);
	opens = 0;
	second = sample(ms(2000));
	assert_int_equal(opens, 0);
	assert_int_equal(second, 3 * 4);
	assert_true(first > second);
	/* a cgroup is gone: so are its descriptors */
	mote_cgroup_set_remove(&set, 3, ms(2500));
	sample(ms(3000));
	assert_int_equal(now_open, 2 * 4);
	/* and its place is another's */
	add(4, 2, "c");
	sample(ms(4000));
	assert_int_equal(now_open, 3 * 4);
	assert_int_equal(row_of(4)->v[MOTE_CGROUP_CPU_USAGE], 7000);
	end();
}

static void pool_is_bounded(void **state)
{
	begin_with(5);
	sample(ms(1000));
	assert_int_equal(now_open, 5);
	sample(ms(2000));
	assert_int_equal(now_open, 5);
	end();
}

static void slow_has_its_turn(void **state)
{
	begin_with(100);
	sample(ms(1000));
	opens = 0;
	for (unsigned int i = 2; i <= 9; i++)
		sample(ms(i * 1000));
	assert_int_equal(opens, 0);
	/* nothing moved: not even then, but at last */
	sample(ms(12000));
	assert_int_equal(opens, 0);
	sample(ms(200000));
	assert_true(opens > 3 * 10);
	end();
}

/* What is not there is absent, is no error, and is looked for again with the slow files only. */
static void not_there(void **state)
{
	struct mote_cgroup_files_stats stats;

	begin_with(0);
	missing = "memory.current";
	sample(ms(1000));
	assert_false(row_of(2)->present >> MOTE_CGROUP_MEMORY_CURRENT & 1);
	mote_cgroup_files_stats(files, &stats);
	assert_int_equal(stats.errors, 0);
	assert_int_equal(stats.gone, 3);
	missing = NULL;
	sample(ms(2000));
	assert_false(row_of(2)->present >> MOTE_CGROUP_MEMORY_CURRENT & 1);
	sample(ms(200000));
	assert_true(row_of(2)->present >> MOTE_CGROUP_MEMORY_CURRENT & 1);
	end();
}

/* A cgroup that vanishes between two rounds. */
static void gone_meanwhile(void **state)
{
	struct mote_cgroup_files_stats stats;

	begin_with(100);
	sample(ms(1000));
	vanished = true;
	sample(ms(2000));
	assert_int_equal(now_open, 0);
	assert_int_equal(row_of(2)->present & 1, 0);
	mote_cgroup_files_stats(files, &stats);
	assert_int_equal(stats.errors, 0);
	assert_int_equal(stats.pooled, 0);
	end();
}

/* As many chains as may be read at a time, and all operations in one of them. */
static void chains(void **state)
{
	begin_with(0);
	for (unsigned int at_a_time = 1; at_a_time <= 4; at_a_time++) {
		unsigned int before = fake.chains_ended, n;

		mote_cgroup_files_begin(files, ms(1000 * at_a_time), at_a_time, false);
		n = mote_cgroup_files_push(files, &fake.base, 9, 500, false);
		assert_true(n > 4);
		assert_in_range(fake.chains_ended - before, 1, at_a_time + 1);
		do
			complete();
		while (mote_cgroup_files_push(files, &fake.base, 9, 500, false));
	}
	end();
}

/* Little room in the queue takes more rounds, not less. */
static void little_room(void **state)
{
	begin_with(0);
	mote_cgroup_files_begin(files, ms(1000), 1, false);
	while (mote_cgroup_files_push(files, &fake.base, 9, 3, false)) {
		assert_in_range(fake.n, 1, 3);
		complete();
	}
	assert_int_equal(row_of(3)->v[MOTE_CGROUP_PROCESSES], 3);
	assert_int_equal(now_open, 0);
	end();
}

/* No page of the text is used that was not touched when it settled. */
static void settled(void **state)
{
	char name[] = "x00";

	begin_with(0);
	for (uint64_t id = 4; id < 50; id++) {
		name[1] = (char)('0' + id / 10);
		name[2] = (char)('0' + id % 10);
		add(id, 2, name);
	}
	mote_cgroup_files_settle(files);
	sample(ms(1000));
	assert_int_equal(row_of(49)->v[MOTE_CGROUP_CPU_USAGE], 7000);
	assert_in_range(highest - lowest, 4 * 1024, 50 * 4096);
	end();
}

/* Of those that have no row: what is below one that is summed adds what that one has not got. */
static void others(void **state)
{
	const struct mote_cgroup_row *other;
	char name[] = "x00";

	begin_with(0);
	for (uint64_t id = 4; id < 65; id++) {
		name[1] = (char)('0' + id / 10);
		name[2] = (char)('0' + id % 10);
		add(id, 2, name);
	}
	add(65, 1, "top");
	for (uint64_t id = 66; id < 70; id++)
		add(id, id - 1, "below");
	sample(ms(1000));
	other = &set.rows[64];
	assert_int_equal(other->v[MOTE_CGROUP_CPU_USAGE], 7000);
	assert_int_equal(other->v[MOTE_CGROUP_MEMORY_CURRENT], 4096);
	assert_int_equal(other->v[MOTE_CGROUP_CPU_PERIODS], 5 * 5);
	end();
}

/* A sample whose first round hangs on the timer; returns how many rounds came after it. */
static unsigned int sample_ahead(uint64_t now)
{
	unsigned int rounds = 0, ended = fake.chains_ended, n;

	mote_cgroup_files_begin(files, now, 1, true);
	n = mote_cgroup_files_push_ahead(files, &fake.base, 9, 500);
	assert_int_equal(n, fake.n);
	assert_int_equal(fake.chains_ended, ended);
	complete();
	mote_cgroup_files_arrive(files, now + 1);
	for (; mote_cgroup_files_push(files, &fake.base, 9, 500, false); rounds++)
		complete();
	return rounds;
}

static void ahead_takes_one_round(void **state)
{
	begin_with(100);
	sample(ms(1000));
	for (unsigned int i = 2; i < 40; i++) {
		set.rows[0].slow_cpu = i; /* it moved */
		assert_int_equal(sample_ahead(ms(i * 1000)), 0);
	}
	assert_in_range(set.rows[0].slow, ms(30000), ms(39000));
	assert_int_equal(now_open, 3 * 4);
	end();
}

/* One that came while the round was on its way is read at once, and only that. */
static void ahead_of_new(void **state)
{
	begin_with(100);
	sample(ms(1000));
	mote_cgroup_files_begin(files, ms(2000), 1, true);
	mote_cgroup_files_push_ahead(files, &fake.base, 9, 500);
	complete();
	assert_true(mote_cgroup_set_add(&set, 4, 2, (struct mote_text){ "c", 1 }, 1, ms(2001)));
	mote_cgroup_files_arrive(files, ms(2001));
	opens = 0;
	while (mote_cgroup_files_push(files, &fake.base, 9, 500, false))
		complete();
	assert_int_equal(row_of(4)->v[MOTE_CGROUP_CPU_USAGE], 7000);
	assert_int_equal(row_of(4)->changed, ms(2001));
	assert_true(opens >= 4);
	end();
}

/* A cgroup that is gone and another in its place while one's round waits. */
static void replaced_meanwhile(void **state)
{
	begin_with(100);
	sample(ms(1000));
	mote_cgroup_files_begin(files, ms(2000), 1, true);
	mote_cgroup_files_push_ahead(files, &fake.base, 9, 500);
	mote_cgroup_set_remove(&set, 3, ms(2001));
	assert_true(mote_cgroup_set_add(&set, 4, 2, (struct mote_text){ "c", 1 }, 1, ms(2001)));
	complete();
	mote_cgroup_files_arrive(files, ms(2001));
	while (mote_cgroup_files_push(files, &fake.base, 9, 500, false))
		complete();
	sample_ahead(ms(3000));
	sample_ahead(ms(4000));
	assert_int_equal(now_open, 3 * 4);
	assert_int_equal(row_of(4)->v[MOTE_CGROUP_CPU_USAGE], 7000);
	end();
}

/* What no tick waits for is tagged so, and a sum that is not complete is not shown. */
static void apart(void **state)
{
	char name[] = "x00";
	unsigned int n;

	begin_with(0);
	for (uint64_t id = 4; id < 80; id++) {
		name[1] = (char)('0' + id / 10);
		name[2] = (char)('0' + id % 10);
		add(id, 1, name);
	}
	sample(ms(1000));
	assert_int_equal(set.rows[64].v[MOTE_CGROUP_CPU_USAGE], 7000 * 15);
	mote_cgroup_files_begin(files, ms(2000), 1, false);
	while ((n = mote_cgroup_files_push(files, &fake.base, 9, 20, true))) {
		for (unsigned int i = 0; i < n; i++) {
			assert_int_equal(mote_tag_kind(fake.pushed[i].tag), MOTE_TAG_CGROUP);
			assert_true(fake.pushed[i].flags & MOTE_SQE_MAY_BLOCK);
		}
		complete();
		assert_int_equal(set.rows[64].v[MOTE_CGROUP_CPU_USAGE], 7000 * 15);
	}
	mote_cgroup_files_move(files, ms(3000));
	end();
}

static int without_slots(void **state)
{
	direct = false;
	return 0;
}

static int with_slots(void **state)
{
	direct = true;
	return 0;
}

#define BOTH(test)                                                  \
	cmocka_unit_test_setup_teardown(test, without_slots, NULL), \
		cmocka_unit_test_setup_teardown(test, with_slots, NULL)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(values_come),
		BOTH(apart),
		BOTH(pool),
		BOTH(pool_is_bounded),
		BOTH(slow_has_its_turn),
		BOTH(not_there),
		BOTH(gone_meanwhile),
		BOTH(chains),
		cmocka_unit_test_setup_teardown(little_room, without_slots, NULL),
		BOTH(settled),
		BOTH(others),
		BOTH(ahead_takes_one_round),
		BOTH(ahead_of_new),
		BOTH(replaced_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
