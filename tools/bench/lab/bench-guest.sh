#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Guest part of bench.sh: a software FPGA for this driver, and a second one for VFIO.
# bench-guest.sh FOLDER [OPTION...]: options of rashpa-bench memory. With RASHPA_COUNT=yes the clock
# of this guest counts instructions: only what does not wait for the board is measured.
set -euo pipefail

cd "$(dirname "$0")/../../.."
export PATH=$PWD/build/tools:$PATH RASHPA_PROFILES=$PWD/tools/data/profiles
out=$1
shift
modules=build/modules/$RASHPA_KERNEL
[[ -e /dev/rashpa/memory ]] || insmod "$modules/rashpa.ko"
insmod "$modules/tests/rashpa_bare.ko"

mapfile -t fpgas < <(lspci -D -d 1234:5250 | cut -d' ' -f1)
device=() vfio=() same=()
if ((${#fpgas[@]})); then
	# driver_override of an earlier bind may have bound the function without its profile
	if [[ $(readlink "/sys/bus/pci/devices/${fpgas[0]}/driver") == */rashpa ]]; then
		rashpactl unbind "${fpgas[0]}" >/dev/null
	fi
	device=(--fpga "$(rashpactl --json bind "${fpgas[0]}" | jq -r .node)")
fi
if [[ $RASHPA_IOMMU == on ]]; then
	modprobe vfio-pci
	same=(--vfio same)
fi
modprobe uio_pci_generic
modprobe null_blk
if ((${#fpgas[@]} > 1 && ${#same[@]})); then
	echo vfio-pci >"/sys/bus/pci/devices/${fpgas[1]}/driver_override"
	echo "${fpgas[1]}" >/sys/bus/pci/drivers_probe
	vfio=(--vfio "${fpgas[1]}")
fi

echo "== $(uname -sr), IOMMU $RASHPA_IOMMU, rashpa $(</sys/module/rashpa/version)"
if [[ ${RASHPA_COUNT-} ]]; then
	rashpa-bench memory "${device[@]}" "${vfio[@]}" --json="$out/count-memory.json" "$@" >/dev/null
	rashpa-bench event "${device[@]}" "${vfio[@]}" --json="$out/count-event.json" >/dev/null
	jq -rs '["what", "bytes", "ours", "peer", "ours", "theirs", "ratio"], (.[].rows[] | select(.unit == "us") |
		[.name, .size_bytes, .backend, .peer // "-", (.ours, (.theirs // 0) | . * 1000 | round),
		 ((.ratio // 0) * 100 | round / 100)]) | @tsv' "$out"/count-{memory,event}.json |
		awk -F '\t' '{ printf "%-44s %10s %-8s %-31s %10s %10s %6s\n", $1, $2, $3, $4, $5, $6, $7 }'
	jq -r '.left_out[] | "not counted: \(.name): \(.reason)"' "$out"/count-{memory,event}.json | sort -u
	exit
fi
rashpa-bench memory "${device[@]}" "${vfio[@]}" --json="$out/memory.json" "$@"
if ((${#device[@]})); then
	echo
	rashpa-bench latency "${device[@]}" "${same[@]}" --uio --repeat 40 --max-loss 10 \
		--json="$out/latency.json"
	echo
	rashpa-bench roundtrip "${device[@]}" --json="$out/roundtrip.json"
	echo
	tools/bench/lab/bench-trace.sh "${device[1]}" "$out"
	echo
	tools/bench/lab/bench-keepup.sh "${device[1]}" "$out"
fi
