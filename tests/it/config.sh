#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# moted and its configuration, as a person meets them: exit codes, one line on stderr that says
# where and what, the command line over the file, --check in both forms, and that the sample file is
# taken as it is and with every key set.
set -u
top=${MOTE_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${MOTE_BUILD:-$top/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/mote-config.XXXXXX")
trap 'rm -rf "$work"' EXIT
n=0 rc=0

# result WHAT: ok if the command before succeeded
result() {
	local ok=$?
	n=$((n + 1))
	if [ $ok = 0 ]; then
		echo "ok $n - $1"
	else
		rc=1
		[ ! -s "$work/err" ] || sed 's/^/# /' "$work/err"
		echo "not ok $n - $1"
	fi
}

# moted ARGS...: its exit code in $code, output in $work/out and $work/err
moted() {
	timeout 20 "$build/moted" "$@" >"$work/out" 2>"$work/err" </dev/null
	code=$?
}

# refused WHAT LINE ARGS...: exit 2, nothing on stdout, and LINE alone on stderr
refused() {
	local what=$1 line=$2
	shift 2
	moted "$@"
	[ $code = 2 ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" = 1 ] &&
		grep -qF -- "$line" "$work/err"
	result "$what"
}

conf=$work/mote.conf
printf '[mote]\nmodus = minimal\n' >"$conf"
refused "an unknown key" "$conf:2: [mote] modus: no such key; there are mode," --config "$conf"
printf '[mote]\nmode = minimal\n\nmode = minimal\n' >"$conf"
refused "two values for one key" \
	"$conf:4: [mote] mode: given before, on line 2; one value is allowed" --config "$conf"
printf '[interval]\ncpu = 5\n' >"$conf"
refused "a bad value" "$conf:2: [interval] cpu: '5'; allowed: 1ms to 1h, in ms, s, m or h" \
	--config "$conf"
printf '[interval]\ncpu = 75ms\n' >"$conf"
refused "a value that does not go with another" \
	"$conf:2: [interval] cpu: 75ms, must be a multiple of [loop] base, 50ms" --check --config "$conf"
refused "a file that is not there" "$work/none: cannot be read: No such file or directory" \
	--config "$work/none"
refused "an unknown option" "--modus: no such option; moted --help lists them" --modus x
refused "a bad value on the command line" "--mode: 'fast'; allowed: one of standard, minimal" \
	--mode fast

moted --version
[ $code = 0 ] && grep -q '[0-9]\.[0-9]' "$work/out"
result "--version"
moted --help
[ $code = 0 ] && grep -q -- '--socket PATH' "$work/out" && grep -q 'housekeeping = 10s' "$work/out"
result "--help names options and keys"

moted --check --config "$top/dist/mote.conf"
[ $code = 0 ] && grep -q '^  btf ' "$work/out" && grep -q "choices:" "$work/out"
result "--check with the sample file"
sed 's/^#\([a-z]\)/\1/' "$top/dist/mote.conf" >"$conf"
moted --check --config "$conf"
[ $code = 0 ] && [ "$(grep -c '^[a-z].* =' "$conf")" -gt 40 ]
result "--check with every key of the sample file set"

moted --check --json --config "$conf"
[ $code = 0 ] && python3 - "$work/out" <<-'END' 2>"$work/err"
	import json, sys
	check = json.load(open(sys.argv[1], encoding="utf-8"))
	host = {fact["name"]: fact for fact in check["host"]}
	for name in ("kernel", "btf", "trampolines", "kprobes", "tracepoints", "iterators",
	             "preemption", "io_uring", "lockdown", "capabilities", "cgroups"):
	    assert host[name]["value"], name
	assert host["kernel"]["value"] == open("/proc/sys/kernel/osrelease").read().strip()
	tiers = {tier["tier"]: tier for tier in check["tiers"]}
	assert tiers, "no tier"
	for tier in tiers.values():
	    assert tier["choice"] and tier["reason"], tier
END
result "--check --json is JSON, with every fact and a reason for every tier"

# The file asks for one engine, the command line for another.
printf '[mote]\nengine = uring\n' >"$conf"
moted --check --json --config "$conf" --engine sync
[ $code = 0 ] && python3 - "$work/out" <<-'END' 2>"$work/err"
	import json, sys
	tiers = {tier["tier"]: tier for tier in json.load(open(sys.argv[1]))["tiers"]}
	assert tiers["engine"]["choice"] == "sync", tiers["engine"]
END
result "the command line wins over the file"

echo "1..$n"
exit $rc
