#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Guest part of builder-network.sh.
# builder-network-guest.sh END FOLDER IMAGES. The folder is shared, and contains images.raw.
set -euo pipefail

cd "$(dirname "$0")/../../.."
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/cable.sh
. selftests/lib/cable.sh
export PATH=$PWD/build/tools:$PATH RASHPA_PROFILES=$PWD/tools/data/profiles
export PYTHONPATH=$PWD/build/tools/python PYTHONDONTWRITEBYTECODE=1 RASHPA_LIBRARY=$PWD/build/tools/librashpa.so.0
end=$1 out=$2 images=$3
readout=$((end - 1))
# lines of the image of each detector
lines=64
g=256x$lines

cable_up "$end"
insmod "build/modules/$RASHPA_KERNEL/rashpa.ko"
fpga=$(rashpactl --json bind "$(lspci -D -d 1234:5250 | cut -d' ' -f1)" | jq -r .node)

# rank N ARGUMENT...: start one of five ranks, which meet at the first machine
rank() {
	RASHPA_MEET=10.2.0.1:7000 RASHPA_SIZE=5 RASHPA_RANK=$1 RASHPA_JOB=$run \
		rashpa-builder build --transport verbs --device rxe0 --readouts 2 --from part --geometry "$g" --block 4 \
		--to whole --timeout 120 "${@:2}" 2>"$out/$run/err.$1"
}

# build FAULT...: images through FPGA, readout and builder; the manager runs on the first machine
build() {
	local -a fault=("$@") pids=()
	local status=0 code pid
	mkdir -p "$out/$run"
	rashpactl buffer create "part$readout" 16M >/dev/null
	rashpactl buffer create "whole$readout" 32M >/dev/null
	python3 tools/builder/tests/whole.py "$out/images.raw" "whole$readout" >"$out/$run/whole-$readout.json" &
	pids+=($!)
	((end == 2)) || { rank 0 --json="$out/$run/build.json" & pids+=($!); }
	rank "$end" "${fault[@]}" &
	pids+=($!)
	rank "$((end + 2))" &
	pids+=($!)
	remu --buffer "part$readout" --fpga "${fpga#fpga}" --dataset "$out/images.raw" --geometry "256x$((2 * lines))" --bunch 4 \
		--dtp "0,$((lines * readout)),$g@0,0" --images "$images" --timeout 120 >/dev/null &
	pids+=($!)
	for pid in "${pids[@]}"; do
		code=0
		wait "$pid" || code=$?
		# 4: in the second run, the manager reports incomplete events
		((code == 0 || (code == 4 && ${#fault[@]} && end == 1))) || status=$code
	done
	rashpactl buffer remove "part$readout" >/dev/null
	rashpactl buffer remove "whole$readout" >/dev/null
	return "$status"
}

run=good
build
run=bad
if ((end == 1)); then
	build --fault "corrupt:0:$((images / 3))"
else
	build --fault "missing:1:$((images / 2))"
fi
