#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The task iterator against /proc, on every process of the machine; see tests/helpers/taskdiff.c.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
exec "${MOTE_BUILD:-build}/tests/helpers/taskdiff"
