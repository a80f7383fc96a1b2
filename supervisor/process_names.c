// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Command lines and executables of the processes in the table: given by exec events, taken over
 * from the parent, or found out by others (wants, give). They are held by text.h.
 */
#include "process_impl.h"

#include <string.h>

#include "task.h"

static void set_text(struct mote_process *process, struct mote_process_ref *ref,
		     const struct mote_text_entry *entry, uint64_t now)
{
	struct mote_task *task = task_of(process, ref);

	task->text = mote_texts_put(process->texts, task->text, entry);
	task->text_exec_id = task->exec_id;
	task->named = !task->text ? 0 : entry->has_argv * NAMED_ARGV | entry->has_exe * NAMED_EXE;
	ref->changed = now;
}

void mote_process_get_text(const struct mote_process *process, const struct mote_task *task,
			   struct mote_text_entry *entry)
{
	bool valid = task->text_exec_id == task->exec_id;

	mote_texts_get(process->texts, valid ? task->text : 0, entry);
}

/* The process that a name was found for, if it still has that image, and what is known of it. */
static struct mote_process_ref *named(struct mote_process *process, uint32_t pid, uint64_t start,
				      uint32_t exec_id, struct mote_text_entry *entry)
{
	struct mote_process_ref *ref = mote_process_find(process, pid, start);

	if (!ref || task_of(process, ref)->exec_id != exec_id)
		return NULL;
	mote_process_get_text(process, task_of(process, ref), entry);
	return ref;
}

static uint16_t copy_text(char *to, size_t size, const char *from, uint32_t len)
{
	uint16_t n = (uint16_t)(len < size ? len : size);

	memcpy(to, from, n);
	return n;
}

static void set_argv(struct mote_text_entry *entry, const char *argv, uint32_t len)
{
	entry->has_argv = true;
	entry->argv_len = copy_text(entry->argv, sizeof(entry->argv), argv, len);
}

static void set_exe(struct mote_text_entry *entry, const char *exe, uint32_t len)
{
	entry->has_exe = true;
	entry->exe_len = copy_text(entry->exe, sizeof(entry->exe), exe, len);
}

/* The sample began after the event: it has this image, or a later one. */
void mote_process_executed(struct mote_process *process, const struct mote_event_exec *event,
			   uint64_t now)
{
	char path[MOTE_EXE_MAX + 16];
	struct mote_text_entry entry;
	struct mote_process_ref *ref =
		named(process, event->event.pid, mote_process_start_of(process, &event->event),
		      event->exec_id, &entry);

	if (!ref)
		return;
	set_argv(&entry, event->argv, event->argv_len);
	if (!(event->exe_flags & MOTE_EXE_ABSENT))
		set_exe(&entry, path,
			mote_task_exe(event->argv + event->argv_len, event->exe_len,
				      event->exe_flags, path, sizeof(path)));
	set_text(process, ref, &entry, now);
}

void mote_process_lose_names(struct mote_process *process, struct mote_process_ref *ref)
{
	ref->nameless = NAMED_ARGV | NAMED_EXE;
	process->nameless |= ref->nameless;
}

/*
 * A child that made no exec since the fork is called what its parent is: exec_id is copied by a
 * fork and grows with an exec. Both making an exec since makes them equal too, but then each was
 * named by its own exec event. Where events cannot tell, nothing is taken to be equal: of the child
 * in sh -c 'python3 worker & exec python3 server' from before the first sample, or without events.
 */
static void inherit(struct mote_process *process, struct mote_process_ref *ref)
{
	const struct mote_task *task = task_of(process, ref), *parent;
	struct mote_process_ref *above = mote_process_find_pid(process, task->ppid);
	struct mote_text_entry entry;

	if (!process->events || process->events->fd >= 0 || !above)
		return;
	parent = task_of(process, above);
	if (task->start <= process->youngest || parent->start > task->start ||
	    parent->exec_id != task->exec_id ||
	    memcmp(parent->comm, task->comm, sizeof(task->comm)) != 0)
		return;
	mote_process_get_text(process, parent, &entry);
	if (entry.has_argv || entry.has_exe)
		set_text(process, ref, &entry, process->sampled);
}

/* `what`: NAMED_ARGV or NAMED_EXE. */
static bool lacks(const struct mote_process *process, const struct mote_task *task,
		  unsigned int what)
{
	if (task->text_exec_id != task->exec_id)
		return true;
	if (!task->text)
		return mote_texts_roomy(process->texts); /* there was no room for it */
	return !(task->named & what);
}

/* One without memory, and one that has its name, is not looked at again until it makes an exec. */
static bool still_lacks(struct mote_process *process, struct mote_process_ref *ref,
			unsigned int what)
{
	struct mote_task *task = task_of(process, ref);
	bool memory = task->flags & MOTE_TASK_HAS_MM;

	if (memory && lacks(process, task, what)) {
		if (task->text_exec_id != task->exec_id)
			inherit(process, ref);
		if (lacks(process, task, what))
			return true;
	}
	if (!memory || task->named & what)
		ref->nameless &= ~what;
	return false;
}

static struct mote_task *wants(struct mote_process *process, uint32_t *from, unsigned int what)
{
	struct mote_process_ref *refs = process->refs[process->current];
	unsigned int left = *from ? what : 0;

	if (!(process->nameless & what))
		return NULL;
	for (uint32_t i = *from; i < process->n[process->current]; i++) {
		if (refs[i].nameless & what && still_lacks(process, &refs[i], what)) {
			*from = i + 1;
			return task_of(process, &refs[i]);
		}
		left |= refs[i].nameless & what;
	}
	process->nameless &= left | ~what;
	return NULL;
}

struct mote_task *mote_process_wants_argv(struct mote_process *process, uint32_t *from)
{
	return wants(process, from, NAMED_ARGV);
}

struct mote_task *mote_process_wants_exe(struct mote_process *process, uint32_t *from)
{
	return wants(process, from, NAMED_EXE);
}

void mote_process_give_argv(struct mote_process *process, uint32_t pid, uint64_t start,
			    uint32_t exec_id, const char *argv, uint32_t len, uint64_t now)
{
	struct mote_text_entry entry;
	struct mote_process_ref *ref = named(process, pid, start, exec_id, &entry);

	if (!ref)
		return;
	set_argv(&entry, argv, len);
	set_text(process, ref, &entry, now);
}

void mote_process_give_exe(struct mote_process *process, uint32_t pid, uint64_t start,
			   uint32_t exec_id, const char *exe, uint32_t len, uint64_t now)
{
	struct mote_text_entry entry;
	struct mote_process_ref *ref = named(process, pid, start, exec_id, &entry);

	if (!ref)
		return;
	set_exe(&entry, exe, len);
	set_text(process, ref, &entry, now);
}

uint32_t mote_process_exe(struct mote_process *process, uint32_t pid, uint64_t start,
			  char exe[MOTE_EXE_MAX])
{
	struct mote_process_ref *ref = mote_process_find(process, pid, start);
	struct mote_text_entry entry;

	if (!ref)
		return 0;
	mote_process_get_text(process, task_of(process, ref), &entry);
	if (!entry.has_exe)
		return 0;
	memcpy(exe, entry.exe, entry.exe_len);
	return entry.exe_len;
}
