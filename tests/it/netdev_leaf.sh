#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# B10: the machine's network total is that of its leaf devices. In a network namespace of its own, a
# bridge whose only way out is a veth, with what else this kernel can make (macvlan, VLAN, dummy),
# moves bytes; `total` must be the veth's, and only the bridge's ports are leaves. Then a port that
# is down leaves the bridge: the only plain device there is, so that it becomes the only leaf.
set -u
top=${MOTE_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${MOTE_BUILD:-$top/build}

skip() {
	echo "ok 1 - the total is the leaf's # SKIP $1"
	exit 0
}

if [ "${1:-}" != inside ]; then
	[ "$(id -u)" = 0 ] || skip "needs root"
	command -v ip unshare nsenter >/dev/null || skip "needs ip, unshare and nsenter"
	unshare -n true 2>/dev/null || skip "may not make a network namespace"
	exec unshare -n -m "$0" inside
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/mote-leaf.XXXXXX")
pids=()
trap '[ ${#pids[@]} = 0 ] || kill -9 "${pids[@]}" 2>/dev/null; rm -rf "$work"' EXIT
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

# A sysfs of this namespace; the private mount namespace ends with this script.
mount --make-rprivate / && mount -t sysfs sysfs /sys || skip "may not mount sysfs"
# the other end of the veth is another host
unshare -n sleep 1000 &
host=$!
pids+=("$host")
disown "$host"
sleep 0.3
ip link add out0 type veth peer name in0 2>/dev/null || skip "this kernel has no veth"
ip link add br0 type bridge 2>/dev/null || skip "this kernel has no bridge"
ip link set in0 netns "$host"
ip link set out0 master br0
ip link add out1 type veth peer name in1
ip link set in1 netns "$host"
ip link set out1 master br0
others=br0
ip link add link br0 name mac0 type macvlan 2>/dev/null && others+=" mac0"
ip link add link br0 name br0.10 type vlan id 10 2>/dev/null && others+=" br0.10"
ip link add dummy0 type dummy 2>/dev/null && others+=" dummy0"
for device in lo out0 $others; do ip link set "$device" up; done
ip address add 192.0.2.1/24 dev br0
nsenter -t "$host" -n sh -c 'ip link set in0 up; ip address add 192.0.2.2/24 dev in0'
echo "# devices: out0 $others"

"$build/moted" --socket "$socket" >"$work/log" 2>&1 &
pids+=($!)
for _ in {1..100}; do [ -S "$socket" ] && break; sleep 0.1; done
[ -S "$socket" ]
result "moted starts"
# UDP to the other end: 200 packets of 1,000 bytes; nobody listens, which they do not need
/usr/bin/python3 - <<-EOF
	import socket, time
	peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	for _ in range(200):
	    try:
	        peer.sendto(bytes(1000), ("192.0.2.2", 9))
	    except ConnectionRefusedError:  # the answer to one before
	        pass
	    time.sleep(0.002)
EOF
sleep 1
dump() {
	timeout 20 "$build/mote" dump --json --socket "$socket" --streams netdev,cpu --interval 1s \
		--frames 1 >"$work/rows" 2>>"$work/log"
}
dump
result "the stream netdev is there"

look() { # look CODE: python that sees `last`, device -> its newest row
	/usr/bin/python3 - "$work/rows" 2>>"$work/log" <<-EOF
		import json, sys
		last = {}
		for line in open(sys.argv[1]):
		    m = json.loads(line)
		    if m.get("stream") == "netdev" and m.get("device"):
		        last[m["device"]] = m
		print({d: (r.get("leaf"), r.get("tx_bytes"), r.get("rx_bytes")) for d, r in last.items()}, file=sys.stderr)
		$1
	EOF
}

look 'sys.exit(not (last["out0"]["tx_bytes"] >= 200 * 1000 and last["br0"]["tx_bytes"] >= 200 * 1000))'
result "the bytes went through the veth and the bridge"
leaves_are() { # leaves_are NAME...
	look 'sys.exit({d for d, row in last.items() if row.get("leaf")} != set("'"$*"'".split()))'
}
leaves_are out0 out1
result "the bridge's ports are the only leaves of out0 out1 $others"
look '
fields = [f for f in last["out0"] if f.startswith(("rx_", "tx_"))]
sys.exit(not (len(fields) == 16 and all(last["total"][f] == last["out0"][f] for f in fields)))'
result "the total is the leaf's, in all sixteen counters"

ip link set out1 nomaster
for _ in {1..8}; do sleep 1; dump; leaves_are out1 && break; done
leaves_are out1
result "the port that left the bridge is a leaf, and the other one is none any more"
echo "1..$n"
exit $rc
