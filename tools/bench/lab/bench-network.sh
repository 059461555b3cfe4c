#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The measurements of the network: a writer and a sink in two network namespaces of one guest, with
# soft-RoCE between them, beside perftest, UDP and ZeroMQ. bench-network.sh [SERIES [OPTION...]]:
# of the kernel (soft-RoCE knows namespaces on the newest only); options of rashpa-bench network
# sweep. Writes network.json and network.svg to build/bench. Ratios count, not rates.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top"
series=${1:-newest}
shift || true
out=build/bench

mkdir -p "$out"
rm -f "$out"/network.{json,svg}
# pages of 1 GiB are only found at the start
selftests/lab/lab run --kernel "$series" --memory 6G --append "hugepagesz=1G hugepages=1" \
	--timeout 7200 --log "$out/bench-network.log" -- \
	tools/bench/lab/bench-network-guest.sh "$out" "$@"
echo
echo "bench: the same figures, and those of each trial, in $out/network.json, drawn in .svg"
