#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# alone: it makes thousands of sockets, which other tests would count
# A tick beside 120,000 idle sockets costs at most twice that beside 1,000; see tests/helpers/idle_sockets.c.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
set -u
build=${MOTE_BUILD:-build}
work=$(mktemp -d "${TMPDIR:-/tmp}/mote-idle.XXXXXX")
chmod 755 "$work"
pid=
trap '[ -z "$pid" ] || kill "$pid"; rm -rf "$work"' EXIT

printf '[tables]\nsockets = 131072\nflows = 1024\n[socket]\nqueue = 16MiB\narena = 64MiB\n' >"$work/conf"
"$build/moted" --config "$work/conf" --socket "$work/sock" 2>"$work/log" &
pid=$!
for _ in $(seq 400); do
	[ ! -S "$work/sock" ] || break
	sleep 0.05
done
"$build/tests/helpers/idle_sockets" "$work/sock"
status=$?
kill "$pid"
wait "$pid" || { echo "not ok 3 - moted ends with status 0: $(tail -1 "$work/log")"; status=1; }
pid=
exit $status
