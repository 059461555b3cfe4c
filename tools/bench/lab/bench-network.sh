#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Measurements of the network: a writer and a sink in two network namespaces of one guest, over
# soft-RoCE, compared with perftest, UDP and ZeroMQ. bench-network.sh [SERIES [OPTION...]]: kernel
# series (soft-RoCE supports namespaces only on the newest), and options of
# sweep.py. Writes network.json and network.svg to build/bench. Only ratios are meaningful.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top"
series=${1:-newest}
shift || true
out=build/bench

mkdir -p "$out"
rm -f "$out"/network.{json,svg}
# pages of 1 GiB can only be reserved at boot
selftests/lab/lab run --kernel "$series" --memory 6G --append "hugepagesz=1G hugepages=1" \
	--timeout 7200 --log "$out/bench-network.log" -- \
	tools/bench/lab/bench-network-guest.sh "$out" "$@"
selftests/lab/lab exec -- env PYTHONPATH=build/tools/python RASHPA_LIBRARY=build/tools/librashpa.so MPLCONFIGDIR=build/matplotlib \
	python3 -B -m rashpa.plot "$out/network.json"
echo
echo "bench: the same results, and those of each trial, in $out/network.json, plots in network.svg"
