// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * See check.h. A socket is known by its inode, a process by its pid and start, a flow by both.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { TCP, UDP };
enum { MOST_SAID = 12 };

static bool differs(struct check *check, const struct account *a, const char *what, uint64_t want,
		    uint64_t got)
{
	if (want == got)
		return false;
	if (check->explain && check->said++ < MOST_SAID)
		fprintf(check->explain,
			"# %s: pid %d, %s socket %" PRIu64 " of port %u: %s %" PRIu64
			", expected %" PRIu64 " (%+" PRId64 ")\n",
			a->what, a->pid, a->tcp ? "TCP" : "UDP", a->inode, a->local_port, what, got,
			want, (int64_t)(got - want));
	return true;
}

/*
 * Sockets by their inode. A socket that is connected again after a disconnect begins another row:
 * the rows of an inode are added up.
 */
struct socket {
	uint64_t inode, id; /* of the last row */
	unsigned int rows, live, nil;
	struct sums moved, unattributed;
};

struct sockets {
	size_t slots;
	struct socket *socket;
};

static struct socket *socket_at(const struct sockets *index, uint64_t inode)
{
	size_t at = inode % index->slots;

	while (index->socket[at].inode && index->socket[at].inode != inode)
		at = (at + 1) % index->slots;
	return &index->socket[at];
}

static struct sums pair_of(const struct rows *rows, const struct row *row, const char *sent,
			   const char *received)
{
	return (struct sums){ rows_value(rows, row, sent), rows_value(rows, row, received) };
}

static struct sums less(struct sums a, struct sums b)
{
	return (struct sums){ a.sent - b.sent, a.received - b.received };
}

static struct sums plus(struct sums a, struct sums b)
{
	return (struct sums){ a.sent + b.sent, a.received + b.received };
}

static void add_row(struct socket *socket, const struct rows *rows, const struct row *row)
{
	socket->inode = rows_value(rows, row, "inode");
	socket->id = row->value[0];
	socket->rows++;
	socket->live += row->live;
	socket->nil += rows_nil(rows, row, "unattributed_sent") ||
		       rows_nil(rows, row, "unattributed_received");
	socket->moved = plus(socket->moved, pair_of(rows, row, "bytes_sent", "bytes_received"));
	socket->unattributed = plus(socket->unattributed, pair_of(rows, row, "unattributed_sent",
								  "unattributed_received"));
}

/* `ended`: those that are over as well, by their last rows. */
static struct sockets index_sockets(const struct rows *rows, bool ended)
{
	struct sockets index = { .slots = 4 * (ended ? rows->n : rows->live) + 64 };

	index.socket = calloc(index.slots, sizeof(*index.socket));
	for (size_t i = 0; i < rows->n; i++) {
		uint64_t inode = rows_value(rows, &rows->row[i], "inode");

		if (inode && (rows->row[i].live || ended))
			add_row(socket_at(&index, inode), rows, &rows->row[i]);
	}
	return index;
}

static bool check_truth(struct check *check, const struct account *a, const struct socket *socket)
{
	struct sums unseen = ledger_unattributed(a->inode);

	if (!check->reconcile || !a->tcp)
		return !differs(check, a, "rows without unattributed bytes", socket->rows,
				socket->nil);
	/* One that was never connected has none. */
	if (!socket->moved.sent && !socket->moved.received && socket->nil)
		return true;
	/* Nothing tells moted at once of what it cannot see: it looks every 10 s, and at the end.
	 */
	if (!check->strict && socket->unattributed.received < unseen.received)
		unseen.received = socket->unattributed.received;
	return !differs(check, a, "rows without unattributed bytes", 0, socket->nil) &&
	       !differs(check, a, "unattributed bytes sent", unseen.sent,
			socket->unattributed.sent) &&
	       !differs(check, a, "unattributed bytes received", unseen.received,
			socket->unattributed.received);
}

static bool check_socket(struct check *check, const struct account *a, const struct socket *socket)
{
	struct sums want = ledger_socket(a->inode);

	if (!socket->rows)
		return (!want.sent && !want.received) ||
		       !differs(check, a, "rows of the socket", 1, 0);
	return !differs(check, a, "bytes sent by the socket", want.sent, socket->moved.sent) &&
	       !differs(check, a, "bytes received by the socket", want.received,
			socket->moved.received) &&
	       check_truth(check, a, socket);
}

/* What there is of a socket one of whose flows is not as it should be. */
static void say_flows(struct check *check, const struct account *a, const struct rows *rows,
		      uint64_t socket)
{
	for (size_t i = 0; check->explain && check->said < MOST_SAID && i < rows->n; i++)
		if (rows->row[i].value[0] == socket)
			fprintf(check->explain,
				"# socket %" PRIu64 " has a flow of pid %" PRIu64 ", start %" PRIu64
				" (the process %" PRIu64 "), %s, %" PRIu64 " sent, %" PRIu64
				" received\n",
				socket, rows->row[i].value[1], rows->row[i].value[2], a->start,
				rows->row[i].live ? "live" : "ended",
				rows_value(rows, &rows->row[i], "bytes_sent"),
				rows_value(rows, &rows->row[i], "bytes_received"));
}

static bool check_flow(struct check *check, const struct account *a, const struct rows *rows,
		       uint64_t socket)
{
	const uint64_t key[] = { socket, (uint64_t)a->pid, a->start };
	const struct row *row = rows_find(rows, key);
	struct sums want = ledger_expected(a);
	struct sums got = { 0, 0 };

	if (row && row->live)
		got = (struct sums){ rows_value(rows, row, "bytes_sent"),
				     rows_value(rows, row, "bytes_received") };
	if (!differs(check, a, "bytes sent by the process on the socket", want.sent, got.sent) &&
	    !differs(check, a, "bytes received by the process on the socket", want.received,
		     got.received))
		return true;
	say_flows(check, a, rows, socket);
	return false;
}

/* What there is of a process whose row is not as it should be. */
static void say_rows(struct check *check, const struct account *a, const struct rows *rows)
{
	for (size_t i = 0; check->explain && check->said < MOST_SAID && i < rows->n; i++)
		if (rows->row[i].value[0] == (uint64_t)a->pid)
			fprintf(check->explain,
				"# pid %d has a row, start %" PRIu64 " (the process %" PRIu64
				"), %s\n",
				a->pid, rows->row[i].value[1], a->start,
				rows->row[i].live ? "live" : "ended");
}

static bool check_process(struct check *check, const struct account *a, const struct rows *rows)
{
	const uint64_t key[] = { (uint64_t)a->pid, a->start };
	const struct row *row = rows_find(rows, key);
	struct sums want = ledger_sums(0, a->pid, a->tcp), got = { 0, 0 };

	if (row && row->live && a->tcp)
		got = (struct sums){ rows_value(rows, row, "tcp_bytes_sent"),
				     rows_value(rows, row, "tcp_bytes_received") };
	if (row && row->live && !a->tcp)
		got = (struct sums){ rows_value(rows, row, "udp_bytes_sent"),
				     rows_value(rows, row, "udp_bytes_received") };
	if (!differs(check, a, "bytes sent by the process", want.sent, got.sent) &&
	    !differs(check, a, "bytes received by the process", want.received, got.received))
		return true;
	say_rows(check, a, rows);
	return false;
}

static bool check_account(struct check *check, const struct account *a, const struct rows *rows,
			  const struct sockets *index)
{
	const struct socket *socket = socket_at(index, a->inode);
	bool lives = process_start(a->pid) == a->start;
	bool ok = true;

	if (check->sums_only)
		return true;
	if (a->inode)
		ok = check_socket(check, a, socket);
	if (a->inode && socket->rows == 1 && socket->live && lives && a->open)
		ok &= check_flow(check, a, &rows[WATCH_FLOW], socket->id);
	return lives ? ok & check_process(check, a, &rows[WATCH_PROCESS]) : ok;
}

bool check_accounts(struct check *check, const struct rows *rows)
{
	struct sockets index = index_sockets(&rows[WATCH_SOCKET], true);
	bool ok = true;

	for (unsigned int i = check->first; i < ledger_accounts() && (ok || check->explain); i++)
		ok &= check_account(check, ledger_account(i), rows, &index);
	free(index.socket);
	return ok;
}

static struct sums sum_of(const struct rows *rows, const char *sent, const char *received)
{
	return (struct sums){ rows_sum(rows, sent), rows_sum(rows, received) };
}

void check_read_totals(const struct rows *rows, struct totals *totals)
{
	const struct rows *network = &rows[WATCH_NETWORK], *process = &rows[WATCH_PROCESS];
	static const char *const names[] = { "tcp", "udp" };

	memset(totals, 0, sizeof(*totals));
	for (int i = TCP; i <= UDP; i++) {
		uint64_t key = rows_text(names[i], 3);
		const struct row *row = rows_find(network, &key);

		if (!row)
			continue;
		totals->network[i] = pair_of(network, row, "bytes_sent", "bytes_received");
		totals->other[i] = pair_of(network, row, "other_sent", "other_received");
		totals->unattributed[i] =
			pair_of(network, row, "unattributed_sent", "unattributed_received");
	}
	totals->process[TCP] = sum_of(process, "tcp_bytes_sent", "tcp_bytes_received");
	totals->process[UDP] = sum_of(process, "udp_bytes_sent", "udp_bytes_received");
	totals->flow[TCP] = sum_of(&rows[WATCH_FLOW], "bytes_sent", "bytes_received");
	totals->socket[TCP] = sum_of(&rows[WATCH_SOCKET], "bytes_sent", "bytes_received");
}

static bool total_differs(struct check *check, const char *what, uint64_t want, uint64_t got)
{
	if (want == got)
		return false;
	if (check->explain)
		fprintf(check->explain, "# %s: %" PRIu64 ", expected %" PRIu64 " (%+" PRId64 ")\n",
			what, got, want, (int64_t)(got - want));
	return true;
}

static bool sums_differ(struct check *check, const char *what, struct sums want, struct sums got)
{
	char text[96];
	bool differ;

	snprintf(text, sizeof(text), "%s sent", what);
	differ = total_differs(check, text, want.sent, got.sent);
	snprintf(text, sizeof(text), "%s received", what);
	return total_differs(check, text, want.received, got.received) || differ;
}

/* What the protocol's total has is what processes have and what found no room. */
static bool totals_fit(struct check *check, const struct totals *now)
{
	struct sums both = { 0, 0 };
	bool ok = true;

	for (int i = TCP; i <= UDP; i++) {
		struct sums whole = less(now->network[i], now->other[i]);

		ok &= !sums_differ(check,
				   i ? "UDP bytes of all processes" : "TCP bytes of all processes",
				   whole, now->process[i]);
		both = plus(both, whole);
	}
	ok &= !sums_differ(check, "bytes of all flows", both, now->flow[TCP]);
	if (!check->sums_only)
		ok &= !sums_differ(check, "bytes of all sockets", both, now->socket[TCP]);
	return ok;
}

bool check_totals(struct check *check, const struct rows *rows, const struct totals *before)
{
	struct totals now;
	bool ok;

	check_read_totals(rows, &now);
	ok = totals_fit(check, &now);
	for (int i = TCP; i <= UDP; i++) {
		struct sums grown = less(now.network[i], before->network[i]);
		struct sums want = ledger_sums(0, 0, i == TCP);

		/* A socket whose flows found no room has them as unattributed. */
		if (check->alone && check->reconcile && !check->sums_only && i == TCP)
			ok &= !sums_differ(check, "TCP bytes unattributed", ledger_unattributed(0),
					   less(now.unattributed[i], before->unattributed[i]));
		if (!check->alone && grown.sent >= want.sent && grown.received >= want.received)
			continue;
		ok &= !sums_differ(check, i ? "UDP bytes in total" : "TCP bytes in total", want,
				   grown);
	}
	return ok;
}

bool check_gone(struct check *check, const struct rows *rows)
{
	struct sockets index = index_sockets(&rows[WATCH_SOCKET], false);
	bool ok = true;

	for (unsigned int i = 0; i < ledger_accounts() && ok; i++) {
		const struct account *a = ledger_account(i);

		if (a->inode && socket_at(&index, a->inode)->live)
			ok = !differs(check, a, "rows of a socket that is over", 0, 1);
	}
	free(index.socket);
	return ok;
}
