#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=off seconds=40 needs=gpu
# Frames go from the board into memory of the lab's GPU, peer to peer, and shaders process them there:
# real ones of a JUNGFRAU, dark images, a veto; what happens to a receiver that is killed.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/pipeline.sh"
. "$(dirname "$0")/../lib/gpu.sh"

buffer=frames
have_gpu "frames-memory-gpu: frames in memory of a GPU"

# --- real frames
jungfrau "the first board"

# --- dark images, a veto, and what is kept
as_reference "the first board"

# --- a GPU that takes whole stacks without the CPU, compared with the reference, image by image
pipeline='{"pretreat": {"gain": 64, "saturated": 30000}, "veto": {"threshold": 100, "pixels": 60},
	"sinks": {"raw": {"file": "WHERE", "overwrite": true}}}'
attach "${pipeline/WHERE/$work/reference.f32}" --engine reference
start generate:4 --images 7 --bunch 2 --slots 4
both 0 "stacks-two-engine: stacks of two, engine reference"
says '.processing | [.images, .vetoed, .overflow, .lost]' >"$work/reference.counts"
# the other ways: tools/processing/tests/vulkan.sh
on_gpu "${pipeline/WHERE/$work/ahead.f32}" 16M --drive ahead
start generate:4 --images 7 --bunch 2 --slots 4 --payload gpu
both 0 "gpu-takes-itself: the GPU takes them without the CPU"
is "counts-reference: it counts as the reference" "$(says '.processing | [.images, .vetoed, .overflow, .lost]')" "$(<"$work/reference.counts")"
python3 -B - "$work"/{reference,ahead}.f32 >"$work/err" 2>&1 <<-END
	import sys
	import numpy as np
	right, got = (np.fromfile(name, "<f4") for name in sys.argv[1:])
	assert len(right) >= $width * $height
	np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)
END
ok $? "same-pixels: and has the same pixels" || tail -n 20 "$work/err" | sed 's/^/# /'

# --- a receiver that is killed: its memory stays under the map, and the next one offers its own
mkfifo "$work/pipe"
on_gpu "{\"sinks\": {\"raw\": {\"file\": \"$work/pipe\"}}}"
start generate:7 --images 40 --bunch 1 --slots 7 --payload gpu
exec {reader}<"$work/pipe"
head -c $((5 * float / 2)) <&"$reader" >/dev/null
kill -9 "$romulu"
wait "$romulu" 2>/dev/null
exec {reader}<&-
kill "$remu"
wait "$remu"
rashpactl buffer remove frames && rashpactl buffer create frames 64M >/dev/null
ok $? "nothing-holds-buffer: nothing holds the buffer after it"
is "board-rest-after: the board is at rest after it" "$(status '.busy')" false
on_gpu "{\"sinks\": {\"raw\": {\"file\": \"$work/all\", \"overwrite\": true}}}"
start generate:7 --images 10 --bunch 2 --slots 4 --payload gpu
both 0 "next-receiver-stacks: the next receiver, stacks of two"
is "all: has all" "$(stat -c %s "$work/all")" $((10 * float))

# --- the same while a kernel stays on the GPU: kernel, map and stream go together
on_gpu "{\"pretreat\": {\"gain\": 64}, \"veto\": {\"threshold\": 100, \"pixels\": 60},
	\"sinks\": {\"raw\": {\"file\": \"$work/killed\", \"overwrite\": true}}}" 16M --drive persistent
start generate:7 --images 100000 --bunch 1 --slots 7 --payload gpu
goes_on() { json '.streams[0].processing.images >= 20' rashpactl --json top --count 1 --interval 0.1 >"$work/goes" || gone "$romulu"; }
wait_for 120 goes_on
is "kernel-stays-takes: a kernel that stays takes what the board streams" "$(gone "$romulu" && echo gone; status '.busy')" true
kill -9 "$romulu"
wait "$romulu" 2>/dev/null
kill "$remu"
wait "$remu"
rashpactl buffer remove frames && rashpactl buffer create frames 64M >/dev/null
ok $? "killed/nothing-holds-buffer: killed with it: nothing holds the buffer"
is "killed/board-rest: killed with it: the board is at rest" "$(status '.busy')" false
on_gpu "{\"pretreat\": {\"gain\": 64}, \"veto\": {\"threshold\": 100, \"pixels\": 60},
	\"sinks\": {\"raw\": {\"file\": \"$work/next\", \"overwrite\": true}}}" 16M --drive persistent --tune deadline=1
start generate:7 --images 14 --bunch 1 --slots 7 --payload gpu
both 0 "killed/next-one-gpu: killed with it: the next one has GPU and board"
is "all-results-behind: all its results take longer than 1 us, and are late" "$(says '.processing | .late == .images - .vetoed - .overflow')" true

# --- a ring in memory of the GPU: descriptors, events and payload go over the BAR
rashpa-bench loop --fpga "fpga$fpga" --memory vulkan --events 4000 --json="$work/loop.json" >"$work/out" 2>&1
is "ring-memory-gpu: a ring in memory of the GPU" $? 0 || sed 's/^/# /' "$work/out"
is "event-datagram-once: each event and datagram came once" \
	"$(jq -c '.rows[0] | [.events, .datagrams, .missing, .doubled, .differ, .out_of_turn, .board.lost]' "$work/loop.json")" \
	"[4000,2000,0,0,0,0,0]"

# --- a transfer whose payload goes there, and its notification to the host
rashpa-bench roundtrip --fpga "fpga$fpga" --memory vulkan --sizes 64K --repeat 1 --events 5 --json="$work/trip.json" >"$work/out" 2>&1
is "round-trip-gpu: a round trip with payload in the GPU, flushed" \
	"$? $(jq -c '[.memory, .flush, (.rows | length > 0 and all(.min_ns > 0 and .dma_ns > 0))]' "$work/trip.json")" \
	'0 ["vulkan",true,true]' || sed 's/^/# /' "$work/out"

# --- a GPU that takes images without the CPU: raw ones in its memory, or in a window that has parts of one
driven() { # NAME PATTERN OPTION...
	local got
	got=$(LD_LIBRARY_PATH=${RASHPA_TOOLS:-build/tools} timeout 240 build/tools/lib/tests/gpu-libraries/drive "${@:3}" \
		vulkan=1 patience=60000 2>&1)
	[[ $got =~ $2 ]]
	ok $? "$1" || echo "# expected \"$2\", got \"$got\""
}
all="^all: 20 images, 13 results, 0 wrong, 7 vetoed, lost none, copies ahead in credit$"
for way in launch ahead poll; do
	driven "accepted-right-nothing/$way: $way: accepted images are right, and no others arrived" "$all" "$way" direct=1 images=20
done
driven "ahead: a window of two halves, which are smaller than an image" "$all" ahead window=1000 images=20
driven "gpu-takes-no: a GPU that takes no memory of the host says so" "^refused: .*memory of the host" ahead

# --- a program is killed while its kernel runs on the GPU, and the kernel ends
LD_LIBRARY_PATH=${RASHPA_TOOLS:-build/tools} timeout 240 build/tools/lib/tests/gpu-libraries/drive poll direct=1 \
	vulkan=1 images=100000 die=5 >"$work/out" 2>&1 &
wait $! 2>/dev/null
is "program-killed-kernel: a program is killed while its kernel stays" "$? $(<"$work/out")" "137 "
driven "poll: and the next one has the GPU" "$all" poll direct=1 images=20

# --- what the engine cannot take
on_gpu '{}' 256K --timeout 20
start generate:4 --images 40 --bunch 1 --slots 5 --payload gpu --timeout 20
wait "$remu"
holds "slots-memory-detector: more slots than there is memory: the detector says so" "$?" || sed 's/^/# /' "$work/remu.out"
kill "$romulu"
wait "$romulu"
romulu --buffer frames --pipeline '{}' --engine vulkan:7 --offer gpu >"$work/out" 2>&1
is "gpu-not: a GPU that is not there" $? 1
grep -q "vulkan:7" "$work/out"
ok $? "named: is named" || sed 's/^/# /' "$work/out"
rashpactl buffer remove frames
ok $? "named/nothing-holds-buffer: nothing holds the buffer"
finish
