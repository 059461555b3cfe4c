#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The part of the demonstration that runs in the guest, with a model of another engine.
# demo-engine-guest.sh JSON: streams 100 frames, and writes the result to JSON. RASHPA_BOARD: the engine.
set -euo pipefail

cd "$(dirname "$0")/../.."
export PATH=$PWD/build/tools:$PATH
declare -A ids=([litepcie]=5254 [wupper]=5255 [verilog-pcie]=5256 [xilinx-xdma]=5257 [xilinx-xdma-stream]=5258)
way=each
[[ $RASHPA_BOARD != litepcie ]] || way=round
[[ -e /dev/rashpa/memory ]] || insmod "build/modules/$RASHPA_KERNEL/rashpa.ko"
bdf=$(lspci -D -d "1234:${ids[$RASHPA_BOARD]}" | cut -d' ' -f1)
fpga=$(rashpactl bind --profile "tools/data/profiles/untried/$RASHPA_BOARD.json" "$bdf")
echo "   rashpactl bind: $fpga, a model of $RASHPA_BOARD"
rashpactl buffer create ring0 4M --for "$fpga" | sed 's/^/   rashpactl buffer create: /'
romulu --buffer ring0 --tune progress --timeout 60 --json=/tmp/romulu.json &
receiver=$!
build/tools/examples/engine ring0 "$fpga" 100 "$way"
wait "$receiver"
rashpactl buffer remove ring0 >/dev/null
jq --arg kernel "$(uname -r)" --arg iommu "$RASHPA_IOMMU" --arg board "$RASHPA_BOARD" '{
	kernel: $kernel, iommu: $iommu, board: $board,
	frames: .frames, lost: .lost, bytes: .bytes, seconds: .seconds}' /tmp/romulu.json >"$1"
jq -r '"   \(.frames) frames, \(.lost) lost"' "$1"
