#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=90
# rashpa-bench: the layout of its JSON, and that it leaves the machine unchanged. Measured values are
# not judged here.
. "$(dirname "$0")/../lib/shell.sh"

export PYTHONPATH=$PWD/build/tools/python RASHPA_LIBRARY=$PWD/build/tools/librashpa.so.0 MPLCONFIGDIR=$PWD/build/matplotlib
pool=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
pages=$(<"$pool")
buffers=$(rashpactl --json buffer list)
# one program for all checks of a file: starting programs is what takes time here
checks='
def row($name): [.rows[] | select(.name == $name)];
def beside($peer): map(select(.peer // "" | startswith($peer)));
def check($name; f): "\(if f then 0 else 1 end) \($name)";
'

# check_json NAMES-AND-CONDITIONS [FILE]: calls of check() above
check_json() {
	local results line
	mapfile -t results < <(jq -r --arg kernel "$(uname -r)" "$checks $1" "${2:-$work/memory.json}")
	is "json-read: the JSON can be read" "$((${#results[@]} > 0))" 1
	for line in "${results[@]}"; do
		ok "${line%% *}" "${line#* }"
	done
}

device=()
have_fpga && device=(--fpga "fpga$fpga")
rashpa-bench memory --sizes 2M --repeat 1 --json="$work/memory.json" "${device[@]}" \
	>"$work/out" 2>"$work/err"
is "measures: it measures" $? 0
cp "$work/memory.json" "$work/compared.json"
check_json '
check("measured-often: names and repetitions"; .bench == "memory" and .repetitions == 1),
check("machine: the machine"; .machine | .kernel == $kernel and (.cpu | length > 0) and .cpus > 0 and
	(.iommu | type == "boolean")),
check("row-fields: every row has its fields"; .rows | length > 0 and all(
	(.name | type == "string") and .size_bytes == 2097152 and (.ours | type == "number") and
	(.unit | IN("us", "ns", "GB/s", "faults")) and (.better | IN("lower", "higher")) and
	has("peer") and has("theirs") and has("ratio"))),
check("ratio-theirs: a ratio is ours by theirs"; [.rows[] | select(.theirs and .theirs > 0)] |
	length > 0 and all((.ratio - .ours / .theirs) | fabs < 1e-3)),
check("no-page-fault: no page fault after mmap"; row("faults after mmap") | length > 0 and all(.ours == 0)),
(("alloc, zeroed", "mmap", "read, in sequence", "copy, in sequence", "read, at random", "write, in sequence") as $name |
	check("beside-hugetlbfs: beside hugetlbfs: \($name)"; row($name) | beside("hugetlbfs") |
		length > 0 and all(.ours > 0 and .theirs > 0))),
check("left-reason: each omission has a reason"; .left_out | length > 0 and
	all((.name | length > 0) and (.reason | length > 0))),
check("vfio-left-all: VFIO was left out, or all maps were"; .left_out | any(.name | test("VFIO|map")))'
grep -q "^not measured: VFIO\|^not measured: map" "$work/out"
ok $? "people-read: and people read it too"
is "huge-pages: huge pages are as they were" "$(<"$pool")" "$pages"
is "buffers: buffers are as they were" "$(rashpactl --json buffer list)" "$buffers"

if ((${#device[@]})); then
	# compared with an import without any driver around it
	insmod "build/modules/$RASHPA_KERNEL/tests/rashpa_bare.ko"
	ok $? "module-comparison-loads: the module for comparison loads"
	rashpa-bench memory --sizes 64K --repeat 1 --json "${device[@]}" \
		>"$work/memory.json" 2>"$work/err"
	check_json '
	check("map: compared with a bare import"; row("map") | beside("bare") |
		length == 2 and all(.ours > 0 and .theirs > 0)),
	check("map-unmap: map + unmap"; row("map + unmap (closing stops the function)") | beside("bare") |
		length == 2 and all(.ours > 0 and .theirs > 0))'
	rashpa-bench event --fpga "fpga$fpga" --repeat 1 --json >"$work/memory.json" 2>"$work/err"
	check_json '
	check("event: each way of an event, and why others are missing"; .bench == "event" and
		[.rows[].backend] == ["read", "eventfd", "ring"] and (.rows | all(.ours > 0)) and
		[.left_out[].name] == ["vfio-pci, eventfd", "uio_pci_generic, read"])'
	rmmod rashpa_bare
	ok $? "unloads: and unloads"
	maps=$(rashpactl --json list | jq ".devices[] | select(.node == \"fpga$fpga\").maps")
	is "no-map-left: no map is left" "$maps" 0
else
	skip "maps: maps" "no software FPGA in this guest"
fi

# --- events ---

# what all rows of latency have to fulfil
latency_rows='
check("latency/measured-often: latency: names and repetitions"; .bench == "latency" and .repetitions == 2 and
	.events == 20),
check("latency/row-fields: latency: every row has its fields"; .rows | length > 0 and all(
	(.path | length > 0) and has("ratio") and has("max_rate_hz") and has("overload") and
	([.p50_ns, .p99_ns, .p999_ns, .cpu_ns_per_event, .sent, .received, .events_lost] |
	all(type == "number" and . >= 0)))),
check("latency/percentiles-order: latency: percentiles are in order"; .rows | all(.p50_ns > 0 and .p50_ns <= .p99_ns and
	.p99_ns <= .p999_ns)),
check("latency/sent-received-lost: latency: sent is received and lost"; .rows | all(.sent > 0 and
	.sent == .received + .events_lost)),
check("latency/path-reason: latency: each path is there or has a reason"; . as $all |
	["channel, read", "channel, eventfd", "channel, ring", "lock, spinning", "lock, timer",
	 "vfio-pci, eventfd", "uio_pci_generic, read"] | all(. as $path | ([$all.rows[].path, $all.left_out[].name] |
	index($path)) != null)),
check("latency/driver: latency: this driver is there"; [.rows[].path] | contains(["channel, read",
	"channel, eventfd", "channel, ring", "lock, spinning", "lock, timer"])),
check("latency/full-queue-drops: latency: drops of a full queue are counted exactly"; [.rows[] | .overload //empty] |
	length == 2 and all(.exact and .events_lost > 0 and .sent == .received + .events_lost and
	.sent == .interrupts and .sent <= .stacks)),
check("latency/left-reason: latency: each omission has a reason"; .left_out | all(.reason |
	length > 0))'

vfio=() pin=0
[[ $RASHPA_IOMMU == on ]] && modprobe vfio-pci && vfio=(--vfio same)
if ((${#device[@]})); then
	# only an FPGA with --intx has one
	pin=$((16#$(setpci -s "$bdf" INTERRUPT_PIN)))
	((!pin)) || modprobe uio_pci_generic
	domain=$(cat "/sys/bus/pci/devices/$bdf/iommu_group/type" 2>/dev/null)
	rashpa-bench latency "${device[@]}" "${vfio[@]}" --uio --repeat 2 --events 20 --max-rate 500 \
		--json="$work/latency.json" >"$work/out" 2>"$work/err"
	is "latency-measured: latency is measured" $? 0 || sed 's/^/# /' "$work/out" "$work/err"
	check_json "$latency_rows" "$work/latency.json"
	grep -q "^channel, read  *[0-9]" "$work/out"
	ok $? "latency/people-read: latency: and people read it too"
	is "function-back: the function is back" "$(rashpactl --json list | jq -r ".devices[] |
		select(.bdf == \"$bdf\") | .node")" "fpga$fpga"
	if ((${#vfio[@]})); then
		check_json '
		check("latency/beside-vfio-pci: latency: compared with vfio-pci"; [.rows[].path] | contains(["vfio-pci, eventfd"])),
		check("latency/ratios: latency: with ratios"; .rows | all(.ratio |
			if type == "number" then . > 0 else . == null end) and
			([.[] | select(.ratio)] | length) == length - 1)' "$work/latency.json"
	else
		skip "latency/ratios-2: latency: ratios" "VFIO needs an IOMMU"
	fi
	if ((pin)); then
		check_json '
		check("latency/beside-uio-pci-generic-nothing: latency: compared with uio_pci_generic, and no event is lost"; .rows[] |
			select(.path == "uio_pci_generic, read") | .events_lost == 0 and .max_rate_hz > 0)' \
			"$work/latency.json"
		is "iommu-domain: the IOMMU domain is unchanged" \
			"$(cat "/sys/bus/pci/devices/$bdf/iommu_group/type" 2>/dev/null)" "$domain"
	else
		check_json '
		check("latency/uio-pci-generic-needs-pin: latency: uio_pci_generic needs a pin"; .left_out | any(
			.name == "uio_pci_generic, read" and (.reason | test("no interrupt pin"))))' \
			"$work/latency.json"
	fi
	rashpa-bench roundtrip "${device[@]}" --sizes 1K,64K --repeat 2 --events 10 --json \
		>"$work/roundtrip.json" 2>"$work/err"
	is "round-trip-measured: the round trip is measured" $? 0 || sed 's/^/# /' "$work/err"
	check_json '
	check("roundtrip/row-fields: roundtrip: every row has its fields"; .bench == "roundtrip" and .tick_ns == 4 and
		.memory == "host" and .flush == false and
		(.rows | length > 0 and all((.path | length > 0) and .trips == 20 and
		.dma_ns > 0 and .min_ns <= .p50_ns and .p50_ns <= .p99_ns))),
	check("roundtrip/all-sizes: roundtrip: all sizes"; [.rows[].size_bytes] | unique == [1024, 65536])' \
		"$work/roundtrip.json"
	is "no-map-left-events: no map is left by events" "$(rashpactl --json list |
		jq ".devices[] | select(.node == \"fpga$fpga\").maps")" 0
	for result in compared latency roundtrip; do
		word=$(jq -r '[.rows[] | .path // (select(.ratio and .peer).name)][0]' "$work/$result.json")
		python3 -m rashpa.plot "$work/$result.json" && grep -q "<svg" "$work/$result.svg" &&
			grep -qF "$word" "$work/$result.svg"
		ok $? "drawn/$result: $result: rashpa.plot draws the rows"
	done
	rashpa-bench validate --repeat 1 --name "reference interface" --out "$work/card" "fpga$fpga" >"$work/line" 2>"$work/err"
	is "validate: a board is validated" $? 0 || sed 's/^/# /' "$work/line" "$work/err"
	check_json '
	check("validate/figures: validate: latency, round trip and throughput, with units"; [.figures[] | .id, .quantities[]] ==
		["latency", "us", "round-trip", "us, median", "throughput", "GB/s"] and
		(.figures | all(.rows | length > 0 and all(.here > 0))) and .missing == {}),
	check("validate/parts: validate: the report of the machine, and the board test"; (.report.doctor.checks | length > 3) and
		([.test.tests[] | select(.verdict == "passed").test] | contains(["stop", "program", "end"])))' "$work/card/validation.json"
	is "validate/page: validate: the page has a plot of each" "$(grep -c '<svg' "$work/card/index.html")" 3
	grep -qxF "$(head -n 1 "$work/line")" README.md
	ok $? "validate/status: validate: README.md has its line" || sed 's/^/# /' "$work/line"
else
	skip "events: events" "no software FPGA in this guest"
fi
# --- what is refused ---

# refuses PATTERN OPTION...
refuses() {
	local pattern=$1 got
	shift
	rashpa-bench "$@" >"$work/out" 2>&1
	got=$?
	[[ $(<"$work/out") =~ $pattern ]]
	ok $(($? || got != 1)) "refused/rashpa-bench: refused: rashpa-bench $*"
}
refuses "fpga77" latency --fpga fpga77
refuses "fpga77" roundtrip --fpga fpga77
refuses "give --fpga fpgaN" memory --sizes 64K --repeat 1
refuses "fpga77" memory --sizes 64K --repeat 1 --fpga fpga77
finish
