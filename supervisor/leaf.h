/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which network devices are leaves, that is, count towards the host's total: sysfs says so, and
 * looking takes system calls, so a thread does it, within five seconds after the kernel told of a
 * device by rtnetlink or the loop asked for one that the thread has not seen (later, where a look
 * takes more than 50 ms: it may cost 1 % of a CPU), and every ten minutes; without rtnetlink every
 * 10 s. The rule, B10 of the field cases:
 *
 * - never: loopback, ifb, dummy; what has another device below it (bridge, bond, team, VLAN,
 *   macvlan, vxlan on a NIC), as sysfs shows by `lower_NAME` links;
 * - if there is hardware (a `device` link: PCI, virtio, USB, ...), then that and nothing else;
 * - else, as in containers, whatever is left but tunnels, tun and tap devices and ports of a
 * bridge: what these carry goes through another device once more;
 * - else ports of a bridge, and if there are none either, tunnels, tun and tap devices (a container
 *   of slirp4netns has nothing but its tap0).
 */
#ifndef MOTE_LEAF_H
#define MOTE_LEAF_H

struct mote_leaves;

/*
 * In two steps, as mote_filesystems_open() and its run are, and for its reasons: open opens
 * `sysfs` (NULL: /sys/class/net) and `netdev` (NULL: /proc/net/dev) and allocates; a sysfs that is
 * not there is no error. Run starts the thread, which then calls pread, faccessat, recv,
 * futex and clock_gettime only. At most `max` devices; others are 0. 0 or negative errno.
 */
int mote_leaves_open(const char *sysfs, const char *netdev, unsigned int max,
		     struct mote_leaves **out);
int mote_leaves_run(struct mote_leaves *leaves);
/* Both steps at once. */
int mote_leaves_start(unsigned int max, struct mote_leaves **out);
void mote_leaves_stop(struct mote_leaves *leaves);

/*
 * A mote_leaf_fn of parse.h: 1 leaf, 0 not, -1 not known yet (the thread will look). Wait-free and
 * without a system call; for one thread only.
 */
int mote_leaves_get(void *leaves, const char *name);

/* Why the rule could not be applied (every device but lo is a leaf then), or NULL. */
const char *mote_leaves_note(const struct mote_leaves *leaves);

#endif
