// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * [filters]: what gets no row. BPF does not compare text: it gives a new access a slot, with its
 * path and its process's command; the verdict is taken here, written where BPF looks before it
 * gives slots, and the slot is given back. What it had by then goes to `other`, as what follows.
 */
#include <string.h>

#include "files_impl.h"
#include "task.h"

static void split(struct files_words *words, const char *text)
{
	for (;;) {
		size_t len;

		text += strspn(text, " \t");
		len = strcspn(text, " \t");
		if (!len || words->n == FILTER_WORDS)
			return;
		words->word[words->n] = text;
		words->len[words->n] = (uint16_t)len;
		words->n++;
		text += len;
	}
}

void mote_files_filter_open(struct files_filter *filter, const struct mote_options *options)
{
	split(&filter->processes, options->filters_exclude_processes);
	split(&filter->excluded, options->filters_exclude_paths);
	split(&filter->included, options->filters_include_paths);
	filter->any = filter->processes.n || filter->excluded.n || filter->included.n;
	for (unsigned int i = 0; i < filter->processes.n; i++) {
		if (*filter->processes.word[i] == '/')
			filter->by_path = true;
		else if (filter->processes.len[i] >= MOTE_COMM_LEN) /* as the kernel keeps it */
			filter->processes.len[i] = MOTE_COMM_LEN - 1;
	}
}

static bool is_one_of(const struct files_words *words, const char *text, size_t len)
{
	for (unsigned int i = 0; i < words->n; i++) {
		if (words->len[i] == len && !memcmp(words->word[i], text, len))
			return true;
	}
	return false;
}

static bool begins_with(const struct files_words *words, const char *text, size_t len)
{
	for (unsigned int i = 0; i < words->n; i++) {
		if (words->len[i] <= len && !memcmp(words->word[i], text, words->len[i]))
			return true;
	}
	return false;
}

unsigned int mote_files_path(const struct mote_path *path, char *text, unsigned int size)
{
	_Static_assert(MOTE_PATH_MAX == MOTE_EXE_MAX, "both are kept the same way");
	return mote_task_exe(path->names, path->len, path->flags & MOTE_PATH_CUT ? MOTE_EXE_CUT : 0,
			     text, size);
}

static bool path_is_out(const struct files_filter *filter, const struct mote_path *path)
{
	char text[2 * MOTE_PATH_MAX];
	size_t len;

	if (!filter->excluded.n && !filter->included.n)
		return false;
	len = mote_files_path(path, text, sizeof(text));
	return begins_with(&filter->excluded, text, len) ||
	       (filter->included.n && !begins_with(&filter->included, text, len));
}

static void write_down(const struct mote_files *files, uint64_t key)
{
	__atomic_store_n(&files->maps->verdicts->key[MOTE_VERDICT_AT(key)], key, __ATOMIC_RELAXED);
}

static bool process_is_out(struct mote_files *files, struct mote_access *a)
{
	const struct files_filter *filter = &files->filter;
	char exe[MOTE_EXE_MAX];
	uint32_t len = 0;

	if (is_one_of(&filter->processes, a->comm, strnlen(a->comm, sizeof(a->comm))))
		return true;
	if (!filter->by_path || !a->tgid)
		return false;
	if (files->process)
		len = mote_process_exe(files->process, a->tgid, a->start, exe);
	if (!len)
		a->flags_own |= OWN_ASK; /* it may be known next time */
	return len && is_one_of(&filter->processes, exe, len);
}

void mote_files_judge(struct mote_files *files, uint32_t slot)
{
	struct mote_access *a = &files->maps->accesses[slot];

	a->flags_own &= ~(uint32_t)OWN_ASK;
	if (process_is_out(files, a))
		write_down(files, mote_process_key(a->tgid, a->start));
	else if (path_is_out(&files->filter, &files->maps->paths[slot]))
		write_down(files, mote_access_key(0, a->dev, a->ino, a->generation));
	else
		return;
	if (!a->changed) /* else it has a row by now, which ends like any other */
		a->flags_own |= OWN_EXCLUDED;
	mote_slots_end(files->slots, slot);
}
