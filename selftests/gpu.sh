#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: the engine vulkan on lavapipe, Vulkan for processors, watched by Vulkan's
# validation layers, which say what a program does that Vulkan does not allow. TAP.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
export VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
# barriers around copies; what one shader leaves to the next they do not see
export VK_KHRONOS_VALIDATION_VALIDATE_SYNC=true
out=$(mktemp)
trap 'rm -f "$out"' EXIT

build/tools/processing-selftest vulkan >"$out" 2>&1
status=$?
n=$(grep -c '^\(not \)\?ok ' "$out")
grep '^\(not \)\?ok \|^#' "$out"
# what is neither a test nor the plan is the layers'
said=$(grep -v '^\(not \)\?ok \|^#\|^1\.\.' "$out")
if [[ $said ]]; then
	head -n 40 <<<"$said" | sed 's/^/# /'
	echo -n "not "
	status=1
fi
echo "ok $((n + 1)) - Vulkan's validation layers say nothing"
echo "1..$((n + 1))"
exit "$status"
