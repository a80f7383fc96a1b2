// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What libbpf does not do as it is needed here: tracepoints of a tracefs that is not mounted, and
 * pins in a bpffs that no path leads to.
 */
#include "probes_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "probes_mount.h"

int mote_probes_attach_id(struct bpf_program *program, int id, struct bpf_link **link)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = (unsigned int)id,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	*link = bpf_program__attach_perf_event(program, fd);
	err = *link ? 0 : -errno;
	if (err)
		close(fd);
	return err;
}

/* libbpf reads the id under a fixed path; ours can come from a tracefs that is not mounted. */
int mote_probes_attach_tracepoint(struct bpf_program *program, const char *category,
				  const char *name, bool may_mount, struct bpf_link **link)
{
	int id = mote_probes_tracepoint(category, name, may_mount);

	return id < 0 ? id : mote_probes_attach_id(program, id, link);
}

int mote_probes_pin(struct bpf_link *link, int dirfd, const char *name, uid_t uid, gid_t gid)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dirfd, name);
	err = bpf_link__pin(link, path);
	if (err)
		return err;
	if (uid != (uid_t)-1 && fchownat(dirfd, name, uid, gid, 0))
		return -errno;
	return fchmodat(dirfd, name, 0400, 0) ? -errno : 0;
}

size_t mote_probes_whole_pages(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) & ~(page - 1);
}

int mote_probes_map(int fd, int prot, off_t at, size_t len, void **out)
{
	void *mem = mmap(NULL, len, prot, MAP_SHARED | MAP_POPULATE, fd, at);

	if (mem == MAP_FAILED)
		return -errno;
	*out = mem;
	return 0;
}

void mote_probes_forget_image(const void *image, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)image, to;

	to = (from + size) & ~(page - 1);
	from = (from + page - 1) & ~(page - 1);
	madvise((void *)from, to - from, MADV_DONTNEED);
}
