#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=11
# System calls per image stack, counted by strace.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "keepup: keepup" "no software FPGA in this guest"; finish; }
rashpactl buffer create ring2 128M >/dev/null
ok $? "buffer: buffer"

busy() { [[ $(status .busy) == true ]]; }

# calls IMAGES: number of system calls of the receiver for these images, 8 per stack. The stream runs
# and waits for credit before the receiver starts, so the receiver need not wait for it.
calls() {
	remu --buffer ring2 --fpga "$fpga" --split 2 --bunch 8 --slots 8 --images "$1" \
		--timeout 60 --json="$work/remu.json" >/dev/null &
	local producer=$!
	wait_for 30 busy || echo "# the stream does not begin" >&2
	# The clock is read without a system call where user space may read the clock
	# source (tsc), which an emulated processor does not offer to every kernel.
	strace -f -c -e trace='!clock_gettime' -o "$work/strace" romulu --buffer ring2 --timeout 60 \
		--json="$work/romulu.json" >/dev/null 2>&1 || echo "# romulu failed" >&2
	wait "$producer"
	# columns: % time, seconds, usecs/call, calls, [errors,] name
	awk '$NF == "total" { print $4 }' "$work/strace"
}
few=$(calls 800)
few_waits=$(jq .waits "$work/romulu.json")
many=$(calls 4000)
many_waits=$(jq .waits "$work/romulu.json")
stacks=$(((4000 - 800) / 8))
echo "# $few calls for 100 stacks, $many for 500 ($few_waits and $many_waits waits)"
holds "one-wait-per: at most one wait per stack" "$many_waits <= 501 && $few_waits <= 101"
# one wait can be for several stacks, more often in one run than in the other
holds "nothing-waits-grows: nothing but those waits grows with the stacks" \
	"($many - $many_waits) - ($few - $few_waits) <= $stacks / 10"
rashpactl buffer remove ring2
finish
