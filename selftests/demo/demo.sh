#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The demonstration: detector frames from a software FPGA, by DMA, into a named
# contiguous buffer of a virtual machine, checked byte for byte; IOMMU off, then on.
# Then raw frames are processed. demo.sh [SERIES]: kernel. Writes build/demo.json,
# demo-process.json and demo-process.svg. RASHPA_BOARD: array (or ring), chain or packed: a board
# that fetches its addresses from host memory, without processing; litepcie, wupper, verilog-pcie,
# xilinx-xdma or xilinx-xdma-stream: a model of that engine.
# Exit: 0 all frames arrived, and the hits were found.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
series=${1:-newest}
lab=selftests/lab/lab
release=$("$lab" release "$series")
out=build/demo
status=0
board=()
[[ ${RASHPA_BOARD-} != ring ]] || RASHPA_BOARD=array
[[ ! ${RASHPA_BOARD-} ]] || board=(--fpga-option "--fetch=$RASHPA_BOARD")
guest=selftests/demo/demo-guest.sh least=2000
case ${RASHPA_BOARD-} in
litepcie | wupper | verilog-pcie | xilinx-xdma | xilinx-xdma-stream)
	board=(--fpga-option "--board=$RASHPA_BOARD")
	guest=selftests/demo/demo-engine-guest.sh least=100
	;;
esac
export RASHPA_BOARD=${RASHPA_BOARD-}

rm -rf "$out" build/demo{,-process}.{json,svg}
mkdir -p "$out"
cat <<END

  software FPGA                        virtual machine, Linux $release
 +--------------+  PCIe, bus-master   +------------------------------------+
 | on-board     |  DMA, 2 transfer    |  buffer ring0, contiguous, named   |
 | memory with  | ------------------> |  [ stack 0 ][ stack 1 ]  ping-pong |
 | the dataset  |  MSI-X per stack    |        | mmap          ^           |
 | (a process   | ------------------> |        v               |           |
 |  here)       |  64 bytes per stack |  romulu: a group of 2 lock words;  |
 |              | ------------------> |  lock memory ring0.lock [ 0 ][ 1 ] |
 |              | <------------------ |  compares, gives credit            |
 +--------------+  doorbell: credit   +------------------------------------+

END
for iommu in off on; do
	echo "== Linux $release, IOMMU $iommu: booting"
	if ! "$lab" run --kernel "$series" --iommu "$iommu" --fpga 1 "${board[@]}" --memory 2G --no-checks --timeout 900 \
		--log "$out/$series-iommu-$iommu.log" -- \
		"$guest" "$out/$iommu.json"; then
		status=1
	fi
done

# jq from the lab's root, so that the machine needs none
"$lab" exec -- jq -s '{runs: .}' "$out"/*.json >build/demo.json
"$lab" exec -- jq -e --argjson least "$least" '[.runs[] | select(.frames >= $least and .lost == 0 and (.corrupt // 0) == 0)] | length == 2' \
	build/demo.json >/dev/null || status=1

[[ $RASHPA_BOARD ]] || echo "== Linux $release, IOMMU on: frames are processed"
[[ $RASHPA_BOARD ]] || "$lab" run --kernel "$series" --iommu on --fpga 1 --memory 2G --no-checks --timeout 900 \
	--log "$out/$series-process.log" -- \
	selftests/demo/demo-process-guest.sh build/demo-process.json build/demo-process.svg || status=1

if ((status)); then
	echo "demo: FAILED (kernel logs in $out)"
else
	echo "demo: every frame arrived unchanged; figures in build/demo.json"
	[[ $RASHPA_BOARD ]] || echo "demo: processed frames in build/demo-process.json, a picture in build/demo-process.svg"
fi
exit "$status"
