#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The network programs against exchanges of known bytes; see tests/net_programs/exchange.h. By tracepoints, which
# need no more than BTF; vmtests/net_programs has the others.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
set=tp
case $(uname -r) in 5.* | 6.[0-2].*) set=kprobe ;; esac
exec "${MOTE_BUILD:-build}/tests/helpers/net_programs" $set
