#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bench/peers.sh BUILD: moted beside other agents, one after the other, at an interval of 1 s, with
# and without 1,000 more processes that sleep; all of it in turn once a round, as a shared machine
# is not as fast in one minute as in the next. Prints one JSON object a line, an agent has one each
# round, for bench/run: CPU of the agent's whole process tree in ms a tick, one value a window. Root
# is needed for moted's BPF.
#
# Debian's packages are not installed: they are fetched by apt into BUILD/peers and unpacked there,
# so nothing of the system changes and no daemon starts. What is installed already is used as it is.
# Ends only what it started, by pid. ROUNDS=2 WINDOWS=2 WINDOW=4 (s) PROCESSES="0 1000" AGENTS="..."
# shellcheck disable=SC2016 # dpkg-deb takes ${Package} as it is
set -u
export LC_ALL=C.UTF-8
build=$(realpath "${1:?usage: bench/peers.sh BUILD}")
peers=$build/peers root=$build/peers/root
rounds=${ROUNDS:-2} windows=${WINDOWS:-2} window=${WINDOW:-4}
agents=${AGENTS:-moted sadc atop top node_exporter process-exporter netdata}
work=$(mktemp -d "${TMPDIR:-/tmp}/mote-peers.XXXXXX")
pids=() reader=
sleepers=

stop_agent() {
	[ -z "$reader" ] || kill "$reader" 2>/dev/null
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null
	# shellcheck disable=SC2086 # no reader, no word
	timeout_wait ${pids[@]+"${pids[@]}"} $reader
	pids=() reader=
}

# timeout_wait PID...: wait for children to end, at most 5 s, and then make them
timeout_wait() {
	local pid i
	for pid; do
		for ((i = 0; i < 50; i++)); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -9 "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
}

stop_sleepers() {
	[ -n "$sleepers" ] || return 0
	exec {load}>&-
	wait "$sleepers"
	sleepers=
}

trap 'stop_agent; stop_sleepers; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

fetch() {
	mkdir -p "$peers/debs/partial" "$root"
	[ -e "$peers/unpacked" ] && return 0
	local get=(apt-get -qq -o Dir::Cache::archives="$peers/debs" install --download-only -y
		--no-install-recommends atop sysstat prometheus-node-exporter
		prometheus-process-exporter netdata-core netdata-plugins-bash procps)
	"${get[@]}" >"$peers/log" 2>&1 || { apt-get -qq update && "${get[@]}"; } >>"$peers/log" 2>&1 ||
		{ echo "peers.sh: apt could not fetch the packages, see $peers/log" >&2; exit 1; }
	for package in "$peers"/debs/*.deb; do
		[ -e "$package" ] || continue
		dpkg -x "$package" "$root" || exit 1
		dpkg-deb -W --showformat '${Package} ${Version}\n' "$package"
	done >"$peers/versions"
	touch "$peers/unpacked"
}

version_of() {
	awk -v p="$1" '$1 == p { print $2; f = 1 } END { exit !f }' "$peers/versions" ||
		dpkg-query -W -f '${Version}' "$1"
}

# where PATH: the unpacked file, or the system's
where() {
	if [ -e "$root$1" ]; then echo "$root$1"; else echo "$1"; fi
}

background() {
	"$@" </dev/null >"$work/log" 2>&1 &
	pids+=($!)
}

# scrape URL: once a second, as Prometheus would; a line in $work/scrapes for each
scrape() {
	/usr/bin/python3 - "$1" >"$work/scrapes" 2>/dev/null <<-END &
		import sys, time, urllib.request
		at = time.monotonic()
		while True:
		    try:
		        with urllib.request.urlopen(sys.argv[1], timeout=20) as answer:
		            print(len(answer.read()), flush=True)
		    except OSError:
		        pass
		    at = max(at + 1, time.monotonic())
		    time.sleep(at - time.monotonic() if at > time.monotonic() else 0)
	END
	reader=$!
}

start_netdata() {
	local dir=$work/netdata
	mkdir -p "$dir"/{etc,cache,lib,log}
	touch "$dir/etc/.opt-out-from-anonymous-statistics"
	cat >"$dir/etc/netdata.conf" <<-END
		[global]
		  run as user = root
		[directories]
		  config = $dir/etc
		  stock config = $(where /usr/lib/netdata/conf.d)
		  plugins = "$(where /usr/lib/netdata/plugins.d)"
		  web = $(where /usr/share/netdata/web)
		  cache = $dir/cache
		  lib = $dir/lib
		  log = $dir/log
		[db]
		  update every = 1
		[web]
		  bind to = 127.0.0.1:19998
		[statsd]
		  enabled = no
	END
	background env LD_LIBRARY_PATH="$root/usr/lib/x86_64-linux-gnu" "$(where /usr/sbin/netdata)" -D \
		-c "$dir/etc/netdata.conf" -P "$dir/pid"
}

start_moted() {
	background "$build/moted" --socket "$work/sock"
	for _ in {1..50}; do
		[ -S "$work/sock" ] && break
		sleep 0.1
	done
	"$build/bench/subscribe" "$work/sock" "${pids[0]}" 100 0 60 process >/dev/null 2>&1 # names
	"$build/bench/subscribe" "$work/sock" "${pids[0]}" 1000 0 100000 "$1" >/dev/null 2>&1 &
	reader=$!
}

host=cpu,kernel,memory,vm,load,pressure,disk,netdev,filesystem

start() {
	warm=3
	case $1 in
	moted)
		version=$("$build/moted" --version | cut -d' ' -f2) what="host and every process, one subscriber"
		[ "$n" != 0 ] || what="host, one subscriber"
		start_moted "$host$([ "$n" = 0 ] || echo ,process,event)"
		;;
	sadc)
		version=$(version_of sysstat) what="host (-S XALL), binary log"
		background "$(where /usr/lib/sysstat/sadc)" -S XALL 1 "$work/sa"
		;;
	atop)
		version=$(version_of atop) what="host and every process, raw log"
		background "$(where /usr/bin/atop)" -w "$work/atop" 1
		;;
	top)
		version=$(version_of procps) what="every process, text"
		background "$(where /usr/bin/top)" -b -d 1
		;;
	node_exporter)
		version=$(version_of prometheus-node-exporter) what="host, default collectors, scraped"
		background "$(where /usr/bin/prometheus-node-exporter)" --web.listen-address=127.0.0.1:19101
		scrape http://127.0.0.1:19101/metrics
		;;
	process-exporter)
		version=$(version_of prometheus-process-exporter)
		what="every process, grouped by name, scraped"
		printf 'process_names:\n  - name: "{{.Comm}}"\n    cmdline:\n    - ".+"\n' >"$work/pe.yml"
		background "$(where /usr/bin/prometheus-process-exporter)" -web.listen-address 127.0.0.1:19256 \
			-config.path "$work/pe.yml"
		scrape http://127.0.0.1:19256/metrics
		;;
	netdata)
		version=$(version_of netdata-core) what="host, cgroups, processes by apps.plugin" warm=8
		start_netdata
		;;
	*)
		echo "peers.sh: unknown agent '$1'" >&2
		exit 2
		;;
	esac
}

# Nothing if the agent is gone.
cpu_ns() {
	local figures
	figures=$(NOPSS=1 "$build/bench/peerstat" "${pids[@]}") && echo "${figures%% *}"
}
ticks() { if [ -e "$work/scrapes" ]; then wc -l <"$work/scrapes"; else echo "${EPOCHREALTIME/./}"; fi; }

# measure AGENT N: one JSON line
measure() {
	local agent=$1 i cpu before ticks_before values=()
	rm -rf "${work:?}"/*
	start "$agent"
	sleep "$warm"
	for ((i = 0; i < windows; i++)); do
		before=$(cpu_ns) ticks_before=$(ticks)
		sleep "$window"
		cpu=$(cpu_ns)
		if [ -z "$cpu" ] || [ -z "$before" ] || [ "$cpu" = "$before" ]; then
			echo "peers.sh: $agent did not run: $(tail -1 "$work/log")" >&2
			stop_agent
			return 1
		fi
		values+=("$(awk -v c="$cpu" -v b="$before" -v t="$(ticks)" -v tb="$ticks_before" 'BEGIN {
			n = t - tb; if (n > 10000) n /= 1e6; printf "%.4f", (c - b) / 1e6 / (n > 0 ? n : 1) }')")
	done
	read -r _ processes pss < <("$build/bench/peerstat" "${pids[@]}")
	printf '{"agent":"%s","version":"%s","what":"%s","sleepers":%d,"cpu_ms":[%s],"processes":%d,"pss_kib":%d}\n' \
		"$agent" "$version" "$what" "$n" "$(IFS=,; echo "${values[*]}")" "$processes" "$pss"
	stop_agent
}

fetch
failed=0
for n in ${PROCESSES:-0 1000}; do
	if [ "$n" -gt 0 ]; then
		exec {load}> >(exec "$build/bench/sleepers" "$n" >/dev/null)
		sleepers=$!
		sleep 2
	fi
	for ((round = 0; round < rounds; round++)); do
		for agent in $agents; do
			measure "$agent" || failed=1
		done
	done
	stop_sleepers
done
exit $failed
