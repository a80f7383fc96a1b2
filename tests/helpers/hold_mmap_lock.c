// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * hold_mmap_lock DIRECTORY: a process whose mmap lock is held for writing until standard input
 * ends, so that whoever reads its /proc/PID/cmdline hangs. It maps a file of a filesystem that this
 * program serves (FUSE), writes to the page, and maps something else over it: the kernel then
 * writes the page back under the lock, and the answer to that write does not come.
 *
 * Prints `held PID` when it is so, `free` when it is over; ends with standard input. The mount is
 * private and goes away with this program. Exits with 77 where FUSE is not to be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_HERE 77
#define NODE     2 /* of the only file; 1 is the directory */

static int device;
static pid_t victim;

static int die(int code, const char *what)
{
	fprintf(stderr, "hold_mmap_lock: %s: %s\n", what, strerror(errno));
	if (victim > 0)
		kill(victim, SIGKILL);
	exit(code);
}

static void answer(uint64_t unique, int err, const void *body, size_t len)
{
	static char buf[8192];
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + len),
				       .error = -err,
				       .unique = unique };

	memcpy(buf, &out, sizeof(out));
	if (len)
		memcpy(buf + sizeof(out), body, len);
	if (write(device, buf, out.len) < 0 && errno != ENOENT)
		die(1, "answer");
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == NODE ? S_IFREG | 0600 : S_IFDIR | 0700,
		.nlink = 1,
		.size = node == NODE ? 4096 : 0,
	};
}

static void answer_init(uint64_t unique, const struct fuse_init_in *in)
{
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = in->minor < FUSE_KERNEL_MINOR_VERSION ? in->minor
							       : FUSE_KERNEL_MINOR_VERSION,
		.max_write = 4096,
	};

	answer(unique, 0, &out, sizeof(out));
}

static void answer_about(uint64_t unique, uint64_t node, uint32_t opcode)
{
	struct fuse_entry_out entry = { .nodeid = NODE,
					.attr_valid = 3600,
					.attr = attributes(NODE) };
	struct fuse_attr_out attr = { .attr_valid = 3600, .attr = attributes(node) };

	if (opcode == FUSE_LOOKUP)
		answer(unique, 0, &entry, sizeof(entry));
	else
		answer(unique, 0, &attr, sizeof(attr));
}

/* One request; the number of it if it is the write that is not to be answered yet, else 0. */
static uint64_t serve(void)
{
	static union {
		char bytes[FUSE_MIN_READ_BUFFER + 4096];
		struct fuse_in_header head;
	} in;
	static const char page[4096];
	const struct fuse_open_out open = { .open_flags = FOPEN_KEEP_CACHE };
	ssize_t n = read(device, &in, sizeof(in));

	if (n < 0 && (errno == ENOENT || errno == EINTR))
		return 0;
	if (n < (ssize_t)sizeof(in.head))
		die(1, "read of /dev/fuse");
	switch (in.head.opcode) {
	case FUSE_INIT:
		answer_init(in.head.unique, (const void *)(in.bytes + sizeof(in.head)));
		break;
	case FUSE_LOOKUP:
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		answer_about(in.head.unique, in.head.nodeid, in.head.opcode);
		break;
	case FUSE_OPEN:
		answer(in.head.unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		answer(in.head.unique, 0, page, sizeof(page));
		break;
	case FUSE_WRITE:
		return in.head.unique;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(in.head.unique, in.head.opcode == FUSE_RELEASE ? 0 : ENOSYS, NULL, 0);
	}
	return 0;
}

static void mount_at(const char *directory)
{
	char options[128];

	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		die(NOT_HERE, "/dev/fuse");
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die(NOT_HERE, "private mount namespace");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (mount("mote-test", directory, "fuse", MS_NOSUID | MS_NODEV, options))
		die(NOT_HERE, "mount of FUSE");
}

/* Runs in a process of its own: what it asks of the file is answered by its parent. */
static int be_victim(const char *directory)
{
	char path[4096], *page;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "mote-stuck");
	close(device);
	snprintf(path, sizeof(path), "%s/file", directory);
	fd = open(path, O_RDWR);
	page = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return 1;
	page[0] = 1;
	if (mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		return 1;
	for (;;)
		pause();
}

static void let_go(uint64_t held)
{
	struct fuse_write_out out = { .size = 4096 };

	answer(held, 0, &out, sizeof(out));
	printf("free\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN } };
	uint64_t held = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: hold_mmap_lock DIRECTORY\n");
		return 2;
	}
	mount_at(argv[1]);
	victim = fork();
	if (victim == 0)
		_exit(be_victim(argv[1]));
	fds[1] = (struct pollfd){ .fd = device, .events = POLLIN };
	while (poll(fds, 2, -1) > 0) {
		char line[16];
		uint64_t write = fds[1].revents ? serve() : 0;

		if (write) {
			held = write;
			printf("held %d\n", victim);
			fflush(stdout);
		}
		if (!fds[0].revents)
			continue;
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			break;
		if (held)
			let_go(held);
		held = 0;
	}
	if (held)
		let_go(held);
	kill(victim, SIGKILL);
	while (waitpid(victim, NULL, WNOHANG) == 0 && poll(fds + 1, 1, 100) >= 0) {
		if (fds[1].revents)
			serve();
	}
	return 0;
}
