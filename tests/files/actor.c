// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Accounts, and the calls of one thread. */
#include "actor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 65536

static char buf[SIZE * 2] __attribute__((aligned(4096)));

uint64_t process_start(void)
{
	char text[1024], *at;
	FILE *file = fopen("/proc/self/stat", "re");
	unsigned long long start = 0;

	need(file && fgets(text, sizeof(text), file), "/proc/self/stat");
	fclose(file);
	at = strrchr(text, ')');
	need(at && sscanf(at + 2,
			  "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			  "%*d %*d %llu",
			  &start) == 1,
	     "a start time");
	return start;
}

struct account *account_of(const char *name, int fd, const char *path)
{
	unsigned int i = __atomic_fetch_add(&book->n, 1, __ATOMIC_SEQ_CST);
	struct account *account = &book->account[i];
	struct stat st;

	need(i < ACCOUNTS_MAX && !fstat(fd, &st), name);
	snprintf(account->name, sizeof(account->name), "%s", name);
	snprintf(account->path, sizeof(account->path), "%s", path);
	account->pid = (uint64_t)getpid();
	account->start = process_start();
	account->ino = st.st_ino;
	account->calls = true;
	return account;
}

ssize_t took(struct account *account, ssize_t ret)
{
	if (ret > 0)
		__atomic_fetch_add(&account->read, (uint64_t)ret, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&account->reads, 1, __ATOMIC_SEQ_CST);
	return ret;
}

ssize_t gave(struct account *account, ssize_t ret)
{
	if (ret > 0)
		__atomic_fetch_add(&account->written, (uint64_t)ret, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&account->writes, 1, __ATOMIC_SEQ_CST);
	return ret;
}

/* Somebody else fills it, so that what the test writes is what is counted. */
int open_new(const char *folder, const char *name, size_t size, int flags, char path[512])
{
	int status, fd;
	pid_t pid;

	snprintf(path, 512, "%s/%s", folder, name);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
		for (size_t left = size; fd >= 0 && left;) {
			ssize_t n = write(fd, buf, left < sizeof(buf) ? left : sizeof(buf));

			if (n <= 0)
				_exit(1);
			left -= (size_t)n;
		}
		_exit(fd < 0);
	}
	need(pid > 0 && waitpid(pid, &status, 0) == pid && !status, path);
	fd = open(path, O_RDWR | O_CLOEXEC | flags);
	return fd;
}

/* One case: two files of 64 KiB, `from` is read and `to` written. */
struct files {
	struct account *from, *to;
	int in, out;
};

static char *volatile nowhere = (char *)8;

static void case_read(struct files *f)
{
	took(f->from, read(f->in, buf, 10000));
	took(f->from, read(f->in, buf, 1));
	took(f->from, read(f->in, buf, sizeof(buf))); /* less than asked for */
	took(f->from, read(f->in, buf, 10));          /* the end */
}

static void case_write(struct files *f)
{
	gave(f->to, write(f->out, buf, 12345));
	gave(f->to, write(f->out, buf, 1));
}

static void case_positioned(struct files *f)
{
	took(f->from, pread(f->in, buf, 4096, 0));
	took(f->from, pread(f->in, buf, 4096, 0));
	took(f->from, pread(f->in, buf, 4096, SIZE - 100));
	gave(f->to, pwrite(f->out, buf, 5000, 3000));
}

static void case_vectors(struct files *f)
{
	struct iovec v[2] = { { buf, 100 }, { buf + 100, 200 } };

	took(f->from, readv(f->in, v, 2));
	took(f->from, preadv(f->in, v, 2, 500));
	took(f->from, preadv2(f->in, v, 2, SIZE - 150, 0));
	gave(f->to, writev(f->out, v, 2));
	gave(f->to, pwritev(f->out, v, 2, 500));
	gave(f->to, pwritev2(f->out, v, 2, 0, RWF_APPEND));
}

/* Into memory that is not there: nothing is returned, and nothing may be counted. */
static void case_fault(struct files *f)
{
	took(f->from, pread(f->in, nowhere, 100, 0));
	took(f->from, pread(f->in, buf, 64, 0));
	gave(f->to, pwrite(f->out, nowhere, 100, 0));
	gave(f->to, pwrite(f->out, buf, 7, 0));
}

/* Two files in turn, and a look at what is none in between. */
static void case_interleaved(struct files *f)
{
	int pair[2], null = open("/dev/zero", O_RDWR | O_CLOEXEC);
	int proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	need(!pipe(pair) && null >= 0 && proc >= 0, "a pipe");
	for (int i = 0; i < 20; i++) {
		took(f->from, pread(f->in, buf, 100, i));
		took(f->to, pread(f->out, buf, 11, i));
		gave(f->to, pwrite(f->out, buf, 13, i));
		gave(f->from, pwrite(f->in, buf, 17, i));
		need(write(pair[1], buf, 50) == 50 && read(pair[0], buf, 50) == 50, "a pipe");
		need(read(null, buf, 70) == 70 && write(null, buf, 70) == 70, "/dev/zero");
		need(pread(proc, buf, 100, 0) == 100, "/proc/self/status");
	}
	close(pair[0]);
	close(pair[1]);
	close(null);
	close(proc);
}

/* The kernel counts one call of each kind, to both. */
static void case_sendfile(struct files *f)
{
	off_t at = 0;
	int pair[2];

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "a socket");
	took(f->from, sendfile(pair[0], f->in, &at, 8192));
	need(read(pair[1], buf, 8192) == 8192, "a socket");
	at = 0;
	gave(f->to, took(f->from, sendfile(f->out, f->in, &at, 30000)));
	close(pair[0]);
	close(pair[1]);
	/* a socket has no calls of a file's, but the thread's own write count is the file's */
	f->to->calls = f->from->calls = false;
}

static void case_copy(struct files *f)
{
	loff_t from = 0, to = 0;
	ssize_t n = copy_file_range(f->in, &from, f->out, &to, 8192, 0);

	gave(f->to, took(f->from, n));
	f->to->calls = f->from->calls = false;
}

static void case_splice(struct files *f)
{
	loff_t at = 0, to = 0;
	int pair[2];

	need(!pipe(pair), "a pipe");
	for (int i = 0; i < 3; i++) {
		took(f->from, splice(f->in, &at, pair[1], NULL, 4096, 0));
		gave(f->to, splice(pair[0], NULL, f->out, &to, 4096, 0));
	}
	took(f->from, splice(f->in, &(loff_t){ SIZE - 10 }, pair[1], NULL, 4096, 0));
	took(f->from, splice(f->in, &(loff_t){ SIZE }, pair[1], NULL, 4096, 0));
	close(pair[0]);
	close(pair[1]);
	f->to->calls = f->from->calls = false;
}

static void case_direct(struct files *f)
{
	took(f->from, pread(f->in, buf, 8192, 4096));
	gave(f->to, pwrite(f->out, buf, 4096, 0));
}

static const struct {
	const char *name;
	int flags;
	void (*act)(struct files *files);
} cases[] = {
	{ "read", 0, case_read },
	{ "write", 0, case_write },
	{ "pread, pwrite", 0, case_positioned },
	{ "readv, writev and their kin", 0, case_vectors },
	{ "EFAULT", 0, case_fault },
	{ "O_APPEND", O_APPEND, case_write },
	{ "two files in turn, and pipes, devices and proc", 0, case_interleaved },
	{ "sendfile", 0, case_sendfile },
	{ "copy_file_range", 0, case_copy },
	{ "splice", 0, case_splice },
	{ "O_DIRECT", O_DIRECT, case_direct },
};

void act_calls(const char *folder, const char *where)
{
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[2][512], name[64];
		struct files f;

		if (cases[i].act == case_splice && book->no_splice)
			continue;
		snprintf(name, sizeof(name), "from%u", i);
		f.in = open_new(folder, name, SIZE, cases[i].flags, path[0]);
		snprintf(name, sizeof(name), "to%u", i);
		f.out = open_new(folder, name, SIZE, cases[i].flags, path[1]);
		if (f.in < 0 || f.out < 0) {
			need(cases[i].flags & O_DIRECT && errno == EINVAL, cases[i].name);
			continue; /* this file system has it not */
		}
		snprintf(name, sizeof(name), "%s: %s", where, cases[i].name);
		f.from = account_of(name, f.in, path[0]);
		f.to = account_of(name, f.out, path[1]);
		cases[i].act(&f);
		close(f.in);
		close(f.out);
	}
}
