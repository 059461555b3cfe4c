#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in a guest with a GPU: round trips of a ring by the clock of the board, with payload in host memory and in
# GPU memory, without and with a flush. A thread drives, and with host memory also lavapipe, by launches and by a shader.
# RASHPA_BENCH_EVENTS: number of events for each. Writes build/bench/gpu-loop-*.json.
set -euo pipefail

cd "$(dirname "$0")/../../.."
export PATH=$PWD/build/tools:$PATH RASHPA_PROFILES=$PWD/tools/data/profiles
insmod "build/modules/${RASHPA_KERNEL:?set by the lab}/rashpa.ko"
modprobe virtio-gpu
until compgen -G "/dev/dri/renderD*" >/dev/null; do sleep 0.1; done
echo allow >/sys/module/rashpa/parameters/p2p_bridge
fpga=$(rashpactl --json bind "$(lspci -D -d 1234:5250 | head -n 1 | cut -d' ' -f1)" | jq -r .node)
for flush in off on; do
	for memory in host vulkan; do
		driver=virtio more=(--memory vulkan)
		[[ $memory == vulkan ]] || driver=lvp more=(--gpu vulkan)
		VK_DRIVER_FILES=/usr/share/vulkan/icd.d/${driver}_icd.json rashpa-bench loop --fpga "$fpga" --flush "$flush" \
			--events "${RASHPA_BENCH_EVENTS:-20000}" "${more[@]}" --json="build/bench/gpu-loop-$memory-$flush.json"
	done
done
