#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=160 needs=engines
# Models of DMA engines of others, with the profiles for them: they stream, stop, and survive the death of
# their program.
. "$(dirname "$0")/../lib/shell.sh"

declare -A ids=([litepcie]=5254 [wupper]=5255 [verilog-pcie]=5256 [xilinx-xdma]=5257 [xilinx-xdma-stream]=5258)
declare -A ways=([litepcie]=round [wupper]=each [verilog-pcie]=each [xilinx-xdma]=each [xilinx-xdma-stream]=each)
# the test of "board test" that finds the defect of each model
declare -A finds=([litepcie]=silence [wupper]=load [verilog-pcie]=silence [xilinx-xdma]=silence [xilinx-xdma-stream]=silence)
number=0
# without plots, which take long here
mkdir "$work/without"
echo "raise ImportError" >"$work/without/matplotlib.py"
declare -A idle=([litepcie]=0:0x1818 [wupper]=0:0x400 [verilog-pcie]=0:0x28 [xilinx-xdma]=0:0x1004 [xilinx-xdma-stream]=0:0x1004)

# Does each frame have one value, and the values go up by one?
in_order() { awk 'NR > 1 && $2 != last + 1 { exit 1 } { last = $2 } END { exit NR < 10 }' "$1"; }

for engine in litepcie wupper verilog-pcie xilinx-xdma xilinx-xdma-stream; do
	n_fpga=$((number++))
	bdf=$(lspci -D -d "1234:${ids[$engine]}" | cut -d' ' -f1)
	if [[ ! $bdf ]]; then
		skip "$engine: frames" "no such engine in this guest (lab run --fpga-option --board=$engine)"
		continue
	fi
	good "binds/$engine: $engine takes the profile" \
		rashpactl bind --profile "tools/data/profiles/untried/$engine.json" "$bdf"
	node=$(rashpactl --json list | jq -r ".devices[] | select(.bdf == \"$bdf\").node")
	rashpactl buffer create engine 1M --for "$node" >/dev/null
	build/tools/examples/consumer engine >"$work/means" 2>"$work/err" &
	consumer=$!
	good "streams/$engine: $engine streams 40 stacks" build/tools/examples/engine engine "$node" 40 "${ways[$engine]}"
	wait "$consumer"
	ok $? "consumer/$engine: its consumer ends with it" || sed 's/^/# /' "$work/err"
	in_order "$work/means"
	ok $? "frames/$engine: its frames come in order, with their pixels" || head -n 50 "$work/means" | sed 's/^/# /'
	is "cleared/$engine: it is idle afterwards" "$(rashpactl fpga read "$node" "${idle[$engine]}")" 0x00000000

	# the program dies during a run; the kernel stops the engine before it frees the memory
	build/tools/examples/engine engine "$node" 100000 "${ways[$engine]}" 2>/dev/null &
	producer=$!
	# one that goes round waits for no consumer: 4
	romulu --buffer engine --images 5 --timeout 30 >/dev/null 2>&1 || [[ $? == 4 ]]
	ok $? "runs/$engine: it runs"
	kill -KILL "$producer"
	wait "$producer" 2>/dev/null
	wait_for 20 rashpactl buffer remove engine >/dev/null 2>&1
	ok $? "killed/$engine: after kill -9 its memory is free"
	is "stopped/$engine: it has stopped" "$(rashpactl fpga read "$node" "${idle[$engine]}")" 0x00000000
	is "ready/$engine: it is not stuck" \
		"$(rashpactl --json list | jq -r ".devices[] | select(.bdf == \"$bdf\").state")" ready

	# the board test, without and with a defect of the board
	PYTHONPATH=$work/without rashpa-bench validate --name "$engine" --out "$work/card" "$node" >"$work/line" 2>"$work/err"
	is "board-test/$engine: the board test succeeds" $? 0 || sed 's/^/# /' "$work/err" "$work/line"
	jq .test "$work/card/validation.json" >"$work/test"
	is "measured/$engine: it is timed, for each size, in order" "$(jq -c '[(.figures | map(.id)), (.figures[0].rows | map(.size_bytes)),
		(.figures | all(.rows | all(.here > 0))), (.report.doctor.checks | length > 3)]' "$work/card/validation.json")" \
		'[["transfer","throughput"],[4096,16384,65536],true,true]'
	grep -qxF "$(head -n 1 "$work/line")" README.md
	ok $? "status/$engine: README.md has its line" || sed 's/^/# /' "$work/line"
	is "board-test-runs/$engine: it has stopped a running board" \
		"$(jq -r '[.tests[] | select(.verdict == "passed").test] | contains(["interrupt", "load", "silence", "end"])' "$work/test")" true
	selftests/lab/host fpga "$n_fpga" defect on >/dev/null
	rashpactl --json board test "$node" >"$work/test" 2>/dev/null
	is "defect/$engine: with a defect it fails" $? 1
	is "defect-named/$engine: and names ${finds[$engine]}" \
		"$(jq -r "[.tests[] | select(.verdict == \"failed\").test] | contains([\"${finds[$engine]}\"])" "$work/test")" true ||
		sed 's/^/# /' "$work/test"
	selftests/lab/host fpga "$n_fpga" defect off >/dev/null
	good "reset/$engine: after a reset it is ready" rashpactl fpga reset "$node"
	if [[ ${ways[$engine]} == round ]]; then
		round=("$n_fpga" "$node" "$bdf")
		continue
	fi

	# it is removed while it streams
	rashpactl buffer create engine 1M --for "$node" >/dev/null
	build/tools/examples/engine engine "$node" 100000 each 2>"$work/err" &
	producer=$!
	romulu --buffer engine --images 5 --timeout 30 >/dev/null 2>&1
	ok $? "remove-runs/$engine: it runs"
	romulu --buffer engine >/dev/null 2>&1 &	# takes what follows
	consumer=$!
	good "remove/$engine: it is removed while it streams" tee "/sys/bus/pci/devices/$bdf/remove" <<<1
	wait "$producer"
	is "remove-ends/$engine: its program ends" $? 1 || sed 's/^/# /' "$work/err"
	kill "$consumer" 2>/dev/null
	wait "$consumer"
	good "remove-gone/$engine: its node goes" wait_for 30 test ! -e "/dev/rashpa/$node"
	good "remove-free/$engine: its memory is free" wait_for 20 rashpactl buffer remove engine
done

# One that goes round loses its power while it streams, and is removed. QEMU cannot unplug it in another way,
# and does not survive it while the processor accesses registers. The others are alive when they are removed.
if [[ ${round-} ]]; then
	read -r n_fpga node bdf <<<"${round[*]}"
	rashpactl buffer create engine 1M --for "$node" >/dev/null
	build/tools/examples/engine engine "$node" 100000 round 2>"$work/err" &
	producer=$!
	romulu --buffer engine --images 5 --timeout 30 >/dev/null 2>&1 || [[ $? == 4 ]]
	ok $? "unplug-runs: it runs"
	# no process is left to answer, and QEMU has noticed
	selftests/lab/host fpga "$n_fpga" exit >/dev/null 2>&1
	is "unplug-dead: its registers do not answer" "$(rashpactl fpga read "$node" 0:0x1800)" 0xffffffff
	good "unplug: it is removed" tee "/sys/bus/pci/devices/$bdf/remove" <<<1
	wait "$producer"
	is "unplug-ends: its program ends" $? 1 || sed 's/^/# /' "$work/err"
	good "unplug-gone: its node goes" wait_for 30 test ! -e "/dev/rashpa/$node"
	good "unplug-free: its memory is free" wait_for 20 rashpactl buffer remove engine
fi
finish
