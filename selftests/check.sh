#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# All tests: programs on the host, then every kernel with the IOMMU off and on.
# check.sh [SERIES...]. Results in build/check; the last line counts.
# RASHPA_CHECK_JOBS: parts at a time (default: as many as processors, at most 4).
set -uo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
lab=selftests/lab/lab
out=build/check
passed=0 failed=0 skipped=0
# Parts at a time.
jobs=${RASHPA_CHECK_JOBS:-$(nproc)}
((jobs <= 4)) || jobs=4
# Processors of most guests: where several guests share few, a second one only waits for
# the lock that the first one holds.
smp=2
((jobs * 2 <= $(nproc))) || smp=1
(($#)) || set -- 6.1 6.12 7.2 debug
newest= # of Debian's
for series in "$@"; do
	[[ $series == debug ]] || newest=$series
done
rm -rf "$out"
mkdir -p "$out"

# Count a TAP file, show what was not good; a run that broke off counts as failed.
tally() { # TITLE FILE STATUS SECONDS
	local p f s
	s=$(grep -c '^ok .*# SKIP' "$2")
	p=$(($(grep -c '^ok ' "$2") - s))
	f=$(grep -c '^not ok ' "$2")
	if (($3 != 0 && f == 0)); then
		f=1
		echo "not ok - $1: exit status $3"
		tail -n 20 "$2" | sed 's/^/#   /'
	elif ((p + f + s == 0)); then
		f=1
		echo "not ok - $1: ran no test"
	fi
	grep -B8 '^not ok ' "$2" | grep '^not ok \|^#'
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

# guest SERIES IOMMU OPTION... -- TEST...
guest() {
	local log=$out/$1-iommu-$2.log

	[[ ${*:3} != *swiotlb* ]] || log=$out/$1-bounce.log
	[[ ${*:3} != *--intx* ]] || log=$out/$1-intx.log
	exec "$lab" run --kernel "$1" --iommu "$2" --timeout 1200 --log "$log" "${@:3}"
}

# 1 GiB in one piece, in a guest of its own: SERIES IOMMU GIB OPTION...
large() {
	local available
	available=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
	if ((available <= $3)); then
		echo "ok 1 - 1 GiB # SKIP needs a guest of $3 GiB, and $available GiB are free"
		return
	fi
	exec "$lab" run --kernel "$1" --iommu "$2" --memory "${3}G" --fpga 1 --timeout 900 \
		--log "$out/$1-large.log" "${@:4}" -- selftests/suite.sh build/selftests/large_test
}

trap 'kill "${!running[@]}" 2>/dev/null; wait; exit 130' INT TERM

# What is not ours: a disk, a device with DMA, one that reaches 28 bits, memory in a BAR,
# a network card that can report errors.
foreign=(--disk 64M --device "edu,dma_mask=0xffffffffffffffff" --device edu
	--object "memory-backend-memfd,id=shm0,size=4M,share=on"
	--device "ivshmem-plain,memdev=shm0"
	--device pcie-root-port,id=port9,chassis=9 --device e1000e,bus=port9)

# What a guest leaves out, because another one runs it: most of what asks nothing of the
# IOMMU runs once a kernel, what asks nothing of the kernel only once. 6.1 does not let a
# fault wait while pages are pinned, so race_test cannot hold all calls there.
declare -A leaves_out=(
	["6.1 off"]="race_test argument_test memory_test privilege_test disclosure_test order_test
		keepup.sh tools.sh kill.sh hostile.sh compat.sh fuzz.sh"
	["6.1 on"]="abi_test storm_test pass_test race_test churn_test
		foreign.sh bench.sh tools.sh hostile.sh compat.sh fuzz.sh"
	["6.12 off"]="abi_test storm_test pass_test race_test churn_test argument_test
		foreign.sh bench.sh tools.sh hostile.sh fuzz.sh"
	["6.12 on"]="abi_test argument_test memory_test privilege_test disclosure_test order_test
		keepup.sh tools.sh compat.sh"
	["7.2 off"]="argument_test privilege_test disclosure_test order_test
		keepup.sh tools.sh kill.sh hostile.sh compat.sh fuzz.sh"
	["7.2 on"]="abi_test storm_test pass_test race_test churn_test
		foreign.sh bench.sh compat.sh fuzz.sh"
)

# stock SERIES IOMMU: a guest with a kernel of Debian's
stock() {
	local name options=(--smp "$smp")
	local -a without=(--without large_test --without bounce_test)

	for name in ${leaves_out["$1 $2"]-}; do
		without+=(--without "$name")
	done
	if [[ $1 != 6.* && $2 == on ]]; then
		# The newest kernel runs on two processors, in one of its guests at least. Debian
		# zeroes pages for us; without that, our own zeroing shows.
		options=(--smp 2 --append init_on_alloc=0)
		export RASHPA_STRESS_EVENTS=2000000
	elif [[ $1 != 6.* ]]; then
		# CMA only once, so that both backends are seen on a kernel that has both
		options+=(--append cma=256M)
	fi
	guest "$1" "$2" --fpga 2 --memory 2G "${foreign[@]}" "${options[@]}" -- \
		selftests/suite.sh "${without[@]}"
}

# What the debug kernel runs: what ends, fails, races and frees. The rest would only be slow.
declare -A looks_at=(
	[off]="abi_test argument_test pass_test event_test ring_test lock_test liar_test
		stream_test pin_test name_test"
	[on]="race_test fault_test storm_test lifetime_test map_test path_test hostile_test"
)

# debug IOMMU: a guest with the kernel that looks closest
debug() {
	local name
	local -a tests=()

	for name in ${looks_at[$1]}; do
		tests+=("build/selftests/$name")
	done
	guest debug "$1" --fpga 2 --memory 2G --smp "$smp" "${foreign[@]}" -- \
		selftests/suite.sh "${tests[@]}"
}

part "software FPGA" "$lab" exec -- build/tools/rashpa-fpga-selftest
part "tools" "$lab" exec -- build/tools/tools-selftest tools/profiles
for series in "$@"; do
	for iommu in on off; do
		if [[ $series == debug ]]; then
			part "debug kernel IOMMU $iommu" debug "$iommu"
		else
			part "Linux $series IOMMU $iommu" stock "$series" "$iommu"
		fi
	done
done
for series in "$@"; do
	case $series in
	debug) ;;
	6.1) part "Linux $series 1 GiB" large "$series" off 4 ;;
	6.12) part "Linux $series 1 GiB IOMMU on" large "$series" on 5 --append "hugepagesz=1G hugepages=1" ;;
	*) part "Linux $series 1 GiB" large "$series" off 6 --append cma=1536M ;;
	esac
done
[[ ! $newest ]] || part "bounce buffers" guest "$newest" off --append swiotlb=force --fpga 1 -- \
	selftests/suite.sh build/selftests/bounce_test
[[ ! $newest ]] || part "interrupt pin" guest "$newest" on --fpga 1 --fpga-option --intx -- \
	selftests/suite.sh selftests/tests/bench.sh
[[ " $* " != *" debug "* ]] || part "planted defects" selftests/defects.sh
part "lab" selftests/lab/selftest --quick
part "static" "$lab" exec -- selftests/static.sh
part "ABI" "$lab" exec -- selftests/abi.sh
part "syzkaller description" "$lab" exec -- python3 -B selftests/fuzz/describe.py --check
part "sanitizers" "$lab" exec -- selftests/sanitize.sh
part "documentation" "$lab" exec -- selftests/docs.sh
while ((${#running[@]})); do
	reap
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed))
