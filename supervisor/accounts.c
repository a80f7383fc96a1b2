// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Open accounts, see accounts.h: a fixed array, a hash by pid, and the order of opening, which is
 * the array's own as it is used as a circle.
 */
#include "accounts.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct mote_accounts {
	unsigned int max, next, used, peak;
	uint32_t mask;
	uint64_t dropped;
	uint32_t *heads;
	struct mote_account *account; /* pid 0: not in use */
};

struct mote_accounts *mote_accounts_new(unsigned int max)
{
	struct mote_accounts *accounts = calloc(1, sizeof(*accounts));
	uint32_t size = 64;

	if (!accounts)
		return NULL;
	while (size < max)
		size *= 2;
	accounts->max = max;
	accounts->mask = size - 1;
	accounts->heads = malloc(size * sizeof(*accounts->heads));
	accounts->account = malloc(max * sizeof(*accounts->account));
	if (!accounts->heads || !accounts->account) {
		mote_accounts_free(accounts);
		return NULL;
	}
	memset(accounts->heads, 0xff, size * sizeof(*accounts->heads));
	memset(accounts->account, 0, max * sizeof(*accounts->account));
	return accounts;
}

void mote_accounts_free(struct mote_accounts *accounts)
{
	if (!accounts)
		return;
	free(accounts->heads);
	free(accounts->account);
	free(accounts);
}

struct mote_account *mote_accounts_find(struct mote_accounts *accounts, uint32_t pid,
					uint64_t start)
{
	for (uint32_t i = accounts->heads[pid & accounts->mask]; i != NONE;
	     i = accounts->account[i].next) {
		if (accounts->account[i].pid == pid && accounts->account[i].start == start)
			return &accounts->account[i];
	}
	return NULL;
}

void mote_accounts_close(struct mote_accounts *accounts, struct mote_account *account)
{
	uint32_t i = (uint32_t)(account - accounts->account);
	uint32_t *link = &accounts->heads[account->pid & accounts->mask];

	while (*link != i)
		link = &accounts->account[*link].next;
	*link = account->next;
	account->pid = 0;
	accounts->used--;
}

struct mote_account *mote_accounts_open(struct mote_accounts *accounts, uint32_t pid,
					uint64_t start)
{
	uint32_t i = accounts->next, *head = &accounts->heads[pid & accounts->mask];
	struct mote_account *account = &accounts->account[i];

	accounts->next = (i + 1) % accounts->max;
	if (account->pid) {
		mote_accounts_close(accounts, account);
		accounts->dropped++;
	}
	memset(account, 0, sizeof(*account));
	account->pid = pid;
	account->start = start;
	account->next = *head;
	*head = i;
	if (++accounts->used > accounts->peak)
		accounts->peak = accounts->used;
	return account;
}

void mote_accounts_fill(const struct mote_accounts *accounts, struct mote_fill *fill)
{
	*fill = (struct mote_fill){ .size = accounts->max,
				    .fill = accounts->used,
				    .peak = accounts->peak,
				    .dropped = accounts->dropped };
}
