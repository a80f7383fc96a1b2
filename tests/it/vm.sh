#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The smoke test on one kernel in a VM, and vmtests/judge on console logs that must not pass. Needs QEMU and,
# once, the distribution's mirror for the kernel. Where that cannot be had this fails; MOTE_SKIP_VM=1
# leaves the VM out on purpose.
set -u
top=${MOTE_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${MOTE_BUILD:-$top/build}
cd "$top" || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/mote-vm-it.XXXXXX")
trap 'rm -rf "$work"' EXIT
n=0 bad=0

ok() { n=$((n + 1)) && echo "ok $n - $1"; }
not_ok() { n=$((n + 1)) bad=1 && echo "not ok $n - $1"; }

# judge EXPECT TEXT LOG: what vmtests/judge says of LOG holds EXPECT; `pass`: says nothing
judge() {
	local said status=0
	printf '%b' "$3" >"$work/log"
	said=$(vmtests/judge "$work/log") || status=$?
	if { [ "$1" = pass ] && [ $status = 0 ] && [ -z "$said" ]; } ||
		{ [ "$1" != pass ] && [ $status != 0 ] && [[ $said == *"$1"* ]]; }; then
		ok "judge: $2"
	else
		not_ok "judge: $2: got status $status, '$said'"
	fi
}

pass='\nVERDICT: pass\r\n'
judge pass "a clean log passes" "[    0.1] Linux\r\n[    0.123456] Linux version 6.1\r\nWARNING of the command's own$pass"
judge "no verdict" "an empty log fails" ""
judge "no verdict" "a verdict inside of a line is none" "x VERDICT: pass\r\n"
judge "status 3" "a failed command fails" "\nVERDICT: fail the command ended with status 3\r\n"
judge "more than one" "two verdicts fail" "$pass$pass"
for trouble in "WARNING: CPU: 1 PID: 9 at net/x.c:1 f+0x1/0x2" "BUG: kernel NULL pointer dereference" \
	"Oops: 0000 [#1] SMP" "Call Trace:" "rcu: INFO: rcu_sched self-detected stall on CPU" \
	"watchdog: BUG: soft lockup - CPU#0 stuck for 22s!" "WARNING: possible circular locking dependency detected" \
	"moted[99]: segfault at 0 ip 0 sp 0 error 4"; do
	judge "kernel log: " "'$trouble' fails" "half a line[   12.345678] $trouble\r\n$pass"
done

if [ "${MOTE_SKIP_VM:-}" = 1 ]; then
	n=$((n + 1))
	echo "ok $n - smoke test on 6.1 # SKIP MOTE_SKIP_VM=1"
	echo "1..$n"
	exit $bad
fi
if ! ci/setup vm >"$work/setup" 2>&1; then
	not_ok "ci/setup vm: $(tail -1 "$work/setup")"
	exit 1
fi
mkdir -p "$build/vm/6.1" && rm -f "$build/vm/6.1/log"
MOTE_VM_SECONDS=150 MOTE_VM_TAIL=0 timeout 220 vmtests/run "$build" 6.1 >"$work/run" 2>&1
status=$?
while IFS= read -r line; do
	case $line in
	"ok "*) ok "6.1: ${line#ok * - }" ;;
	"not ok "*) not_ok "6.1: ${line#not ok * - }" ;;
	"# seen "*) ;; # vmtests/availability has read them
	"# "*) echo "$line" ;;
	esac
done < <(tr -d '\r' <"$build/vm/6.1/log" 2>/dev/null)
if [ $status = 0 ]; then ok "$(tail -1 "$work/run")"; else not_ok "$(tail -1 "$work/run")"; fi
echo "1..$n"
exit $bad
