#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=off seconds=40 needs=gpu
# A shader drives the board by a ring in memory of the lab's GPU, which is a BAR: the board writes events and payload
# there, peer to peer, and reads descriptors and answers. The lab's GPU does not reach the doorbell, so lavapipe runs the
# shader, and accesses the BAR by its address. The GPU also copies to on-board memory.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/gpu.sh"

buffer=loop
have_gpu "gpu-loop: a ring in the BAR of a GPU"
rashpactl buffer remove "$buffer"
export VK_DRIVER_FILES=/usr/share/vulkan/icd.d/virtio_icd.json:/usr/share/vulkan/icd.d/lvp_icd.json
events=${RASHPA_LOOP_EVENTS:-20000}

rashpa-bench loop --fpga "fpga$fpga" --events "$events" --gpu vulkan:1 --memory vulkan --only gpu --rings --json="$work/loop.json" >"$work/out" 2>&1
is "bar: $events events of a ring in the BAR of a GPU" $? 0 || sed 's/^/# /' "$work/out"
is "bar-all: each event and datagram came once, and each ring is right" \
	"$(jq -c '.rows[0] | [.way, .events, .missing, .doubled, .differ, .out_of_turn, .board.lost, .interrupts, .rings, .wrong_rings]' "$work/loop.json")" \
	"[\"gpu\",$events,0,0,0,0,0,0,$((events / 2 - 4)),0]"
rashpa-bench loop --fpga "fpga$fpga" --events 200 --gpu vulkan --memory gpu --only gpu >"$work/out" 2>&1
is "doorbell: a GPU that does not reach the doorbell" "$? $(grep -c "cannot access host memory" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"

# stages of images come after the copies; their shaders may take too long to compile here
rashpa-bench gpu --gpu vulkan:1 --fpga "fpga$fpga" --sizes 4K --copies 1M --repeat 1 --json="$work/gpu.json" >"$work/out" 2>&1
is "copies: a GPU copies to on-board memory, and the last word is right" \
	"$(jq -c '[.rows[] | select(.name == "a copy of it, to the board") | .size_bytes]' "$work/gpu.json")" \
	"[1024,4096,16384,65536,262144,1048576]" || sed 's/^/# /' "$work/out"
finish
