#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# alone: it makes thousands of sockets, which other tests would count
# Every byte that a socket carries is counted, to the byte: by socket, by process and in total, with
# reconciliation and without, with tables that are too small; see tests/helpers/conserve.c. Then moted is
# broken on purpose, and the same test must fail. CONSERVE=full: millions of events, 10,000,001 reads of
# one byte, larger storms.
. "${MOTE_TOP:-.}/tests/it/bpf_here"
set -u
cd "${MOTE_TOP:-.}" || exit 1
build=${MOTE_BUILD:-build}
work=$(mktemp -d "${TMPDIR:-/tmp}/mote-conserve.XXXXXX")
chmod 755 "$work"
pid=
trap '[ -z "$pid" ] || kill "$pid"; rm -rf "$work"' EXIT
bad=0 mutants=0
events=400000 reads=1000001 storm=20000
[ "${CONSERVE:-}" != full ] || events=5000000 reads=10000001 storm=100000

# start MOTED CONFIGURATION: last rows are kept for the thousand sockets that a case closes at once
start() {
	printf '[loop]\nbase = 1ms\n[socket]\nsubscribers = 32\n[tables]\nended_sockets = 8192\n%s\n' "$2" >"$work/conf"
	"$1" --config "$work/conf" --socket "$work/sock" 2>"$work/log" &
	pid=$!
	for _ in $(seq 200); do
		[ ! -S "$work/sock" ] || return 0
		sleep 0.05
	done
	echo "not ok - moted listens"
	sed 's/^/# /' "$work/log"
	bad=1
}

stop() {
	kill "$pid"
	wait "$pid" || { echo "not ok - moted ends with status 0: $(tail -1 "$work/log")"; bad=1; }
	pid=
}

# exact NAME CONFIGURATION OPTIONS...
exact() {
	start "$build/moted" "$2"
	"$build/tests/helpers/conserve" -p "$1" "${@:3}" "$work/sock" || bad=1
	stop
}

# broken MUTANT OPTIONS...: what conserve says to a moted built so; it must say that bytes are wrong
broken() {
	local moted=$work/$1/moted wrong
	mkdir "$work/$1" && cp -a "$build/bpf" "$build/gen" "$build/supervisor" "$work/$1/" || exit 1
	rm -f "$work/$1"/gen/net_* "$work/$1"/supervisor/{network_fold,probes_network_object}.o
	if ! make -s BUILD="$work/$1" MUTANT="$1" "$moted" >"$work/make" 2>&1; then
		sed 's/^/# /' "$work/make"
		echo "not ok - mutant $1 is built"
		bad=1
		return
	fi
	start "$moted" "$(printf '[network]\nself_check = off\nreconciliation = off')"
	"$build/tests/helpers/conserve" -R -w 500 "${@:2}" "$work/sock" >"$work/out"
	stop
	wrong=$(grep -c '^# .* bytes .*expected' "$work/out")
	mutants=$((mutants + 1))
	if [ "$wrong" -gt 0 ] && grep -q '^# verdict: bytes are missing' "$work/out"; then
		echo "ok - mutant $1 is found: $(grep -m1 '^# .* bytes .*expected' "$work/out" | cut -c3-)"
	else
		echo "not ok - mutant $1 is found"
		sed 's/^/# /' "$work/out"
		bad=1
	fi
	rm -rf "${work:?}/$1"
}

exact "with reconciliation" "" -e "$events" -r "$reads" -s 500
exact "without" "$(printf '[network]\nreconciliation = off')" -R -c TCP -e $((events / 8))
exact "storms" "" -c storm -s "$storm"
exact "small tables" "$(printf '[tables]\nsockets = 64\nflows = 64\nnetwork_processes = 64')" \
	-S -c "of " -e $((events / 20)) -s $((storm / 10)) -b 100 -r 1000
broken DEAF -c "TCP: write"
broken PEEK -c "peeked at"
broken CLEAR -c "one " -e "$events" -r "$reads"
[ $mutants = 3 ] || bad=1
exit $bad
