#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check iommu=any seconds=25
# The module under a misbehaving board: it cannot be removed while a stream runs, but at once after
# the stream's process was killed, even if the board does not stop.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "hostile: hostile" "no software FPGA in this guest"; finish; }
selftests/lab/host fpga 0 honest >/dev/null 2>&1 || {
	skip "hostile: hostile" "no way to reach the FPGA's control socket"
	finish
}
# a short one: it is made and loaded again for each stream
dataset=generate:2
module=build/modules/${RASHPA_KERNEL:?set by the lab}/rashpa.ko
bytes_pass() { (($(status .bytes) > $1)); }
stream_on() {
	remu --buffer ring1 --fpga "$fpga" --dataset $dataset --bunch 4 --slots 2 \
		--policy overwrite --timeout 60 >"$work/remu.out" 2>&1 &
	remu=$!
	wait_for 30 bytes_pass $(($(status .bytes) + 10000000))
}

for fault in "stuck on" "dead on"; do
	rashpactl buffer create ring1 64M >/dev/null
	stream_on
	ok $? "data-flows: $fault: data flows"
	rmmod rashpa 2>"$work/out"
	holds "module-stays-stream: $fault: the module stays while a stream runs" "$? != 0"
	grep -q "in use" "$work/out"
	ok $? "rmmod-why: $fault: and rmmod says why"
	# a removal that waits could be without end: nothing has been stopped
	wait_for 30 bytes_pass $(($(status .bytes) + 1000000))
	ok $? "stream: $fault: the stream goes on"
	selftests/lab/host fpga 0 "$fault" >/dev/null
	kill -9 "$remu"
	wait "$remu" 2>/dev/null
	rashpactl buffer remove ring1
	wait_for 10 rmmod rashpa 2>/dev/null
	ok $? "module-process-killed: $fault: the module goes when the process has been killed, soon"
	[[ $fault == dead* ]] && selftests/lab/host fpga 0 dead off >/dev/null
	insmod "$module"
	ok $? "again: $fault: and comes again"
	have_fpga
	ok $? "board-bound: $fault: the board can be bound"
	is "ready: $fault: and is ready" \
		"$(rashpactl --json list | jq -r ".devices[] | select(.node == \"fpga$fpga\").state")" ready
done
rashpactl buffer create ring1 64M >/dev/null
romulu --buffer ring1 --check --dataset $dataset --timeout 60 --json="$work/romulu.json" >"$work/out" 2>&1 &
romulu=$!
remu --buffer ring1 --fpga "$fpga" --dataset $dataset --bunch 4 --slots 2 --images 40 \
	--timeout 60 >"$work/remu.out" 2>&1
wait "$romulu"
ok $? "streams-again-byte: it streams again, and every byte is right"
is "all-images-arrived: all images arrived" "$(jq .frames "$work/romulu.json")" 40
rashpactl buffer remove ring1
finish
