// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Open accounts, see accounts.h: a fixed array with a hash by pid, the free ones, and a list in the
 * order of opening.
 */
#include "accounts.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct mote_accounts {
	unsigned int max, used, peak;
	uint32_t mask;
	uint32_t free, oldest, newest;
	uint64_t dropped, lost;
	uint32_t *heads;
	struct mote_account *account;
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
	for (uint32_t i = 0; i < max; i++)
		accounts->account[i].next = i + 1 < max ? i + 1 : NONE;
	accounts->free = 0;
	accounts->oldest = accounts->newest = NONE;
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

/* The list in the order of opening: its ends' links are the list's own. */
static uint32_t *newer_of(struct mote_accounts *accounts, uint32_t i)
{
	return i == NONE ? &accounts->oldest : &accounts->account[i].newer;
}

static uint32_t *older_of(struct mote_accounts *accounts, uint32_t i)
{
	return i == NONE ? &accounts->newest : &accounts->account[i].older;
}

void mote_accounts_close(struct mote_accounts *accounts, struct mote_account *account)
{
	uint32_t i = (uint32_t)(account - accounts->account);
	uint32_t *link = &accounts->heads[account->pid & accounts->mask];

	while (*link != i)
		link = &accounts->account[*link].next;
	*link = account->next;
	*newer_of(accounts, account->older) = account->newer;
	*older_of(accounts, account->newer) = account->older;
	account->next = accounts->free;
	accounts->free = i;
	accounts->used--;
}

static void close_oldest(struct mote_accounts *accounts)
{
	struct mote_account *oldest = &accounts->account[accounts->oldest];

	accounts->lost = oldest->opened;
	accounts->dropped++;
	mote_accounts_close(accounts, oldest);
}

struct mote_account *mote_accounts_open(struct mote_accounts *accounts, uint32_t pid,
					uint64_t start, uint64_t now)
{
	uint32_t *head = &accounts->heads[pid & accounts->mask], i;
	struct mote_account *account;

	if (accounts->free == NONE)
		close_oldest(accounts);
	i = accounts->free;
	account = &accounts->account[i];
	accounts->free = account->next;
	*account = (struct mote_account){ .pid = pid,
					  .start = start,
					  .opened = now,
					  .next = *head,
					  .older = accounts->newest,
					  .newer = NONE };
	*head = i;
	*newer_of(accounts, accounts->newest) = i;
	accounts->newest = i;
	if (++accounts->used > accounts->peak)
		accounts->peak = accounts->used;
	return account;
}

uint64_t mote_accounts_lost(const struct mote_accounts *accounts)
{
	return accounts->lost;
}

void mote_accounts_fill(const struct mote_accounts *accounts, struct mote_fill *fill)
{
	*fill = (struct mote_fill){ .size = accounts->max,
				    .fill = accounts->used,
				    .peak = accounts->peak,
				    .dropped = accounts->dropped };
}
