#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# All tests: programs on the host, then every kernel with the IOMMU off and on.
# check.sh [SERIES...]. Results in build/check; the last line counts.
# RASHPA_CHECK_JOBS: parts at a time (default: one more than processors, at most 4).
set -uo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
# shellcheck source-path=SCRIPTDIR source=guests.sh
. selftests/guests.sh
lab=selftests/lab/lab
out=build/check
passed=0 failed=0 skipped=0
# Parts at a time: some of them always wait for something.
jobs=${RASHPA_CHECK_JOBS:-$(($(nproc) + 1))}
((jobs <= 4)) || jobs=4
# Processors of most guests: where several guests share few, a second one only waits for
# the lock that the first one holds.
smp=2
((jobs * 2 <= $(nproc))) || smp=1
(($#)) || set -- debug 6.1 6.12 newest
newest= # of Debian's
for series in "$@"; do
	[[ $series == debug ]] || newest=$series
done
rm -rf "$out"
mkdir -p "$out"

# Count a TAP file, show what was not good; a run that broke off counts as failed.
tally() { # TITLE FILE STATUS SECONDS
	local p f s plan
	s=$(grep -c '^ok .*# SKIP' "$2")
	p=$(($(grep -c '^ok ' "$2") - s))
	f=$(grep -c '^not ok ' "$2")
	plan=$(tr -d '\r' <"$2" | awk '/^1\.\.[0-9]+$/ { n += substr($0, 4) } END { print n + 0 }')
	if (($3 == 0 && p + f + s != plan)); then
		echo "not ok - $1: $plan tests announced, $((p + f + s)) counted"
		f=$((f + 1))
	elif (($3 != 0 && f == 0)); then
		f=1
		echo "not ok - $1: exit status $3"
		tail -n 20 "$2" | sed 's/^/#   /'
	elif ((p + f + s == 0)); then
		f=1
		echo "not ok - $1: ran no test"
	fi
	# with what was said of it, before or behind it
	awk -v most=60 '
		/^#/ { if (bad && said++ < most) print; else comment[n++ % most] = $0; next }
		{ bad = /^not ok /; said = 0 }
		bad { for (i = n > most ? n - most : 0; i < n; i++) print comment[i % most]; print }
		{ n = 0 }' "$2"
	grep '^ok .*# SKIP' "$2"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "== $1: $p passed, $f failed, $s skipped ($4 s)"
}

declare -A running=() begun=() # by process: name of the part, when it began

# Wait until a part has ended, and count it.
reap() {
	local pid name status=0
	wait -n -p pid || status=$?
	name=${running[$pid]}
	tally "$name" "$out/${name// /-}.tap" "$status" $((SECONDS - begun[$pid]))
	unset "running[$pid]" "begun[$pid]"
}

# part NAME COMMAND...: its output is TAP. Begins as soon as there is room for it.
part() {
	local name=$1
	shift
	while ((${#running[@]} >= jobs)); do
		reap
	done
	echo "== $name ..."
	"$@" >"$out/${name// /-}.tap" 2>&1 &
	running[$!]=$name begun[$!]=$SECONDS
}

# Both replace the part's own process, so that a signal reaches the lab.

# guest NAME SERIES IOMMU OPTION... -- TEST...
guest() {
	exec "$lab" run --kernel "$2" --iommu "$3" --smp "$smp" --timeout 1200 --log "$out/$2-$1.log" "${@:4}"
}

# 1 GiB in one piece, and memory above 4 GiB, in a guest of its own: SERIES IOMMU GIB OPTION...
large() {
	local available more=()
	available=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
	if ((available <= $3)); then
		echo "ok 1 - 1 GiB # SKIP needs a guest of $3 GiB, and $available GiB are free"
		echo "1..1"
		return
	fi
	# behind an IOMMU all addresses are within reach
	[[ $2 == on ]] || more=(build/selftests/import_test)
	exec "$lab" run --kernel "$1" --iommu "$2" --smp "$smp" --memory "${3}G" --fpga 1 --timeout 900 \
		--log "$out/$1-large.log" "${@:4}" -- selftests/suite.sh build/selftests/large_test \
		"${more[@]}"
}

# Programs of user space with sanitizers: what needs no kernel of ours, then the tools and
# the software FPGA in a guest.
sanitizers() { # SERIES
	"$lab" exec -- selftests/static/sanitize.sh || return
	[[ ! $1 ]] || RASHPA_TOOLS=build/sanitize/tools RASHPA_FPGA=build/sanitize/tools/rashpa-fpga \
		guest sanitizers "$1" on --fpga 2 -- \
		selftests/suite.sh build/sanitize/selftests/{map,lock}_test selftests/tools/stream.sh
}

# packages without the site, which is a part of its own
packages() {
	"$lab" exec -- env DEB_BUILD_OPTIONS=nocheck tools/packaging/deb.sh --build-profiles=nodoc >"$out/deb.log" 2>&1 ||
		{ tail -n 20 "$out/deb.log"; return 1; }
	exec "$lab" exec --kernel "$1" --scratch -- selftests/packages/debs.sh
}

trap 'kill "${!running[@]}" 2>/dev/null; wait; exit 130' INT TERM

# suite SERIES IOMMU [TEST...]: a guest with all of these that is not left out
suite() {
	local -a options without

	suite_of "$1" "$2"
	options+=(--smp "$smp")
	# all suites on a card need no kernel, and run elsewhere
	[[ "$1 $2" != "$newest on" ]] ||
		export RASHPA_STRESS_EVENTS=1000000 RASHPA_SUITES="registers stream event"
	# on two processors in one of the guests at least: where races are noticed
	[[ "$1 $2" != "debug on" ]] || options+=(--smp 2)
	exec "$lab" run "${options[@]}" --timeout 2400 --log "$out/$1-iommu-$2${3+-${3##*[._]}}.log" -- \
		selftests/suite.sh "${without[@]}" "${@:3}"
}

# Is there a program that guests.sh has forgotten?
complete() { # SERIES...
	local series left bad=0

	for series; do
		left=$(missed "$series")
		[[ ! $left ]] || { bad=1; printf '# %s: runs nowhere: %s\n' "$series" "${left//$'\n'/, }"; }
	done
	((bad)) && echo -n "not "
	echo "ok 1 - each program runs on each kernel"
	echo "1..1"
}

part "guests" complete "$@"
part "software FPGA" "$lab" exec -- build/tools/rashpa-fpga-selftest
part "tools" "$lab" exec -- build/tools/tools-selftest tools/profiles
part "profiles" "$lab" exec -- python3 -B tools/rashpactl/tests/profiles.py
part "streams" "$lab" exec -- build/tools/stream-selftest
part "network" "$lab" exec -- build/tools/network-selftest
part "processing" "$lab" exec -- build/tools/processing-selftest
part "pipelines" "$lab" exec -- tools/processing/tests/pipelines.sh
part "builder" "$lab" exec -- build/tools/builder-selftest
part "events" "$lab" exec -- tools/builder/tests/events.sh
[[ ! $newest ]] || part "events over a network" tools/builder/tests/builder-network.sh "$newest"
part "links" "$lab" exec -- build/tools/wire-selftest
part "telegrams" "$lab" exec -- tools/telegram/tests/telegrams.sh
# the long parts first, so that none of them is left alone at the end
for series in "$@"; do
	[[ $series == debug ]] || continue
	part "Linux debug IOMMU on" suite debug on
	part "Linux debug IOMMU off" suite debug off
done
# what takes half an hour on two processors that others use as well: in two guests
[[ ! $newest ]] || part "Linux $newest tools IOMMU on" suite "$newest" on selftests/tools/*.sh
[[ ! $newest ]] || part "Linux $newest IOMMU on" suite "$newest" on build/selftests/*_test
[[ ! $newest ]] || part "manager" guest manager "$newest" on --fpga 2 -- \
	selftests/suite.sh selftests/tools/{boot,manager,units}.sh
part "sanitizers" sanitizers "$newest"
[[ ! $newest ]] || part "Linux $newest IOMMU off" suite "$newest" off
for series in "$@"; do
	[[ $series != debug && $series != "$newest" ]] || continue
	part "Linux $series IOMMU off" suite "$series" off
	part "Linux $series IOMMU on" suite "$series" on
done
[[ ! $newest ]] || part "switch" guest switch "$newest" on --fpga 2 --topology switch -- \
	selftests/suite.sh build/selftests/{path,peer,flr}_test
# From below the switch the path is PEER, from the root port BRIDGE; with an IOMMU both are BRIDGE. What
# is the same there is tried at length without an IOMMU only.
for series in "$@"; do
	for iommu in off on; do
		case $series-$iommu in
		debug-*) continue ;;
		6.1-off) tests=(selftests/tools/gpu_paths.sh) ;;
		*-off) tests=(build/selftests/gpu_test selftests/tools/gpu{_paths,}.sh) ;;
		6.1-on) tests=(build/selftests/gpu_test selftests/tools/gpu_paths.sh) ;;
		*-on) tests=(selftests/tools/gpu_paths.sh) ;;
		esac
		part "Linux $series GPU IOMMU $iommu" guest "gpu-iommu-$iommu" "$series" "$iommu" --gpu --fpga 2 \
			--topology both -- selftests/suite.sh "${tests[@]}"
	done
done
# virtio_gpu says what it leaves behind when its driver goes
[[ ! $newest ]] || RASHPA_GPU_UNBIND=1 part "Linux $newest GPU unbound IOMMU on" guest gpu-unbound "$newest" on \
	--keep-going --gpu --fpga 1 -- selftests/suite.sh build/selftests/gpu_test
part "processing on a GPU" "$lab" exec -- tools/processing/tests/vulkan.sh
part "libraries of GPUs" "$lab" exec -- tools/lib/tests/gpu-libraries.sh
part "CUDA" "$lab" exec -- tools/processing/tests/cuda.sh
# the root has no nvcc
part "CUDA on this machine" tools/processing/tests/cuda.sh
part "kselftest" "$lab" exec -- selftests/kselftest/kselftest.sh
part "static" "$lab" exec -- selftests/static/static.sh
[[ " $* " != *" debug "* ]] || part "planted defects" selftests/lab/defects.sh
part "conformance" "$lab" exec -- selftests/conformance/boards.sh
for series in "$@"; do
	case $series in
	debug) ;;
	6.1) ;; # nothing that 6.12 does not show
	6.12) part "Linux $series 1 GiB IOMMU on" large "$series" on 4 --append "hugepagesz=1G hugepages=1" ;;
	*) part "Linux $series 1 GiB" large "$series" off 5 --append cma=1536M ;;
	esac
done
[[ ! $newest ]] || part "bounce buffers" guest bounce "$newest" off --append swiotlb=force --fpga 1 -- \
	selftests/suite.sh build/selftests/bounce_test
# newer kernels' vgem imports without mapping
[[ " $* " != *" 6.12 "* ]] || part "Linux 6.12 bounce buffers" guest bounce 6.12 off \
	--append swiotlb=force -- selftests/suite.sh build/selftests/foreign_test
# all of the memory is taken once: little of it. What locks the kernel down comes last.
[[ ! $newest ]] || part "contig" guest contig "$newest" off --append numa_cma=0:64M --fpga 1 \
	--memory 640M -- selftests/suite.sh build/selftests/{contig,lockdown}_test
# newer kernels tell that a page is being written in another way
[[ " $* " != *" 6.12 "* ]] || part "Linux 6.12 contig" guest contig 6.12 off --memory 640M -- \
	selftests/suite.sh build/selftests/contig_test
[[ ! $newest ]] || part "interrupt pin" guest intx "$newest" on --fpga 1 --fpga-option --intx -- \
	selftests/suite.sh build/selftests/{event,group,lockdown}_test
# three boards that fetch addresses, one of each format; where addresses come from is all that an
# IOMMU changes for them, and once is enough for that
fetching=(--fpga 3 --fpga-option 0:--fetch=array --fpga-option 1:--fetch=chain --fpga-option 2:--fetch=packed)
for series in "$@"; do
	[[ $series != "$newest" ]] || part "Linux $series fetching boards" guest fetch-off "$series" off "${fetching[@]}" -- \
		selftests/suite.sh build/selftests/fetch_test
	fetch=(build/selftests/fetch_test)
	[[ $series != "$newest" ]] || fetch+=(selftests/tools/fetch.sh)
	part "Linux $series fetching boards IOMMU on" guest fetch-on "$series" on "${fetching[@]}" -- \
		selftests/suite.sh "${fetch[@]}"
done
# one with a table, and one that fetches: four streams beside maps that come and go
[[ ! $newest ]] || part "two kinds of boards" guest crowd "$newest" on --fpga 2 --fpga-option 1:--fetch=chain -- \
	selftests/suite.sh build/selftests/engine_test
[[ ! $newest ]] || part "packages" packages "$newest"
part "two devices" "$lab" exec -- selftests/conformance/differ.sh
part "lab" selftests/lab/selftest --quick
part "ABI" "$lab" exec -- selftests/abi/abi.sh
part "syzkaller description" "$lab" exec -- python3 -B selftests/fuzz/describe.py --check
part "usage" "$lab" exec -- tools/tests/usage.sh
part "documentation" "$lab" exec -- Documentation/tests/docs.sh
while ((${#running[@]})); do
	reap
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed))
