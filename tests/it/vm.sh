#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# vmtests/judge and vmtests/probes on console logs that must pass and on such that must not. The VMs
# themselves are the last test of tests/run (vmtests/tap); vmtests/selftest breaks them on purpose.
set -u
cd "${MOTE_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}" || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/mote-vm-it.XXXXXX")
trap 'rm -rf "$work"' EXIT
n=0 bad=0

ok() { n=$((n + 1)) && echo "ok $n - $1"; }
not_ok() { n=$((n + 1)) bad=1 && echo "not ok $n - $1"; }

# judge EXPECT TEXT LOG [TEST...]: what vmtests/judge says of LOG holds EXPECT; `pass`: says nothing
judge() {
	local said status=0
	printf '%b' "$3" >"$work/log"
	said=$(vmtests/judge "$work/log" "${@:4}") || status=$?
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
one='TEST one: begins\r\n\nTEST one: pass, 3 s\r\n'
judge pass "a test that passed passes" "$one$pass" one
judge "two: no line" "a test that was not run fails" "$one$pass" one two
judge "two: killed" "a test that failed fails, whatever the verdict" "$one\nTEST two: fail killed by signal 9\r\n$pass" one two
judge "one: more than one line" "a test that was run twice fails" "$one$one$pass" one
for trouble in "WARNING: CPU: 1 PID: 9 at net/x.c:1 f+0x1/0x2" "BUG: kernel NULL pointer dereference" \
	"Oops: 0000 [#1] SMP" "Call Trace:" "rcu: INFO: rcu_sched self-detected stall on CPU" \
	"watchdog: BUG: soft lockup - CPU#0 stuck for 22s!" "WARNING: possible circular locking dependency detected" \
	"moted[99]: segfault at 0 ip 0 sp 0 error 4"; do
	judge "kernel log: " "'$trouble' fails" "half a line[   12.345678] $trouble\r\n$pass"
done

# probes EXPECT TEXT LOG: what vmtests/probes says of LOG, where the set kprobe is expected
probes() {
	local said status=0
	printf '%b' "$3" >"$work/log"
	said=$(vmtests/probes "$work/log" kprobe 2>&1) || status=$?
	if [[ "$status $said" == "$1"* ]]; then
		ok "probes: $2"
	else
		not_ok "probes: $2: got status $status, '$said'"
	fi
}

probes "0 kprobe: because" "the set that is expected passes" '# seen check {"probes": {"set": "kprobe", "reason": "because"}}\n'
probes "1 moted chose the probe set fentry (because)" "another set fails" \
	'# seen check {"probes": {"set": "fentry", "reason": "because"}}\n'
probes "0 none named yet" "a moted without sets passes and is said" '# seen check {"host": []}\r\n'
probes "1 the log has no line" "a log without moted --check fails" 'ok 1\n'
echo "1..$n"
exit $bad
