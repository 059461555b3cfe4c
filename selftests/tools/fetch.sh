#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=40 needs=fetch
# Boards that fetch addresses, one of each format: the demonstration streams by each of them, and the
# board of the guide is bound with the profile written there.
. "$(dirname "$0")/../lib/shell.sh"

unbind() {
	local bdf

	for bdf in $(lspci -D -n | sed -n 's/ .*1234:525[123].*//p'); do
		[[ ! -e /sys/bus/pci/drivers/rashpa/$bdf ]] || rashpactl unbind "$bdf" >/dev/null
	done
}

# a profile that another test has given them has not all windows
unbind
for format in array chain packed; do
	good "frames-arrive/$format: frames arrive by $format" env RASHPA_BOARD="$format" selftests/demo/demo-guest.sh "$work/$format.json" 64
	good "none-lost-changed/$format: $format: none is lost or changed" \
		jq -e '.frames >= 64 and .lost == 0 and .corrupt == 0 and .fpga.faults == 0' "$work/$format.json"
done

# as it stands in the guide
mkdir "$work/guide"
python3 -B Documentation/tests/tutorials.py scripts "$work/guide" Documentation/tutorials/board.rst
bdf=$(lspci -D -d 1234:5251 | cut -d' ' -f1)
sed -n '/^cat >fetch.json/,/^END$/p' "$work/guide/board.sh" >"$work/guide/fetch.sh"
(cd "$work/guide" && bash fetch.sh)
rashpactl unbind "$bdf" >/dev/null
good "guide-profile-binds: the guide's profile binds a board" rashpactl bind --profile "$work/guide/fetch.json" "$bdf"
node=$(rashpactl --json list | jq -r ".devices[] | select(.bdf == \"$bdf\").node")
rashpactl buffer create guide 1M >/dev/null
good "maps-buffer: and maps a buffer for it" rashpactl map make guide "$node"
rashpactl buffer remove guide >/dev/null
unbind
finish
