// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The ledger: an array in shared memory, accounts are taken by one atomic add and never given back.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger.h"

static struct {
	unsigned int max;
	const char *what;
	bool less_unseen;
	struct shared {
		atomic_uint used;
		_Atomic uint64_t made[2];
		struct account accounts[];
	} * shared;
} ledger;

int ledger_create(unsigned int accounts)
{
	void *memory = mmap(NULL, sizeof(struct shared) + accounts * sizeof(struct account),
			    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -1;
	ledger.shared = memory;
	ledger.max = accounts;
	return 0;
}

void ledger_case(const char *what)
{
	ledger.what = what;
}

uint64_t process_start(pid_t pid)
{
	char path[64], text[1024];
	unsigned long long start = 0;
	FILE *file;
	size_t n;
	char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = 0;
	at = strrchr(text, ')');
	/* field 22, counted from the name, which is field 2 */
	for (int field = 2; at && field < 22; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (at)
		start = strtoull(at, NULL, 10);
	return start;
}

static void die(const char *what)
{
	perror(what);
	_exit(3);
}

static uint64_t inode_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		die("conserve: fstat of a socket");
	return st.st_ino;
}

static bool is_tcp(int fd)
{
	int protocol = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &(socklen_t){ sizeof(protocol) }))
		die("conserve: SO_PROTOCOL");
	return protocol == IPPROTO_TCP;
}

static uint16_t port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at;
	socklen_t len = sizeof(at);

	memset(&at, 0, sizeof(at));
	if (getsockname(fd, &at.any, &len))
		return 0;
	/* the port is at the same place in both */
	return ntohs(at.v4.sin_port);
}

static struct account *find(pid_t pid, uint64_t inode, bool tcp)
{
	unsigned int used = ledger_accounts();

	for (unsigned int i = used; i-- > 0;) {
		struct account *a = &ledger.shared->accounts[i];

		if (a->pid == pid && a->inode == inode && a->tcp == tcp && a->open)
			return a;
	}
	return NULL;
}

static struct account *make(uint64_t inode, bool tcp, uint16_t port)
{
	unsigned int i = atomic_fetch_add(&ledger.shared->used, 1);
	struct account *a = &ledger.shared->accounts[i];

	if (i >= ledger.max) {
		fprintf(stderr, "conserve: more than %u accounts\n", ledger.max);
		_exit(3);
	}
	a->start = process_start(getpid());
	a->inode = inode;
	a->tcp = tcp;
	a->local_port = port;
	a->what = ledger.what;
	a->open = true;
	a->pid = getpid();
	return a;
}

struct account *ledger_open(int fd)
{
	uint64_t inode = inode_of(fd);
	bool tcp = is_tcp(fd);
	struct account *a = find(getpid(), inode, tcp);

	return a ? a : make(inode, tcp, port_of(fd));
}

struct account *ledger_rest(bool tcp)
{
	struct account *a = find(getpid(), 0, tcp);

	return a ? a : make(0, tcp, 0);
}

void ledger_forget(int fd)
{
	uint64_t inode = inode_of(fd);

	for (unsigned int i = 0; i < ledger_accounts(); i++)
		if (ledger.shared->accounts[i].inode == inode)
			ledger.shared->accounts[i].open = false;
}

void ledger_close(int fd)
{
	ledger_forget(fd);
	close(fd);
}

ssize_t ledger_sent(struct account *account, ssize_t n)
{
	if (n > 0) {
		account->sent += (uint64_t)n;
		account->sent_calls++;
	}
	return n;
}

ssize_t ledger_received(struct account *account, ssize_t n)
{
	if (n > 0) {
		account->received += (uint64_t)n;
		account->received_calls++;
	}
	return n;
}

ssize_t ledger_received_unseen(struct account *account, ssize_t n)
{
	if (n > 0)
		account->unseen_received += (uint64_t)n;
	return ledger_received(account, n);
}

void ledger_make(bool tcp, unsigned int n)
{
	ledger.shared->made[tcp] += n;
}

uint64_t ledger_made(bool tcp)
{
	return ledger.shared->made[tcp];
}

unsigned int ledger_accounts(void)
{
	unsigned int used = ledger.shared->used;

	return used < ledger.max ? used : ledger.max;
}

struct account *ledger_account(unsigned int i)
{
	return &ledger.shared->accounts[i];
}

void ledger_expect_unseen(bool seen)
{
	ledger.less_unseen = !seen;
}

static void add(struct sums *sums, struct sums more)
{
	sums->sent += more.sent;
	sums->received += more.received;
}

static struct sums unseen_of(const struct account *a)
{
	return ledger.less_unseen ? (struct sums){ a->unseen_sent, a->unseen_received }
				  : (struct sums){ 0, 0 };
}

struct sums ledger_expected(const struct account *a)
{
	struct sums unseen = unseen_of(a);

	return (struct sums){ a->sent - unseen.sent, a->received - unseen.received };
}

struct sums ledger_sums(unsigned int first, pid_t pid, bool tcp)
{
	struct sums sums = { 0, 0 };

	for (unsigned int i = first; i < ledger_accounts(); i++) {
		const struct account *a = ledger_account(i);

		if (a->tcp == tcp && (!pid || a->pid == pid))
			add(&sums, ledger_expected(a));
	}
	return sums;
}

struct sums ledger_socket(uint64_t inode)
{
	struct sums sums = { 0, 0 };

	for (unsigned int i = 0; i < ledger_accounts(); i++)
		if (ledger_account(i)->inode == inode)
			add(&sums, ledger_expected(ledger_account(i)));
	return sums;
}

struct sums ledger_unattributed(uint64_t inode)
{
	struct sums sums = { 0, 0 };

	for (unsigned int i = 0; i < ledger_accounts(); i++)
		if (!inode || ledger_account(i)->inode == inode)
			add(&sums, unseen_of(ledger_account(i)));
	return sums;
}
