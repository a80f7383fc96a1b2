/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes from the walk of the kernel's list; the probes stay the caller's.
 */
#ifndef MOTE_TASKS_WALK_H
#define MOTE_TASKS_WALK_H

#include "probes.h"
#include "tasks.h"

/* `iterator` has a walk. 0 or negative errno. */
int mote_tasks_walk_open(struct mote_probes_iterator *iterator, bool direct,
			 struct mote_tasks **out);

#endif
