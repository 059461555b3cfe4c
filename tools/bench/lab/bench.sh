#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Cost of this driver compared with other drivers: instructions, which repeat, in a first guest, and
# times in a second one. bench.sh [SERIES [OPTION...]]: kernel series, and options of rashpa-bench
# memory. Writes instructions.txt, and memory, latency and roundtrip, each as .json and .svg, to
# build/bench. Only ratios of times are meaningful, as the processor is emulated.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top"
series=${1:-newest}
shift || true
out=build/bench

mkdir -p "$out"
rm -f "$out"/{memory,latency,roundtrip}.{json,svg}
echo "bench: instructions"
RASHPA_COUNT=yes selftests/lab/lab run --kernel "$series" --iommu on --fpga 2 --memory 3G --smp 1 --accel icount \
	--no-checks --append cma=512M --timeout 1800 --log "$out/count.log" -- \
	tools/bench/lab/bench-guest.sh "$out" --sizes 64K,2M,16M,128M "$@" | tee "$out/instructions.txt"
echo
# an area for the CMA backend, which older kernels do not support, and an interrupt pin for
# uio_pci_generic
selftests/lab/lab run --kernel "$series" --iommu on --fpga 2 --fpga-option --intx --memory 6G \
	--no-checks --append cma=1536M --timeout 1800 --log "$out/bench.log" -- \
	tools/bench/lab/bench-guest.sh "$out" --repeat 3 "$@"
for result in memory latency roundtrip; do
	selftests/lab/lab exec -- env PYTHONPATH=build/tools/python RASHPA_LIBRARY=build/tools/librashpa.so MPLCONFIGDIR=build/matplotlib \
		python3 -B -m rashpa.plot "$out/$result.json"
done
echo
echo "bench: the same results in $out/instructions.txt, memory.json, latency.json and roundtrip.json, plots in .svg"
