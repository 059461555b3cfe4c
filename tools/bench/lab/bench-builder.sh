#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The measurements of the event builder: the library beside MPI alone, between two processes of this
# machine; protocols of Open MPI beside each other; what the model foretells beside what runs do; memory
# of a slow receiver; curves of the model. bench-builder.sh [IGNORED [OPTION...]]: options of rashpa-builder burst. Writes
# builder.json and builder.svg to build/bench; verbs beside MPI are in it where bench-builder-guest.sh
# has run in a guest. Ratios count, not rates.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top"
shift || true
out=build/bench

mkdir -p "$out"
rm -f "$out"/builder.{json,svg} "$out"/builder-*.json # not .jsonl: that is of the guest
selftests/lab/lab exec -- make -s tools
# shellcheck disable=SC2016 # of the inner shell
selftests/lab/lab exec -- bash -c '
	. selftests/lib/mpi.sh
	out=$1
	shift
	burst() { mpirun --bind-to none -n 2 build/tools/rashpa-builder burst "$@"; }
	burst --rounds 21 --json="$out/builder-burst.json" "$@"
	# eager: copied by way of memory between both; else the receiver reads it where it is
	for round in 1 2 3; do
		OMPI_MCA_btl_sm_eager_limit=65536 burst --way "layer alone" --rounds 11 \
			--json="$out/builder-eager-$round.json"
		OMPI_MCA_btl_sm_eager_limit=4096 burst --way "layer alone" --rounds 11 \
			--json="$out/builder-rendezvous-$round.json"
	done
	PATH=$PWD/build/tools:$PATH
	python3 -B tools/bench/lab/bench_model.py "$out"
	python3 -B tools/bench/lab/bench_resident.py "$out"
	MPLCONFIGDIR=/tmp python3 -B tools/bench/lab/bench_curves.py "$out/builder-curves.svg" "$out/builder-curves.json"' bench "$out" "$@"
selftests/lab/lab exec -- env MPLCONFIGDIR=/tmp python3 -B tools/bench/lab/bench_builder.py "$out"
echo
echo "bench: all figures in $out/builder.json, drawn in builder.svg"
