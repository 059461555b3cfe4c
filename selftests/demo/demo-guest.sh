#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The part of the demonstration that runs in the guest.
# demo-guest.sh JSON [FRAMES]: streams, and writes the result to JSON. RASHPA_BOARD: array, chain or
# packed: a board that fetches its addresses; default: the board with a table.
set -euo pipefail

cd "$(dirname "$0")/../.."
export PATH=$PWD/build/tools:$PATH RASHPA_PROFILES=$PWD/tools/data/profiles
json=$1
frames=${2:-2000}
work=$(mktemp -d)
[[ -e /dev/rashpa/memory ]] || insmod "build/modules/$RASHPA_KERNEL/rashpa.ko"

echo "   $(uname -sr), rashpa $(</sys/module/rashpa/version)"
declare -A ids=([array]=5251 [chain]=5252 [packed]=5253)
bdf=$(lspci -D -d "1234:${ids[${RASHPA_BOARD:-table}]-5250}" | head -n 1 | cut -d' ' -f1)
fpga=$(rashpactl --json list | jq -r ".devices[] | select(.bdf == \"$bdf\").node")
[[ $fpga ]] || fpga=$(rashpactl --json bind "$bdf" | jq -r .node)
echo "   rashpactl bind: $fpga"
rashpactl buffer create ring0 64M | sed 's/^/   rashpactl buffer create: /'
rashpactl lock create "$fpga" ring0.lock 2 | sed 's/^/   rashpactl lock create: /'

echo "   $frames frames of 1024 x 512 u16, a DTP each for the upper and the lower half"
echo "   remu: loads the dataset, programs the FPGA; romulu: compares every byte"
status=0
# each of the two DTPs writes its record into a slot of 64 bytes
rashpactl event watch "$fpga" --quiet --lock ring0.lock:0 --lock ring0.lock:64 --group 1,2 \
	--count 3 --timeout 60 >"$work/events" &
watcher=$!
romulu --buffer ring0 --check --tune progress --timeout 60 --json="$work/romulu.json" &
receiver=$!
remu --buffer ring0 --tune lock=ring0.lock --fpga "${fpga#fpga}" --split 2 --bunch 16 --slots 2 --images "$frames" \
	--timeout 60 --json="$work/remu.json" &
producer=$!
echo "   rashpactl top, during the stream:"
rashpactl top --count 1 --interval 0.5 --timeout 20 ring0 | sed 's/^/   | /' ||
	echo "   | the stream ended too early"
wait "$producer" || status=$?
wait "$receiver" || status=$?
wait "$watcher" || status=$?
echo "   rashpactl event watch: one event when both DTPs have completed a stack"
sed 's/^/   | /' "$work/events"

# Latency needs a receiver that waits: a frame every 5 ms, without comparison.
romulu --buffer ring0 --timeout 60 --json="$work/latency.json" &
receiver=$!
remu --buffer ring0 --fpga "${fpga#fpga}" --split 2 --bunch 1 --images 500 \
	--rate 200 --timeout 60 --json="$work/rate.json"
# a detector with a fixed rate does not wait: a busy machine may lose frames (4) here
wait "$receiver" || { code=$?; ((code == 4)) || status=$code; }
rashpactl buffer remove ring0 >/dev/null
rashpactl buffer remove ring0.lock >/dev/null

jq -s --arg kernel "$(uname -r)" --arg iommu "$RASHPA_IOMMU" '
	.[0] as $r | .[1] as $t | .[2] as $l | {
		kernel: $kernel, iommu: $iommu, source: $t.dataset,
		frames: $r.frames, lost: $r.lost, corrupt: $r.corrupt,
		bytes: $r.bytes, seconds: $r.seconds, bytes_per_second: $r.bytes_per_second,
		segments: $t.segments, class: $t.class,
		dtps: $t.dtps, stacks: $r.stacks, overruns: $r.overruns,
		latency_ns: $l.latency_ns,
		waits: $r.waits,
		fpga: {bytes: $t.bytes, descriptors: $t.descriptors, faults: $t.faults,
		       overruns: $t.overruns, seconds: $t.seconds}
	}' "$work/romulu.json" "$work/remu.json" "$work/latency.json" >"$json"
jq -r '"   \(.frames) frames, \(.lost) lost, \(.corrupt) corrupt, \(.bytes_per_second / 1e6 | round / 1000) GB/s checked, " +
	"event to user p50 \(.latency_ns.p50 / 1000 | round) us, p99 \(.latency_ns.p99 / 1000 | round) us"' "$json"
rm -rf "$work"
exit "$status"
