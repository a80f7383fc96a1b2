/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * File systems of our own that no path leads to: they vanish with their descriptor, whatever
 * becomes of us, and no mount namespace is touched.
 */
#ifndef MOTE_PROBES_MOUNT_H
#define MOTE_PROBES_MOUNT_H

#include <stdbool.h>

/* A descriptor for openat() of a detached mount of `type` ("bpf", "tracefs"), or negative errno. */
int mote_probes_mount(const char *type);

/*
 * A descriptor of tracefs for openat(): of the one that is mounted, else (`may_mount`) of a mount
 * of our own. -ENODEV: not mounted, and may not be (`may_mount`, privilege).
 */
int mote_probes_tracefs(bool may_mount);

/*
 * The id of tracepoint `category`/`name` for perf_event_open(), or negative errno: -ENOENT there is
 * no such tracepoint; else as mote_probes_tracefs().
 */
int mote_probes_tracepoint(const char *category, const char *name, bool may_mount);

#endif
