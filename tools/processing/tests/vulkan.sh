#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=30
# Runs inside the lab's root: the engine vulkan on lavapipe, Vulkan for processors, and the ways to drive it,
# watched by Vulkan's validation layers, which say what a program does that Vulkan does not allow. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
export VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
# barriers around copies; what one shader leaves to the next they do not see
export VK_KHRONOS_VALIDATION_VALIDATE_SYNC=true
export LD_LIBRARY_PATH=$PWD/${RASHPA_TOOLS:-build/tools}

"${RASHPA_TOOLS:-build/tools}/processing-selftest" vulkan >"$work/out" 2>&1
bad=$?
n=$(grep -c '^\(not \)\?ok ' "$work/out")
grep '^\(not \)\?ok \|^#' "$work/out"
# all lines except tests and the plan come from the layers
said=$(grep -v '^\(not \)\?ok \|^#\|^1\.\.' "$work/out")
is "vulkan-validation-layers: Vulkan's validation layers say nothing" "$(head -n 40 <<<"$said")" ""

# drives NAME PATTERN WAY OPTION...: the expected output, without a message of the layers
drives() {
	local got
	got=$(timeout 240 build/tools/lib/tests/gpu-libraries/drive "${@:3}" vulkan=1 2>&1)
	[[ $got =~ $2 ]]
	ok $? "$1" || echo "# expected \"$2\", got \"$got\""
}
# of three images one is vetoed
all="^all: 40 images, 27 results, 0 wrong, 13 vetoed, lost none, copies ahead in credit$"
for way in launch ahead poll; do
	drives "board-lock/$way: $way: a board's lock" "$all" "$way"
	drives "vetoed-dropped-not/$way: $way: what is vetoed or dropped is not copied over results that are held" \
		"^all: 40 images, 3 results, 0 wrong, 13 vetoed, lost none, copies ahead in credit$" "$way" credits=3 hold=40
	drives "two-gpus-turn/$way: $way: two GPUs in turn, and the program tells that an image is there" "$all" "$way" gpus=2 own=1
	drives "nothing-left-host/$way: $way: nothing is left where the host ends early" "^stopped: [0-9]+ images, 5 results, 0 wrong[^:]*$" "$way" close=5
	drives "producer-ends/$way: $way: the producer ends" \
		"nothing came for 500 ms: stream in waits for the lock to be 31, and it is 30: [^:]*producer: 30 images, 20 results, 0 wrong, 10 vetoed[^:]*$" \
		"$way" stop=30 patience=500
done
drives "poll/kernel-owns-loop: poll: the kernel owns the loop: it reads the lock, and gives stacks of four back itself" \
	"${all:0:-1}"$'\n'"given back: 10 stacks$" poll owner=1 bunch=4
drives "poll/end-kernel-lets: poll: and over the end of a kernel that lets go now and then" \
	"^all: 200 images, 133 results, 0 wrong, 67 vetoed.*"$'\n'"given back: 50 stacks$" poll owner=1 bunch=4 images=200 credits=200
# with images to come, and a kernel that waits for them
timeout 240 build/tools/lib/tests/gpu-libraries/drive poll vulkan=1 images=100000 die=5 >"$work/out" 2>&1 &
wait $! 2>/dev/null
is "program-killed-kernel: a program is killed while its kernel stays" "$? $(<"$work/out")" "137 "
drives "poll/next-one-gpu: poll: and the next one has the GPU" "$all" poll
drives "kernel-stays-lets: the kernel that stays lets go now and then, and begins again" "^all: 200 images, 133 results, 0 wrong, 67 vetoed" \
	poll images=200 credits=200

# --- romulu, with a driver that is files: a stream, which a program has sent
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export RASHPA_DEV RASHPA_RUN=$work
. tools/processing/tests/program.sh
received() { # NAME STATUS OPTION...: by a pipeline with a veto, into $work/NAME.f32
	local status=0
	timeout 240 "$tools/romulu-fake" --buffer frames --tune from-start --timeout 60 --json="$work/romulu.json" \
		--pipeline "{\"pretreat\": {\"gain\": 2}, \"veto\": {\"threshold\": 50, \"pixels\": 100}, ${more-}
			\"sinks\": {\"raw\": {\"file\": \"$work/$1.f32\"}}}" "${@:3}" >"$work/out" 2>&1 || status=$?
	is "romulu: $1" "$status" "$2" || sed 's/^/# /' "$work/out"
}
refused() { # NAME PATTERN: the sentence
	grep -q "$2" "$work/out"
	ok $? "$1" || sed 's/^/# /' "$work/out"
}
counts() { jq -c '.processing | [.images, .vetoed, .overflow, .lost]' "$work/romulu.json"; }
begin_program
received reference 0 --engine reference
is "three-seven-images: three of seven images are accepted" "$(counts)" "[7,4,0,0]"
for way in launch ahead persistent; do
	received "$way" 0 --engine vulkan --drive "$way" --trace "$work/$way.json"
	is "counts-reference/$way: $way: it counts as the reference" "$(jq -r .processing.drive "$work/romulu.json") $(counts)" "$way [7,4,0,0]"
	cmp "$work/reference.f32" "$work/$way.f32" | sed 's/^/# /'
	is "pixel-reference/$way: $way: each pixel is the reference's" "${PIPESTATUS[0]}" 0
	is "layers-nothing/$way: $way: the layers say nothing" "$(grep -c "VUID\|Validation" "$work/out")" 0 || sed 's/^/# /' "$work/out"
done
is "timeline-turns: ahead: with one queue the timeline has one stage at a time" \
	"$(jq -c '[.[] | select(.ph == "X")] | [length, (sort_by([.ts, .dur]) | [.[:-1], .[1:]] | transpose |
		map(.[0].ts + .[0].dur <= .[1].ts + 0.002) | all)]' "$work/ahead.json")" "[17,true]"
# late ones, in each way: three are accepted. Time runs from the record, which a program made a while ago
late() { jq -c '.processing | [.late, .deadline_us]' "$work/romulu.json"; }
for way in launch ahead persistent none; do
	drive=(--engine vulkan --drive "$way")
	[[ $way != none ]] || drive=(--engine reference)
	received "late, drive $way" 0 "${drive[@]}" --tune deadline=1
	is "drive/all-results-behind/$way: drive $way: all results that come behind 1 us are late, and written" \
		"$(late) $(stat -c %s "$work/late, drive $way.f32")" "[3,1] $(stat -c %s "$work/reference.f32")"
	received "in time, drive $way" 0 "${drive[@]}" --tune deadline=4000000000
	is "drive/none-behind-hour/$way: drive $way: none is behind an hour" "$(late)" "[0,4000000000]"
done
is "without-deadline-nothing: without a deadline nothing is late" "$(received none 0 --engine reference --tune deadline=0 >/dev/null; late)" "[0,0]"
more='"compress": {"threshold": 1},'
received "a stage that a drive leaves out" 1 --engine vulkan --drive ahead
refused "refused: is refused" "leave the stage"
end_program
unset more
begin_program darks
received "darks, reference" 0 --engine reference
darks() { jq -c '.processing | [.images, .dark, .vetoed, .overflow, .lost]' "$work/romulu.json"; }
expected=$(darks)
for way in launch ahead persistent; do
	received "darks, $way" 0 --engine vulkan --drive "$way"
	is "darks-count/$way: $way: dark images move the pedestal, and are counted" "$(darks)" "$expected"
	cmp "$work/darks, reference.f32" "$work/darks, $way.f32" | sed 's/^/# /'
	is "darks-pixel/$way: $way: each pixel is the reference's" "${PIPESTATUS[0]}" 0
	is "darks-layers/$way: $way: the layers say nothing" "$(grep -c "VUID\|Validation" "$work/out")" 0 || sed 's/^/# /' "$work/out"
done
received "pairs, reference" 0 --engine reference --tune pairs
for way in launch ahead persistent; do
	received "pairs, $way" 0 --engine vulkan --drive "$way" --tune pairs
	cmp "$work/pairs, reference.f32" "$work/pairs, $way.f32" | sed 's/^/# /'
	is "pairs-pixel/$way: $way: a dark image before its signal: each pixel is the reference's" "${PIPESTATUS[0]}" 0
done
end_program
begin_program short
received "a stack behind a short one" 1 --engine vulkan --drive ahead
refused "refused/refused: is refused too" "a stack before number 2 has less than 2 images, .*leave --drive out"
end_program
finish
