// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The limit of descriptors and the kernel's table of them, see descriptors.h. */
#include "descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

unsigned int mote_descriptors_allow(unsigned int wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	if (limit.rlim_cur < wanted && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			getrlimit(RLIMIT_NOFILE, &limit);
	}
	return limit.rlim_cur < UINT_MAX ? (unsigned int)limit.rlim_cur : UINT_MAX;
}

void mote_descriptors_grow(int fd, unsigned int descriptors)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, (int)descriptors - 1);

	if (copy >= 0)
		close(copy);
}
