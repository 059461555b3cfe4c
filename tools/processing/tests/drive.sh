#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=30
# Runs inside the lab's root: romulu drives a stand-in for a GPU of CUDA, whose streams are threads. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export LD_LIBRARY_PATH=$PWD/build/tools/lib/tests/gpu-libraries:$tools
export STAND_IN_LOG=$work/calls RASHPA_DEV RASHPA_RUN=$work

. tools/processing/tests/program.sh
received() { # NAME VETO OPTION...: all images above the veto are in $work/NAME.f32
	local status=0
	rm -f "$work/$1.f32" "$work/calls"
	timeout 240 "$tools/romulu-fake" --buffer frames --tune from-start --timeout 60 --json="$work/romulu.json" \
		--pipeline "{\"pretreat\": {\"gain\": 2${more-}}, \"veto\": {\"threshold\": $2, \"pixels\": 100},
			\"sinks\": {\"raw\": {\"file\": \"$work/$1.f32\"}}}" "${@:3}" >"$work/out" 2>&1 || status=$?
	is "status/$1: romulu: $1" "$status" 0 || sed 's/^/# /' "$work/out"
}
same() { # NAME [REFERENCE]
	cmp "$work/${2-reference}.f32" "$work/$1.f32" | sed 's/^/# /'
	is "pixels/$1: $1: each pixel is the reference's" "${PIPESTATUS[0]}" 0
}
mistakes() { grep WRONG "$work/calls"; }

# --- three stacks at a time, each of an image: the stages of a round wait for each other

begin_program single
received reference 0 --engine reference
for way in launch ahead; do
	STAND_IN_MEET=24 received "$way" 0 --engine cuda --drive "$way" --trace "$work/$way.json"
	same "$way"
	is "mistakes/$way: $way: the stand-in sees no mistake" "$(mistakes)" ""
	# a round takes as long as a stage: 24 images take 26, and one after the other 72
	is "rounds/$way: $way: three stages of three stacks begin together" \
		"$(sed -n 's/^round \([0-9]*\) .*/\1/p' "$work/calls" | sort -n | uniq -c | awk '{ printf "%s", $1 }')" \
		"12$(printf '3%.0s' {1..22})21"
	is "trace/$way: $way: the timeline has each stage of each image, in their order" \
		"$(jq -c '[.[] | select(.ph == "X")] | [length, (group_by(.args.image) | map(sort_by(.tid) |
			[.[].ts] == ([.[].ts] | sort) and (.[0].name | startswith("in ")) and length == 3) | all)]' "$work/$way.json")" \
		"[72,true]"
done
# half of the images are vetoed
received some 52 --engine reference
received persistent 52 --engine cuda --drive persistent --trace "$work/persistent.json"
same persistent some
is "trace/persistent: persistent: the timeline has kernels, and the copies out of accepted images" \
	"$(jq -c '[.[] | select(.ph == "X").tid] | group_by(.) | map([.[0], length])' "$work/persistent.json")" \
	"[[1,24],[2,8]]"
end_program

# --- dark images among the others

begin_program darks
counts() { jq -c '.processing | [.images, .dark, .vetoed, .overflow, .lost]' "$work/romulu.json"; }
for dark in move mean ignore; do
	case $dark in
	move) more= ;;
	mean) more=', "dark_images": 4' ;;
	ignore) more=', "dark": "ignore"' ;;
	esac
	received "$dark" 35 --engine reference
	expected=$(counts)
	for way in launch ahead persistent; do
		received "$dark-$way" 35 --engine cuda --drive "$way"
		same "$dark-$way" "$dark"
		is "counts/$dark-$way: $dark, $way: it counts as the reference" "$(counts)" "$expected"
		is "mistakes/$dark-$way: $dark, $way: the stand-in sees no mistake" "$(mistakes)" ""
	done
done
is "darks: six of the images are dark, and some are vetoed" \
	"$(jq -c '.processing | [.images, .dark, .vetoed > 0, .vetoed < 18]' "$work/romulu.json")" "[18,6,true,true]"
# a dark image before its signal
more=
received pairs 35 --engine reference --tune pairs
expected=$(counts)
! cmp -s "$work/pairs.f32" "$work/move.f32"
ok $? "pairs-matter: another order makes other images"
for way in launch ahead persistent; do
	received "pairs-$way" 35 --engine cuda --drive "$way" --tune pairs --trace "$work/pairs.json"
	same "pairs-$way" pairs
	is "counts/pairs-$way: pairs, $way: it counts as the reference" "$(counts)" "$expected"
	is "trace/pairs-$way: pairs, $way: kernels of the second image of each two are first" \
		"$(jq -c '[.[] | select(.ph == "X" and .tid == 1).args.image][:4]' "$work/pairs.json")" "[1,0,3,2]"
done
end_program
begin_program single
timeout 60 "$tools/romulu-fake" --buffer frames --tune from-start --tune pairs --pipeline '{}' >"$work/out" 2>&1
is "pairs-one: stacks of one image have no pairs" "$? $(grep -c 'even --bunch, not 1' "$work/out")" "1 1"
end_program
finish
