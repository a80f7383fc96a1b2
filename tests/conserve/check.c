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

/* Socket rows by their inode. */
struct sockets {
	size_t slots;
	const struct row **row;
};

static struct sockets index_sockets(const struct rows *rows, bool ended)
{
	struct sockets index = { .slots = 4 * (ended ? rows->n : rows->live) + 64 };

	index.row = calloc(index.slots, sizeof(*index.row));
	for (size_t i = 0; i < rows->n; i++) {
		uint64_t inode = rows_value(rows, &rows->row[i], "inode");
		size_t at = inode % index.slots;

		if ((!rows->row[i].live && !ended) || !inode)
			continue;
		while (index.row[at])
			at = (at + 1) % index.slots;
		index.row[at] = &rows->row[i];
	}
	return index;
}

static const struct row *socket_row(const struct rows *rows, const struct sockets *index,
				    uint64_t inode)
{
	for (size_t at = inode % index->slots; index->row[at]; at = (at + 1) % index->slots)
		if (rows_value(rows, index->row[at], "inode") == inode)
			return index->row[at];
	return NULL;
}

static bool check_truth(struct check *check, const struct account *a, const struct rows *rows,
			const struct row *row)
{
	struct sums unseen = ledger_unattributed(a->inode);
	bool nil = rows_nil(rows, row, "unattributed_sent") ||
		   rows_nil(rows, row, "unattributed_received");

	if (!check->reconcile || !a->tcp)
		return !differs(check, a, "unattributed bytes that should be nil", 1, nil);
	return !differs(check, a, "unattributed bytes that are nil", 0, nil) &&
	       !differs(check, a, "unattributed bytes sent", unseen.sent,
			rows_value(rows, row, "unattributed_sent")) &&
	       !differs(check, a, "unattributed bytes received", unseen.received,
			rows_value(rows, row, "unattributed_received"));
}

static bool check_socket(struct check *check, const struct account *a, const struct rows *rows,
			 const struct row *row)
{
	struct sums want = ledger_socket(a->inode);

	if (!row)
		return !want.sent && !want.received;
	return !differs(check, a, "bytes sent by the socket", want.sent,
			rows_value(rows, row, "bytes_sent")) &&
	       !differs(check, a, "bytes received by the socket", want.received,
			rows_value(rows, row, "bytes_received")) &&
	       check_truth(check, a, rows, row);
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
	return !differs(check, a, "bytes sent by the process on the socket", want.sent, got.sent) &&
	       !differs(check, a, "bytes received by the process on the socket", want.received,
			got.received);
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
	return !differs(check, a, "bytes sent by the process", want.sent, got.sent) &&
	       !differs(check, a, "bytes received by the process", want.received, got.received);
}

static bool check_account(struct check *check, const struct account *a, const struct rows *rows,
			  const struct sockets *index)
{
	const struct row *row = socket_row(&rows[WATCH_SOCKET], index, a->inode);
	bool lives = process_start(a->pid) == a->start;
	bool ok = true;

	if (a->inode && !check->sums_only) {
		ok = check_socket(check, a, &rows[WATCH_SOCKET], row);
		if (!row && !ok)
			differs(check, a, "rows of the socket", 1, 0);
		if (row && row->live && lives && a->open)
			ok &= check_flow(check, a, &rows[WATCH_FLOW],
					 row->value[0]); /* the key, the socket's id */
	}
	/* One of a small table may have its bytes under `other`. */
	if (lives && !check->sums_only)
		ok &= check_process(check, a, &rows[WATCH_PROCESS]);
	return ok;
}

bool check_accounts(struct check *check, const struct rows *rows)
{
	struct sockets index = index_sockets(&rows[WATCH_SOCKET], true);
	bool ok = true;

	for (unsigned int i = check->first; i < ledger_accounts() && (ok || check->explain); i++)
		ok &= check_account(check, ledger_account(i), rows, &index);
	free(index.row);
	return ok;
}

static struct sums pair_of(const struct rows *rows, const struct row *row, const char *sent,
			   const char *received)
{
	return (struct sums){ rows_value(rows, row, sent), rows_value(rows, row, received) };
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

static struct sums less(struct sums a, struct sums b)
{
	return (struct sums){ a.sent - b.sent, a.received - b.received };
}

static struct sums plus(struct sums a, struct sums b)
{
	return (struct sums){ a.sent + b.sent, a.received + b.received };
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

		if (check->alone && check->reconcile && i == TCP)
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

		if (a->inode && socket_row(&rows[WATCH_SOCKET], &index, a->inode))
			ok = !differs(check, a, "rows of a socket that is over", 0, 1);
	}
	free(index.row);
	return ok;
}
