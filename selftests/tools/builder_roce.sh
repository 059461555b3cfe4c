#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all where=guest kernel=any iommu=off seconds=25
# Two halves of a detector stream over RoCE into buffers; a readout takes each, and two builders make
# whole images, one of them with a byte that is wrong. They are compared with the detectors' images byte by byte
# at the end, so that slow programs start only once.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/by-hand.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"
. "$(dirname "$0")/../lib/rxe-stream.sh"
export PYTHONPATH=$PWD/build/tools/python PYTHONDONTWRITEBYTECODE=1 RASHPA_LIBRARY=$PWD/build/tools/librashpa.so.0

images=48 lines=64 fault=13
buffers=(net0 net1 whole0 whole1)
all=()
# clean up after any result of the test: other tests need their module, too
leave() {
	local name
	((${#all[@]} == 0)) || kill -9 "${all[@]}" 2>/dev/null
	wait
	for name in "${buffers[@]}"; do
		rashpactl buffer remove "$name" 2>/dev/null
	done
	rm -rf "$work"
}
trap leave EXIT
need_rxe_pair
for name in "${buffers[@]}"; do
	rashpactl buffer create "$name" 16M --backend contig >/dev/null || break
done
ok $? "buffers: buffers are made"
# each byte differs from its neighbours, so that misplaced data are found
head -c $((10 * 256 * 2 * lines * 2)) /dev/urandom >"$work/images.raw"

all_gone() {
	local pid
	for pid in "${all[@]}"; do
		gone "$pid" || return
	done
}
explain() {
	sed 's/^/# /' "$work"/err.* "$work"/remu?.err "$work"/out? "$work"/whole.{json,err} | cut -c 1-400
}

receive --tune receive-only
receive -1 --tune receive-only
by_hand 5 build --readouts 2 --from net --geometry "256x$lines" --block 4 --to whole --timeout 120 --json \
	--fault "corrupt:1:$fault"
others=("${receiver[@]}")
for i in 0 1; do
	at a remu --transport roce --to "$way:$((5001 + i))" --device rxa --dataset "$work/images.raw" \
		--geometry "256x$((2 * lines))" --bunch 4 --dtp "0,$((lines * i)),256x$lines@0,0" --images "$images" \
		--timeout 120 >"$work/remu$i.out" 2>"$work/remu$i.err" &
	others+=($!)
done
all=("${others[@]}" "${pids[@]}")
# what hangs is killed before the guest's patience is at its end, and so is seen below
wait_for 240 all_gone || kill -9 "${all[@]}" 2>/dev/null
ends=
for pid in "${others[@]}"; do
	status=0
	wait "$pid" || status=$?
	ends+=" $status"
done
reap
all=()
is "network-ends: receivers and senders end well" "$ends" " 0 0 0 0" || explain
is "builders-end: so do readouts and builders, and the manager has status 4" "$statuses" "4 0 0 0 0" || explain
json ".events == $images and .built == $images and .incomplete == 1 and .corrupt == 1
	and .missing + .late + .duplicate + .lost + .unknown + .foreign == 0" cat "$work/out.0"
ok $? "built: all events are built, one with a byte that is wrong" || explain

timeout 120 python3 tools/builder/tests/whole.py "$work/images.raw" whole0 whole1 >"$work/whole.json" 2>"$work/whole.err"
ok $? "streams: both streams of whole images are there" || explain
seen() { jq -se --argjson images "$images" --argjson fault "$fault" "$1" "$work/whole.json" >/dev/null; }
seen '([.[].frames] | add | sort) == [range(0; $images)] and all(.[]; .frames | length > 0)'
ok $? "images: all images, once, some of each builder" || explain
seen '[.[].wrong[]] == [{frame: $fault, line: 127, byte: 511, bytes: 1}]'
ok $? "bytes: each byte is that of the detectors, but the one that was made wrong" || explain
seen '[.[].incomplete[]] == [{frame: $fault, missing_lines: 64}]'
ok $? "incomplete: its image is incomplete" || explain
finish
