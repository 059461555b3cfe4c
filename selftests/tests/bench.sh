#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# rashpa-bench: the shape of its JSON, and that it leaves the machine as it was. What it
# measures is not judged here.
. "$(dirname "$0")/../shell.sh"

pool() { cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages; }
pages=$(pool)
buffers=$(rashpactl --json buffer list)
json=$work/memory.json
get() { jq -e "$1" "$json" >/dev/null; }

device=()
if have_fpga; then
	device=(--device "fpga$fpga")
fi
rashpa-bench memory --sizes 2M --repeat 1 --json "$json" "${device[@]}" >"$work/out" 2>"$work/err"
is "it measures" $? 0
get '.bench == "memory" and .repetitions == 1'
ok $? "JSON: what was measured, how often"
get ".machine | .kernel == \"$(uname -r)\" and (.cpu | length > 0) and .cpus > 0 and
	(.iommu | type == \"boolean\")"
ok $? "JSON: the machine"
get '.rows | length > 0 and all(
	(.name | type == "string") and .size == 2097152 and (.ours | type == "number") and
	(.unit | IN("us", "ns", "GB/s", "faults")) and (.better | IN("lower", "higher")) and
	(has("peer") and has("theirs") and has("ratio")))'
ok $? "JSON: every row has its fields"
get '[.rows[] | select(.peer != null and .theirs > 0)] | length > 0 and
	all((.ratio - .ours / .theirs) | fabs < 1e-3)'
ok $? "JSON: a ratio is ours by theirs"
get '[.rows[] | select(.name == "faults after mmap" and .backend == "contig") | .ours] |
	length > 0 and all(. == 0)'
ok $? "no page fault after mmap"
for name in "alloc, zeroed" mmap "read, in sequence" "read, at random" "write, in sequence"; do
	get "[.rows[] | select(.name == \"$name\" and .peer == \"hugetlbfs\" and .ours > 0)] | length > 0"
	ok $? "beside hugetlbfs: $name"
done
get '.left_out | all((.name | length > 0) and (.reason | length > 0))'
ok $? "what was left out has a reason"
grep -q "^not measured: VFIO\|^not measured: map" "$work/out"
ok $? "and people read it too"
is "huge pages are as they were" "$(pool)" "$pages"
is "buffers are as they were" "$(rashpactl --json buffer list)" "$buffers"

if ((${#device[@]})); then
	get '[.rows[] | select(.name == "map")] | length > 0 and all(.ours > 0)'
	ok $? "maps"
	maps=$(rashpactl --json list | jq ".devices[] | select(.node == \"fpga$fpga\").maps")
	is "no map is left" "$maps" 0
	# beside an import without any driver around it
	insmod "build/modules/$RASHPA_KERNEL/tests/rashpa_bare.ko"
	ok $? "the module for comparison loads"
	rashpa-bench memory --sizes 64K --repeat 1 --json "$json" "${device[@]}" >/dev/null 2>&1
	get '[.rows[] | select((.name | startswith("map")) and (.peer // "" | startswith("bare")))] |
		length == 4 and all(.theirs > 0)'
	ok $? "beside a bare import: map, map + unmap"
	rmmod rashpa_bare
	ok $? "and unloads"
else
	skip "maps" "no software FPGA in this guest"
fi

# refuses STATUS PATTERN OPTION...
refuses() {
	local want=$1 pattern=$2 got
	shift 2
	rashpa-bench "$@" >"$work/out" 2>&1
	got=$?
	grep -q -- "$pattern" "$work/out"
	ok $(($? || got != want)) "refused: rashpa-bench $*"
}
refuses 2 "unknown command.*nosuch" nosuch
refuses 2 "3M.*multiple of 2M" memory --sizes 3M
refuses 2 "\"12Q\" is not a size" memory --sizes 2M,12Q
refuses 2 "\"0\".*1 to 1000" memory --repeat 0
refuses 2 "magic.*contig" memory --buffer-backend magic
refuses 1 "give --device fpgaN" memory --sizes 64K --repeat 1
refuses 1 "fpga77" memory --sizes 64K --repeat 1 --device fpga77
PATH=build/tools rashpa-bench memory --sizes 64K --repeat 1 --svg "$work/x.svg" 2>"$work/out"
got=$?
grep -q "apt install gnuplot-nox" "$work/out"
ok $(($? || got != 1)) "refused: a picture without gnuplot"
finish
