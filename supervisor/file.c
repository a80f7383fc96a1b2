// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Reads of kernel files as chains of operations, see file.h. Without direct descriptors (before
 * 5.19) a chain cannot use a descriptor that it opens itself: it reads and closes the one that
 * the chain before opened, and opens the next; a seq_file or iterator starts when it is first
 * read, so the data is fresh all the same.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tag.h"

#define PAGE   4096u
#define STRIDE (2 * PAGE)        /* a page, or a single record that is longer */
#define NEAR   (PAGE - PAGE / 8) /* close to a page it may be two tomorrow */

enum step { STEP_OPEN = 1000, STEP_CLOSE, STEP_NEXT };

/* Reads the file to its end; *calls is how many reads gave something. */
static int measure(int fd, uint32_t *total, unsigned int *calls)
{
	char buf[STRIDE];
	ssize_t n;

	*total = 0;
	*calls = 0;
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		*total += (uint32_t)n;
		(*calls)++;
	}
	return n < 0 ? -errno : 0;
}

/* Whether one read with a large buffer gives all of it. */
static bool one_read_does(int fd, uint32_t total)
{
	char *buf = malloc(2 * total + PAGE);
	ssize_t n = buf ? pread(fd, buf, 2 * total + PAGE, 0) : -1;

	free(buf);
	return n >= (ssize_t)total && (total < NEAR || n > PAGE);
}

static int allocate(struct mote_file *file)
{
	file->size = file->stride * file->reads;
	file->buf = malloc(file->size);
	if (!file->buf)
		return -ENOMEM;
	memset(file->buf, 0, file->size);
	return 0;
}

int mote_file_open(struct mote_file *file, const char *path, int slot, bool direct)
{
	uint32_t total;
	unsigned int calls;
	int err;

	*file = (struct mote_file){
		.path = path, .dirfd = AT_FDCWD, .slot = slot, .direct = direct
	};
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0)
		return -errno;
	err = measure(file->fd, &total, &calls);
	if (err) {
		mote_file_close(file);
		return err;
	}
	file->reopen = !one_read_does(file->fd, total);
	if (file->reopen) {
		file->stride = STRIDE;
		file->reads = 2 * calls + 2;
		if (file->reads > MOTE_FILE_READS_MAX)
			file->reads = MOTE_FILE_READS_MAX;
		close(file->fd);
		file->fd = direct ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	} else {
		lseek(file->fd, 0, SEEK_SET); /* for outgrow() */
		file->stride = (2 * total + PAGE) & ~(PAGE - 1);
		file->reads = 1;
	}
	err = allocate(file);
	if (err)
		mote_file_close(file);
	return err;
}

int mote_file_reserve(struct mote_file *file, uint32_t bytes)
{
	unsigned int reads = bytes / NEAR + 2;
	uint32_t size;
	char *buf;

	if (reads > MOTE_FILE_READS_MAX)
		reads = MOTE_FILE_READS_MAX;
	size = reads * (file->reopen ? file->stride : PAGE);
	if (!file->buf || size <= file->size)
		return 0;
	buf = realloc(file->buf, size);
	if (!buf)
		return -ENOMEM;
	memset(buf, 0, size);
	file->buf = buf;
	file->size = size;
	if (file->reopen)
		file->reads = reads;
	else
		file->spare = reads;
	return 0;
}

int mote_file_open_iterator(struct mote_file *file, int dirfd, const char *name, int slot,
			    bool direct)
{
	*file = (struct mote_file){ .path = name,
				    .dirfd = dirfd,
				    .fd = -1,
				    .slot = slot,
				    .direct = direct,
				    .reopen = true,
				    .reads = 1,
				    .stride = 64 };
	if (!direct) {
		file->fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
		if (file->fd < 0)
			return -errno;
	}
	return allocate(file);
}

void mote_file_close(struct mote_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->buf);
	*file = (struct mote_file){ .fd = -1 };
}

unsigned int mote_file_ops(const struct mote_file *file)
{
	return file->buf ? file->reads + (file->reopen ? 2 : 0) : 0;
}

static void push_reads(struct mote_file *file, struct mote_engine *engine, uint32_t index)
{
	bool slot = file->reopen && file->direct;

	for (unsigned int i = 0; i < file->reads; i++) {
		struct mote_sqe sqe = {
			.tag = mote_tag(MOTE_TAG_FILE, index, i),
			.op = MOTE_OP_READ,
			.flags = MOTE_SQE_LINK | MOTE_SQE_ASYNC | (slot ? MOTE_SQE_SLOT : 0),
			.fd = slot ? file->slot : file->fd,
			.buf = file->buf + i * file->stride,
			.len = file->stride,
			.offset = file->reopen ? MOTE_OFFSET_CURRENT : 0,
		};

		mote_engine_push(engine, &sqe);
	}
}

static void push_open(struct mote_file *file, struct mote_engine *engine, uint32_t index)
{
	struct mote_sqe sqe = {
		.tag = mote_tag(MOTE_TAG_FILE, index, file->direct ? STEP_OPEN : STEP_NEXT),
		.op = MOTE_OP_OPEN,
		.flags = MOTE_SQE_LINK | MOTE_SQE_ASYNC,
		.fd = file->dirfd,
		.slot = file->direct ? file->slot : -1,
		.path = file->path,
	};

	mote_engine_push(engine, &sqe);
}

static void push_close(struct mote_file *file, struct mote_engine *engine, uint32_t index)
{
	struct mote_sqe sqe = {
		.tag = mote_tag(MOTE_TAG_FILE, index, STEP_CLOSE),
		.op = MOTE_OP_CLOSE,
		.flags = MOTE_SQE_LINK | MOTE_SQE_ASYNC | (file->direct ? MOTE_SQE_SLOT : 0),
		.fd = file->direct ? file->slot : file->fd,
	};

	mote_engine_push(engine, &sqe);
}

/* From one read to several. The descriptor's own offset is still 0: it is as good as new. */
static void outgrow(struct mote_file *file)
{
	file->grown = false;
	file->reopen = true;
	file->reads = file->spare;
	file->stride = PAGE;
}

unsigned int mote_file_push(struct mote_file *file, struct mote_engine *engine, uint32_t index)
{
	unsigned int n;

	if (file->grown)
		outgrow(file);
	n = mote_file_ops(file);
	file->error = 0;
	file->cut = false;
	if (!n)
		return 0;
	if (!file->reopen) {
		push_reads(file, engine, index);
	} else if (file->direct) {
		push_open(file, engine, index);
		push_reads(file, engine, index);
		push_close(file, engine, index);
	} else if (file->fd >= 0) {
		push_reads(file, engine, index);
		push_close(file, engine, index);
		push_open(file, engine, index);
	} else {
		/* The open of the sample before failed: try again, there is nothing to read. */
		memset(file->results, 0, sizeof(file->results));
		file->error = -EBADF;
		push_open(file, engine, index);
		n = 1;
	}
	return n;
}

void mote_file_complete(struct mote_file *file, uint32_t step, int res)
{
	if (step < file->reads)
		file->results[step] = res;
	else if (step == STEP_NEXT)
		file->fd = res < 0 ? -1 : res;
	else if (step == STEP_OPEN && res < 0)
		file->error = res;
}

struct mote_text mote_file_text(struct mote_file *file)
{
	uint32_t len = 0;

	for (unsigned int i = 0; i < mote_file_ops(file) && i < file->reads; i++) {
		int res = file->results[i];

		if (res < 0 && !file->error)
			file->error = res;
		if (res <= 0)
			break;
		memmove(file->buf + len, file->buf + i * file->stride, (size_t)res);
		len += (uint32_t)res;
		/* The last read should have found the end. */
		file->cut =
			i + 1 == file->reads && (file->reads > 1 || (uint32_t)res == file->stride);
	}
	file->grown = file->spare && !file->reopen && len > NEAR && len <= PAGE;
	file->cut |= file->grown;
	if (file->cut && len && file->buf[len - 1] == '\n')
		len--;
	file->len = file->error ? 0 : len;
	if (len > file->peak)
		file->peak = len;
	return (struct mote_text){ file->buf, file->len };
}
