// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The same by io_submit(2): from and to the page cache, and past it (O_DIRECT), where another task
 * completes it. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "actor.h"

#define SIZE 65536

static char buf[SIZE] __attribute__((aligned(4096)));

static void submit(aio_context_t aio, struct iocb *list[], int n)
{
	need(syscall(SYS_io_submit, aio, (long)n, list) == n, "io_submit");
}

static ssize_t complete(aio_context_t aio)
{
	struct io_event event;

	need(syscall(SYS_io_getevents, aio, 1L, 1L, &event, NULL) == 1, "io_getevents");
	return (ssize_t)event.res;
}

static ssize_t one(aio_context_t aio, int fd, unsigned int opcode, void *at, size_t n,
		   int64_t offset)
{
	struct iocb cb = { .aio_fildes = (unsigned int)fd,
			   .aio_lio_opcode = (uint16_t)opcode,
			   .aio_buf = (uint64_t)(uintptr_t)at,
			   .aio_nbytes = n,
			   .aio_offset = offset };
	struct iocb *list = &cb;

	submit(aio, &list, 1);
	return complete(aio);
}

/* Eight at once, as a database does. */
static void many(aio_context_t aio, int fd, struct account *account)
{
	struct iocb cb[8], *list[8];

	memset(cb, 0, sizeof(cb));
	for (int i = 0; i < 8; i++) {
		cb[i].aio_fildes = (unsigned int)fd;
		cb[i].aio_lio_opcode = IOCB_CMD_PREAD;
		cb[i].aio_buf = (uint64_t)(uintptr_t)(buf + i * 4096);
		cb[i].aio_nbytes = 4096;
		cb[i].aio_offset = i * 4096;
		list[i] = &cb[i];
	}
	submit(aio, list, 8);
	for (int i = 0; i < 8; i++)
		took(account, complete(aio));
}

static void act(const char *folder, const char *where, const char *what, int flags)
{
	int in, out;
	char path[2][512], name[64];
	struct iovec v[2] = { { buf, 100 }, { buf + 100, 200 } };
	struct account *from, *to;
	aio_context_t aio = 0;

	need(!syscall(SYS_io_setup, 8, &aio), "io_setup");
	snprintf(name, sizeof(name), "%s from", what);
	in = open_new(folder, name, SIZE, flags, path[0]);
	snprintf(name, sizeof(name), "%s to", what);
	out = open_new(folder, name, SIZE, flags, path[1]);
	if (in >= 0 && out >= 0) {
		snprintf(name, sizeof(name), "%s: %s", where, what);
		from = account_of(name, in, path[0]);
		to = account_of(name, out, path[1]);
		took(from, one(aio, in, IOCB_CMD_PREAD, buf, 8192, 4096));
		gave(to, one(aio, out, IOCB_CMD_PWRITE, buf, 4096, 0));
		many(aio, in, from);
		if (!flags) {
			took(from, one(aio, in, IOCB_CMD_PREAD, buf, 4096, SIZE - 536));
			took(from, one(aio, in, IOCB_CMD_PREADV, v, 2, 0));
			gave(to, one(aio, out, IOCB_CMD_PWRITEV, v, 2, SIZE));
		}
	}
	close(in);
	close(out);
	syscall(SYS_io_destroy, aio);
}

void act_aio(const char *folder, const char *where)
{
	if (book->no_aio)
		return;
	act(folder, where, "libaio", 0);
	act(folder, where, "libaio, O_DIRECT", O_DIRECT);
}
