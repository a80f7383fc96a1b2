// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The process table, see process.h. Records are the source's memory; what is here are references to
 * them, sorted by pid. The list walk tells what to change in these. Of another source they are made
 * anew for each sample, and comparing them with those of the one before tells births and deaths. A
 * record that was written is compared with the one before, and nobody looks at one that was not. A
 * record's last fields are ours and move along.
 *
 * The dead are accounted for once. A process that a sample no longer has adds its last counts to
 * the totals, and so does the exit of one that no sample ever had; either opens an account. What
 * later events tell of it (exit, and the final word when the kernel frees it) adds the difference.
 * The exit of a process that the newest sample has, a zombie, raises its record. Events later than
 * the beginning of the sample wait for the next, as their process may be in it.
 */
#include "process.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "accounts.h"
#include "parse.h"
#include "task.h"

#define NAMED_ARGV       1u /* of mote_task.named, and of ref.nameless */
#define NAMED_EXE        2u
#define KERNEL_PART      offsetof(struct mote_task, shown_utime)
#define CLOSED_MEMORY_NS 5000000000ull

/* A process: half[side][place] is its record. */
struct ref {
	uint32_t pid;
	uint32_t place : 24;
	uint32_t side : 1;
	uint32_t nameless : 2; /* it may be without argv (1), executable (2) */
	uint32_t : 5;
	uint64_t changed; /* time of the sample in which a value last changed */
};

struct ended {
	uint64_t time, start;
	uint32_t pid;
};

struct mote_process {
	struct mote_tasks *tasks;
	struct mote_events *events;
	struct mote_texts *texts;
	uint64_t absent;
	struct ref *refs[2]; /* of the newest sample: `current`; of the one before, or room */
	unsigned int n[2];
	unsigned int current;
	unsigned int nameless; /* of all references: what may be wanted */
	uint64_t sampled;      /* its time */
	uint64_t youngest;     /* start of the last process that was born before the first sample */

	struct ended *ended;
	unsigned int ended_max, ended_n;
	uint64_t forgot;      /* when the youngest key that was written over ended */
	uint64_t ended_total; /* keys since start; the newest has number ended_total - 1 */
	uint64_t totals[MOTE_COUNTERS];

	struct mote_accounts *accounts;
	uint64_t unaccounted; /* final words of processes whose account may have lacked room */
	uint64_t start_unit;  /* ns: what `start` of the source's records is a multiple of */
};

struct mote_process *mote_process_new(const struct mote_options *options, struct mote_tasks *tasks,
				      struct mote_events *events)
{
	struct mote_process *process = malloc(sizeof(*process));

	if (!process)
		return NULL;
	memset(process, 0, sizeof(*process));
	process->tasks = tasks;
	process->events = events;
	process->start_unit = strcmp(tasks->ops->name, "proc") ? 1 : MOTE_NS_PER_TICK;
	for (unsigned int i = 0; i < 2; i++)
		process->refs[i] = malloc(tasks->max * sizeof(*process->refs[i]));
	process->ended_max = options->tables_ended;
	process->ended = malloc(process->ended_max * sizeof(*process->ended));
	process->texts = mote_texts_new((uint32_t)options->tables_text);
	process->accounts =
		mote_accounts_new(process->ended_max < 512 ? 64 : process->ended_max / 8);
	if (!process->ended || !process->texts || !process->accounts || !process->refs[0] ||
	    !process->refs[1]) {
		mote_process_free(process);
		return NULL;
	}
	memset(process->ended, 0, process->ended_max * sizeof(*process->ended));
	for (unsigned int i = 0; i < 2; i++)
		memset(process->refs[i], 0, tasks->max * sizeof(*process->refs[i]));
	return process;
}

void mote_process_free(struct mote_process *process)
{
	if (!process)
		return;
	free(process->refs[0]);
	free(process->refs[1]);
	free(process->ended);
	mote_texts_free(process->texts);
	mote_accounts_free(process->accounts);
	free(process);
}

unsigned int mote_process_half(const struct mote_process *process)
{
	return !process->current;
}

static struct mote_task *task_of(const struct mote_process *process, const struct ref *ref)
{
	return &process->tasks->half[ref->side][ref->place];
}

/* The first reference of the newest sample whose pid is not below `pid`. */
static unsigned int lower_bound(const struct mote_process *process, uint64_t pid)
{
	const struct ref *refs = process->refs[process->current];
	unsigned int low = 0, n = process->n[process->current];

	while (n) {
		unsigned int half = n / 2;

		if (refs[low + half].pid < pid) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

static struct ref *find_pid(const struct mote_process *process, uint32_t pid)
{
	struct ref *refs = process->refs[process->current];
	unsigned int at = lower_bound(process, pid);

	return at < process->n[process->current] && refs[at].pid == pid ? &refs[at] : NULL;
}

static struct ref *find(const struct mote_process *process, uint32_t pid, uint64_t start)
{
	struct ref *ref = find_pid(process, pid);

	/* As it is shown: /proc has no more than ticks, where BPF events have nanoseconds. */
	return ref && task_of(process, ref)->start / MOTE_NS_PER_TICK == start / MOTE_NS_PER_TICK
		       ? ref
		       : NULL;
}

/* The counters of a task in the schema's terms; CPU time as it is shown. */
static void counters_of(struct mote_task *task, uint64_t out[MOTE_COUNTERS])
{
	const struct mote_thread_counts *counts = &task->counts;

	if (!task->present) {
		mote_task_adjust(task);
	} else { /* from /proc, which has adjusted them */
		if (task->shown_utime < task->prev_utime)
			task->shown_utime = task->prev_utime;
		if (task->shown_stime < task->prev_stime)
			task->shown_stime = task->prev_stime;
	}
	out[PROCESS_UTIME - MOTE_COUNTER_FIRST] = task->shown_utime;
	out[PROCESS_STIME - MOTE_COUNTER_FIRST] = task->shown_stime;
	out[PROCESS_CUTIME - MOTE_COUNTER_FIRST] = task->cutime;
	out[PROCESS_CSTIME - MOTE_COUNTER_FIRST] = task->cstime;
	out[PROCESS_MINFLT - MOTE_COUNTER_FIRST] = counts->minflt;
	out[PROCESS_MAJFLT - MOTE_COUNTER_FIRST] = counts->majflt;
	out[PROCESS_RCHAR - MOTE_COUNTER_FIRST] = counts->rchar;
	out[PROCESS_WCHAR - MOTE_COUNTER_FIRST] = counts->wchar;
	out[PROCESS_SYSCR - MOTE_COUNTER_FIRST] = counts->syscr;
	out[PROCESS_SYSCW - MOTE_COUNTER_FIRST] = counts->syscw;
	out[PROCESS_READ_BYTES - MOTE_COUNTER_FIRST] = counts->read_bytes;
	out[PROCESS_WRITE_BYTES - MOTE_COUNTER_FIRST] = counts->write_bytes;
	out[PROCESS_CANCELLED_WRITE_BYTES - MOTE_COUNTER_FIRST] = counts->cancelled_write_bytes;
	out[PROCESS_NVCSW - MOTE_COUNTER_FIRST] = counts->nvcsw;
	out[PROCESS_NIVCSW - MOTE_COUNTER_FIRST] = counts->nivcsw;
	out[PROCESS_RUN_TIME - MOTE_COUNTER_FIRST] = counts->run_time;
	out[PROCESS_RUN_DELAY - MOTE_COUNTER_FIRST] = counts->run_delay;
}

/* Brings an account up to what is known of its process now, and the totals with it. */
static void settle(struct mote_process *process, struct mote_account *account,
		   struct mote_task *task)
{
	uint64_t counters[MOTE_COUNTERS] = { 0 };

	counters_of(task, counters);
	for (unsigned int i = 0; i < MOTE_COUNTERS; i++) {
		if (counters[i] <= account->counters[i])
			continue;
		process->totals[i] += counters[i] - account->counters[i];
		account->counters[i] = counters[i];
	}
}

/* A counter never decreases (a thread that ends takes its run_delay along). */
static void raise_counts(struct mote_thread_counts *counts, const struct mote_thread_counts *by)
{
	uint64_t *to = (uint64_t *)counts;
	const uint64_t *from = (const uint64_t *)by;

	for (unsigned int i = 0; i < sizeof(*counts) / sizeof(*to); i++)
		to[i] = to[i] > from[i] ? to[i] : from[i];
}

static void raise_to_exit(struct mote_task *task, const struct mote_event_exit *event)
{
	raise_counts(&task->counts, &event->counts);
	if (event->prev_utime + event->prev_stime > task->prev_utime + task->prev_stime) {
		task->prev_utime = event->prev_utime;
		task->prev_stime = event->prev_stime;
	}
}

static void remember_ended(struct mote_process *process, const struct mote_task *task, uint64_t now)
{
	struct ended *ended = &process->ended[process->ended_total % process->ended_max];

	if (process->ended_n == process->ended_max)
		process->forgot = ended->time;
	else
		process->ended_n++;
	*ended = (struct ended){ .time = now, .start = task->start, .pid = task->pid };
	process->ended_total++;
}

static void end_task(struct mote_process *process, const struct ref *ref, uint64_t now)
{
	struct mote_task *task = task_of(process, ref);
	/* Its exit, or a sample that had no room for it, may have opened one. */
	struct mote_account *account =
		mote_accounts_find(process->accounts, task->pid, task->start / MOTE_NS_PER_TICK);

	if (!account)
		account = mote_accounts_open(process->accounts, task->pid,
					     task->start / MOTE_NS_PER_TICK, now);
	settle(process, account, task);
	remember_ended(process, task, now);
	mote_texts_drop(process->texts, task->text);
	task->text = 0;
}

static void lose_names(struct mote_process *process, struct ref *ref)
{
	ref->nameless = NAMED_ARGV | NAMED_EXE;
	process->nameless |= ref->nameless;
}

/* One that a full table left out for a while has an account, and was shown. */
static void begin_task(struct mote_process *process, struct ref *ref, uint64_t now)
{
	struct mote_task *task = task_of(process, ref);
	const struct mote_account *account =
		mote_accounts_find(process->accounts, task->pid, task->start / MOTE_NS_PER_TICK);

	task->shown_utime = account ? account->counters[PROCESS_UTIME - MOTE_COUNTER_FIRST] : 0;
	task->shown_stime = account ? account->counters[PROCESS_STIME - MOTE_COUNTER_FIRST] : 0;
	task->text = 0;
	task->text_exec_id = ~task->exec_id;
	ref->changed = now;
	lose_names(process, ref);
}

/* Both records of a process that is there still. */
static void go_on(struct mote_process *process, struct ref *ref, const struct ref *old,
		  uint64_t now)
{
	struct mote_task *task = task_of(process, ref);
	const struct mote_task *before = task_of(process, old);

	/* Too much would stand until the process has caught up: hours, if that is what a thread
	 * ran. */
	if (task->flags & MOTE_TASK_TWICE)
		task->counts = before->counts;
	raise_counts(&task->counts, &before->counts);
	task->shown_utime = before->shown_utime;
	task->shown_stime = before->shown_stime;
	task->text = before->text;
	task->text_exec_id = before->text_exec_id;
	task->named = before->named;
	ref->changed = memcmp(task, before, KERNEL_PART) != 0 ? now : old->changed;
	/* An exec takes its name, and it may have got memory only now. */
	ref->nameless = old->nameless;
	if (task->exec_id != before->exec_id || task->flags != before->flags)
		lose_names(process, ref);
}

/* The same pid in two samples. */
static void compare(struct mote_process *process, struct ref *ref, const struct ref *old,
		    uint64_t now)
{
	if (task_of(process, ref)->start == task_of(process, old)->start) {
		go_on(process, ref, old, now);
	} else {
		end_task(process, old, now);
		begin_task(process, ref, now);
	}
}

/* Merges the processes of a half, sorted by pid, with those of the other. */
static void merge(struct mote_process *process, unsigned int half, uint64_t now)
{
	struct ref *old = process->refs[!half], *old_end = old + process->n[!half];

	for (unsigned int i = 0; i < process->n[half]; i++) {
		struct ref *ref = &process->refs[half][i];

		*ref = (struct ref){ .pid = process->tasks->half[half][i].pid,
				     .place = i,
				     .side = half };
		for (; old < old_end && old->pid < ref->pid; old++)
			end_task(process, old, now);
		if (old < old_end && old->pid == ref->pid)
			compare(process, ref, old++, now);
		else
			begin_task(process, ref, now);
	}
	for (; old < old_end; old++)
		end_task(process, old, now);
}

static void end_pair(struct mote_process *process, const struct ref *ref, uint64_t now)
{
	end_task(process, ref, now);
	process->tasks->ops->release(process->tasks, ref->place);
}

static void drop_ended(struct mote_process *process, uint64_t now)
{
	const struct mote_tasks *tasks = process->tasks;
	struct ref *refs = process->refs[process->current];
	unsigned int n = 0;

	for (unsigned int i = 0; i < process->n[process->current]; i++) {
		if (tasks->pairs[refs[i].place].seen == tasks->seen)
			refs[n++] = refs[i];
		else
			end_pair(process, &refs[i], now);
	}
	process->n[process->current] = n;
}

/* New ones, which lie in the room, sorted by pid: none of them is there yet. */
static void insert(struct mote_process *process, unsigned int n)
{
	struct ref *refs = process->refs[process->current];
	const struct ref *run = process->refs[!process->current];
	unsigned int old = process->n[process->current], to = old + n;

	process->n[process->current] = to;
	while (n) {
		bool later = old && refs[old - 1].pid > run[n - 1].pid;

		refs[--to] = later ? refs[--old] : run[--n];
	}
}

/* Of two with the same pid the first ended while the walk went on, and the other got its pid. */
static void take_written(struct mote_process *process, struct ref *ref, struct ref new,
			 uint64_t now)
{
	struct ref old = *ref;

	*ref = new;
	if (new.place == old.place) {
		go_on(process, ref, &old, now);
	} else {
		end_pair(process, &old, now);
		begin_task(process, ref, now);
	}
}

/* What is new comes in the order of birth, in which pids ascend until they wrap. */
static void take_walk(struct mote_process *process, unsigned int n, uint64_t now)
{
	const struct mote_tasks *tasks = process->tasks;
	struct ref *run = process->refs[!process->current];
	unsigned int in_run = 0;

	if (!tasks->same)
		drop_ended(process, now);
	for (unsigned int i = 0; i < n; i++) {
		struct ref new = { .pid = tasks->found[i].pid,
				   .place = tasks->found[i].pair & ~MOTE_REF_WRITTEN };
		struct ref *ref;

		if (!(tasks->found[i].pair & MOTE_REF_WRITTEN))
			continue;
		new.side = tasks->pairs[new.place].side;
		if (in_run && new.pid <= run[in_run - 1].pid) {
			insert(process, in_run);
			in_run = 0;
		}
		ref = find_pid(process, new.pid);
		if (ref) {
			take_written(process, ref, new, now);
		} else {
			run[in_run++] = new;
			begin_task(process, &run[in_run - 1], now);
		}
	}
	insert(process, in_run);
}

/* As the source's records have it: /proc has ticks. */
static uint64_t start_of(const struct mote_process *process, const struct mote_event *event)
{
	return event->start - event->start % process->start_unit;
}

static struct mote_task task_of_exit(const struct mote_process *process,
				     const struct mote_event_exit *event)
{
	return (struct mote_task){
		.pid = event->event.pid,
		.start = start_of(process, &event->event),
		.counts = event->counts,
		.prev_utime = event->prev_utime,
		.prev_stime = event->prev_stime,
	};
}

/* Whether an account was closed before the last words of its process can have come. */
static bool closed_early(const struct mote_process *process)
{
	uint64_t lost = mote_accounts_lost(process->accounts);

	return lost && process->sampled - lost < CLOSED_MEMORY_NS;
}

static void exited(struct mote_process *process, const struct mote_event_exit *event)
{
	struct mote_task task = task_of_exit(process, event);
	struct ref *zombie = find(process, task.pid, task.start);
	struct mote_account *account;
	bool final = event->event.kind == MOTE_EVENT_FINAL;

	if (zombie) { /* its account is settled when it is gone */
		raise_to_exit(task_of(process, zombie), event);
		zombie->changed = process->sampled;
		return;
	}
	account = mote_accounts_find(process->accounts, task.pid, task.start / MOTE_NS_PER_TICK);
	if (!account && closed_early(process)) {
		/* It may have been counted: better once too little than twice. */
		process->unaccounted++;
		return;
	}
	if (!account)
		account = mote_accounts_open(process->accounts, task.pid,
					     task.start / MOTE_NS_PER_TICK, process->sampled);
	/* The split of CPU time goes on from what was counted, else each part's largest is kept. */
	task.shown_utime = account->counters[PROCESS_UTIME - MOTE_COUNTER_FIRST];
	task.shown_stime = account->counters[PROCESS_STIME - MOTE_COUNTER_FIRST];
	settle(process, account, &task);
	if (final)
		mote_accounts_close(process->accounts, account);
}

static void set_text(struct mote_process *process, struct ref *ref,
		     const struct mote_text_entry *entry, uint64_t now)
{
	struct mote_task *task = task_of(process, ref);

	task->text = mote_texts_put(process->texts, task->text, entry);
	task->text_exec_id = task->exec_id;
	task->named = !task->text ? 0 : entry->has_argv * NAMED_ARGV | entry->has_exe * NAMED_EXE;
	ref->changed = now;
}

/* What is known of this very image; an exec makes it void. */
static void get_text(const struct mote_process *process, const struct mote_task *task,
		     struct mote_text_entry *entry)
{
	bool valid = task->text_exec_id == task->exec_id;

	mote_texts_get(process->texts, valid ? task->text : 0, entry);
}

/* The process that a name was found for, if it still has that image, and what is known of it. */
static struct ref *named(struct mote_process *process, uint32_t pid, uint64_t start,
			 uint32_t exec_id, struct mote_text_entry *entry)
{
	struct ref *ref = find(process, pid, start);

	if (!ref || task_of(process, ref)->exec_id != exec_id)
		return NULL;
	get_text(process, task_of(process, ref), entry);
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
static void executed(struct mote_process *process, const struct mote_event_exec *event,
		     uint64_t now)
{
	char path[MOTE_EXE_MAX + 16];
	struct mote_text_entry entry;
	struct ref *ref = named(process, event->event.pid, start_of(process, &event->event),
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

static void take_events(struct mote_process *process, uint64_t until, uint64_t now)
{
	const struct mote_event *event;
	bool bpf = process->events->fd < 0;

	while ((event = mote_events_next(process->events, until))) {
		if ((event->kind == MOTE_EVENT_FORK || event->kind == MOTE_EVENT_EXEC) &&
		    process->tasks->ops->born)
			process->tasks->ops->born(process->tasks, event->pid);
		if ((event->kind == MOTE_EVENT_EXIT || event->kind == MOTE_EVENT_FINAL) && bpf)
			exited(process, (const struct mote_event_exit *)event);
		if (event->kind == MOTE_EVENT_EXEC && bpf)
			executed(process, (const struct mote_event_exec *)event, now);
	}
}

static uint64_t youngest_of(const struct mote_process *process)
{
	uint64_t youngest = 0;

	for (unsigned int i = 0; i < process->n[process->current]; i++) {
		const struct ref *ref = &process->refs[process->current][i];
		uint64_t start = task_of(process, ref)->start;

		youngest = start > youngest ? start : youngest;
	}
	return youngest;
}

void mote_process_sampled(struct mote_process *process, unsigned int n, uint64_t began,
			  uint64_t now)
{
	unsigned int half = mote_process_half(process);

	if (process->tasks->found) {
		take_walk(process, n, now);
	} else {
		process->n[half] = n;
		merge(process, half, now);
		process->current = half;
	}
	if (!process->sampled)
		process->youngest = youngest_of(process);
	process->sampled = now;
	if (process->events)
		take_events(process, began, now);
}

/*
 * A child that made no exec since the fork is called what its parent is: exec_id is copied by a
 * fork and grows with an exec. Both making an exec since makes them equal too, but then each was
 * named by its own exec event. Where events cannot tell, nothing is taken to be equal: of the child
 * in sh -c 'python3 worker & exec python3 server' from before the first sample, or without events.
 */
static void inherit(struct mote_process *process, struct ref *ref)
{
	const struct mote_task *task = task_of(process, ref), *parent;
	struct ref *above = find_pid(process, task->ppid);
	struct mote_text_entry entry;

	if (!process->events || process->events->fd >= 0 || !above)
		return;
	parent = task_of(process, above);
	if (task->start <= process->youngest || parent->start > task->start ||
	    parent->exec_id != task->exec_id ||
	    memcmp(parent->comm, task->comm, sizeof(task->comm)) != 0)
		return;
	get_text(process, parent, &entry);
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
static bool still_lacks(struct mote_process *process, struct ref *ref, unsigned int what)
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
	struct ref *refs = process->refs[process->current];
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
	struct ref *ref = named(process, pid, start, exec_id, &entry);

	if (!ref)
		return;
	set_argv(&entry, argv, len);
	set_text(process, ref, &entry, now);
}

void mote_process_give_exe(struct mote_process *process, uint32_t pid, uint64_t start,
			   uint32_t exec_id, const char *exe, uint32_t len, uint64_t now)
{
	struct mote_text_entry entry;
	struct ref *ref = named(process, pid, start, exec_id, &entry);

	if (!ref)
		return;
	set_exe(&entry, exe, len);
	set_text(process, ref, &entry, now);
}

bool mote_process_lives(struct mote_process *process, uint32_t pid, uint64_t start)
{
	return find(process, pid, start) != NULL;
}

uint32_t mote_process_exe(struct mote_process *process, uint32_t pid, uint64_t start,
			  char exe[MOTE_EXE_MAX])
{
	struct ref *ref = find(process, pid, start);
	struct mote_text_entry entry;

	if (!ref)
		return 0;
	get_text(process, task_of(process, ref), &entry);
	if (!entry.has_exe)
		return 0;
	memcpy(exe, entry.exe, entry.exe_len);
	return entry.exe_len;
}

bool mote_process_whole(const struct mote_process *process)
{
	return !process->tasks->cut;
}

int mote_process_next_ended(const struct mote_process *process, uint64_t *cursor, uint32_t *pid,
			    uint64_t *start)
{
	uint64_t oldest = process->ended_total - process->ended_n;
	const struct ended *ended;

	if (*cursor < oldest) {
		*cursor = oldest;
		return -1;
	}
	if (*cursor == process->ended_total)
		return 0;
	ended = &process->ended[(*cursor)++ % process->ended_max];
	*pid = ended->pid;
	*start = ended->start / MOTE_NS_PER_TICK;
	return 1;
}

void mote_process_set_absent(struct mote_process *process, uint64_t fields)
{
	process->absent = fields;
}

void mote_process_stats(const struct mote_process *process, struct mote_process_stats *stats)
{
	stats->processes = process->n[process->current];
	stats->ended = (struct mote_fill){ .size = process->ended_max,
					   .fill = process->ended_n,
					   .peak = process->ended_n };
	mote_accounts_fill(process->accounts, &stats->accounts);
	stats->accounts.dropped = process->unaccounted;
	mote_texts_fill(process->texts, &stats->texts);
}

/* One value of a row: nil unless its bit is set. */
static void pack_value(msgpack_packer *pk, uint64_t present, unsigned int field, uint64_t value)
{
	if (present >> field & 1)
		msgpack_pack_uint64(pk, value);
	else
		msgpack_pack_nil(pk);
}

static void pack_signed(msgpack_packer *pk, uint64_t present, unsigned int field, int64_t value)
{
	if (present >> field & 1)
		msgpack_pack_int64(pk, value);
	else
		msgpack_pack_nil(pk);
}

static void pack_texts(const struct mote_process *process, const struct mote_task *task,
		       uint64_t present, msgpack_packer *pk)
{
	struct mote_text_entry entry;

	mote_pack_text(pk, task->comm, strnlen(task->comm, sizeof(task->comm)));
	get_text(process, task, &entry);
	if (entry.has_argv && entry.argv_len && present >> PROCESS_ARGV & 1)
		mote_pack_list(pk, entry.argv, entry.argv_len);
	else
		msgpack_pack_nil(pk);
	if (entry.has_exe && entry.exe_len && present >> PROCESS_EXE & 1)
		mote_pack_text(pk, entry.exe, entry.exe_len);
	else
		msgpack_pack_nil(pk);
}

static uint64_t present_of(const struct mote_process *process, const struct mote_task *task)
{
	uint64_t present = ~0ull;

	if (task->present) {
		present = task->present | 1ull << PROCESS_ARGV | 1ull << PROCESS_EXE;
	} else {
		if (!(task->flags & MOTE_TASK_HAS_FDS))
			present &= ~(1ull << PROCESS_FDS);
		if (!(task->flags & MOTE_TASK_HAS_RSS))
			present &= ~(1ull << PROCESS_RSS | 1ull << PROCESS_SHARED);
	}
	return present & ~process->absent;
}

static void pack_row(const struct mote_process *process, struct mote_task *task, msgpack_packer *pk)
{
	uint64_t present = present_of(process, task), counters[MOTE_COUNTERS] = { 0 };

	_Static_assert(PROCESS__FIELDS == 37 && PROCESS_UTIME == 11 && PROCESS_RCHAR == 20 &&
			       PROCESS_FDS == 31 && PROCESS_EXE == 36,
		       "pack_row follows schema.def");
	counters_of(task, counters);
	msgpack_pack_array(pk, PROCESS__FIELDS);
	msgpack_pack_uint32(pk, task->pid);
	msgpack_pack_uint64(pk, task->start / MOTE_NS_PER_TICK);
	pack_value(pk, present, PROCESS_PPID, task->ppid);
	pack_value(pk, present, PROCESS_UID, task->uid);
	pack_value(pk, present, PROCESS_GID, task->gid);
	pack_value(pk, present, PROCESS_SESSION, task->session);
	pack_value(pk, present, PROCESS_TTY, task->tty);
	mote_pack_text(pk, &task->state, 1);
	pack_signed(pk, present, PROCESS_NICE, task->nice);
	pack_signed(pk, present, PROCESS_PRIORITY, task->priority);
	pack_value(pk, present, PROCESS_THREADS, task->threads);
	for (unsigned int i = PROCESS_UTIME; i <= PROCESS_MAJFLT; i++)
		pack_value(pk, present, i, counters[i - MOTE_COUNTER_FIRST]);
	pack_value(pk, present, PROCESS_VSIZE, task->vsize);
	pack_value(pk, present, PROCESS_RSS, task->rss);
	pack_value(pk, present, PROCESS_SHARED, task->shared);
	for (unsigned int i = PROCESS_RCHAR; i <= PROCESS_RUN_DELAY; i++)
		pack_value(pk, present, i, counters[i - MOTE_COUNTER_FIRST]);
	pack_value(pk, present, PROCESS_FDS, task->fds);
	pack_value(pk, present, PROCESS_CGROUP_ID, task->cgroup_id);
	pack_signed(pk, present, PROCESS_OOM_SCORE_ADJ, task->oom_score_adj);
	pack_texts(process, task, present, pk);
}

/* The cursor is a pid, so that a keyframe can go on after other samples. */
static bool process_row(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	struct mote_process *process = ctx;
	const struct ref *refs = process->refs[process->current];

	for (unsigned int i = lower_bound(process, *cursor); i < process->n[process->current];
	     i++) {
		if (refs[i].changed <= since)
			continue;
		*cursor = (uint64_t)refs[i].pid + 1;
		pack_row(process, task_of(process, &refs[i]), pk);
		return true;
	}
	return false;
}

static const struct ended *ended_at(const struct mote_process *process, uint64_t number)
{
	return &process->ended[number % process->ended_max];
}

/* The number of the first key that ended after `since`. */
static uint64_t first_ended(const struct mote_process *process, uint64_t since)
{
	uint64_t number = process->ended_total;

	while (process->ended_total - number < process->ended_n &&
	       ended_at(process, number - 1)->time > since)
		number--;
	return number;
}

/* The cursor is the number of the next key, counted from 1, so that it holds across samples. */
static bool process_ended(void *ctx, uint64_t since, uint64_t *cursor, msgpack_packer *pk)
{
	const struct mote_process *process = ctx;
	uint64_t oldest = process->ended_total - process->ended_n;
	uint64_t number = *cursor ? *cursor - 1 : first_ended(process, since);
	const struct ended *ended;

	if (number < oldest)
		number = oldest; /* forgot() tells that some are missing */
	if (number >= process->ended_total)
		return false;
	ended = ended_at(process, number);
	*cursor = number + 2;
	msgpack_pack_array(pk, 2);
	msgpack_pack_uint32(pk, ended->pid);
	msgpack_pack_uint64(pk, ended->start / MOTE_NS_PER_TICK);
	return true;
}

static void process_totals(void *ctx, msgpack_packer *pk)
{
	const struct mote_process *process = ctx;
	const struct mote_stream *stream = &mote_streams[MOTE_STREAM_PROCESS];

	msgpack_pack_array(pk, PROCESS__FIELDS);
	for (unsigned int i = 0; i < PROCESS__FIELDS; i++) {
		if (stream->fields[i].kind == MOTE_COUNTER && !(process->absent >> i & 1))
			msgpack_pack_uint64(pk, process->totals[i - MOTE_COUNTER_FIRST]);
		else
			msgpack_pack_nil(pk);
	}
}

static bool process_forgot(void *ctx, uint64_t since)
{
	return ((const struct mote_process *)ctx)->forgot > since;
}

const struct mote_source_ops mote_process_source = {
	.row = process_row,
	.ended = process_ended,
	.totals = process_totals,
	.forgot = process_forgot,
	.epoch = NULL,
};
