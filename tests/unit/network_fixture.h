/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The network part on memory of the test's own: slots are claimed, written and reaped here as the
 * programs do it, who lives is said here, and what the streams give is decoded as a client does.
 */
#ifndef NETWORK_FIXTURE_H
#define NETWORK_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "network.h"
#include "parse.h"
#include "slots.h"

#include "fake_engine.h"

#define MS      1000000ull
#define S       1000000000ull
#define CPUS    2
#define SLOTS   128 /* most of each table */
#define PIDS    64
#define CLIENTS 4
#define KEYS    1024

struct table {
	uint32_t free[SLOTS], nfree;
	struct {
		uint64_t key;
		uint32_t slot;
	} index[SLOTS];
	uint32_t n;
};

struct fixture {
	struct mote_options options;
	struct mote_network_maps maps;
	struct mote_socket sockets[SLOTS];
	struct mote_flow flows[SLOTS];
	struct mote_slot_marks marks[MOTE_SLOT_TABLES];
	struct mote_reap reaps[MOTE_SLOT_TABLES];
	struct mote_slot_cpu cpus[CPUS];
	struct mote_net_ctl ctl;
	struct table table[MOTE_SLOT_TABLES];
	char dir[32];
	int dirfd;
	struct fake_engine engine;
	struct mote_network *network;
	uint64_t now;
};

/* Who lives, by pid: start in ns, 0: nobody. And who ended. */
static struct {
	uint64_t lives[PIDS];
	bool seen[PIDS]; /* a sample had it: its end will be noticed */
	struct {
		uint32_t pid;
		uint64_t start;
	} ended[65536];
	uint64_t n, forgot;
	bool cut; /* samples have no room for all */
} processes;

bool mote_process_whole(const struct mote_process *process)
{
	return !processes.cut;
}

bool mote_process_lives(struct mote_process *process, uint32_t pid, uint64_t start)
{
	return pid < PIDS && processes.lives[pid] == start;
}

int mote_process_next_ended(const struct mote_process *process, uint64_t *cursor, uint32_t *pid,
			    uint64_t *start)
{
	if (*cursor < processes.forgot) {
		*cursor = processes.forgot;
		return -1;
	}
	if (*cursor == processes.n)
		return 0;
	*pid = processes.ended[*cursor].pid;
	*start = processes.ended[(*cursor)++].start / MOTE_NS_PER_TICK;
	return 1;
}

static inline void process_dies(uint32_t pid)
{
	assert_true(processes.n < 65536);
	if (processes.seen[pid]) {
		processes.ended[processes.n].pid = pid;
		processes.ended[processes.n++].start = processes.lives[pid];
	}
	processes.lives[pid] = 0;
	processes.seen[pid] = false;
}

static inline void init_tables(struct fixture *f)
{
	const uint32_t sizes[] = { f->maps.nsockets, f->maps.nflows };

	for (unsigned int t = 0; t < MOTE_SLOT_TABLES; t++) {
		f->table[t].nfree = sizes[t];
		for (uint32_t i = 0; i < sizes[t]; i++)
			f->table[t].free[i] = sizes[t] - 1 - i;
	}
	for (uint32_t i = 0; i < sizes[0]; i++)
		f->sockets[i].slot.gen = 1;
	for (uint32_t i = 0; i < sizes[1]; i++)
		f->flows[i].slot.gen = 1;
}

static inline void touch(const char *dir, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	close(open(path, O_CREAT | O_WRONLY, 0600));
}

static inline void set_maps(struct fixture *f, uint32_t sockets, uint32_t flows)
{
	f->maps = (struct mote_network_maps){
		.dirfd = f->dirfd,
		.reap = "reap",
		.tcp = "tcp",
		.udp = "udp",
		.sockets = f->sockets,
		.flows = f->flows,
		.nsockets = sockets,
		.nflows = flows,
		.socket_marks = &f->marks[0],
		.flow_marks = &f->marks[1],
		.reaps = f->reaps,
		.cpus = f->cpus,
		.ncpus = CPUS,
		.ctl = &f->ctl,
		.has = { true, true, true, true, true },
	};
}

static inline void fixture_open(struct fixture *f)
{
	struct mote_network_config config = { .options = &f->options,
					      .maps = &f->maps,
					      .process = (struct mote_process *)f,
					      .direct = true };

	assert_int_equal(mote_network_open(&config, &f->network), 0);
}

static inline struct fixture *fixture_new(uint32_t sockets, uint32_t flows)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(&processes, 0, sizeof(processes));
	mote_options_default(&f->options);
	f->options.tables_network_processes = 64;
	f->options.tables_ended_sockets = 64;
	strcpy(f->dir, "/tmp/mote-network.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < 3; i++)
		touch(f->dir, (const char *[]){ "reap", "tcp", "udp" }[i]);
	set_maps(f, sockets, flows);
	init_tables(f);
	fake_engine_init(&f->engine, true);
	f->now = 1000 * S;
	return f;
}

static inline void fixture_free(struct fixture *f)
{
	mote_network_close(f->network);
	for (int i = 0; i < 3; i++)
		unlinkat(f->dirfd, (const char *[]){ "reap", "tcp", "udp" }[i], 0);
	close(f->dirfd);
	rmdir(f->dir);
	free(f);
}

/* The programs' side */

static inline struct mote_slot *slot_of(struct fixture *f, unsigned int t, uint32_t slot)
{
	return t == MOTE_SLOTS_SOCKETS ? &f->sockets[slot].slot : &f->flows[slot].slot;
}

static inline void mark(struct fixture *f, unsigned int t, uint32_t slot)
{
	f->marks[t].mark[slot] = 1;
}

/* UINT32_MAX: none */
static inline uint32_t look_up(const struct fixture *f, unsigned int t, uint64_t key)
{
	for (uint32_t i = 0; i < f->table[t].n; i++) {
		if (f->table[t].index[i].key == key)
			return f->table[t].index[i].slot;
	}
	return UINT32_MAX;
}

static inline bool unlink_key(struct fixture *f, unsigned int t, uint64_t key)
{
	struct table *table = &f->table[t];

	for (uint32_t i = 0; i < table->n; i++) {
		if (table->index[i].key != key)
			continue;
		table->index[i] = table->index[--table->n];
		return true;
	}
	return false;
}

static inline uint32_t claim(struct fixture *f, unsigned int t, uint64_t key)
{
	struct table *table = &f->table[t];
	uint32_t slot;

	if (!table->nfree) {
		f->cpus[0].turned_away[t]++;
		return UINT32_MAX;
	}
	slot = table->free[--table->nfree];
	f->cpus[1].claims++;
	slot_of(f, t, slot)->key = key;
	table->index[table->n].key = key;
	table->index[table->n++].slot = slot;
	return slot;
}

static inline uint32_t open_socket(struct fixture *f, uint64_t address, enum mote_protocol protocol)
{
	uint32_t slot = claim(f, MOTE_SLOTS_SOCKETS, address);
	struct mote_socket *socket;

	if (slot == UINT32_MAX)
		return slot;
	socket = &f->sockets[slot];
	/* All of BPF's part but the head. */
	memset((char *)socket + sizeof(socket->slot), 0,
	       offsetof(struct mote_socket, flows) - sizeof(socket->slot));
	socket->opened = f->now;
	socket->family = 2;
	socket->protocol = protocol;
	socket->state = 1;
	mark(f, MOTE_SLOTS_SOCKETS, slot);
	return slot;
}

static inline void close_socket(struct fixture *f, uint32_t slot)
{
	struct mote_socket *socket = &f->sockets[slot];

	unlink_key(f, MOTE_SLOTS_SOCKETS, socket->slot.key);
	socket->state = 7;
	socket->closed = f->now;
	mark(f, MOTE_SLOTS_SOCKETS, slot);
}

static inline uint64_t id_of(const struct fixture *f, uint32_t slot)
{
	return MOTE_SOCKET_ID(slot, f->sockets[slot].slot.gen);
}

/* A call of a process over a socket, whose id this is; false: it went to `other`. */
static inline bool move(struct fixture *f, uint64_t socket, enum mote_protocol protocol,
			uint32_t pid, uint64_t start, uint64_t sent, uint64_t received)
{
	uint64_t key = MOTE_FLOW_KEY(socket, pid);
	uint32_t slot = look_up(f, MOTE_SLOTS_FLOWS, key);
	struct mote_traffic *traffic;

	if (slot == UINT32_MAX) {
		slot = claim(f, MOTE_SLOTS_FLOWS, key);
		if (slot != UINT32_MAX) {
			f->flows[slot].start = start;
			f->flows[slot].protocol = protocol;
		}
	}
	traffic = slot == UINT32_MAX ? &f->cpus[1].other[protocol] : &f->flows[slot].traffic;
	if (slot != UINT32_MAX)
		mark(f, MOTE_SLOTS_FLOWS, slot);
	traffic->sent += sent;
	traffic->sent_calls += sent > 0;
	traffic->received += received;
	traffic->received_calls += received > 0;
	return slot != UINT32_MAX;
}

static inline void reap_table(struct fixture *f, unsigned int t)
{
	struct mote_reap *reap = &f->reaps[t];

	for (uint32_t i = 0; i < reap->deletes; i++)
		reap->del[i].status = look_up(f, t, reap->del[i].key) != reap->del[i].slot
					      ? MOTE_REAP_ABSENT
				      : unlink_key(f, t, reap->del[i].key) ? MOTE_REAP_DONE
									   : MOTE_REAP_ABSENT;
	for (uint32_t i = 0; i < reap->pushes; i++) {
		assert_int_equal(slot_of(f, t, reap->push[i].slot)->key, 0);
		f->table[t].free[f->table[t].nfree++] = reap->push[i].slot;
		reap->push[i].status = MOTE_REAP_DONE;
	}
	reap->deletes = reap->pushes = 0;
	reap->passes++;
}

/* A tick: the chain, with the reaper if it is asked for, and the sample. Its files: bits. */
static inline unsigned int tick(struct fixture *f, bool processes_sampled)
{
	unsigned int files = 0;

	f->now += 250 * MS;
	for (uint32_t pid = 0; processes_sampled && pid < PIDS; pid++)
		processes.seen[pid] = processes.lives[pid];
	mote_network_push(f->network, &f->engine.base, 100, f->now, true);
	while (f->engine.n) {
		struct mote_sqe sqe = fake_take(&f->engine, 0);
		uint32_t file = mote_tag_index(sqe.tag) - 100;

		if (file == 0 && sqe.op == MOTE_OP_READ) {
			reap_table(f, MOTE_SLOTS_SOCKETS);
			reap_table(f, MOTE_SLOTS_FLOWS);
		}
		files |= 1u << file;
		mote_network_complete(f->network, file, mote_tag_generation(sqe.tag), 0);
	}
	mote_network_sample(f->network, processes_sampled ? f->now : 0, f->now);
	return files;
}

/* A client of one stream: rows by key, with the numbers of their counters. */

#define ROW_FIELDS 32

struct row {
	uint64_t key[3];
	uint64_t value[ROW_FIELDS]; /* texts and nil: 0 */
	char text[ROW_FIELDS][48];
	bool nil[ROW_FIELDS];
	bool there;
};

struct client {
	const struct mote_source_ops *ops;
	enum mote_stream_id stream;
	unsigned int nkeys;
	struct row rows[KEYS];
	unsigned int n, last_rows; /* of the newest update */
	uint64_t totals[ROW_FIELDS];
	uint64_t since;
};

static inline unsigned int keys_of(enum mote_stream_id stream)
{
	unsigned int n = 0;

	while (mote_streams[stream].fields[n].kind == MOTE_KEY)
		n++;
	return n;
}

static inline void client_open(struct client *c, enum mote_stream_id stream)
{
	memset(c, 0, sizeof(*c));
	c->stream = stream;
	c->nkeys = keys_of(stream);
	c->ops = stream == MOTE_STREAM_SOCKET ? &mote_socket_source
		 : stream == MOTE_STREAM_FLOW ? &mote_flow_source
					      : &mote_process_network_source;
}

/* Room for more: what is gone. */
static inline void client_compact(struct client *c)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < c->n; i++) {
		if (c->rows[i].there)
			c->rows[kept++] = c->rows[i];
	}
	memset(&c->rows[kept], 0, (c->n - kept) * sizeof(c->rows[0]));
	c->n = kept;
}

static inline struct row *client_row(struct client *c, const uint64_t key[3], bool make)
{
	unsigned int i = 0;

	if (c->n == KEYS)
		client_compact(c);
	while (i < c->n && memcmp(c->rows[i].key, key, sizeof(c->rows[i].key)) != 0)
		i++;
	if (i == c->n && make) {
		assert_true(c->n < KEYS);
		memcpy(c->rows[c->n++].key, key, sizeof(c->rows[i].key));
	}
	return i < c->n ? &c->rows[i] : NULL;
}

static inline uint64_t number_of(const msgpack_object *o)
{
	return o->type == MSGPACK_OBJECT_POSITIVE_INTEGER   ? o->via.u64
	       : o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ? (uint64_t)o->via.i64
							    : 0;
}

static inline void take_row(struct client *c, const msgpack_object_array *array)
{
	const struct mote_stream *stream = &mote_streams[c->stream];
	uint64_t key[3] = { 0 };
	struct row *row;

	assert_int_equal(array->size, stream->nfields);
	for (unsigned int i = 0; i < c->nkeys; i++)
		key[i] = number_of(&array->ptr[i]);
	row = client_row(c, key, true);
	if (!row->there) /* new, or there again, and begins anew */
		memset(row->value, 0, sizeof(row->value));
	row->there = true;
	for (unsigned int i = 0; i < array->size; i++) {
		const msgpack_object *o = &array->ptr[i];

		row->nil[i] = o->type == MSGPACK_OBJECT_NIL;
		if (stream->fields[i].type == MOTE_STR && !row->nil[i]) {
			assert_int_equal(o->type, MSGPACK_OBJECT_STR);
			snprintf(row->text[i], sizeof(row->text[i]), "%.*s", (int)o->via.str.size,
				 o->via.str.ptr);
			continue;
		}
		/* Those of a flow or a process that was taken to have ended begin anew. */
		if (c->stream == MOTE_STREAM_SOCKET && stream->fields[i].kind == MOTE_COUNTER)
			assert_true(number_of(o) >= row->value[i]);
		row->value[i] = number_of(o);
	}
}

static inline void take_totals(struct client *c, const msgpack_object_array *array)
{
	assert_int_equal(array->size, mote_streams[c->stream].nfields);
	for (unsigned int i = 0; i < array->size; i++) {
		bool counter = mote_streams[c->stream].fields[i].kind == MOTE_COUNTER;

		assert_int_equal(array->ptr[i].type,
				 counter ? MSGPACK_OBJECT_POSITIVE_INTEGER : MSGPACK_OBJECT_NIL);
		c->totals[i] = number_of(&array->ptr[i]);
	}
}

typedef bool (*pack_next)(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk);

/* Each call is made twice with the same cursor, as the encoder does when a row does not fit. */
static inline bool next_packed(pack_next next, struct fixture *f, uint64_t since, uint64_t *cursor,
			       msgpack_unpacked *unpacked)
{
	static char buf[4096];
	struct mote_writer writer;
	msgpack_packer pk;
	uint64_t from = *cursor;
	bool more;

	mote_writer_init(&writer, &pk, buf, sizeof(buf));
	more = next(f->network, since, cursor, &pk);
	*cursor = from;
	mote_writer_init(&writer, &pk, buf, sizeof(buf));
	assert_int_equal(next(f->network, since, cursor, &pk), more);
	if (!more)
		return false;
	assert_false(writer.full);
	assert_int_equal(msgpack_unpack_next(unpacked, buf, writer.len, NULL),
			 MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(unpacked->data.type, MSGPACK_OBJECT_ARRAY);
	return true;
}

static inline void take_ends(struct client *c, struct fixture *f, msgpack_unpacked *unpacked)
{
	uint64_t cursor = 0;

	while (next_packed(c->ops->ended, f, c->since, &cursor, unpacked)) {
		uint64_t key[3] = { 0 };
		struct row *row;

		assert_int_equal(unpacked->data.via.array.size, c->nkeys);
		for (unsigned int i = 0; i < c->nkeys; i++)
			key[i] = number_of(&unpacked->data.via.array.ptr[i]);
		row = client_row(c, key, false);
		assert_non_null(row);
		assert_true(row->there); /* its last row came with its end */
		row->there = false;
	}
}

/* What an update since the one before gives; a keyframe if keys were forgotten, or it is the first.
 */
static inline void update(struct client *c, struct fixture *f)
{
	static char buf[4096];
	struct mote_writer writer;
	msgpack_packer pk;
	msgpack_unpacked unpacked;
	uint64_t cursor = 0;
	bool key = !c->since || c->ops->forgot(f->network, c->since);

	if (key)
		c->since = 0;
	for (unsigned int i = 0; key && i < c->n; i++)
		c->rows[i].there = false;
	msgpack_unpacked_init(&unpacked);
	for (c->last_rows = 0; next_packed(c->ops->row, f, c->since, &cursor, &unpacked);
	     c->last_rows++)
		take_row(c, &unpacked.data.via.array);
	if (!key)
		take_ends(c, f, &unpacked);
	mote_writer_init(&writer, &pk, buf, sizeof(buf));
	c->ops->totals(f->network, &pk);
	assert_int_equal(msgpack_unpack_next(&unpacked, buf, writer.len, NULL),
			 MSGPACK_UNPACK_SUCCESS);
	take_totals(c, &unpacked.data.via.array);
	msgpack_unpacked_destroy(&unpacked);
	c->since = f->now;
}

/* Living rows and totals. */
static inline uint64_t sum(const struct client *c, unsigned int field)
{
	uint64_t all = c->totals[field];

	for (unsigned int i = 0; i < c->n; i++)
		all += c->rows[i].there ? c->rows[i].value[field] : 0;
	return all;
}

static inline unsigned int rows_there(const struct client *c)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->n; i++)
		n += c->rows[i].there;
	return n;
}

#endif
