// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Privilege, all of it.
 *
 * Before: BPF programs are loaded, attached and pinned (CAP_BPF, CAP_PERFMON), tracefs and a
 * detached bpffs are mounted (CAP_SYS_ADMIN), the proc connector is joined (CAP_NET_ADMIN), the
 * socket is given to its group (CAP_CHOWN), and the ring is made (sysctl io_uring_disabled = 1
 * lets only the capable have one). None of these is needed again: iterators are opened by their
 * names in the bpffs, as files of mote's own user.
 *
 * After: no capability in any set, and no way to get one by an exec. So /proc/PID/io and
 * /proc/PID/exe of other users' processes cannot be read; the task iterator has the same numbers,
 * and where there is none, these fields are absent for that reason.
 */
#include "privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set(uint32_t effective, uint32_t permitted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = effective,
						    .permitted = permitted } };

	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

int mote_privilege_drop(void)
{
	int err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return -errno;
	err = set(0, 0);
	if (err)
		return err;
	/* Try to break out. */
	err = set(1u << CAP_CHOWN, 1u << CAP_CHOWN);
	return err == -EPERM ? 0 : -ENOTRECOVERABLE;
}
