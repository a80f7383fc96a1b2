#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# alone: it makes thousands of sockets, which other tests would count
# Sockets that are older than moted, in its network namespace and in another; see tests/helpers/older_sockets.c.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
exec "${MOTE_BUILD:-build}/tests/helpers/older_sockets" "${MOTE_BUILD:-build}/moted" 2>/dev/null
