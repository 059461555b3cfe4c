#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs inside the lab's root: sparse over the driver, for the kernels whose headers
# it understands (its parser is older than those of 7.x). TAP.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
n=0 bad=0
mkdir -p build/sparse
for series in 6.1 6.12; do
	release=$(basename "$(ls -d "/lib/modules/$series."*-amd64 | sort -V | tail -n 1)")
	dir=build/sparse/$series
	n=$((n + 1))
	rm -rf "$dir"
	if make -s modules KREL="$release" MODDIR="$PWD/$dir" W=1 KFLAGS=C=2 >"$dir.log" 2>&1 &&
		! grep -q 'warning:\|error:' "$dir.log"; then
		echo "ok $n - sparse is clean on $release"
	else
		sed 's/^/# /' "$dir.log"
		echo "not ok $n - sparse is clean on $release"
		bad=1
	fi
done
n=$((n + 1))
echo "ok $n - sparse on 7.2 # SKIP sparse 0.6.4 does not parse the headers of this kernel"
echo "1..$n"
exit "$bad"
