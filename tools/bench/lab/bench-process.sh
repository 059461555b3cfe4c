#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Measurements of processing on this machine: stages compared with STREAM, NumPy and pyFAI, and a
# roofline. bench-process.sh [IGNORED [OPTION...]]: options of rashpa-bench process. Writes
# process.json and process.svg to build/bench.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top"
shift || true
out=build/bench

mkdir -p "$out"
rm -f "$out"/process.{json,svg}
selftests/lab/lab exec -- make -s tools
# shellcheck disable=SC2016 # of the inner shell
selftests/lab/lab exec -- bash -c '
	export PYTHONPATH=$PWD/build/tools/python RASHPA_LIBRARY=build/tools/librashpa.so.0
	export RASHPA_PROCESSING_LIBRARY=build/tools/librashpa-processing.so.0 MPLCONFIGDIR=/tmp
	export PYTHONWARNINGS=ignore	# pyFAI warns about optional packages
	out=$1
	shift
	build/tools/rashpa-bench process --json="$out/process.json" "$@"
	python3 -B tools/bench/lab/bench_process.py "$out/process.json" "$out/process.svg"' \
	bench "$out" "$@"
echo
echo "bench: results in $out/process.json, a roofline in process.svg"
