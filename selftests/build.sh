#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: builds the module for the named kernels, the tools and the
# tests. Prints compiler output only after errors and warnings.
# build.sh [--only PART]... [SERIES...]
# PART: module, modules (of the tests), tools, tests, compat (32-bit), demo (the module, and the
# tools of "make demo"), or NAME or "test NAME" (one test, and the module). Default: all.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
log=$build/build.log
tests=()
declare -A only=()
while [[ ${1-} == --only ]]; do
	[[ ${2-} != test ]] || set -- --only "${@:3}"
	case ${2-} in
	module | modules | tools | tests | compat) only[$2]=yes ;;
	demo) only[module]=yes only[demo]=yes ;;
	*_test)
		only[module]=yes tests+=("$build/selftests/$2")
		# these load modules of the tests
		! grep -qs '"foreign.h"' "$top"/selftests/*/"$2.c" || only[modules]=yes
		;;
	*) sed -n '5,7s/^# *//p' "$0" >&2; exit 2 ;;
	esac
	shift 2
done
wanted() { ((!${#only[@]})) || [[ ${only[$1]-} ]]; }
mkdir -p "$build"
: >"$log"

# run NAME COMMAND...: prints output only if it fails or warns
run() {
	local name=$1 out start=$SECONDS
	shift
	out=$(mktemp)
	if ! "$@" >"$out" 2>&1 || grep -Eq '\b(warning|error):' "$out"; then
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
	# "coverage" is a second build for the debug kernel, in which the module counts lines
	if [[ $1 == debug || $1 == coverage ]]; then
		basename "$(compgen -G "/lib/modules/*-rashpa-debug" | sort -V | tail -n 1)"
	elif [[ $1 == arm64 ]]; then
		basename /mnt/usr/lib/modules/*
	else
		awk -v s="$1" '$1 == s { print $2 }' /etc/lab-kernels
	fi
}

# modules NAME FOLDER RELEASE TARGET FLAGS SOURCE...: builds modules if a source is newer
modules() {
	local built=$4/.built

	[[ ! -e $built || $(<"$built") != "$3 $5" || $(find "${@:6}" -newer "$built" -print -quit) ]] || return 0
	rm -f "$built"
	mkdir -p "$4"
	echo "$3 $5" >"$built.new"
	run "$1" make -s -C "$2" modules W=1 KREL="$3" MODDIR="$4" KFLAGS="$5"
	mv "$built.new" "$built"
}

MAKEFLAGS=-j$(nproc)
export MAKEFLAGS
cross=
for series in "$@"; do
	kernel=$(release "$series")
	to=$build/modules/$series
	flags=
	[[ $series != coverage ]] || flags=RASHPA_COVERAGE=y
	[[ $series != arm64 ]] || flags="ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- CC=aarch64-linux-gnu-gcc" cross=yes
	! wanted module || modules "module for $series" "$top" "$kernel" "$to" "$flags" \
		"$top"/{Kbuild,drivers,uapi}
	! wanted modules || modules "test modules for $series" "$top/selftests" "$kernel" "$to/tests" "" \
		"$top"/{selftests/modules,uapi}
done
if wanted tools; then
	targets="all tests"
elif wanted demo; then
	targets="rashpa-builder rashpa-fpga rashpa-manager rashpactl remu romulu librashpa.so.0 librashpa-processing.so.0 python"
elif ((${#tests[@]})); then
	targets="rashpa-fpga rashpactl"	# each guest has a board, and looks at buffers
fi
[[ ! ${targets-} ]] || run "tools" make -s -C "$top" tools TARGETS="$targets"
((!${#tests[@]})) || run "${tests[*]##*/}" make -s -C "$top/selftests" O="$build/selftests" "${tests[@]}"
if wanted tests; then
	run "tests" make -s -C "$top/selftests" O="$build/selftests"
	run "tests of the first header" make -s -C "$top/selftests" old O="$build/selftests"
fi
# programs of the arm64 guest; /mnt is its root
if [[ $cross ]]; then
	run "rashpactl for arm64" make -s -C "$top" tools BUILD="$build/arm64" TARGETS=rashpactl \
		MESON="--cross-file selftests/lab/arm64.ini --cross-file selftests/lab/arm64-guest.ini"
	run "tests for arm64" make -s -C "$top/selftests" arm64 O="$build/selftests"
fi
# matplotlib's list of fonts; else each guest would make it, slowly
if wanted tools || wanted demo; then
	run "fonts" env MPLCONFIGDIR="$build/matplotlib" \
		python3 -c "import matplotlib.font_manager"
fi
if wanted compat && command -v i686-linux-gnu-gcc >/dev/null; then
	run "32-bit tests" make -s -C "$top/selftests" compat O="$build/selftests"
elif wanted compat; then
	echo "build: 32-bit tests left out (compiler: lab exec --full)"
fi
