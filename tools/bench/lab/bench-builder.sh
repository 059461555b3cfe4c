#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Measurements of the event builder: the library compared with MPI alone, between two processes of this
# machine; the protocols of Open MPI; predictions of the model compared with runs; memory with a slow
# receiver; curves of the model. bench-builder.sh [IGNORED [OPTION...]]: options of rashpa-builder burst.
# Writes builder.json and builder.svg to build/bench, with the results of bench-builder-guest.sh, if any.
# Only ratios are meaningful.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top"
shift || true
out=build/bench

mkdir -p "$out"
rm -f "$out"/builder.{json,svg} "$out"/builder-*.json # keep the .jsonl files of the guest
selftests/lab/lab exec -- make -s tools
# shellcheck disable=SC2016 # of the inner shell
selftests/lab/lab exec -- bash -c '
	. selftests/lib/mpi.sh
	out=$1
	shift
	burst() { mpirun --bind-to none -n 2 build/tools/rashpa-builder burst "$@"; }
	burst --rounds 21 --json="$out/builder-burst.json" "$@"
	# eager: copied through intermediate memory; otherwise the receiver reads from the sender
	for round in 1 2 3; do
		OMPI_MCA_btl_sm_eager_limit=65536 burst --way "layer alone" --rounds 11 \
			--json="$out/builder-eager-$round.json"
		OMPI_MCA_btl_sm_eager_limit=4096 burst --way "layer alone" --rounds 11 \
			--json="$out/builder-rendezvous-$round.json"
	done
	PATH=$PWD/build/tools:$PATH
	python3 -B tools/bench/lab/bench_model.py "$out"
	python3 -B tools/bench/lab/bench_resident.py "$out"
	for transport in shm mpi; do
		python3 -B tools/bench/lab/bench_ranks.py "$out/builder-ranks.jsonl" "$transport"
	done
	MPLCONFIGDIR=/tmp python3 -B tools/bench/lab/bench_curves.py "$out/builder-curves.svg" "$out/builder-curves.json"' bench "$out" "$@"
selftests/lab/lab exec -- env MPLCONFIGDIR=/tmp python3 -B tools/bench/lab/bench_builder.py "$out"
echo
echo "bench: results in $out/builder.json, plots in builder.svg"
