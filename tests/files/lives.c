// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Whose bytes are whose: processes that end, exec, dump core; threads; and what a file is called.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"

static char buf[8192];

static void in_child(const char *folder, const char *where, const char *what,
		     void (*act)(struct account *account, int fd))
{
	char path[512], name[64];
	int fd = open_new(folder, what, 65536, 0, path), status;
	pid_t pid;

	snprintf(name, sizeof(name), "%s: %s", where, what);
	need(fd >= 0, path);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		act(account_of(name, fd, path), fd);
		_exit(0);
	}
	close(fd);
	need(pid > 0 && waitpid(pid, &status, 0) == pid, what);
}

static void act_and_end(struct account *account, int fd)
{
	took(account, pread(fd, buf, 33, 0));
	gave(account, pwrite(fd, buf, 44, 0));
}

/* Its image is the kernel's to read. */
static void act_and_exec(struct account *account, int fd)
{
	int image = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct account *hidden = account_of(account->name, image, "");

	hidden->hidden = true;
	took(account, pread(fd, buf, 33, 0));
	gave(account, pwrite(fd, buf, 44, 0));
	execl("/proc/self/exe", "files", "--true", NULL);
	_exit(1);
}

/* What a core dump writes is not the process's. */
static void act_and_dump(struct account *account, int fd)
{
	setrlimit(RLIMIT_CORE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	gave(account, pwrite(fd, buf, 44, 0));
	took(account, pread(fd, buf, 33, 0));
	abort();
}

static void *exec_in_thread(void *arg)
{
	execl("/proc/self/exe", "files", "--true", NULL);
	return NULL;
}

struct work {
	struct account *account;
	int fd;
};

static void *write_in_thread(void *arg)
{
	struct work *w = arg;

	gave(w->account, pwrite(w->fd, buf, 55, 0));
	took(w->account, pread(w->fd, buf, 5, 0));
	return NULL;
}

/* A thread ends, its process goes on. */
static void act_in_thread(struct account *account, int fd)
{
	struct work w = { account, fd };
	pthread_t thread;

	need(!pthread_create(&thread, NULL, write_in_thread, &w), "a thread");
	pthread_join(thread, NULL);
}

static void *write_and_exec(void *arg)
{
	write_in_thread(arg);
	return exec_in_thread(NULL);
}

/* It takes over the number of the first thread. */
static void act_and_exec_in_thread(struct account *account, int fd)
{
	struct work w = { account, fd };
	pthread_t thread;

	took(account, pread(fd, buf, 66, 0));
	need(!pthread_create(&thread, NULL, write_and_exec, &w), "a thread");
	pthread_join(thread, NULL);
}

void act_processes(const char *folder, const char *where)
{
	in_child(folder, where, "a process ends", act_and_end);
	in_child(folder, where, "a thread ends", act_in_thread);
	in_child(folder, where, "exec", act_and_exec);
	in_child(folder, where, "exec by a thread", act_and_exec_in_thread);
	in_child(folder, where, "core dump", act_and_dump);
}

/* The rows' paths are what readlink(/proc/self/fd/N) gives. */
static struct account *named(const char *where, const char *what, int fd)
{
	char link[64], path[512], name[64];
	ssize_t n;
	char *end;
	struct account *account;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	need(n > 0, link);
	path[n] = '\0';
	end = strstr(path, " (deleted)");
	if (end)
		*end = '\0';
	snprintf(name, sizeof(name), "%s: %s", where, what);
	account = account_of(name, fd, path);
	snprintf(account->flags, sizeof(account->flags), "%s", end ? "deleted" : "");
	gave(account, pwrite(fd, buf, 100, 0));
	took(account, pread(fd, buf, 10, 0));
	return account;
}

static void act_deep(const char *folder, const char *where)
{
	char path[512];
	struct account *account;
	size_t len;
	int fd;

	len = (size_t)snprintf(path, sizeof(path), "%s", folder);
	for (int i = 0; i < 45; i++) {
		len += (size_t)snprintf(path + len, sizeof(path) - len, "/d%d", i);
		need(!mkdir(path, 0700) || errno == EEXIST, path);
	}
	snprintf(path + len, sizeof(path) - len, "/file");
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	need(fd >= 0, path);
	account = named(where, "deeper than is kept", fd);
	snprintf(account->path, sizeof(account->path), ".../d6/"); /* it begins so */
	snprintf(account->flags, sizeof(account->flags), "cut");
	close(fd);
}

static void act_mounted(const char *folder, const char *where)
{
	char path[2][512];
	int fd;

	snprintf(path[0], sizeof(path[0]), "%s/bound", folder);
	need(!mkdir(path[0], 0700) || errno == EEXIST, path[0]);
	if (mount(folder, path[0], NULL, MS_BIND, NULL))
		return;
	snprintf(path[1], sizeof(path[1]), "%s/bound/file", folder);
	fd = open(path[1], O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	need(fd >= 0, path[1]);
	named(where, "by a bind mount", fd);
	close(fd);
	umount2(path[0], MNT_DETACH);
}

static void act_renamed(const char *folder, const char *where)
{
	char path[2][512];
	int fd = open_new(folder, "old name", 100, 0, path[0]);
	struct account *account;

	need(fd >= 0, path[0]);
	account = named(where, "renamed, and used again", fd);
	snprintf(path[1], sizeof(path[1]), "%s/new name", folder);
	need(!rename(path[0], path[1]), path[1]);
	took(account, pread(fd, buf, 20, 0));
	gave(account, pwrite(fd, buf, 30, 0));
	close(fd);
	fd = open(path[1], O_RDONLY | O_CLOEXEC);
	took(account, pread(fd, buf, 40, 0));
	close(fd);
}

static void act_deleted(const char *folder, const char *where)
{
	char path[512];
	int fd = open_new(folder, "deleted", 100, 0, path);

	need(fd >= 0 && !unlink(path), path);
	named(where, "deleted", fd);
	close(fd);
	/* Its number may be given to the next. */
	fd = open_new(folder, "deleted", 100, 0, path);
	need(fd >= 0, path);
	close(fd);
}

/* Of overlayfs: a file of the lower layer, which opening it for writing copies up. */
static void act_copied_up(const char *folder, const char *where)
{
	char path[512];
	int fd, other = open_new(folder, "beside", 1000, 0, path);
	struct account *account, *beside = named(where, "beside one that is copied up", other);

	snprintf(path, sizeof(path), "%s/below", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		took(beside, pread(other, buf, 300, 0));
		account = named(where, "copied up", fd);
		took(account, pread(fd, buf, 64, 1000));
		close(fd);
	}
	gave(beside, pwrite(other, buf, 400, 0));
	close(other);
}

void act_paths(const char *folder, const char *where)
{
	act_copied_up(folder, where);
	act_renamed(folder, where);
	act_deleted(folder, where);
	act_deep(folder, where);
	act_mounted(folder, where);
}

/* Threads that share four files, so that each turns from one to the other all the time. */
#define SHARED 4

struct storm {
	struct account *account[SHARED];
	int fd[SHARED];
	unsigned int rounds, seed;
};

static void *storm(void *arg)
{
	struct storm s = *(struct storm *)arg;
	char bytes[6000] = "";

	for (unsigned int i = 0; i < s.rounds; i++) {
		unsigned int r = s.seed = s.seed * 1103515245 + 12345, which = r >> 16 & 3;
		size_t n = 1 + (r >> 8) % sizeof(bytes);

		if (r >> 20 & 1)
			took(s.account[which], pread(s.fd[which], bytes, n, r % 70000));
		else
			gave(s.account[which], pwrite(s.fd[which], bytes, n, r % 60000));
	}
	return NULL;
}

void act_storm(const char *folder, const char *where, unsigned int threads, unsigned int rounds)
{
	struct storm s = { .rounds = rounds }, each[64];
	pthread_t thread[64];
	char path[512], name[64];

	for (int i = 0; i < SHARED; i++) {
		snprintf(name, sizeof(name), "shared%d", i);
		s.fd[i] = open_new(folder, name, 65536, 0, path);
		need(s.fd[i] >= 0, path);
		snprintf(name, sizeof(name), "%s: %u threads, file %d", where, threads, i);
		s.account[i] = account_of(name, s.fd[i], path);
	}
	for (unsigned int i = 0; i < threads && i < 64; i++) {
		each[i] = s;
		each[i].seed = i * 77 + 1;
		need(!pthread_create(&thread[i], NULL, storm, &each[i]), "threads");
	}
	for (unsigned int i = 0; i < threads && i < 64; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < SHARED; i++)
		close(s.fd[i]);
}
