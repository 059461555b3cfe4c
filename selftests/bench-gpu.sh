#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The measurements of a GPU: on lavapipe in the lab's root, which is a program on processors and no GPU, and
# each row says so. On a machine with a GPU, rashpa-bench gpu measures that one. bench-gpu.sh
# [IGNORED [OPTION...]]: options of rashpa-bench gpu. Writes build/bench/gpu.json.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
shift || true
out=build/bench

mkdir -p "$out"
rm -f "$out/gpu.json"
selftests/lab/lab exec -- make -s tools
selftests/lab/lab exec -- env VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json \
	build/tools/rashpa-bench gpu --json="$out/gpu.json" "$@"
echo
echo "bench: all figures in $out/gpu.json"
