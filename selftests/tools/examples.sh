#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=6
# The examples, compiled as users do: they stream.
. "$(dirname "$0")/../lib/shell.sh"

examples=build/tools/examples
rashpactl buffer create example 16M >/dev/null
ok $? "buffer: buffer"
"$examples/consumer" example >"$work/means" 2>"$work/err" &
consumer=$!
"$examples/producer" example 1003 2>>"$work/err"
ok $? "producer-sends-1003: the producer sends 1003 frames" || sed 's/^/# /' "$work/err"
wait "$consumer"
ok $? "consumer-ends: the consumer ends with it" || sed 's/^/# /' "$work/err"
seq 0 1002 | sed 's/.*/& &.000/' | cmp - "$work/means" 2>&1 | sed 's/^/# /'
is "frame-once-pixels: each frame was there, once, with its pixels" "${PIPESTATUS[2]}" 0
romulu --buffer example --tune from-start --json="$work/romulu.json" --timeout 10 >/dev/null 2>&1
holds "romulu-takes-program: romulu takes what a program streams" "$(jq .frames "$work/romulu.json") > 0"
lines=$(sed -n '/^int main/,/^}/p' tools/examples/consumer.c | grep -vcE '^(int main.*|[{}]|)$')
holds "consumer-15-lines: a consumer has 15 lines at most ($lines)" "$lines <= 15"

if have_fpga; then
	"$examples/consumer" example >"$work/means" 2>"$work/err" &
	consumer=$!
	remu --buffer example --fpga "$fpga" --bunch 2 --images 40 --timeout 60 >/dev/null
	ok $? "board-streams: a board streams"
	wait "$consumer"
	ok $? "consumer-not-care: the consumer does not care" || sed 's/^/# /' "$work/err"
	is "40-frames: 40 frames" "$(wc -l <"$work/means")" 40
	"$examples/consumer" example >"$work/means" 2>"$work/err" &
	consumer=$!
	"$examples/board" example "fpga$fpga" 50 >"$work/board" 2>"$work/err"
	ok $? "control-streams: control software streams from a board" || sed 's/^/# /' "$work/err"
	wait "$consumer"
	for ((i = 0; i < 200; i++)); do echo "$i $((i % 8)).000"; done | cmp - "$work/means" 2>&1 | sed 's/^/# /'
	is "control-frames: each frame came once, with the pixels of its image" "${PIPESTATUS[1]}" 0
	is "control-counts: the board has counted 200 images" "$(cut -d' ' -f1,2,3 "$work/board")" \
		"200 images, $((200 * 256 * 128 * 2))"
else
	skip "board-streams: a board streams" "no software FPGA in this guest"
	skip "control-streams: control software streams from a board" "no software FPGA in this guest"
fi
rashpactl buffer remove example
finish
