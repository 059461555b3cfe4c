#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The measurements of a GPU: on lavapipe in the lab's root, which is a program on processors and no GPU, and
# each row says so; of CUDA, where that is (NVCC's and the driver's libraries are not in the root: there a row says
# why not). On a machine with a GPU, rashpa-bench gpu measures that one. bench-gpu.sh [KERNEL [OPTION...]]: options
# of rashpa-bench gpu. RASHPA_BENCH_GUEST=1: round trips by the board's clock as well, in a guest, whose GPU is
# emulated. Writes build/bench/gpu.json.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$top"
kernel=${1:-newest}
shift || true
out=build/bench
lab=selftests/lab/lab

mkdir -p "$out"
rm -f "$out"/gpu*.json
"$lab" exec -- make -s tools
"$lab" exec -- env VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json \
	build/tools/rashpa-bench gpu --json="$out/gpu-vulkan.json" "$@"
# without a GPU it measures nothing, and tells why
"$lab" exec -- build/tools/rashpa-bench gpu --engine cuda --json="$out/gpu-cuda.json" "$@" || [[ -s $out/gpu-cuda.json ]]
if [[ ${RASHPA_BENCH_GUEST-0} == 1 ]]; then
	"$lab" exec --kernel "$kernel" -- selftests/build.sh "$kernel"
	"$lab" run --kernel "$kernel" --iommu off --gpu --fpga 1 --topology switch --timeout 1800 \
		--log "$out/gpu-guest.log" -- tools/bench/lab/bench-gpu-guest.sh
fi
mapfile -t loops < <(compgen -G "$out/gpu-loop-*.json")
"$lab" exec -- jq -s '.[0] + {rows: map(select(.bench == "gpu").rows) | add,
	left_out: map(select(.bench == "gpu").left_out) | add,
	round_trips: map(select(.bench == "loop"))}' \
	"$out"/gpu-{vulkan,cuda}.json "${loops[@]}" >"$out/gpu.json"
echo
echo "bench: all figures in $out/gpu.json"
