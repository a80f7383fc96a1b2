/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes from the BPF task iterator; the probes stay the caller's.
 */
#ifndef MOTE_TASKS_ITER_H
#define MOTE_TASKS_ITER_H

#include "probes.h"
#include "tasks.h"

int mote_tasks_iter_open(struct mote_probes_iterator *iterator, bool direct,
			 struct mote_tasks **out);

#endif
