#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Two halves of a detector stream over RoCE into buffers; a readout takes each, and two builders make
# whole images, which are compared with what the detectors show, byte by byte.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/by-hand.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"
. "$(dirname "$0")/../lib/rxe-stream.sh"
export PYTHONPATH=$PWD/tools/python PYTHONDONTWRITEBYTECODE=1 RASHPA_LIBRARY=$PWD/build/tools/librashpa.so.0

images=48 lines=64
if ! rxe_pair >"$work/err" 2>&1; then
	skip "event building from the network" "$(tr '\n' ' ' <"$work/err")"
	finish
fi
for name in net0 net1 whole0 whole1; do
	rashpactl buffer create "$name" 16M >/dev/null || break
done
ok $? "buffers"
# each byte is another one's neighbour: what is in the wrong place is found
head -c $((10 * 256 * 2 * lines * 2)) /dev/urandom >"$work/images.raw"

# halves FAULT...: through the network, two readouts and two builders; sets ends, of senders and receivers
halves() {
	local i pid
	local -a others=()
	receive --receive-only
	receive -1 --receive-only
	by_hand 5 build --readouts 2 --from net --geometry "256x$lines" --block 4 --to whole --timeout 120 --json "$@"
	for i in 0 1; do
		python3 selftests/python/whole.py "whole$i" "$work/images.raw" >"$work/whole$i.json" 2>"$work/whole$i.err" &
		others+=($!)
		at a remu --transport roce --to "$way:$((5001 + i))" --device rxa --dataset "$work/images.raw" \
			--geometry "256x$((2 * lines))" --bunch 4 --dtp "0,$((lines * i)),256x$lines@0,0" --images "$images" \
			--timeout 120 >"$work/remu$i.out" 2>"$work/remu$i.err" &
		others+=($!)
	done
	ends=
	for pid in "${others[@]}" "${receiver[@]}"; do
		wait "$pid"
		ends+=" $?"
	done
	reap
}
seen() { jq -se --argjson images "$images" "$1" "$work"/whole{0,1}.json >/dev/null; }
explain() { sed 's/^/# /' "$work"/err.* "$work"/remu?.err "$work"/out? "$work"/whole?.{json,err} | cut -c 1-400; }

halves
is "senders, receivers and who takes whole images end well" "$ends" " 0 0 0 0 0 0" || explain
is "so do manager, readouts and builders" "$statuses" "0 0 0 0 0" || explain
seen '([.[].frames] | add | sort) == [range(0; $images)]'
ok $? "all images of both streams are there, once" || explain
seen 'all(.[]; .wrong == [] and .incomplete == [])'
ok $? "each byte is that of the detectors" || explain
json ".events == $images and .built == $images and .incomplete + .lost + .unknown + .foreign == 0" cat "$work/out.0"
ok $? "the manager says so"

halves --fault corrupt:1:13
is "again, with a byte that is wrong" "$statuses" "4 0 0 0 0" || explain
seen '[.[].wrong[].frame] == [13] and [.[].incomplete[]] == [{frame: 13, missing_lines: 64}]'
ok $? "it is found, and its image says so" || explain
for name in net0 net1 whole0 whole1; do
	rashpactl buffer remove "$name"
done
finish
