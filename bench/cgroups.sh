#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# bench/cgroups.sh BUILD [CGROUPS [KERNEL]]: the cost of a scrape of CGROUPS (400) cgroups, as in
# google/cadvisor#3932: unbounded and bounded reads of their files, moted by files and by the kernel's
# iterator, and cAdvisor itself; then the iterator alone beside pooled reads of the files that it takes the place of. Natively, or in a
# VM of KERNEL with 8 virtual CPUs (MOTE_VM_CPUS). Prints a table: CPU time a scrape, median and largest latency of
# 11 scrapes. See docs/CGROUPS.md for what it shows.
set -eu
cd "$(dirname "$0")/.."
build=$1 n=${2:-400} kernel=${3:-} scrapes=11 pause=1200
# The distribution had it until Debian 11; it is not installed but unpacked.
fetch_cadvisor() (
	suite=$PWD/ci/suite
	mkdir -p "$build/bench/cadvisor" && cd "$build/bench/cadvisor"
	"$suite" apt bullseye amd64 get -qq update && "$suite" apt bullseye amd64 get -qq download cadvisor && dpkg-deb -x cadvisor_*.deb .
)
cadvisor=$build/bench/cadvisor/usr/bin/cadvisor
[ -x "$cadvisor" ] || fetch_cadvisor >&2 || echo "bench/cgroups.sh: cAdvisor could not be fetched, and is not measured" >&2
ways=("unbounded $n $scrapes $pause" "bounded $n $scrapes $pause" "moted $n $scrapes $pause moted files" "moted $n $scrapes $pause moted iterator"
	"pooled $n $scrapes $pause" "moted $n $scrapes $pause moted walk"
	"moted $n $scrapes $pause moted rows")
[ ! -x "$cadvisor" ] || ways+=("cadvisor $n $scrapes $pause cadvisor")
head='way                     cgroups  CPU ms/scrape    median ms       max ms'

make -s BUILD="$build" all "$build/bench/cgroups"
if [ -n "$kernel" ]; then
	command="echo '$head'"
	files="$build/bench/cgroups"
	for way in "${ways[@]}"; do
		way=${way/ moted / /bin/moted }
		command+="; LD_LIBRARY_PATH=/bin cgroups ${way/%cadvisor//bin/cadvisor}"
	done
	[ ! -x "$cadvisor" ] || files+=" $cadvisor $(ldd "$cadvisor" | awk '$3 ~ /zstd/ { print $3 }')"
	vmtests/build "$build" "$kernel"
	MOTE_VM_CPUS=${MOTE_VM_CPUS:-8} MOTE_VM_SECONDS=${MOTE_VM_SECONDS:-600} MOTE_VM_FILES=$files \
		vmtests/run "$build" "$kernel" "$command"
	tr -d '\r' <"$build/vm/$kernel/log" | grep -aE '^(way|unbounded|bounded|pooled|moted|cadvisor) '
	exit
fi
echo "$head"
for way in "${ways[@]}"; do
	way=${way/ moted / $build/moted }
	# shellcheck disable=SC2086 # words
	"$build/bench/cgroups" ${way/%cadvisor/$cadvisor}
done
