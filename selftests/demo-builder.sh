#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The demonstration of event building: two virtual machines, each with an FPGA that streams half of each
# image, and a builder that puts every other block of images together. All are compared byte by byte.
# demo-builder.sh [SERIES [FRAMES]]. Writes build/demo-builder.json. Exit: 0 all is as it should be.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
series=${1:-newest} frames=${2:-300}
lab=selftests/lab/lab
out=build/demo-builder
wire=$(mktemp -d)
status=0

rm -rf "$out" build/demo-builder.json
mkdir -p "$out"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$wire"' EXIT
cat <<END

  virtual machine                                  virtual machine
 +---------------------------------+  soft-RoCE   +---------------------------------+
 | FPGA -> part0 -> readout 0 ==========> both builders <======= readout 1 <- part1 <- FPGA
 |   event manager                 |    verbs,    |                                 |
 | whole0 <- builder 0             |    mpirun    |             builder 1 -> whole1 |
 |   compare                       |              |                         compare |
 +---------------------------------+              +---------------------------------+

END
# shellcheck source-path=SCRIPTDIR source=lib/two-guests.sh
. selftests/lib/two-guests.sh
export more=$frames
echo "== Linux $("$lab" release "$series"), twice: booting"
side 2 far selftests/demo-builder-guest.sh --iommu on --fpga 1 >"$out/far.txt" 2>&1 &
far=$!
(side 1 near selftests/demo-builder-guest.sh --iommu on --fpga 1) || { status=1; kill "$far" 2>/dev/null || true; }
wait "$far" || { status=1; cat "$out/far.txt"; }

"$lab" exec -- jq -s --argjson frames "$frames" '.[0] as $run | .[1:] as $w |
	{frames: $frames, built: $run.built, incomplete: $run.incomplete, seconds: $run.seconds,
	compared: ($w | map(.equal) | add), corrupt: ($w | map(.corrupt) | add),
	of_builders: ($w | map(.equal)), once: (($w | map(.frames) | add | sort) == [range(0; $frames)])}' \
	"$out/run.json" "$out/near.json" "$out/far.json" >build/demo-builder.json || status=1
"$lab" exec -- jq -e '.built == .frames and .compared == .frames and .corrupt == 0 and .incomplete == 0 and .once and
	all(.of_builders[]; . > 0)' build/demo-builder.json || status=1
if ((status)); then
	echo "demo: FAILED (kernel logs in $out)"
else
	echo "demo: every image was built, once, from halves of two machines, and each byte is right;"
	echo "      figures in build/demo-builder.json"
fi
exit "$status"
