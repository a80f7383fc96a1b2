#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# moted under valgrind's memcheck, with each engine: some ticks with subscribers of everything, bad
# requests, a client that dies; no error, and nothing definitely lost at the end. Without BPF
# programs: valgrind knows neither fsopen() nor all of bpf(). The runs go side by side.
set -u
top=${MOTE_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${MOTE_BUILD:-$top/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/mote-valgrind.XXXXXX")
chmod 755 "$work"

# The runs are subshells: what they started stands in files, until it has ended.
stop() {
	local file
	for file in "$work"/*/pid; do
		[ ! -s "$file" ] || kill -9 "$(cat "$file")" 2>/dev/null
	done
}
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 1' TERM INT

# ok STATUS TEXT LOG: a line for later, as the runs go side by side; the log if it failed
ok() {
	if [ "$1" = 0 ]; then
		echo "ok - $2"
	else
		echo "not ok - $2"
		sed 's/^/# /' "$3" | tail -60
	fi >>"$dir/tap"
}

# session REQUESTS SECONDS: what a client gets that writes these and reads for so long
session() {
	{ printf '%b' "$1"; sleep "$2"; } |
		timeout "$(($2 + 5))" socat -t0.1 - "UNIX-CONNECT:$dir/mote.sock" >"$dir/out" 2>/dev/null
}

# under NAME moted's options...: a session under memcheck
under() {
	local name=$1 code waited=0 dir=$work/$1 pid
	shift
	mkdir -m 755 "$dir"
	valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
		--show-leak-kinds=definite --child-silent-after-fork=yes --log-file="$dir/valgrind" \
		"$build/moted" --socket "$dir/mote.sock" "$@" >"$dir/log" 2>&1 &
	pid=$!
	echo "$pid" >"$dir/pid"
	until [ -S "$dir/mote.sock" ] || ! kill -0 "$pid" 2>/dev/null || [ $((waited++)) -gt 300 ]; do
		sleep 0.1
	done
	session 'ping\n' 3 # the socket is there before moted is up
	grep -q ok "$dir/out"
	ok $? "$name: answers" "$dir/log"
	session 'subscribe all interval=100ms\n' 3
	[ "$(stat -c %s "$dir/out")" -gt 20000 ]
	ok $? "$name: a subscriber of everything is served" "$dir/log"
	session "no such\nsubscribe nothing\nsubscribe cpu interval=1ms\n\0\377\n$(printf '%0600d' 0)\n" 1
	grep -q "is no request" "$dir/out"
	ok $? "$name: bad requests are refused" "$dir/log"
	session 'poll all\nsubscribe process interval=50ms\nunsubscribe process\ninterval 1s\n' 1
	{ printf 'subscribe all interval=50ms\n'; sleep 2; } | {
		socat - "UNIX-CONNECT:$dir/mote.sock" <&0 >/dev/null 2>&1 &
		sleep 1
		kill -9 $!
		wait $!
	} 2>/dev/null
	session 'subscribe all interval=1s\n' 2
	[ "$(stat -c %s "$dir/out")" -gt 20000 ]
	ok $? "$name: and the next client is served" "$dir/log"
	kill "$pid"
	wait "$pid"
	code=$?
	rm "$dir/pid"
	[ -s "$dir/valgrind" ] && cat "$dir/valgrind" >>"$dir/log"
	[ $code = 0 ]
	ok $? "$name: no error, nothing lost (exit code $code)" "$dir/log"
	rm -f "$dir/mote.sock"
}

under uring --engine uring --probes none &
under sync --engine sync --probes none &
under minimal --engine sync --probes none --mode minimal &
wait
cat "$work"/*/tap | awk '
	/^(not )?ok - / { n++; sub(/ok - /, "ok " n " - ") }
	/^not ok/ { failed = 1 }
	{ print }
	END { print "1.." n; exit failed || n != 15 }'
