#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Which lines of the driver do the tests run? The suite on the debug kernel, with a module
# that counts, in the guests of check.sh that differ in what the driver does, two at a time.
# Results: build/coverage.json, and a table. coverage.sh [GUEST...]: only these.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit
# shellcheck source-path=SCRIPTDIR source=../guests.sh
. selftests/guests.sh
lab=selftests/lab/lab
out=build/coverage
bad=0

guest() { # NAME OPTION... -- ARGUMENTS-OF-SUITE...
	local name=$1 start=$SECONDS status=0
	local -a options=()

	shift
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	rm -rf "${out:?}/$name"
	mkdir -p "$out"
	"$lab" run --kernel debug --smp 1 --timeout 2700 --log "$out/$name.log" \
		"${options[@]}" -- selftests/coverage/coverage-guest.sh "$out/$name" "$@" \
		>"$out/$name.tap" || status=1
	grep -B8 '^not ok ' "$out/$name.tap" | grep '^not ok \|^#'
	echo "== $name ($((SECONDS - start)) s)"
	return "$status"
}

trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
(($#)) || { set -- on off switch bounce pin; rm -rf "$out"; }
for name; do
	while (($(jobs -pr | wc -l) >= 2)); do
		wait -n || bad=1
	done
	case $name in
	on | off)
		suite_of coverage "$name"
		guest "$name" "${options[@]}" -- "${without[@]}" &
		;;
	switch) guest switch --iommu on --fpga 2 --topology switch -- \
		build/selftests/{path,peer}_test & ;;
	bounce) guest bounce --iommu off --fpga 1 --append swiotlb=force -- \
		build/selftests/bounce_test & ;;
	pin) guest pin --iommu on --fpga 1 --fpga-option --intx -- selftests/tools/bench.sh & ;;
	*) echo "coverage.sh: no guest $name" >&2; exit 2 ;;
	esac
done
while (($(jobs -p | wc -l))); do
	wait -n || bad=1
done
"$lab" exec -- selftests/coverage/coverage.py build/modules/coverage "$out" build/coverage.json || bad=1
exit "$bad"
