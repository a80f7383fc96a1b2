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

#define PAGE     4096u
#define STRIDE   (2 * PAGE) /* a page, or a single record that is longer */
#define LINE_MAX (PAGE / 8)
#define SMALL    64 /* a text that has a few numbers */

enum step { STEP_OPEN = 1000, STEP_CLOSE, STEP_NEXT };

struct measure {
	uint32_t total, longest; /* bytes; of the longest line */
	unsigned int calls;      /* reads that gave something */
};

static void measure_lines(struct measure *m, const char *text, size_t len)
{
	const char *end = text + len, *newline;

	for (; text < end; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text)) ?: end;
		if (newline + 1 - text > m->longest)
			m->longest = (uint32_t)(newline + 1 - text);
	}
}

/* Reads the file to its end. */
static int measure(int fd, struct measure *m)
{
	char buf[STRIDE];
	ssize_t n;

	*m = (struct measure){ 0 };
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		measure_lines(m, buf, (size_t)n);
		m->total += (uint32_t)n;
		m->calls++;
	}
	return n < 0 ? -errno : 0;
}

/*
 * The longest text that leaves no doubt that a page held all of it: one more line would have had
 * room, even one twice as long as those there are.
 */
static uint32_t near_page(const struct measure *m)
{
	return PAGE - (2 * m->longest < LINE_MAX ? 2 * m->longest : LINE_MAX);
}

/* Whether one read with a large buffer gives all of it. */
static bool one_read_does(int fd, uint32_t total, uint32_t near)
{
	char *buf = malloc(2 * total + PAGE);
	ssize_t n = buf ? pread(fd, buf, 2 * total + PAGE, 0) : -1;

	free(buf);
	return n >= (ssize_t)total && (total < near || n > PAGE);
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
	struct measure m;
	int err;

	*file = (struct mote_file){
		.path = path, .dirfd = AT_FDCWD, .slot = slot, .direct = direct
	};
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0)
		return -errno;
	err = measure(file->fd, &m);
	if (err) {
		mote_file_close(file);
		return err;
	}
	file->near = near_page(&m);
	file->reopen = !one_read_does(file->fd, m.total, file->near);
	if (file->reopen) {
		file->stride = STRIDE;
		file->reads = 2 * m.calls + 2;
		if (file->reads > MOTE_FILE_READS_MAX)
			file->reads = MOTE_FILE_READS_MAX;
		close(file->fd);
		file->fd = direct ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	} else {
		lseek(file->fd, 0, SEEK_SET); /* for outgrow() */
		/* A sysctl's is allocated and zeroed by the kernel, as large as the buffer. */
		file->stride =
			m.total <= SMALL ? 4 * SMALL - 1 : (2 * m.total + PAGE) & ~(PAGE - 1);
		file->reads = 1;
	}
	file->last = m.total;
	err = allocate(file);
	if (err)
		mote_file_close(file);
	return err;
}

int mote_file_reserve(struct mote_file *file, uint32_t bytes)
{
	unsigned int reads = bytes / (PAGE - LINE_MAX) + 2;
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
	int err;

	*file = (struct mote_file){ .dirfd = dirfd,
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
	file->path = file->name = strdup(name);
	err = file->name ? allocate(file) : -ENOMEM;
	if (err)
		mote_file_close(file);
	return err;
}

/* From here on it is read in strides, as many as its buffer has room for. */
static void begin_pages(struct mote_file *file)
{
	file->paged = true;
	file->reopen = file->grown = false;
	file->stride = PAGE - LINE_MAX;
	file->reads = file->size / file->stride;
	if (file->reads > MOTE_FILE_READS_MAX)
		file->reads = MOTE_FILE_READS_MAX;
}

/* One that is opened anew, held from now on. */
static void hold_pages(struct mote_file *file, struct mote_engine *engine)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!mote_engine_hold(engine, fd, file->slot)) {
		close(fd);
		return;
	}
	if (file->fd >= 0)
		close(file->fd);
	file->fd = fd;
	file->held = true;
	begin_pages(file);
}

void mote_file_hold(struct mote_file *file, struct mote_engine *engine)
{
	if (!file->buf || file->slot < 0)
		return;
	if (file->reopen)
		hold_pages(file, engine);
	else
		file->held = mote_engine_hold(engine, file->fd, file->slot);
}

void mote_file_close(struct mote_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->buf);
	free(file->name);
	*file = (struct mote_file){ .fd = -1 };
}

/* Of the strides those that a text takes which is a line longer than the last. */
static unsigned int reads_of(const struct mote_file *file)
{
	unsigned int reads = file->reads;

	if (file->paged && !file->cut && reads > (file->last + LINE_MAX) / file->stride + 1)
		reads = (file->last + LINE_MAX) / file->stride + 1;
	return reads;
}

unsigned int mote_file_ops(const struct mote_file *file)
{
	return file->buf ? reads_of(file) + (file->reopen ? 2 : 0) : 0;
}

/* Whether its chain goes without a worker. */
static bool ready(const struct mote_file *file, const struct mote_engine *engine)
{
	if (file->tried)
		return false;
	return file->reopen ? file->direct && mote_engine_ready(engine) : file->held;
}

static unsigned int flags_of(const struct mote_file *file, const struct mote_engine *engine)
{
	return MOTE_SQE_LINK | (ready(file, engine) ? 0 : MOTE_SQE_ASYNC);
}

static void push_reads(struct mote_file *file, struct mote_engine *engine, uint32_t index)
{
	bool slot = file->reopen ? file->direct : ready(file, engine);

	for (unsigned int i = 0; i < file->pushed; i++) {
		struct mote_sqe sqe = {
			.tag = mote_tag(MOTE_TAG_FILE, index, i),
			.op = MOTE_OP_READ,
			.flags = flags_of(file, engine) | (slot ? MOTE_SQE_SLOT : 0),
			.fd = slot ? file->slot : file->fd,
			.buf = file->buf + i * file->stride,
			.len = file->stride,
			.offset = file->reopen ? MOTE_OFFSET_CURRENT : i * file->stride,
		};

		mote_engine_push(engine, &sqe);
	}
}

static void push_open(struct mote_file *file, struct mote_engine *engine, uint32_t index)
{
	struct mote_sqe sqe = {
		.tag = mote_tag(MOTE_TAG_FILE, index, file->direct ? STEP_OPEN : STEP_NEXT),
		.op = MOTE_OP_OPEN,
		.flags = flags_of(file, engine) | (ready(file, engine) ? MOTE_SQE_READY : 0),
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
		.flags = flags_of(file, engine) | (file->direct ? MOTE_SQE_SLOT : 0),
		.fd = file->direct ? file->slot : file->fd,
	};

	mote_engine_push(engine, &sqe);
}

/* From one read to several. The descriptor's own offset is still 0: it is as good as new. */
static void outgrow(struct mote_file *file)
{
	if (file->held) {
		begin_pages(file);
		return;
	}
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
	file->pushed = n ? reads_of(file) : 0;
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
	if (step < file->reads && res == -EAGAIN)
		file->tried = true;
	if (step == STEP_NEXT)
		file->fd = res < 0 ? -1 : res;
	else if (step == STEP_OPEN && res < 0)
		file->error = res;
}

/*
 * Read `i` was the last that gave something: whether there may be more. Of several the last should
 * have found the end, or less than its stride.
 */
static bool is_cut(const struct mote_file *file, unsigned int i)
{
	bool full = (uint32_t)file->results[i] == file->stride;

	if (file->paged)
		return full ? i + 1 == file->pushed
			    : i + 1 < file->pushed && file->results[i + 1] > 0;
	return i + 1 == file->pushed && (file->pushed > 1 || full);
}

struct mote_text mote_file_text(struct mote_file *file)
{
	uint32_t len = 0;

	for (unsigned int i = 0; i < file->pushed && !file->cut; i++) {
		int res = file->results[i];

		if (res < 0 && !file->error)
			file->error = res;
		if (res <= 0)
			break;
		memmove(file->buf + len, file->buf + i * file->stride, (size_t)res);
		len += (uint32_t)res;
		file->cut = is_cut(file, i);
	}
	file->grown =
		file->spare && !file->reopen && !file->paged && len > file->near && len <= PAGE;
	file->cut |= file->grown;
	if (file->cut && len && file->buf[len - 1] == '\n')
		len--;
	file->len = file->error ? 0 : len;
	if (!file->error)
		file->last = len;
	if (len > file->peak)
		file->peak = len;
	return (struct mote_text){ file->buf, file->len };
}
