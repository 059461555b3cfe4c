#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check iommu=on seconds=36
# After a producer was killed, a receiver that starts before the next producer takes all of its stream.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "restart: restart" "no software FPGA in this guest"; finish; }
rashpactl buffer create ring1 64M >/dev/null
ok $? "buffer: buffer"
images=(--dataset generate:10 --geometry 256x128)
produce() { # more arguments of remu
	remu --buffer ring1 --fpga "$fpga" "${images[@]}" --split 2 --bunch 4 --slots 2 --timeout 60 "$@" \
		--json="$work/remu.json" >"$work/remu.out" 2>&1 &
	remu=$!
}
receive() {
	romulu --buffer ring1 "${images[@]}" --check --timeout 60 --json="$work/romulu.json" >"$work/romulu.out" 2>&1 &
	romulu=$!
}
consumer() { rashpactl --json buffer info ring1 | jq -e --argjson pid "$romulu" '.. | .consumer? | select(.pid? == $pid)' >/dev/null; }
streams() {
	rashpactl --json top --count 1 --interval 0.01 ring1 |
		jq -e '.streams[0] | .state == "running" and .stacks > 8' >/dev/null
}

for i in 1 2 3; do
	produce
	receive
	wait_for 30 streams
	ok $? "runs/$i: the producer and the receiver stream" || sed 's/^/# /' "$work/romulu.out" "$work/remu.out"
	kill -9 "$remu"
	wait "$remu" "$romulu" 2>/dev/null
	receive
	wait_for 30 consumer
	ok $? "waits/$i: the next receiver is there before a producer"
	produce --images 40
	wait "$romulu"
	is "takes/$i: it takes the next stream from its first image on" \
		"$? $(jq -c '[.frames, .lost, .corrupt]' "$work/romulu.json")" "0 [40,0,0]" ||
		sed 's/^/# /' "$work/romulu.out" "$work/remu.out"
	wait "$remu"
	is "sent/$i: the producer ends well" $? 0
done
rashpactl buffer remove ring1
ok $? "buffer-free: no process holds the buffer"
finish
