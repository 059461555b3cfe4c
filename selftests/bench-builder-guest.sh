#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The part of the measurements of the event builder that runs in the guest: the same traffic over the
# same soft-RoCE device by verbs, and by MPI over TCP; and before that, by verbs over a slow cable, for
# the model to be compared with. bench-builder-guest.sh FOLDER [ROUNDS]: a file for each
# run is written there.
set -euo pipefail

cd "$(dirname "$0")/.."
export PATH=$PWD/${RASHPA_TOOLS:-build/tools}:$PATH
. selftests/lib/mpi.sh
out=$1 rounds=${2:-3}

selftests/rxe.sh
ip link set lo up
echo "== $(uname -sr)"
# run NAME COUNT SIZE ROUND OPTION...: with the environment of MPI that the caller has set
run() {
	local name=$1 count=$2 size=$3 round=$4
	shift 4
	timeout 120 mpirun --bind-to none -n "$count" rashpa-builder nton --size "$size" --seconds 3 --interval 0.25 \
		--timeout 60 --json="$out/builder-guest-$name-$count-$size-$round.json" "$@" >/dev/null 2>"$out/builder-guest.err" || {
		echo "   $name, $count processes, $size: failed"
		tail -n 5 "$out/builder-guest.err"
	}
}
# --- a cable of 20 Mb/s and 5 ms, so that the processor of this machine does not count: half of the
# processes at each end. More than what is under way here would be sent again, after 67 ms.

modprobe sch_netem
for i in 0 1; do
	tc qdisc replace dev "rxe-cable$i" root netem rate 20mbit delay 5ms limit 4000
done
# wire NAME NEAR FAR COMMAND OPTION...
wire() {
	local name=$1 near=$2 far=$3 end=(--transport verbs --timeout 60)
	shift 3
	timeout 120 mpirun --bind-to none -n "$near" rashpa-builder "${end[@]}" --device rxe0 \
		--json="$out/builder-wire-$name.json" "$@" : \
		-n "$far" rashpa-builder "${end[@]}" --device rxe1 "$@" >/dev/null 2>"$out/builder-guest.err" || {
		echo "   $name: failed"
		tail -n 5 "$out/builder-guest.err"
	}
}
for shape in "1 4096 1" "1 4096 8" "1 16384 1" "1 16384 2" "1 16384 8" "2 4096 1" "2 4096 8" "2 16384 2" \
	"4 4096 1" "4 4096 2"; do
	read -r n size depth <<<"$shape"
	wire "nton-$n-$size-$depth" "$n" "$n" nton --size "$size" --depth "$depth" --seconds 6 --interval 0.5
done
echo "   over a slow cable: traffic"
for shape in "1 1" "1 2" "1 8" "4 1" "4 4"; do
	read -r block credit <<<"$shape"
	wire "build-$block-$credit" 3 2 build --readouts 2 --sources 1 --block "$block" --credit "$credit" --events 600
done
echo "   over a slow cable: events"
for i in 0 1; do
	tc qdisc delete dev "rxe-cable$i" root
done

# --- as fast as it goes

for ((round = 1; round <= rounds; round++)); do
	for size in 4096 65536; do
		for count in 2 4; do
			run verbs "$count" "$size" "$round" --transport verbs --device rxe0
			OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo \
				run tcp "$count" "$size" "$round" --transport mpi
		done
		echo "   round $round of $rounds: $size bytes"
	done
done
