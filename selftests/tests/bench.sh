#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# rashpa-bench: the shape of its JSON, and that it leaves the machine as it was. What it
# measures is not judged here.
. "$(dirname "$0")/../shell.sh"

pool=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
pages=$(<"$pool")
buffers=$(rashpactl --json buffer list)
# one program for all checks of a file: starting programs is what takes time here
checks='
def row($name): [.rows[] | select(.name == $name)];
def beside($peer): map(select(.peer // "" | startswith($peer)));
def check($name; f): "\(if f then 0 else 1 end) \($name)";
'

# check_json NAMES-AND-CONDITIONS: calls of check() above
check_json() {
	local results line
	mapfile -t results < <(jq -r --arg kernel "$(uname -r)" "$checks $1" "$work/memory.json")
	is "the JSON can be read" "$((${#results[@]} > 0))" 1
	for line in "${results[@]}"; do
		ok "${line%% *}" "${line#* }"
	done
}

device=()
have_fpga && device=(--device "fpga$fpga")
rashpa-bench memory --sizes 2M --repeat 1 --json "$work/memory.json" "${device[@]}" \
	>"$work/out" 2>"$work/err"
is "it measures" $? 0
check_json '
check("what was measured, how often"; .bench == "memory" and .repetitions == 1),
check("the machine"; .machine | .kernel == $kernel and (.cpu | length > 0) and .cpus > 0 and
	(.iommu | type == "boolean")),
check("every row has its fields"; .rows | length > 0 and all(
	(.name | type == "string") and .size == 2097152 and (.ours | type == "number") and
	(.unit | IN("us", "ns", "GB/s", "faults")) and (.better | IN("lower", "higher")) and
	has("peer") and has("theirs") and has("ratio"))),
check("a ratio is ours by theirs"; [.rows[] | select(.theirs and .theirs > 0)] |
	length > 0 and all((.ratio - .ours / .theirs) | fabs < 1e-3)),
check("no page fault after mmap"; row("faults after mmap") | length > 0 and all(.ours == 0)),
(("alloc, zeroed", "mmap", "read, in sequence", "read, at random", "write, in sequence") as $name |
	check("beside hugetlbfs: \($name)"; row($name) | beside("hugetlbfs") |
		length > 0 and all(.ours > 0 and .theirs > 0))),
check("what was left out has a reason"; .left_out | all((.name | length > 0) and
	(.reason | length > 0)))'
grep -q "^not measured: VFIO\|^not measured: map" "$work/out"
ok $? "and people read it too"
is "huge pages are as they were" "$(<"$pool")" "$pages"
is "buffers are as they were" "$(rashpactl --json buffer list)" "$buffers"

if ((${#device[@]})); then
	# beside an import without any driver around it
	insmod "build/modules/$RASHPA_KERNEL/tests/rashpa_bare.ko"
	ok $? "the module for comparison loads"
	rashpa-bench memory --sizes 64K --repeat 1 --json - "${device[@]}" \
		>"$work/memory.json" 2>"$work/err"
	check_json '
	check("map: beside a bare import"; row("map") | beside("bare") |
		length == 2 and all(.ours > 0 and .theirs > 0)),
	check("map + unmap"; row("map + unmap (closing stops the function)") | beside("bare") |
		length == 2 and all(.ours > 0 and .theirs > 0))'
	rmmod rashpa_bare
	ok $? "and unloads"
	maps=$(rashpactl --json list | jq ".devices[] | select(.node == \"fpga$fpga\").maps")
	is "no map is left" "$maps" 0
else
	skip "maps" "no software FPGA in this guest"
fi

# refuses STATUS PATTERN OPTION...
refuses() {
	local want=$1 pattern=$2 got
	shift 2
	rashpa-bench "$@" >"$work/out" 2>&1
	got=$?
	[[ $(<"$work/out") =~ $pattern ]]
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
[[ $(<"$work/out") == *"apt install gnuplot-nox"* ]]
ok $(($? || got != 1)) "refused: a picture without gnuplot"
finish
