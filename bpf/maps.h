/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arrays that the supervisor maps. Where the loader sets a map's size, `entries` is the smallest.
 */
#ifndef MOTE_BPF_MAPS_H
#define MOTE_BPF_MAPS_H

#include "kernel.h"

#define ARRAY(name_, value_, entries_)             \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, entries_);     \
		__type(key, u32);                  \
		__type(value, value_);             \
	} name_ SEC(".maps")

#endif
