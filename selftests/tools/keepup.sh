#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=20
# System calls per image stack, counted by strace; and, as a measurement and not as a
# verdict, how much of what the FPGA alone can deliver a receiver keeps up with.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "keepup" "no software FPGA in this guest"; finish; }
rashpactl buffer create ring2 128M >/dev/null
ok $? "buffer"

busy() { [[ $(status .busy) == true ]]; }

# calls IMAGES: of the receiver, from its first to its last, 8 images per stack. The
# stream runs already when it starts, and waits for credit: it need not look for it.
calls() {
	remu --buffer ring2 --fpga "$fpga" --split 2 --bunch 8 --slots 8 --images "$1" \
		--timeout 60 --json="$work/remu.json" >/dev/null &
	local producer=$!
	wait_for 30 busy || echo "# the stream does not begin" >&2
	# The clock is read without a system call where user space may read the clock
	# source (tsc), which an emulated processor does not offer to every kernel.
	strace -f -c -e trace='!clock_gettime' -o "$work/strace" romulu --buffer ring2 --no-check --timeout 60 \
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
holds "at most one wait per stack" "$many_waits <= 501 && $few_waits <= 101"
# one wait can be for several stacks, more often in one run than in the other
holds "nothing but those waits grows with the stacks" \
	"($many - $many_waits) - ($few - $few_waits) <= $stacks / 10"

# What the FPGA alone delivers, and what a receiver takes that touches no pixel.
rate() { jq "$1" "$work/$2.json"; }
remu --buffer ring2 --fpga "$fpga" --split 2 --bunch 8 --slots 8 --images 8000 --free-run \
	--timeout 60 --json="$work/alone.json" >/dev/null
ok $? "free-running without a receiver"
romulu --buffer ring2 --no-check --timeout 60 --json="$work/romulu.json" >/dev/null 2>&1 &
receiver=$!
remu --buffer ring2 --fpga "$fpga" --split 2 --bunch 8 --slots 8 --images 8000 \
	--timeout 60 --json="$work/with.json" >/dev/null
wait "$receiver"
ok $? "with a receiver that gives credit"
is "nothing lost" "$(rate .lost romulu)" 0
is "all frames" "$(rate .frames romulu)" 8000
mkdir -p build/bench
jq -n --slurpfile a "$work/alone.json" --slurpfile w "$work/with.json" \
	--arg kernel "$(uname -r)" --arg iommu "$RASHPA_IOMMU" \
	--argjson stacks "$stacks" --argjson calls "$((many - few))" \
	'{kernel: $kernel, iommu: $iommu, alone_bytes_per_second: ($a[0].bytes / $a[0].seconds),
	  with_receiver_bytes_per_second: ($w[0].bytes / $w[0].seconds),
	  ratio: ($a[0].seconds / $w[0].seconds), calls_per_stack: ($calls / $stacks)}' \
	>"build/bench/keepup-$RASHPA_KERNEL-iommu-$RASHPA_IOMMU.json"
sed 's/^/# /' "build/bench/keepup-$RASHPA_KERNEL-iommu-$RASHPA_IOMMU.json"
rashpactl buffer remove ring2
finish
