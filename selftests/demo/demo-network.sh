#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The demonstration over a network: a detector in one virtual machine writes by RDMA into named
# buffers in another one, and every byte is compared; then again, with lost packets.
# demo-network.sh [SERIES [FRAMES]]: kernel, and frames for each receiver. Writes
# build/demo-network.json. Exit: 0 success.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
series=${1:-newest} frames=${2:-500}
lab=selftests/lab/lab
release=$("$lab" release "$series")
out=build/demo-network
wire=$(mktemp -d)
status=0

rm -rf "$out" build/demo-network.json
mkdir -p "$out"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$wire"' EXIT
cat <<END

  virtual machine, Linux $release              virtual machine, the same kernel
 +----------------------------+  RoCE v2: UC  +------------------------------------+
 | remu: 4 modules of         |  RDMA WRITE   |  buffer net0 [ stack 0 ][ stack 1 ]|
 | 1024 x 512 pixels,         | ============> |    romulu: each 1st image          |
 | a thread and a queue pair  |  immediate:   |  buffer net1 [ stack 0 ][ stack 1 ]|
 | each, for each receiver    |  its number   |    romulu: each 2nd image          |
 |                            | <-----------> |  compare, keep account             |
 |                            |  TCP: credit  |                                    |
 |                            | <-----------> |    rashpa-manager leads all three  |
 +----------------------------+ TLS: telegrams +-----------------------------------+

END
# shellcheck source-path=SCRIPTDIR source=../lib/cable.sh
. selftests/lib/cable.sh
side() { # MACHINE
	local -A end=([detector]=1 [receiver]=2)
	cable_end "${end[$1]}" "$wire" --kernel "$series" --memory 1536M --no-checks --timeout 1500 --log "$out/$1.log" \
		-- selftests/demo/demo-network-guest.sh "$1" "$out" "$frames"
}
echo "== Linux $release, twice: booting"
side detector >"$out/detector.txt" 2>&1 &
detector=$!
(side receiver) || { status=1; kill "$detector" 2>/dev/null || true; }
wait "$detector" || { status=1; cat "$out/detector.txt"; }

# jq from the lab's root, so that the machine needs none
"$lab" exec -- jq -s '{runs: .}' "$out"/run-*.json >build/demo-network.json
"$lab" exec -- jq -e --argjson frames "$frames" '.runs | length == 2 and
	all(.frames == 2 * $frames and .corrupt == 0 and .lost == 0 and .unaccounted == 0 and
	.missing == .injected) and .[0].missing == 0 and .[1].missing > 0' \
	build/demo-network.json >/dev/null || status=1
if ((status)); then
	echo "demo: FAILED (kernel logs in $out)"
else
	echo "demo: every frame arrived unchanged, except for the known missing lines of lost packets;"
	echo "      figures in build/demo-network.json"
fi
exit "$status"
