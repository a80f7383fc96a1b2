/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rule of leaf.h, applied to the devices of one look. */
#ifndef MOTE_LEAF_RULE_H
#define MOTE_LEAF_RULE_H

#include <net/if.h>
#include <stdbool.h>

struct mote_device {
	char name[IFNAMSIZ];
	bool known, virtual; /* in sysfs; made by software */
	bool port, tun;      /* of a bridge; its other end is a file */
	bool leaf;
};

struct mote_devices {
	unsigned int used;
	bool cut; /* there are more than fit */
	struct mote_device *at;
};

enum mote_leaf_note {
	MOTE_LEAF_RULE,        /* sysfs told */
	MOTE_LEAF_NO_SYSFS,    /* there is none */
	MOTE_LEAF_OTHER_SYSFS, /* it is of another network namespace */
};

/*
 * Sets `leaf` of all devices, of which the names are given, by what stands below `sysfs`, a
 * descriptor of /sys/class/net or -1. Removes those that sysfs does not know, see leaf_rule.c.
 */
enum mote_leaf_note mote_leaf_judge(int sysfs, struct mote_devices *all);

#endif
