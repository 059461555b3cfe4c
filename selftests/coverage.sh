#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which lines of the driver do the tests run? The suite on the debug kernel, with a module
# that counts, in the guests of check.sh that differ in what the driver does.
# Results: build/coverage.json, and a table. coverage.sh [GUEST...]: only these.
set -uo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit
lab=selftests/lab/lab
out=build/coverage
suite=selftests/coverage-guest.sh
bad=0

# What is not ours, as in check.sh.
# shellcheck disable=SC2054 # the commas are QEMU's
foreign=(--disk 64M --device "edu,dma_mask=0xffffffffffffffff" --device edu
	--object "memory-backend-memfd,id=shm0,size=4M,share=on"
	--device "ivshmem-plain,memdev=shm0"
	--device pcie-root-port,id=port9,chassis=9 --device e1000e,bus=port9)

guest() { # NAME OPTION... -- ARGUMENTS-OF-SUITE...
	local name=$1 start=$SECONDS
	local -a options=()

	shift
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	rm -rf "${out:?}/$name"
	mkdir -p "$out"
	"$lab" run --kernel debug --smp 1 --timeout 1800 --log "$out/$name.log" \
		"${options[@]}" -- "$suite" "$out/$name" "$@" >"$out/$name.tap" || bad=1
	grep -B8 '^not ok ' "$out/$name.tap" | grep '^not ok \|^#'
	echo "== $name ($((SECONDS - start)) s)"
}

(($#)) || { set -- off on switch bounce pin; rm -rf "$out"; }
for name; do
	case $name in
	off) guest off --iommu off --fpga 2 "${foreign[@]}" --append cma=256M -- \
		--without large_test --without bounce_test ;;
	on) guest on --iommu on --fpga 2 "${foreign[@]}" -- \
		--without large_test --without bounce_test ;;
	switch) guest switch --iommu on --fpga 2 --topology switch -- build/selftests/peer_test ;;
	bounce) guest bounce --iommu off --fpga 1 --append swiotlb=force -- \
		build/selftests/bounce_test ;;
	pin) guest pin --iommu on --fpga 1 --fpga-option --intx -- selftests/tests/bench.sh ;;
	*) echo "coverage.sh: no guest $name" >&2; exit 2 ;;
	esac
done
"$lab" exec -- selftests/coverage.py build/modules/coverage "$out" build/coverage.json || bad=1
exit "$bad"
