// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * files [-q] [-w MS] MOTED FOLDER=NAME... [-- OPTIONS...]: starts a moted, moves known bytes to and
 * from files in each folder, of the file system NAME, in every way that there is, and compares what
 * the stream file has: to the byte, by process and file, while they live and after. Prints TAP. -q:
 * fewer rounds; -w: how long it waits for what is missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../files/actor.h"
#include "../files/session.h"
#include "tap.h"

struct book *book;

static unsigned int patience = 8000;

/* Another file system may have a file of the same number; of a path that is cut, "cut" is enough.
 */
static bool is_named(const struct row *row, const struct account *a)
{
	if (a->flags[0] == 'c')
		return rows_value(&stream_file, row, "path_flags") ==
		       rows_text(a->flags, strlen(a->flags));
	return rows_value(&stream_file, row, "path") == rows_text(a->path, strlen(a->path));
}

static const struct row *find(const struct account *a)
{
	const struct row *best = NULL;

	for (size_t i = 0; i < stream_file.n; i++) {
		const struct row *row = &stream_file.row[i];

		if (row->given && rows_value(&stream_file, row, "pid") == a->pid &&
		    rows_value(&stream_file, row, "process_start") == a->start &&
		    rows_value(&stream_file, row, "inode") == a->ino &&
		    (!a->path[0] || is_named(row, a)))
			best = row;
	}
	return best;
}

static bool fits(const struct account *a, const struct row *row)
{
	if (a->hidden)
		return !row || !rows_value(&stream_file, row, "bytes_read");
	if (!a->read && !a->written)
		return !row || (!rows_value(&stream_file, row, "bytes_read") &&
				!rows_value(&stream_file, row, "bytes_written"));
	return row && rows_value(&stream_file, row, "bytes_read") == a->read &&
	       rows_value(&stream_file, row, "bytes_written") == a->written &&
	       rows_value(&stream_file, row, "path_flags") ==
		       rows_text(a->flags, strlen(a->flags)) &&
	       (!a->calls || (rows_value(&stream_file, row, "reads") == a->reads &&
			      rows_value(&stream_file, row, "writes") == a->writes));
}

static bool all_fit(void)
{
	for (unsigned int i = 0; i < book->n; i++) {
		if (!fits(&book->account[i], find(&book->account[i])))
			return false;
	}
	return true;
}

static void wait_for_all(unsigned int ms)
{
	uint64_t until = session_ms() + ms;

	while (!all_fit() && session_ms() < until && session_listen(100))
		;
}

static void say(const struct account *a, const char *when)
{
	const struct row *row = find(a);

	if (tap(fits(a, row), "%s%s", a->name, when))
		return;
	printf("# %s%s: bytes read %llu, written %llu in %llu and %llu calls; expected %llu, %llu, %llu, %llu%s\n",
	       a->path, row ? "" : " (no row)",
	       (unsigned long long)(row ? rows_value(&stream_file, row, "bytes_read") : 0),
	       (unsigned long long)(row ? rows_value(&stream_file, row, "bytes_written") : 0),
	       (unsigned long long)(row ? rows_value(&stream_file, row, "reads") : 0),
	       (unsigned long long)(row ? rows_value(&stream_file, row, "writes") : 0),
	       (unsigned long long)a->read, (unsigned long long)a->written,
	       (unsigned long long)a->reads, (unsigned long long)a->writes,
	       a->hidden ? ", and to be hidden" : "");
}

/* Whether nothing but the accounts' files has rows of the actor. */
static unsigned int strangers(pid_t actor)
{
	unsigned int n = 0;

	for (size_t i = 0; i < stream_file.n; i++) {
		const struct row *row = &stream_file.row[i];
		bool known = false;

		if (!row->given || rows_value(&stream_file, row, "pid") != (uint64_t)actor)
			continue;
		for (unsigned int a = 0; a < book->n && !known; a++)
			known = book->account[a].ino == rows_value(&stream_file, row, "inode");
		if (!known)
			printf("# a row of inode %llu\n",
			       (unsigned long long)rows_value(&stream_file, row, "inode"));
		n += !known;
	}
	return n;
}

/* What rows have and what ended is all but `other`. */
static void check_total(const char *when)
{
	const struct row *row = stream_total.n ? &stream_total.row[0] : NULL;
	uint64_t read = rows_sum(&stream_file, "bytes_read"),
		 written = rows_sum(&stream_file, "bytes_written");
	uint64_t all_read = row ? rows_value(&stream_total, row, "bytes_read") : 0;
	uint64_t all_written = row ? rows_value(&stream_total, row, "bytes_written") : 0;

	if (row) {
		all_read -= rows_value(&stream_total, row, "other_read");
		all_written -= rows_value(&stream_total, row, "other_written");
	}
	tap(row && read == all_read && written == all_written && read && written,
	    "rows and what ended add up to the total%s: %llu and %llu of %llu and %llu", when,
	    (unsigned long long)read, (unsigned long long)written, (unsigned long long)all_read,
	    (unsigned long long)all_written);
}

static void actor(char **folders, bool quick, int order, int done)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (; *folders && strcmp(*folders, "--"); folders++) {
		char folder[256], *where = strchr(*folders, '=');

		if (!where)
			continue;
		snprintf(folder, sizeof(folder), "%.*s", (int)(where - *folders), *folders);
		where++;
		act_calls(folder, where);
		act_uring(folder, where);
		act_aio(folder, where);
		act_processes(folder, where);
		act_paths(folder, where);
		act_storm(folder, where, quick ? 8 : 16, quick ? 1500 : 12000);
	}
	if (write(done, "", 1) != 1 || read(order, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static bool gone(pid_t pid)
{
	for (size_t i = 0; i < stream_file.n; i++) {
		if (stream_file.row[i].live &&
		    rows_value(&stream_file, &stream_file.row[i], "pid") == (uint64_t)pid)
			return false;
	}
	return true;
}

static void judge(char **folders, bool quick)
{
	int order[2], done[2], status = -1;
	uint64_t until;
	char byte;
	pid_t pid;

	need(!pipe(order) && !pipe(done), "pipes");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(order[1]);
		actor(folders, quick, order[0], done[1]);
	}
	close(done[1]);
	fcntl(done[0], F_SETFL, O_NONBLOCK);
	/* rows are taken meanwhile: the walk of threads races with their turns */
	while (read(done[0], &byte, 1) < 0 && errno == EAGAIN)
		need(session_listen(20), "rows");
	wait_for_all(patience);
	for (unsigned int i = 0; i < book->n; i++)
		say(&book->account[i], "");
	tap(!strangers(pid), "the actor has no other rows");
	check_total("");
	close(order[1]);
	need(waitpid(pid, &status, 0) == pid, "the actor");
	tap(!status, "the actor ends well: status %#x", (unsigned int)status);
	until = session_ms() + 20000;
	while (!gone(pid) && session_ms() < until && session_listen(200))
		;
	tap(gone(pid), "its rows end with it");
	session_listen(300);
	check_total(", after its end");
}

int main(int argc, char **argv)
{
	char socket[64];
	char **options;
	bool quick = argc > 1 && !strcmp(argv[1], "-q");
	pid_t moted;

	if (argc > 1 && !strcmp(argv[1], "--true"))
		return 0;
	argv += quick;
	argc -= quick;
	if (argc > 2 && !strcmp(argv[1], "-w")) {
		patience = (unsigned int)atoi(argv[2]);
		argv += 2;
		argc -= 2;
	}
	if (argc < 3) {
		fprintf(stderr, "usage: files [-q] [-w MS] MOTED FOLDER=NAME... [-- OPTIONS...]\n");
		return 2;
	}
	options = argv + 2;
	while (*options && strcmp(*options, "--"))
		options++;
	if (!*options)
		options--;
	*options = argv[1];
	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(book != MAP_FAILED, "memory");
	snprintf(socket, sizeof(socket), "/tmp/files.%d", getpid());
	moted = session_moted(options, socket);
	if (!tap(session_open(socket, "subscribe file,file_total,process interval=20ms"),
		 "moted has the stream file")) {
		kill(moted, SIGTERM);
		return 1;
	}
	printf("# file: %s, splice: %s, io_uring: %s, libaio: %s\n", session_tier("file"),
	       session_tier("file_splice"), session_tier("file_uring"), session_tier("file_aio"));
	book->no_splice = !strcmp(session_tier("file_splice"), "none");
	book->no_uring = !strcmp(session_tier("file_uring"), "none");
	book->no_aio = !strcmp(session_tier("file_aio"), "none");
	*options = (char *)"--";
	judge(argv + 2, quick);
	printf("1..%u\n", tap_n);
	session_close();
	kill(moted, SIGTERM);
	waitpid(moted, NULL, 0);
	return tap_failed != 0;
}
