#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What the verifier follows of each BPF program stays small: it is most of what mote's start costs. See
# tests/helpers/bpfstat.c, and make bpfstat for other kernels.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
build=${MOTE_BUILD:-build}
set -- "$build"/gen/mote.bpf.o "$build"/gen/net_fentry.bpf.o "$build"/gen/net_kprobe.bpf.o
case $(uname -r) in 5.* | 6.[0-6].*) ;; *) set -- "$@" "$build"/bpf/walk.bpf.o ;; esac
if out=$("$build/tests/helpers/bpfstat" "$@"); then
	echo "ok 1 - every program takes little of the verifier"
else
	echo "not ok 1 - every program takes little of the verifier"
	status=1
fi
echo "$out" | sed 's/^/# /'
echo 1..1
exit ${status:-0}
