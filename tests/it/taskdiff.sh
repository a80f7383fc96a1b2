#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# BPF's records against /proc, on every process of the machine, by each way that this kernel has;
# see tests/helpers/taskdiff.c.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
build=${MOTE_BUILD:-build}
ways=iterator
if "$build/moted" --check | grep -q '^ *task_iterator *list '; then ways="list kept iterator"; fi
status=0
for way in $ways; do
	"$build/tests/helpers/taskdiff" 104 $way || status=$?
done
exit $status
