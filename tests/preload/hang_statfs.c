// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A stand-in for statfs() that hangs as one on a dead NFS server does: LD_PRELOAD=hang_statfs.so
 * with MOTE_HANG_STATFS=PATH. A call for that path stays away for ever, or until the file
 * MOTE_HANG_UNTIL is there; every other call is the kernel's.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

int statfs(const char *file, struct statfs *st)
{
	const char *hung = getenv("MOTE_HANG_STATFS"), *until = getenv("MOTE_HANG_UNTIL");

	while (hung && !strcmp(file, hung) && (!until || access(until, F_OK) != 0))
		usleep(20000);
	return (int)syscall(SYS_statfs, file, st);
}
