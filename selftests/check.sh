#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# All tests: programs on the host, then every kernel with the IOMMU off and on.
# check.sh [SERIES...]. Results in build/check; the last line counts.
set -uo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
lab=selftests/lab/lab
out=build/check
passed=0 failed=0 skipped=0
(($#)) || set -- 6.1 6.12 7.2
rm -rf "$out"
mkdir -p "$out"

# Count a TAP file, show what was not good; a run that broke off counts as failed.
tally() { # TITLE FILE STATUS SECONDS
	local p f s
	s=$(grep -c '^ok .*# SKIP' "$2")
	p=$(($(grep -c '^ok ' "$2") - s))
	f=$(grep -c '^not ok ' "$2")
	if (($3 != 0 && f == 0)); then
		f=1
		echo "not ok - $1: exit status $3"
		tail -n 20 "$2" | sed 's/^/#   /'
	elif ((p + f + s == 0)); then
		f=1
		echo "not ok - $1: ran no test"
	fi
	grep -B8 '^not ok ' "$2" | grep '^not ok \|^#'
	grep '^ok .*# SKIP' "$2"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "== $1: $p passed, $f failed, $s skipped ($4 s)"
}

# check NAME COMMAND...: its output is TAP
check() {
	local name=$1 start=$SECONDS file status=0
	shift
	file=$out/${name// /-}.tap
	echo "== $name ..."
	"$@" >"$file" 2>&1 || status=$?
	tally "$name" "$file" "$status" $((SECONDS - start))
}

check "software FPGA" "$lab" exec -- build/tools/rashpa-fpga-selftest
check "tools" "$lab" exec -- build/tools/tools-selftest tools/profiles
check "sparse" "$lab" exec -- selftests/static.sh
check "lab" selftests/lab/selftest --quick
for series in "$@"; do
	for iommu in off on; do
		# CMA only once, so that both backends are seen on a kernel that has both
		more=()
		[[ $series != 6.* && $iommu == off ]] && more=(--append cma=256M)
		# Debian zeroes pages for us; without that, our own zeroing shows
		[[ $series != 6.* && $iommu == on ]] && more=(--append init_on_alloc=0)
		check "Linux $series IOMMU $iommu" "$lab" run --kernel "$series" --iommu "$iommu" \
			--fpga 2 --memory 2G --timeout 900 "${more[@]}" \
			--log "$out/$series-iommu-$iommu.log" -- selftests/suite.sh
	done
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
