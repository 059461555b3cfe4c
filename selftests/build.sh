#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: builds the module for the kernels named, the tools and
# the tests. Prints compiler output only when something is wrong or warned about.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
log=$build/build.log
mkdir -p "$build"
: >"$log"

# run NAME COMMAND...: quiet, unless it fails or warns
run() {
	local name=$1 out start=$SECONDS
	shift
	out=$(mktemp)
	if ! "$@" >"$out" 2>&1 || grep -q 'warning:\|error:' "$out"; then
		cat "$out" >>"$log"
		grep -v '^make\|^  [A-Z]' "$out" >&2 || cat "$out" >&2
		echo "build: $name: failed or warned (log: build/build.log)" >&2
		rm -f "$out"
		exit 1
	fi
	cat "$out" >>"$log"
	rm -f "$out"
	echo "build: $name ($((SECONDS - start)) s)"
}

release() {
	# "coverage" is a second build for the debug kernel: the module counts lines
	if [[ $1 == debug || $1 == coverage ]]; then
		basename "$(compgen -G "/lib/modules/*-rashpa-debug" | sort -V | tail -n 1)"
	else
		awk -v s="$1" '$1 == s { print $2 }' /etc/lab-kernels
	fi
}

MAKEFLAGS=-j$(nproc)
export MAKEFLAGS
for series in "$@"; do
	flags=
	[[ $series != coverage ]] || flags=RASHPA_COVERAGE=y
	run "module for $series" make -s -C "$top" modules W=1 \
		KREL="$(release "$series")" MODDIR="$build/modules/$series" KFLAGS="$flags"
	if compgen -G "$top/selftests/modules/*.c" >/dev/null; then
		run "test modules for $series" make -s -C "$top/selftests" modules W=1 \
			KREL="$(release "$series")" MODDIR="$build/modules/$series/tests"
	fi
done
run "tools" make -s -C "$top/tools" O="$build/tools"
run "software FPGA" make -s -C "$top/tools/software-fpga" O="$build/tools"
run "tests" make -s -C "$top/selftests" O="$build/selftests"
run "tests of the first header" make -s -C "$top/selftests" old O="$build/selftests"
# which it would make at each start in a guest, slowly
run "fonts of the viewer" env MPLCONFIGDIR="$build/matplotlib" python3 -c "import matplotlib.font_manager"
run "32-bit tests" make -s -C "$top/selftests" compat O="$build/selftests"
