// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The filters of cgroups, see cgroup_filter.h; asked once for each cgroup. A match goes on after
 * the last star, so it takes at most the product of the lengths.
 */
#include "cgroup_filter.h"

#include <string.h>

static bool matches(struct mote_text pattern, struct mote_text text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, from = 0;

	while (t < text.len) {
		if (p < pattern.len && pattern.data[p] == '*') {
			star = p++;
			from = t;
		} else if (p < pattern.len &&
			   (pattern.data[p] == '?' || pattern.data[p] == text.data[t])) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.data[p] == '*')
		p++;
	return p == pattern.len;
}

/* The path itself, and all that it is below of. */
static bool matches_upwards(struct mote_text pattern, struct mote_text path)
{
	for (size_t len = 1; len <= path.len; len++) {
		bool whole = len == path.len || path.data[len] == '/';

		if (whole && matches(pattern, (struct mote_text){ path.data, len }))
			return true;
	}
	return false;
}

bool mote_cgroup_matches(const char *patterns, struct mote_text path)
{
	while (*patterns) {
		size_t len = strcspn(patterns, " ");

		if (len && matches_upwards((struct mote_text){ patterns, len }, path))
			return true;
		patterns += len + (patterns[len] == ' ');
	}
	return false;
}

/* A path that begins with this one may match: the pattern's text agrees as far as both go, or it
 * has a star by then. */
static bool may_match_below(struct mote_text pattern, struct mote_text path)
{
	for (size_t i = 0; i <= path.len; i++) {
		char next = i < path.len ? path.data[i] : '/';

		if (i == pattern.len)
			return false;
		if (pattern.data[i] == '*')
			return true;
		if (pattern.data[i] != '?' && pattern.data[i] != next)
			return false;
	}
	return true;
}

bool mote_cgroup_shown_below(const struct mote_options *options, struct mote_text path,
			     unsigned int level)
{
	const char *patterns = options->cgroup_include;

	if (!level)
		return true; /* nothing is below of "/" as patterns go */
	if (options->cgroup_depth && level >= options->cgroup_depth)
		return false;
	if (mote_cgroup_matches(options->cgroup_exclude, path))
		return false;
	while (*patterns) {
		size_t len = strcspn(patterns, " ");

		if (len && may_match_below((struct mote_text){ patterns, len }, path))
			return true;
		patterns += len + (patterns[len] == ' ');
	}
	return false;
}

bool mote_cgroup_shown(const struct mote_options *options, struct mote_text path,
		       unsigned int level)
{
	if (options->cgroup_depth && level > options->cgroup_depth)
		return false;
	if (options->cgroup_include[0] && !mote_cgroup_matches(options->cgroup_include, path))
		return false;
	return !mote_cgroup_matches(options->cgroup_exclude, path);
}
