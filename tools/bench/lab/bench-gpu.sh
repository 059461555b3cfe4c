#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Measurements of a GPU: lavapipe in the root of the lab, which is a program on processors, not a GPU; each row
# names it. Also CUDA, if available; the root has no libraries of NVIDIA, so the report contains the reason. On a
# machine with a GPU, run rashpa-bench gpu instead. bench-gpu.sh [KERNEL [OPTION...]]: options of rashpa-bench gpu.
# RASHPA_BENCH_GUEST=1: also round trips by the clock of the board, in a guest with an emulated GPU. Writes
# build/bench/gpu.json.
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
# without a GPU, the report contains only the reason
"$lab" exec -- build/tools/rashpa-bench gpu --gpu cuda --json="$out/gpu-cuda.json" "$@" || [[ -s $out/gpu-cuda.json ]]
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
echo "bench: results in $out/gpu.json"
