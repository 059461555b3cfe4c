#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A few seconds of the fuzzers with seeds that stay, so that they do not rot, and one thread
# replays: the same steps make the same calls. The long runs are "make fuzz".
. "$(dirname "$0")/../lib/shell.sh"

fuzz=build/selftests/fuzz

# value FILTER: of the line of JSON that the last run ends with
value() { sed -n 's/^# {/{/p' "$work/out" | jq -r "$1"; }

# runs NAME COMMAND...: finds nothing; else show what it says
runs() {
	local name=$1 status=0
	shift
	"$@" >"$work/out" 2>&1 || status=$?
	if ((status == 4)); then
		skip "$name" "$(sed -n 's/.*# SKIP //p' "$work/out")"
		return 4
	fi
	# without the table of calls: what was found is to be near the result
	((status == 0)) || grep -v ' tried, ' "$work/out" | sed 's/^/# /'
	ok "$status" "$name"
}

runs "system calls, one thread" "$fuzz/fuzz" --seed 1 --calls 2500
holds "a part of the calls gets past the door" "$(value .succeeded) * 20 > $(value .ioctls)"
# Which calls it made, and how many of each the kernel served. A few answers hang on how
# busy the machine is (how long a look at memory took), so not every run is like the others;
# runs that replay nothing are never alike.
replay() { "$fuzz/fuzz" --seed 3 --calls 600 | grep ' tried, '; }
before='' same=1
for ((i = 0; i < 6 && same; i++)); do
	now=$(replay)
	[[ $now && $now == "$before" ]] && same=0
	before=$now
done
ok "$same" "with one seed, one thread makes the same calls and gets the same answers"
runs "system calls, three threads" "$fuzz/fuzz" --seed 2 --calls 800 --threads 3
runs "registers of the board" "$fuzz/regs" 1 2 &&
	holds "the board streams after a reset" "$(value .streams) > 0"
finish
