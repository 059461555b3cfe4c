#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=nightly seconds=330 args=5
# Runs inside the lab's root: rashpa-builder for MINUTES, with samples of the memory of its
# processes. soak-builder.sh [MINUTES [TRANSPORT...]]; default: 20 minutes of shm and mpi. verbs
# needs a guest, as it creates soft-RoCE devices. TAP; the samples of resident memory, in KiB, are
# in build/soak-builder.
set -uo pipefail

minutes=${1:-20}
transports=("${@:2}")
((${#transports[@]})) || transports=(shm mpi)
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
PATH=$PWD/${RASHPA_TOOLS:-build/tools}:$PATH
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/mpi.sh
. "$(dirname "$0")/../../../selftests/lib/mpi.sh"

# options of each transport
declare -A device=([verbs]="--device rxe0")
if [[ " ${transports[*]} " == *" verbs "* ]] && ! selftests/lib/rxe.sh >"$work/err" 2>&1; then
	skip "messages-verbs: messages over verbs" "no soft-RoCE: $(tail -n 1 "$work/err")"
	finish
fi

out=build/soak-builder
mkdir -p "$out"
seconds=$((minutes * 60))
# tolerated growth of a process: two huge pages
growth_kib=4096
# seconds between samples
every=$((seconds < 300 ? 1 : 5))
# time before the first sample counts: a minute, or half of a short run
settled=$((seconds < 120 ? seconds / 2 : 60))

# soak TRANSPORT NAME PROCESSES ARGUMENT...: start a run in the background; adds to runs
runs=()
declare -A job
soak() {
	local name=$1-$2
	runs+=("$name")
	rm -f "$out/$name".*
	# shellcheck disable=SC2086 # one option with its value, or none
	timeout $((seconds + 900)) mpirun --bind-to none -n "$3" rashpa-builder "${@:4}" --transport "$1" ${device[$1]-} \
		--timeout 300 --json >"$out/$name.json" 2>"$out/$name.err" &
	job[$name]=$!
}
for transport in "${transports[@]}"; do
	for depth in 1 64; do
		soak "$transport" "nxn-$depth" 2 nxn --depth "$depth" --size 6000 --jitter 100 --verify \
			--seconds "$seconds"
	done
	soak "$transport" build-8 3 build --folded --hold --jitter 90
done

# ranks NAME: the processes of a run that has not ended: children of mpirun, which is a child of timeout
ranks() {
	local launcher
	launcher=$(pgrep -P "${job[$1]}") && pgrep -P "$launcher" rashpa-builder
}
# resident SECONDS: take a sample of all processes
resident() {
	local name pid kib
	for name in "${runs[@]}"; do
		for pid in $(ranks "$name"); do
			kib=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null)
			[[ ! $kib ]] || echo "$1 $pid $kib" >>"$out/$name.resident"
		done
	done
}
end=$((SECONDS + seconds))
for ((began = SECONDS; SECONDS < end - 5; )); do
	resident $((SECONDS - began))
	read -rt "$every" -u "$silence" || :
done
# build runs until a signal
for name in "${runs[@]}"; do
	[[ $name == *build* ]] || continue
	for pid in $(ranks "$name"); do
		# a process that has ended meanwhile has no rank
		[[ $(rank_of "$pid") != 0 ]] || kill -TERM "$pid"
	done
done

for name in "${runs[@]}"; do
	status=0
	wait "${job[$name]}" || status=$?
	is "ends-order: $name succeeds" "$status" 0 || grep '^rashpa-builder' "$out/$name.err" | sed 's/^/# /'
	case $name in
	*nxn*)	right='.received > 0 and .received == .sent and .lost + .duplicate + .late + .wrong == 0' ;;
	*)	right='.built > 0 and .built == .events and .incomplete + .lost + .unknown + .foreign == 0' ;;
	esac
	json "$right" cat "$out/$name.json"
	ok $? "all-right: $name: all data came, and were right: $(jq -r '.received // .built' "$out/$name.json")"
	# for each process: first sample that counts, maximum and last sample
	awk -v settled="$settled" '
		$1 >= settled && !($2 in first) { first[$2] = $3 }
		$2 in first { last[$2] = $3; samples++; if ($3 > most[$2]) most[$2] = $3 }
		END {
			for (i in first) {
				printf "# %s of process %s: %d KiB, most %d, at the end %d\n", name, i, first[i], most[i], last[i]
				if (most[i] - first[i] > grown) grown = most[i] - first[i]
			}
			print samples + 0, grown + 0
		}' name="$name" "$out/$name.resident" >"$work/grown"
	grep '^#' "$work/grown"
	read -r samples grown < <(tail -n 1 "$work/grown")
	holds "memory-grew-kib: $name: memory grew by $grown KiB in $((seconds - settled)) s, of at most $growth_kib" \
		"$samples > 4 && $grown <= $growth_kib"
done
finish
