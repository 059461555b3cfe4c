#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: where=host seconds=50
# Event building in two virtual machines, each with a software FPGA, over soft-RoCE and without a
# launcher. Compares whole images with those of the detectors, byte by byte; then again, with a
# wrong byte and a missing fragment. builder-network.sh [SERIES [IMAGES]]. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/cable.sh
. selftests/lib/cable.sh
series=${1:-newest} images=${2:-200}
out=build/builder-network
release=$(selftests/lab/lab release "$series") || exit 1
rm -rf "$out"
mkdir -p "$out"
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
cat <<END

  virtual machine 1, Linux $release            virtual machine 2, the same kernel
 +-------------------------------------+      +-------------------------------------+
 | FPGA: upper half of each image      |      | FPGA: lower half of each image      |
 |   v PCIe                            |      |   v PCIe                            |
 | buffer part0 --> rank 1: readout 0  |      | buffer part1 --> rank 2: readout 1  |
 |                    |  \             | RoCE |             /  |                    |
 |                    |   '------------|------|---.    .---'  |                    |
 |                    v   .------------|------|---'----'      v                    |
 | whole0 <-- rank 3: builder 0 <------|      |------> rank 4: builder 1 --> whole1 |
 |   v                                 |      |                                  v  |
 | compared, byte by byte              |      |              compared, byte by byte |
 | rank 0: manager, listens: 10.2.0.1:7000 <--------- RASHPA_MEET, for all others   |
 +-------------------------------------+      +-------------------------------------+

END
# random bytes: data in the wrong place differ
head -c $((10 * 256 * 128 * 2)) /dev/urandom >"$out/images.raw"
side() { # END
	cable_end "$1" "$work" --kernel "$series" --iommu on --fpga 1 --spare 0 --memory 1G --timeout 900 --log "$out/kernel-$1.log" \
		-- tools/builder/tests/builder-network-guest.sh "$1" "$out" "$images"
}
echo "# Linux $release, twice: booting"
side 1 >"$out/said.1" 2>&1 &
first=$!
side 2 >"$out/said.2" 2>&1 &
second=$!
wait "$first"
one=$?
wait "$second"
is "machines-end-well: both machines succeed" "$one $?" "0 0" || sed 's/^/# /' "$out"/said.*

# jq from the root of the lab, so the host need not have it
check() { # NAME FILTER FILE...
	local name=$1 filter=$2
	shift 2
	selftests/lab/lab exec -- jq -se --argjson images "$images" "$filter" "$@" >/dev/null 2>"$work/err"
	ok $? "$name" || { cat "$work/err"; cut -c 1-2000 "$@"; } | sed 's/^/# /'
}
said() { cat "$out/$1"/err.* | grep -o "event .*" | sort -u; }

both=("$out"/good/whole-{0,1}.json)
check "images-two-detectors: $images images of two detectors arrive, once each" '([.[].frames] | add | sort) == [range(0; $images)]' "${both[@]}"
check "builder-built: each builder has built images" 'all(.[]; .frames | length > 0)' "${both[@]}"
check "byte-detectors: all bytes are those of the detectors" 'all(.[]; .wrong == [] and .incomplete == [])' "${both[@]}"
check "manager: the manager reports all events as built" '.[0] | .events == $images and .built == $images and .incomplete + .lost + .unknown + .foreign == 0' \
	"$out/good/build.json"
is "no-complaint: no rank reports a bad fragment" "$(said good)" ""

both=("$out"/bad/whole-{0,1}.json)
at=$((images / 3)) gap=$((images / 2))
check "again-faults/all-once: again, with faults: all images arrive, once each" '([.[].frames] | add | sort) == [range(0; $images)]' "${both[@]}"
check "one-byte-one: one byte of one fragment is wrong, at the right place" \
	"[.[].wrong[]] == [{frame: $at, line: 63, byte: 511, bytes: 1}]" "${both[@]}"
check "images-themselves-half: the two images with faults report half of their lines as missing" \
	"[.[].incomplete[]] | sort_by(.frame) == [{frame: $at, missing_lines: 64}, {frame: $gap, missing_lines: 64}]" "${both[@]}"
check "missing-zeros-counted: missing lines are zeros, and counted" '.[0] | .built == $images and .incomplete == 2 and .corrupt == 1 and .missing == 1
	and .lost + .unknown + .foreign == 0' "$out/bad/build.json"
is "builders-name: builders name both fragments" "$(said bad)" "$(printf '%s\n' \
	"event $at: the fragment of source 0 of readout 0 has another checksum than its readout sent" \
	"event $gap: the fragment of source 0 of readout 1 is missing" | sort)"
finish
