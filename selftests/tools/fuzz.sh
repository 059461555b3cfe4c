#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=9
# A few seconds of the fuzzers with fixed seeds, so that they stay usable. The long runs
# are "make fuzz".
. "$(dirname "$0")/../lib/shell.sh"

fuzz=build/selftests/fuzz

# value FILTER: a value from the JSON in the last line of the run
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
	# without the table of calls, so that findings stand near the result
	((status == 0)) || grep -v ' tried, ' "$work/out" | sed 's/^/# /'
	ok "$status" "$name"
}

runs "system-calls-one: system calls, one thread" "$fuzz/fuzz" --seed 1 --calls 2500
holds "part-calls-past: a part of the calls gets past the door" "$(value .succeeded) * 20 > $(value .ioctls)"
# Calls that it made, with their numbers. Some answers of the kernel depend on the load of the
# machine.
made() { "$fuzz/fuzz" --seed "$1" --calls 600 | sed -n 's/ tried, .*//p'; }
once=$(made 3)
[[ $once && $once == "$(made 3)" ]]
ok $? "one-seed-one: with one seed, one thread makes the same calls"
[[ $once != "$(made 4)" ]]
ok $? "others-another-one: ... and others with another one"
runs "system-calls-three: system calls, three threads" "$fuzz/fuzz" --seed 2 --calls 800 --threads 3
runs "registers-board: registers of the board" "$fuzz/regs" 1 2 &&
	holds "board-streams-after: the board streams after a reset" "$(value .streams) > 0"
finish
