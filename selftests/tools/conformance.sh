#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=35
# rashpa-fpga-conformance with a card that is bound to vfio-pci: the software FPGA, behind an
# IOMMU. Checks refusals, tests that depend on the path to the card (RASHPA_SUITES: suites; empty: all
# of them), and that the function is given back.
. "$(dirname "$0")/../lib/shell.sh"

bdf=$(lspci -D -d 1234:5250 | head -n 1 | cut -d' ' -f1)
device=/sys/bus/pci/devices/$bdf

holder() { basename "$(readlink "$device/driver" || echo none)"; }

# refuses TEXT: it ends with 2, and says so
refuses() {
	local status=0
	rashpa-fpga-conformance --vfio "$bdf" >"$work/out" 2>&1 || status=$?
	is "refused: $1" "$status $(grep -c -- "$1" "$work/out")" "2 1" || sed 's/^/# /' "$work/out"
}

if [[ ! $bdf ]]; then
	skip "conformance-card: conformance of a card" "no software FPGA"
	finish
fi
before=$(holder)
if [[ $before == none ]]; then
	echo rashpa >"$device/driver_override"
	echo "$bdf" >/sys/bus/pci/drivers_probe
fi
[[ $(holder) != rashpa ]] || refuses "the driver rashpa holds it"
[[ $(holder) == none ]] || echo "$bdf" >"$device/driver/unbind"
refuses "no driver has it"
if [[ $RASHPA_IOMMU == on ]] && modprobe vfio-pci; then
	echo vfio-pci >"$device/driver_override"
	echo "$bdf" >/sys/bus/pci/drivers_probe
	# what takes another way here than through a socket: registers, interrupts, resets, and DMA that an
	# IOMMU may refuse; boards.sh has the rest
	read -rd "" -a suites <<<"${RASHPA_SUITES-registers event reset fault/bus fault/master stop/silence stop/one
		stream/region stream/turns}"
	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*) ok "$([[ $line == ok* ]]; echo $?)" "${line#*- }" ;;
		"#"*) echo "$line" ;;
		status*) is "end: it ends with 0" "$line" "status 0" || sed 's/^/# /' "$work/err" ;;
		esac
	done < <(rashpa-fpga-conformance --vfio "$bdf" "${suites[@]}" 2>"$work/err"; echo "status $?")
	echo "$bdf" >"$device/driver/unbind"
else
	skip "conformance-card: conformance of a card" "VFIO needs an IOMMU"
fi
echo "${before/none/}" >"$device/driver_override"
[[ $before == none ]] || echo "$bdf" >/sys/bus/pci/drivers_probe
is "function-given-back: the function is given back" "$(holder)" "$before"
finish
