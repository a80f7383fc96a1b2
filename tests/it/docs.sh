#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The generated documents in the tree are those that the tables give now.
set -u
top=${MOTE_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${MOTE_BUILD:-$top/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/mote-docs.XXXXXX")
trap 'rm -rf "$work"' EXIT
rc=0

if ! "$top/gen/docs" "$build" "$work" >"$work/log" 2>&1; then
	sed 's/^/# /' "$work/log"
	echo "not ok 1 - gen/docs runs"
	exit 1
fi
echo "ok 1 - gen/docs runs"
n=1
for file in docs/METRICS.md docs/CONFIG.md dist/mote.conf; do
	n=$((n + 1))
	if diff -u "$top/$file" "$work/$file" >"$work/diff" 2>&1; then
		echo "ok $n - $file is up to date"
	else
		sed 's/^/# /' "$work/diff" | head -30
		echo "not ok $n - $file is stale: run make docs and commit it"
		rc=1
	fi
done
n=$((n + 1))
if find "$work" -name '*.tmp' | grep -q .; then
	echo "not ok $n - a temporary was left" && rc=1
else
	echo "ok $n - no temporary is left"
fi
echo "1..$n"
exit $rc
