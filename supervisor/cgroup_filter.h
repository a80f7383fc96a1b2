/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which cgroups are shown: patterns of paths, with * for any text and ? for any byte. */
#ifndef MOTE_CGROUP_FILTER_H
#define MOTE_CGROUP_FILTER_H

#include <stdbool.h>

#include "options.h"
#include "parse.h"

/* Whether one of the blank-separated patterns is the path, or that of something above it. */
bool mote_cgroup_matches(const char *patterns, struct mote_text path);
/* By [cgroup] include, exclude and depth; the root has level 0. */
bool mote_cgroup_shown(const struct mote_options *options, struct mote_text path,
		       unsigned int level);
/* Whether one below it may be shown, where it itself is not. */
bool mote_cgroup_shown_below(const struct mote_options *options, struct mote_text path,
			     unsigned int level);

#endif
