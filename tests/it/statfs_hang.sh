#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# statfs() that hangs for ever on one mount (a stand-in by LD_PRELOAD; the mount is `/`, which every
# machine has): ticks go on at their second, the other mounts have their values, the hung one has
# its names alone; when the call returns its values are there; and moted ends with a call that hangs.
set -u
top=${MOTE_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${MOTE_BUILD:-$top/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/mote-statfs.XXXXXX")
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null; rm -rf "$work"' EXIT
socket=$work/sock
n=0 rc=0

# result WHAT: ok if the command before succeeded
result() {
	local ok=$?
	n=$((n + 1))
	if [ $ok = 0 ]; then
		echo "ok $n - $1"
	else
		rc=1
		echo "not ok $n - $1"
		sed 's/^/# /' "$work/log" | tail -5
	fi
}

# rows FRAMES: filesystem rows and samples of cpu, as `mote dump` shows them
rows() {
	timeout 60 "$build/mote" dump --json --socket "$socket" --streams filesystem,cpu \
		--interval 1s --frames "$1" >"$work/rows" 2>>"$work/log"
}

# look CODE: python that sees `data`, what was dumped, and `last`, mount point -> its newest row
look() {
	/usr/bin/python3 - "$work/rows" 2>>"$work/log" <<-EOF
		import json, os, sys
		data = [json.loads(line) for line in open(sys.argv[1])]
		last = {m["mount_point"]: m for m in data if m.get("stream") == "filesystem" and "mount_point" in m}
		$1
	EOF
}

start() { # start [VARIABLE=VALUE...]: moted with a statfs() that hangs for /
	rm -f "$socket"
	env LD_PRELOAD="$work/hang.so" MOTE_HANG_STATFS=/ "$@" \
		"$build/moted" --config "$work/conf" --socket "$socket" >>"$work/log" 2>&1 &
	pid=$!
	for _ in {1..100}; do
		[ -S "$socket" ] && return
		sleep 0.1
	done
	return 1
}

cc -shared -fPIC -O1 -o "$work/hang.so" "$top/tests/preload/hang_statfs.c" 2>"$work/log"
result "the stand-in builds"
printf '[interval]\nfilesystem = 1s\n[loop]\nhousekeeping = 1s\n' >"$work/conf"
start MOTE_HANG_UNTIL="$work/go"
result "moted starts although statfs() of / hangs"
sleep 2.5 # a call counts as hung after 1 s, the rows come with the next round, a second later

rows 7
look '
times = [m["time"] for m in data if m.get("stream") == "cpu" and m.get("cpu") == "total"]
steps = [b - a for a, b in zip(times[1:], times[2:])]  # the first is of the keyframe, when asked
print(steps, file=sys.stderr)
sys.exit(not (len(steps) >= 4 and all(0.9e9 < step < 1.1e9 for step in steps)))'
result "samples of cpu stay a second apart"
look '
others = [point for point, row in last.items() if point != "/" and row.get("size") is not None]
print(last, file=sys.stderr)
sys.exit(not (others and all(last[p]["size"] == os.statvfs(p).f_blocks * os.statvfs(p).f_frsize for p in others)))'
result "the other mounts have their size"
look '
row = last["/"]
sys.exit(not (row["device"] and row["type"] and row.get("size") is None and row.get("inodes") is None))'
result "/ has its names and nothing else"
[ "$(cat /proc/$pid/task/*/comm | grep -c mote-statfs)" = 3 ]
result "three threads call statfs(), no more"

touch "$work/go"
sleep 2.5
rows 1
look '
sys.exit(last["/"]["size"] != os.statvfs("/").f_blocks * os.statvfs("/").f_frsize)'
result "/ has its size when the call returned"
kill $pid && wait $pid
pid=
start
sleep 1.5
kill $pid
(sleep 5 && kill -9 $pid) 2>/dev/null &
guard=$!
wait $pid
[ $? != 137 ]
result "moted ends within 5 s of SIGTERM while a call hangs"
kill $guard
pid=
echo "1..$n"
exit $rc
